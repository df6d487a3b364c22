//! What a server says of itself in a head is with every outcome: its id of the request, its rate limits.

use std::time::Duration;

use super::play::{Play, START, ms};
use super::wire::{Answer, STREAM_HEAD, chunk, response};
use crate::config::Overrides;
use crate::dialect::Dialect;
use crate::machine::{FailureKind, Stage};
use crate::outcome::{ErrorKind, Outcome, Truncation};

const CHAT: Dialect = Dialect::OpenAiChat;
const FIELDS: &str = "x-request-id: req_1\r\nx-ratelimit-limit-requests: 60\r\nx-ratelimit-remaining-requests: \
                      59\r\nx-ratelimit-reset-requests: 1s\r\n";

/// What is left of the requests, if the server said so, and whose head that was
fn left(outcome: &Outcome) -> Option<(u64, u32)> {
    let left = outcome.rate_limits()?.requests()?.remaining?;
    Some((left, outcome.response.as_ref()?.attempt))
}

fn head() -> String {
    STREAM_HEAD.replacen("\r\n", &format!("\r\n{FIELDS}"), 1)
}

#[test]
fn of_a_success_and_of_failures_behind_the_head() {
    let once = Overrides::new().max_attempts(1);
    let mut success = Play::stream(CHAT, once).start();
    success.at(100).request().receive(head());
    success.receive(chunk(CHAT.text("Hi") + &CHAT.terminal() + "data: [DONE]\n\n"));
    assert!(success.outcome().result.is_ok());

    let mut cut = Play::stream(CHAT, once).start();
    cut.at(100).request().receive(head()).receive(chunk(CHAT.text("Hi"))).fin();
    assert!(matches!(cut.error(), ErrorKind::Truncated(Truncation::InResponse { .. })));

    let mut in_band = Play::stream(CHAT, once).start();
    in_band.at(100).request().receive(head()).receive(chunk(CHAT.overload()));
    assert!(matches!(in_band.error(), ErrorKind::InBand(_)));

    let mut silent = Play::stream(CHAT, once).start();
    silent.at(100).request().receive(head()).expire();
    assert!(matches!(silent.error(), ErrorKind::Timeout(_)));

    let mut cancelled = Play::stream(CHAT, once).start();
    cancelled.at(100).request().receive(head()).cancel();

    let mut refused = Play::unary(once).start();
    refused.at(100).request().receive(response("429 No", &[FIELDS.trim_end()], "no"));
    assert!(matches!(refused.error(), ErrorKind::Status(_)));

    for play in [&success, &cut, &in_band, &silent, &cancelled, &refused] {
        let outcome = play.outcome();
        assert_eq!((outcome.request_id(), left(outcome)), (Some("req_1"), Some((59, 1))));
        let response = outcome.response.as_ref().unwrap();
        assert_eq!(
            (response.at - START, &response.headers["x-request-id"]),
            (ms(100), &"req_1".parse().unwrap())
        );
        let printed = serde_json::to_value(outcome).unwrap();
        assert_eq!(printed["request_id"], "req_1");
        assert_eq!(printed["rate_limits"]["limits"][0]["resets_in"], 1.0);
    }
}

#[test]
fn of_the_last_attempt_that_got_one() {
    let mut play = Play::unary(Overrides::new().max_attempts(3)).start();
    play.at(100).request().receive(response("429 No", &["x-ratelimit-remaining-requests: 5"], "no"));
    play.expire().request().receive(response("429 No", &["x-ratelimit-remaining-requests: 0"], "no"));
    play.expire().fail(Stage::Connect, FailureKind::Refused, "refused");
    assert!(matches!(play.error(), ErrorKind::Transport(_)));
    assert_eq!(left(play.outcome()), Some((0, 2)));

    let mut none = Play::unary(Overrides::new().max_attempts(1)).start();
    none.fail(Stage::Connect, FailureKind::Refused, "refused");
    let outcome = none.outcome();
    assert_eq!((outcome.response.as_ref(), outcome.rate_limits(), outcome.request_id()), (None, None, None));
}

/// A stream may go on for long, but what the server said was of the time of its head
#[test]
fn a_point_in_time_is_counted_from_the_head() {
    let mut play = Play::stream(CHAT, Overrides::new()).start();
    // The call begins at 08:49:30.
    let field = "anthropic-ratelimit-tokens-reset: 1994-11-06T08:49:47Z";
    play.at(7_000).request().receive(STREAM_HEAD.replacen("\r\n", &format!("\r\n{field}\r\n"), 1));
    play.at(60_000).receive(chunk(CHAT.text("Hi") + &CHAT.terminal() + "data: [DONE]\n\n"));
    let limits = play.outcome().rate_limits().unwrap();
    assert_eq!(limits.tokens().unwrap().resets_in, Some(Duration::from_secs(10)));
}

#[test]
fn an_id_that_only_the_error_names() {
    let body = r#"{"type":"error","error":{"type":"overloaded_error","message":"no"},"request_id":"req_2"}"#;
    let mut play = Play::unary(Overrides::new().max_attempts(1)).start();
    play.at(100).request().receive(response("529 No", &["cf-ray: "], body));
    assert_eq!(play.outcome().request_id(), Some("req_2"));
    let mut play = Play::unary(Overrides::new().max_attempts(1)).start();
    play.at(100).request().receive(response("529 No", &["cf-ray: ray", "request-id: req_3"], body));
    assert_eq!(play.outcome().request_id(), Some("req_3"));
}
