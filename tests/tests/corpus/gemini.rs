//! G: Gemini `streamGenerateContent`.

use steadfast::dialect::Dialect;
use steadfast::outcome::{ErrorKind, ProtocolError};
use steadfast_tests::corpus::events::{g, gf};
use steadfast_tests::corpus::{Answer, Case, End, Ran};

fn gemini() -> Case {
    // Nothing of this area is retried, whatever the budget.
    Case::stream(Dialect::Gemini).config(|overrides| overrides.max_attempts(3))
}

fn body(body: impl AsRef<[u8]>, end: End) -> Ran {
    gemini().body(body, end).answer(Answer::stream().send(gf("Whole", "STOP")).end(End::Clean)).play()
}

#[test]
fn g01_no_sentinel_and_a_last_chunk_without_content() {
    let last = "data: {\"candidates\":[{\"index\":0,\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"promptTokenCount\":5,\"candidatesTokenCount\":2,\"totalTokenCount\":7}}\r\n\r\n";
    let ran = body(g("Hi") + last, End::Clean);
    assert_eq!(ran.told(), r#"completed "Hi" finish=STOP usage=5/2 turn@0 end@0 requests=1"#);
    assert_eq!(ran.turn().usage.as_ref().unwrap().total_tokens, Some(7));
}

#[test]
fn g02_clean_end_without_a_finish_reason() {
    assert_eq!(
        body(g("Half"), End::Clean).told(),
        r#"truncated(no terminal state) "Half" finish=- usage=- billing=delivered end@0 requests=1"#
    );
}

#[test]
fn g04_prompt_blocked() {
    for reason in ["PROHIBITED_CONTENT", "NEW_BLOCK_9"] {
        let event = format!(
            "data: {{\"promptFeedback\":{{\"blockReason\":\"{reason}\"}},\"usageMetadata\":{{\"promptTokenCount\":5,\"totalTokenCount\":5}}}}\r\n\r\n"
        );
        assert_eq!(
            body(event, End::Clean).told(),
            format!(r#"blocked({reason}) "" finish=- usage=5/- billing=maybe_billed end@0 requests=1"#)
        );
    }
}

#[test]
fn g05_safety_in_mid_answer() {
    for reason in ["SAFETY", "RECITATION", "BLOCKLIST", "SPII", "IMAGE_SAFETY", "NEW_REASON_7"] {
        let last = format!("data: {{\"candidates\":[{{\"finishReason\":\"{reason}\"}}]}}\r\n\r\n");
        assert_eq!(
            body(g("I can") + &last, End::Clean).told(),
            format!(r#"incomplete({reason}) "I can" finish={reason} usage=- turn@0 end@0 requests=1"#)
        );
    }
}

#[test]
fn g06_malformed_function_call() {
    let malformed = "data: {\"candidates\":[{\"index\":0,\"content\":{\"role\":\"model\",\"parts\":[{\"thoughtSignature\":\"eA==\"}]},\"finishReason\":\"MALFORMED_FUNCTION_CALL\",\"finishMessage\":\"bad call\"}]}\r\n\r\n";
    assert_eq!(
        body(malformed, End::Clean).told(),
        r#"in_band(MALFORMED_FUNCTION_CALL - - "bad call") "" finish=- usage=- billing=maybe_billed end@0 requests=1"#
    );
    let unexpected =
        "data: {\"candidates\":[{\"index\":0,\"finishReason\":\"UNEXPECTED_TOOL_CALL\"}]}\r\n\r\n";
    assert_eq!(
        body(unexpected, End::Clean).told(),
        r#"in_band(UNEXPECTED_TOOL_CALL - - "") "" finish=- usage=- billing=maybe_billed end@0 requests=1"#
    );
}

#[test]
fn g07_a_json_array_in_place_of_events() {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
    let reads = [
        "[{\n  \"candidates\": [",
        "{\"index\":0,\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"H}],{\\\"i",
        "\"}]}}]\n}\n,\r\n{\"candidates\":[{\"index\":0,\"finishReason\":\"STOP\"}]}\n]",
    ];
    let answer = || Answer::raw(head).chunked().send(reads[0]).at(1.0).send(reads[1]).at(2.0);
    assert_eq!(
        gemini().answer(answer().send(reads[2]).end(End::Clean)).play().told(),
        r#"completed "H}],{\"i" finish=STOP usage=- turn@2 end@2 requests=1"#
    );
    // Each element is taken as it closes: nothing waits for the end of the array.
    let (first, rest) = reads[2].split_at("\"}]}}]\n}".len());
    let ran = gemini().answer(answer().send(first).at(9.0).send(rest).end(End::Reset)).play();
    assert_eq!(
        ran.told(),
        r#"completed "H}],{\"i" finish=STOP usage=- turn@9 end@9 requests=1 notes=[UncleanEnd]"#
    );
    let ran = gemini()
        .config(|overrides| overrides.stream_idle_timeout(5.0))
        .answer(answer().send(first).end(End::Open))
        .play();
    assert_eq!(
        ran.told(),
        r#"timeout(stream_idle 5/5) "H}],{\"i" finish=- usage=- billing=delivered end@7 requests=1"#
    );
}

#[test]
fn g10_a_payload_that_is_no_object() {
    // (a) A quota per minute comes back by waiting: retried, and surfaced when the budget is gone.
    let array =
        "data: [{\"error\":{\"code\":429,\"message\":\"quota\",\"status\":\"RESOURCE_EXHAUSTED\"}}]\r\n\r\n";
    let ran = Case::stream(Dialect::Gemini).body(array, End::Clean).play();
    assert_eq!(
        ran.told(),
        r#"in_band(RESOURCE_EXHAUSTED 429 429 "quota") "" finish=- usage=- billing=maybe_billed end@0 requests=1"#
    );
    assert_eq!(
        body(array, End::Clean).told_without_times(),
        r#"completed "Whole" finish=STOP usage=- requests=2"#
    );
    // (b) No panic, and no retry: the same bytes would come again (rule RTY-1).
    let ran = body("data: \"error\"\r\n\r\n", End::Clean);
    assert_eq!(
        ran.told(),
        r#"protocol(malformed) "" finish=- usage=- billing=maybe_billed end@0 requests=1"#
    );
    let ErrorKind::Protocol(ProtocolError::Malformed { snippet, .. }) = ran.kind() else { unreachable!() };
    assert_eq!(snippet, "\"error\"");
}
