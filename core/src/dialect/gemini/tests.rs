use super::super::Dialect::Gemini as GEMINI;
use super::super::finish::Ending;
use super::super::testing::{malformed, play, play_unary};
use super::*;

fn content(text: &str) -> String {
    parts(&format!(r#"{{"text":"{text}"}}"#))
}

fn parts(parts: &str) -> String {
    format!(r#"{{"candidates":[{{"index":0,"content":{{"role":"model","parts":[{parts}]}}}}]}}"#)
}

fn incomplete(word: &str) -> Ending {
    Ending::Incomplete(word.to_owned())
}

#[test]
fn g01_a_finish_reason_without_content() {
    let last = r#"{"candidates":[{"index":0,"finishReason":"STOP"}],"responseId":"r1","modelVersion":"gemini","usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":2,"totalTokenCount":7}}"#;
    let played = play(GEMINI, &[&content("Hi"), last]);
    assert_eq!((played.turn.text(), played.ending()), ("Hi", Ending::Completed));
    assert_eq!(played.progress, [Progress::Open, Progress::Marked]);
    assert_eq!(played.tokens(), Some([Some(5), Some(2), Some(7)]));
    assert_eq!((played.turn.id.as_deref(), played.turn.model.as_deref()), (Some("r1"), Some("gemini")));
    // No sentinel in this dialect, whatever a gateway adds.
    assert_eq!(play(GEMINI, &[&content("Hi"), last, "[DONE]"]).last(), Progress::Marked);
}

#[test]
fn g02_no_finish_reason_is_no_end() {
    let played = play(GEMINI, &[&content("Half")]);
    assert_eq!(
        (played.turn.text(), played.last(), played.turn.finish_reason()),
        ("Half", Progress::Open, None)
    );
}

#[test]
fn g04_a_blocked_prompt_is_no_answer() {
    let played = play(
        GEMINI,
        &[
            r#"{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":5,"totalTokenCount":5}}"#,
        ],
    );
    assert_eq!((played.blocked.as_deref(), played.opened), (Some("PROHIBITED_CONTENT"), 0));
    assert_eq!((played.tokens(), played.ending()), (Some([Some(5), None, Some(5)]), Ending::Empty));
    let other = play(GEMINI, &[r#"{"promptFeedback":{"blockReason":"NEW_ONE"}}"#]);
    assert_eq!((other.blocked.as_deref(), other.unknown), (Some("NEW_ONE"), 0));
}

#[test]
fn g05_safety_in_mid_answer() {
    for word in ["SAFETY", "RECITATION", "BLOCKLIST", "SPII", "IMAGE_SAFETY", "NEW_REASON_7", "MAX_TOKENS"] {
        let last = format!(r#"{{"candidates":[{{"finishReason":"{word}"}}]}}"#);
        let played = play(GEMINI, &[&content("I can"), &last]);
        assert_eq!((played.turn.text(), played.ending()), ("I can", incomplete(word)));
        assert_eq!(played.last(), Progress::Marked);
    }
}

#[test]
fn g06_a_malformed_function_call_is_an_error() {
    let played = play(
        GEMINI,
        &[
            r#"{"candidates":[{"index":0,"content":{"role":"model","parts":[{"thoughtSignature":"eA=="}]},"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"bad call"}]}"#,
        ],
    );
    assert_eq!(played.error(), (Some("MALFORMED_FUNCTION_CALL"), None, None, "bad call"));
    assert_eq!(played.last(), Progress::Open);
    let bare = play(GEMINI, &[r#"{"candidates":[{"index":0,"finishReason":"UNEXPECTED_TOOL_CALL"}]}"#]);
    assert_eq!(bare.error(), (Some("UNEXPECTED_TOOL_CALL"), None, None, ""));
}

#[test]
fn g07_text_with_brackets_and_escapes() {
    let played = play_unary(
        GEMINI,
        "[{\n  \"candidates\": [{\"index\":0,\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"H}],{\\\"i\"}]}}]\n}\n,\r\n{\"candidates\":[{\"index\":0,\"finishReason\":\"STOP\"}]}\n]",
    );
    assert_eq!((played.turn.text(), played.ending()), ("H}],{\"i", Ending::Completed));
    assert_eq!((played.last(), played.opened), (Progress::Ended, 1));
}

#[test]
fn g10_a_payload_that_is_no_object() {
    let played =
        play(GEMINI, &[r#"[{"error":{"code":429,"message":"quota","status":"RESOURCE_EXHAUSTED"}}]"#]);
    assert_eq!(played.error(), (Some("RESOURCE_EXHAUSTED"), Some("429"), Some(429), "quota"));
    assert_eq!(malformed(GEMINI, &[r#""error""#]), "JSON, but not an object");
    assert_eq!(malformed(GEMINI, &["error"]), "not JSON, at line 1 column 1");
    assert_eq!(play(GEMINI, &[r#"{"new":1}"#]).unknown, 1);
}

#[test]
fn a_repeated_stop_does_not_close_the_answer() {
    let stop = |text: &str| content(text).replace(r#"]}}]}"#, r#"]},"finishReason":"STOP"}]}"#);
    let played = play(GEMINI, &[&stop("a"), &stop("b"), &stop("")]);
    assert_eq!((played.turn.text(), played.ending()), ("ab", Ending::Completed));
    assert_eq!(played.progress, [Progress::Marked; 3]);
}

#[test]
fn thoughts_and_function_calls() {
    let played = play(
        GEMINI,
        &[
            &parts(r#"{"text":"Hm","thought":true},{"text":"Hi","thought":false}"#),
            &parts(
                r#"{"functionCall":{"name":"f","args":{"a":"\n"}}},{"functionCall":{"id":"c2","name":"f"}}"#,
            ),
            // Streamed arguments: the path pieces are not JSON and have no name.
            &parts(
                r#"{"functionCall":{"name":"g","willContinue":true}},{"functionCall":{"partialArgs":[{"jsonPath":"$.a"}]}}"#,
            ),
        ],
    );
    assert_eq!((&*played.turn.choices[0].reasoning, played.turn.text()), ("Hm", "Hi"));
    assert_eq!(played.calls(), [["", "f", r#"{"a":"\n"}"#], ["c2", "f", ""], ["", "g", ""]]);
}

#[test]
fn citations_pass_as_they_came() {
    let cited = |member: &str| content("Hi").replace("]}}]}", &format!("]}},{member}}}]}}"));
    let played = play(
        GEMINI,
        &[
            &cited(r#""groundingMetadata":{"webSearchQueries":["q"]}"#),
            &cited(r#""citationMetadata":{"citationSources":[{"uri":"u"}]}"#),
            &cited(r#""groundingMetadata":{},"citationMetadata":null"#),
        ],
    );
    assert_eq!((played.turn.text(), played.unknown), ("HiHiHi", 2));
}

#[test]
fn every_candidate_must_finish() {
    let both = r#"{"candidates":[{"index":0,"finishReason":"STOP"},{"index":1,"content":{"parts":[{"text":"b"}]}}]}"#;
    let last = r#"{"candidates":[{"index":1,"finishReason":"SAFETY"}]}"#;
    let played = play(GEMINI, &[both, last]);
    assert_eq!(played.progress, [Progress::Open, Progress::Marked]);
    assert_eq!((played.opened, played.ending()), (2, incomplete("SAFETY")));
}

#[test]
fn null_equals_absent() {
    let played = play(
        GEMINI,
        &[
            r#"{"candidates":null,"usageMetadata":null,"promptFeedback":null,"error":null,"responseId":"r"}"#,
            r#"{"candidates":[{"index":null,"content":null,"finishReason":null}]}"#,
            r#"{"candidates":[{"content":{"parts":null}}]}"#,
            r#"{"candidates":[{"content":{"parts":[{"text":null,"thought":null,"functionCall":null}]},"finishReason":""}]}"#,
        ],
    );
    assert_eq!((played.turn.text(), played.errors.len(), played.last()), ("", 0, Progress::Open));
}

#[test]
fn arguments_that_are_streamed_by_path_pass_as_they_came() {
    let call = parts(r#"{"functionCall":{"id":"t","name":"f","willContinue":true}}"#);
    let piece = parts(r#"{"functionCall":{"partialArgs":[{"jsonPath":"$.a","stringValue":"x"}]}}"#);
    let played = play(GEMINI, &[&call, &piece]);
    assert_eq!((played.calls(), played.unknown), (vec![["t", "f", ""]], 1));
}
