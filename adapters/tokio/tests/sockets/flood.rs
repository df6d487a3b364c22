//! A server that sends without pause and without end does not outlive a bound.

use std::time::Duration;

use steadfast::outcome::{ErrorKind, Phase, Reason};
use steadfast_mock::Mock;
use steadfast_tokio::Overrides;

use crate::requests::{client_of, current_thread, mock, once, stream_from, within_cap};

const BOUND: Duration = Duration::from_millis(300);

/// Answers with `begin`, then with `flood` over and over, as fast as it is read
fn flooding(begin: &str, flood: &str) -> Mock {
    let bytes = r#"
        hi = """data: {"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}\n\n"""
        stop = """data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n"""
        comment = ": keep-alive\n\n"
        unknown = "event: heartbeat\ndata: {\"beat\":1}\n\n"
    "#;
    let steps = format!(
        r#"{{ read = "request" }}, {{ head = ["200 OK", "content-type: text/event-stream"] }}, {{ send = "{begin}" }},
        {{ repeat = {{ times = "forever", steps = [{{ send = {{ repeat = "{flood}", times = 500 }} }}] }} }}"#
    );
    mock("", bytes, &[&steps])
}

#[test]
fn after_marker_ends_a_flood_of_comments_and_of_events_that_are_delivered() {
    for flood in ["$comment", "$unknown"] {
        let mock = flooding("$hi$stop", flood);
        let request = stream_from(&mock.base_url(), once().after_marker(BOUND.as_secs_f64()));
        let outcome = current_thread().block_on(within_cap(client_of(&mock).send(request)));
        assert_eq!(outcome.result.expect("a success").turn.text(), "Hi");
        assert_eq!(outcome.timeline.attempts[0].reason, Reason::AfterMarker);
        let span = outcome.timeline.spans.last().expect("a span");
        assert!((BOUND..BOUND * 10).contains(&(span.ended - span.began)), "{span:?}");
    }
}

#[test]
fn stream_deadline_ends_a_flood_of_content() {
    let mock = flooding("$hi", "$hi");
    let request = stream_from(&mock.base_url(), once().stream_deadline(BOUND.as_secs_f64()));
    let outcome = current_thread().block_on(within_cap(client_of(&mock).send(request)));
    let error = outcome.result.expect_err("a breach");
    let ErrorKind::Timeout(timeout) = error.kind else { panic!("{error}") };
    assert_eq!((timeout.phase, timeout.setting), (Phase::Deadline, "stream_deadline"));
    assert!((BOUND..BOUND * 10).contains(&timeout.elapsed), "{timeout}");
    assert!(error.turn.text().len() > 1000);
}

#[test]
fn content_idle_ends_a_flood_of_comments_and_of_events_that_are_no_content() {
    // The unknown events are delivered, and each time the consumer's own time moves the deadline on.
    for flood in ["$comment", "$unknown"] {
        let mock = flooding("$hi", flood);
        let overrides: Overrides = once().content_idle_timeout(BOUND.as_secs_f64());
        let outcome = current_thread()
            .block_on(within_cap(client_of(&mock).send(stream_from(&mock.base_url(), overrides))));
        let error = outcome.result.expect_err("a breach");
        let ErrorKind::Timeout(timeout) = error.kind else { panic!("{error}") };
        assert_eq!(timeout.phase, Phase::ContentIdle, "{flood}");
        assert!((BOUND..BOUND * 10).contains(&timeout.elapsed), "{flood}: {timeout}");
    }
}
