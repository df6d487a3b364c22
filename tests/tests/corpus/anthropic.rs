//! F: Anthropic Messages.

use steadfast::dialect::Dialect;
use steadfast::retry::{Class, class};
use steadfast_tests::corpus::events::{AB, AE, AP, AS, AX, ad, at};
use steadfast_tests::corpus::{Answer, Case, End, Ran};

fn messages() -> Case {
    Case::stream(Dialect::Anthropic)
}

fn body(body: impl AsRef<[u8]>, end: End) -> Ran {
    messages().body(body, end).play()
}

fn whole(text: &str) -> String {
    [AS, AB, &at(text), AE, &ad("end_turn"), AX].concat()
}

fn retrying() -> Case {
    messages().config(|overrides| overrides.max_attempts(3))
}

#[test]
fn f01_overloaded_after_text_was_streamed() {
    let error = "event: error\ndata: {\"type\":\"error\",\"error\":{\"details\":null,\"type\":\"overloaded_error\",\"message\":\"busy\"},\"request_id\":\"req_x\"}\n\n";
    let ran = retrying()
        .body([AS, AB, &at("Half of the"), error].concat(), End::Clean)
        .answer(Answer::stream().send(whole("Hi")).end(End::Clean))
        .play();
    assert_eq!(
        ran.told(),
        r#"in_band(overloaded_error - - "busy") "Half of the" finish=- usage=5/1 billing=delivered end@0 requests=1"#
    );
    assert_eq!(ran.provider_error().request_id.as_deref(), Some("req_x"));
    assert_eq!(
        class::error_class(ran.provider_error()),
        Class::Retry,
        "retryable, had nothing been delivered"
    );
}

#[test]
fn f02_overloaded_before_any_content() {
    let error = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"}}\n\n";
    let case = |first: &[&str]| {
        retrying()
            .body(first.concat(), End::Clean)
            .answer(Answer::stream().send(whole("Hi")).end(End::Clean))
            .play()
    };
    for first in [&[AS, error][..], &[AS, AP, error], &[error]] {
        let ran = case(first);
        assert_eq!(ran.told_without_times(), r#"completed "Hi" finish=end_turn usage=5/2 requests=2"#);
        let pause = ran.pause_after(1).as_secs_f64();
        assert!(0.0 < pause && pause < 1.0, "backoff with jitter, not {pause} s");
    }
    let ran = retrying().body([AS, error].concat(), End::Clean).play();
    assert_eq!(
        ran.told_without_times(),
        r#"in_band(overloaded_error - - "busy") "" finish=- usage=5/1 billing=maybe_billed requests=3"#
    );
}

#[test]
fn f03_pings_and_silent_thinking() {
    let mut answer = Answer::stream().send(AS);
    for ping in 1..=11 {
        answer = answer.at(f64::from(20 * ping)).send(AP);
    }
    let answer = answer.at(231.0).send([AB, &at("Hi"), AE, &ad("end_turn"), AX].concat()).end(End::Open);
    let ran = messages().config(|overrides| overrides.stream_idle_timeout(45.0)).answer(answer).play();
    assert_eq!(ran.told(), r#"completed "Hi" finish=end_turn usage=5/2 turn@231 end@231 requests=1"#);
    assert_eq!(ran.played.outcome.timeline.attempts[0].deltas, 1, "pings are no content");
}

#[test]
fn f05_clean_end_with_neither_stop_reason_nor_message_stop() {
    let ran = retrying()
        .body([AS, AB, &at("Half")].concat(), End::Clean)
        .answer(Answer::stream().send(whole("Hi")).end(End::Clean))
        .play();
    assert_eq!(
        ran.told(),
        r#"truncated(no terminal state) "Half" finish=- usage=5/1 billing=delivered end@0 requests=1"#
    );
}

#[test]
fn f06_message_stop_and_the_socket_stays_open() {
    let answer = Answer::stream().send(whole("Hi")).for_ever(15.0, AP).end(End::Open);
    let ran = messages().answer(answer).play();
    assert_eq!(ran.told(), r#"completed "Hi" finish=end_turn usage=5/2 turn@0 end@0 requests=1"#);
}

#[test]
fn f08_new_delta_and_event_types() {
    let delta = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"compaction_delta\",\"content\":\"zz\"}}\n\n";
    let event = "event: shiny_event\ndata: {\"type\":\"shiny_event\"}\n\n";
    let ran = body([AS, AB, delta, &at("Hi"), event, AE, &ad("end_turn"), AX].concat(), End::Clean);
    assert_eq!(ran.told(), r#"completed "Hi" finish=end_turn usage=5/2 turn@0 end@0 requests=1"#);
}

#[test]
fn f09_no_event_lines_at_all() {
    let whole = whole("Hi");
    let lines: Vec<&str> = whole.split_inclusive('\n').filter(|line| !line.starts_with("event: ")).collect();
    assert!(!lines.concat().contains("event:"));
    let ran = body(lines.concat(), End::Clean);
    assert_eq!(ran.told(), r#"completed "Hi" finish=end_turn usage=5/2 turn@0 end@0 requests=1"#);
}

#[test]
fn f09_where_event_and_type_differ_the_type_wins_but_for_an_error() {
    let renamed = at("Hi").replace("event: content_block_delta", "event: ping");
    let ran = body([AS, AB, &renamed, AE, &ad("end_turn"), AX].concat(), End::Clean);
    assert_eq!(ran.told(), r#"completed "Hi" finish=end_turn usage=5/2 turn@0 end@0 requests=1"#);
    let as_error = AP.replace("event: ping", "event: error");
    let ran = body([AS, AB, &at("Hi"), &as_error].concat(), End::Clean);
    assert_eq!(
        ran.told(),
        r#"in_band(error - - "{\"type\":\"ping\"}") "Hi" finish=- usage=5/1 billing=delivered end@0 requests=1"#
    );
}
