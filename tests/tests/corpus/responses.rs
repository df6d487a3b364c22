//! E: OpenAI Responses.

use steadfast::dialect::Dialect;
use steadfast_tests::corpus::events::{D, RC, RX, rt};
use steadfast_tests::corpus::{Answer, Case, End, Ran};

fn responses() -> Case {
    Case::stream(Dialect::OpenAiResponses)
}

fn body(body: impl AsRef<[u8]>, end: End) -> Ran {
    responses().body(body, end).play()
}

/// The answer of a second attempt, which no call may ask for without reason
fn whole() -> steadfast_scenario::Connection {
    Answer::stream().send([RC, &rt("Whole"), RX].concat()).end(End::Clean)
}

fn failed(error: &str) -> String {
    format!(
        "event: response.failed\ndata: {{\"type\":\"response.failed\",\"sequence_number\":2,\"response\":{{\"id\":\"r1\",\"status\":\"failed\",\"error\":{error},\"output\":[],\"usage\":null}}}}\n\n"
    )
}

#[test]
fn e01_completed_and_the_connection_stays_open() {
    let answer = || Answer::stream().send(RC).at(1.0).send(rt("Hi")).at(1.1).send(RX);
    let expected = r#"completed "Hi" finish=completed usage=5/2 turn@1.1 end@1.1 requests=1"#;
    assert_eq!(responses().answer(answer().end(End::Open)).play().told(), expected);
    let with_done = answer().at(1.2).send(D).end(End::Open);
    assert_eq!(responses().answer(with_done).play().told(), expected);
}

#[test]
fn e01_a_sentinel_of_another_api_in_the_same_read_is_ignored() {
    let ran = body([RC, &rt("Hi"), RX, D].concat(), End::Open);
    assert_eq!(ran.told(), r#"completed "Hi" finish=completed usage=5/2 turn@0 end@0 requests=1"#);
}

#[test]
fn e02_closed_before_any_terminal_event() {
    let retrying = || responses().config(|overrides| overrides.max_attempts(3));
    // (a) delivered: no retry, though the budget allows one
    let ran = retrying().body([RC, &rt("Hi")].concat(), End::Clean).answer(whole()).play();
    assert_eq!(
        ran.told(),
        r#"truncated(no terminal state) "Hi" finish=- usage=- billing=delivered end@0 requests=1"#
    );
    // (b) nothing delivered: truncated, and retried where the budget allows
    let ran = body(RC, End::Cut);
    assert_eq!(
        ran.told(),
        r#"truncated(in response) "" finish=- usage=- billing=maybe_billed end@0 requests=1"#
    );
    let ran = retrying().body(RC, End::Cut).answer(whole()).play();
    assert_eq!(ran.told_without_times(), r#"completed "Whole" finish=completed usage=5/2 requests=2"#);
    assert!(ran.pause_after(1).as_secs_f64() < 1.0);
    // (c) the sentinel of another API ends nothing
    let ran = retrying().body([RC, &rt("Hi"), D].concat(), End::Clean).answer(whole()).play();
    assert_eq!(
        ran.told(),
        r#"truncated(no terminal state) "Hi" finish=- usage=- billing=delivered end@0 requests=1 notes=[PayloadSkipped]"#
    );
}

#[test]
fn e03_incomplete() {
    for reason in ["max_output_tokens", "content_filter"] {
        let event = format!(
            "event: response.incomplete\ndata: {{\"type\":\"response.incomplete\",\"sequence_number\":5,\"response\":{{\"id\":\"r1\",\"status\":\"incomplete\",\"incomplete_details\":{{\"reason\":\"{reason}\"}},\"usage\":{{\"input_tokens\":5,\"output_tokens\":16}}}}}}\n\n"
        );
        let ran = responses()
            .config(|overrides| overrides.max_attempts(3))
            .body([RC, &rt("Hi"), &event].concat(), End::Open)
            .answer(whole())
            .play();
        assert_eq!(
            ran.told(),
            format!(r#"incomplete({reason}) "Hi" finish={reason} usage=5/16 turn@0 end@0 requests=1"#)
        );
    }
}

#[test]
fn e04_failed() {
    let retrying = |error: &str| {
        let body = [RC, &failed(error)].concat();
        responses()
            .config(|overrides| overrides.max_attempts(3))
            .body(body, End::Clean)
            .answer(whole())
            .play()
    };
    let ran = retrying(r#"{"code":"context_length_exceeded","message":"too long"}"#);
    assert_eq!(
        ran.told(),
        r#"in_band(- context_length_exceeded - "too long") "" finish=failed usage=- billing=maybe_billed end@0 requests=1"#
    );
    for code in ["server_error", "rate_limit_exceeded"] {
        let error = format!(r#"{{"code":"{code}","message":"too long"}}"#);
        assert_eq!(
            retrying(&error).told_without_times(),
            r#"completed "Whole" finish=completed usage=5/2 requests=2"#,
            "nothing was delivered, so {code} is retried"
        );
        let ran = body([RC, &failed(&error)].concat(), End::Clean);
        assert_eq!(
            ran.told(),
            format!(
                r#"in_band(- {code} - "too long") "" finish=failed usage=- billing=maybe_billed end@0 requests=1"#
            )
        );
    }
    assert_eq!(
        retrying("null").told(),
        r#"in_band(response.failed - - "") "" finish=failed usage=- billing=maybe_billed end@0 requests=1"#
    );
}

#[test]
fn e06_unknown_event_types_in_the_middle() {
    let keepalive = "event: keepalive\ndata: {\"type\":\"keepalive\",\"sequence_number\":1}\n\n";
    let brand_new =
        "event: response.brand_new.thing\ndata: {\"type\":\"response.brand_new.thing\",\"x\":1}\n\n";
    let ran = body([RC, keepalive, &rt("Hi"), brand_new, RX].concat(), End::Open);
    assert_eq!(ran.told(), r#"completed "Hi" finish=completed usage=5/2 turn@0 end@0 requests=1"#);
    assert_eq!(ran.played.outcome.timeline.attempts[0].events, 5);
    // They are activity: the idle clock starts afresh with each
    let ran = responses()
        .config(|overrides| overrides.stream_idle_timeout(10.0))
        .answer(
            Answer::stream()
                .send(RC)
                .at(9.0)
                .send(keepalive)
                .at(18.0)
                .send(rt("Hi"))
                .at(27.0)
                .send(brand_new)
                .at(36.0)
                .send(RX)
                .end(End::Open),
        )
        .play();
    assert_eq!(ran.told(), r#"completed "Hi" finish=completed usage=5/2 turn@36 end@36 requests=1"#);
}

#[test]
fn e08_a_chat_error_frame_inside_a_responses_stream() {
    let frame = "data: {\"error\":{\"message\":\"quota exhausted\",\"type\":\"insufficient_quota\",\"code\":\"insufficient_quota\"}}\n\n";
    let with_retries = || responses().config(|overrides| overrides.max_attempts(3));
    let ran = with_retries().body([RC, &rt("Hi"), frame].concat(), End::Clean).answer(whole()).play();
    assert_eq!(
        ran.told(),
        r#"in_band(insufficient_quota insufficient_quota - "quota exhausted") "Hi" finish=- usage=- billing=delivered end@0 requests=1"#
    );
    // Not retryable either where nothing was delivered
    let ran = with_retries().body([RC, frame].concat(), End::Clean).answer(whole()).play();
    assert_eq!(
        ran.told(),
        r#"in_band(insufficient_quota insufficient_quota - "quota exhausted") "" finish=- usage=- billing=maybe_billed end@0 requests=1"#
    );
}
