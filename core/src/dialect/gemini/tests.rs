use super::super::Dialect::Gemini as GEMINI;
use super::super::finish::Ending;
use super::super::testing::{malformed, play, play_unary};
use super::*;
use crate::outcome::{Signature, Signed};

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
        ],
    );
    assert_eq!((&*played.turn.choices[0].reasoning, played.turn.text()), ("Hm", "Hi"));
    assert_eq!(played.calls(), [["", "f", r#"{"a":"\n"}"#], ["c2", "f", ""]]);
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

/// The form of Vertex AI's `streamFunctionCallArguments`
#[test]
fn arguments_that_are_streamed_by_path_are_put_together() {
    let call = parts(r#"{"functionCall":{"id":"t","name":"f","willContinue":true}}"#);
    let pieces = [
        r#"{"functionCall":{"partialArgs":[{"jsonPath":"$.city","stringValue":"New ","willContinue":true}],"willContinue":true}}"#,
        r#"{"functionCall":{"partialArgs":[{"jsonPath":"$.city","stringValue":"Delhi"},{"jsonPath":"$.days[0]","numberValue":3}],"willContinue":true}}"#,
        r#"{"functionCall":{}}"#,
    ]
    .map(parts);
    let end = parts("{\"text\":\"\"}").replace("]}}]}", "]},\"finishReason\":\"STOP\"}]}");
    let [first, second, last] = &pieces;
    let played = play(GEMINI, &[&call, first, second, last, &end]);
    assert_eq!(played.calls(), [["t", "f", r#"{"city":"New Delhi","days":[3]}"#]]);
    assert_eq!((played.unknown, played.ending()), (0, Ending::Completed));

    let cut = play(GEMINI, &[&call, first, &end]);
    assert_eq!(cut.calls(), [["t", "f", r#"{"city":"New ""#]]);
    let another = parts(r#"{"functionCall":{"name":"g","args":{"a":1}}}"#);
    let followed = play(GEMINI, &[&call, &another, &end]);
    assert_eq!(followed.calls(), [["t", "f", "{"], ["", "g", r#"{"a":1}"#]]);

    let stray =
        parts(r#"{"functionCall":{"partialArgs":[{"jsonPath":"$a","boolValue":true}],"willContinue":true}}"#);
    let broken = play(GEMINI, &[&call, &stray, last, &end]);
    assert_eq!((broken.calls(), broken.unknown), (vec![["t", "f", "{"]], 1));
    let nobodys = play(GEMINI, &[first]);
    assert_eq!((nobodys.calls().len(), nobodys.unknown), (0, 1));
    let at_once = parts(
        r#"{"functionCall":{"name":"f","args":{"a":1},"partialArgs":[{"jsonPath":"$.b","boolValue":true}]}}"#,
    );
    assert_eq!(play(GEMINI, &[&at_once]).calls(), [["", "f", r#"{"a":1,"b":true}"#]]);
}

#[test]
fn parts_that_are_no_text_pass_as_they_came() {
    for part in [
        r#"{"inlineData":{"mimeType":"image/png","data":"eA=="}}"#,
        r#"{"fileData":{"fileUri":"u"}}"#,
        r#"{"executableCode":{"language":"PYTHON","code":"1"}}"#,
        r#"{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1"}}"#,
        r#"{"shiny":1}"#,
    ] {
        let played = play(GEMINI, &[&parts(&format!(r#"{{"text":"Hi"}},{part},{part}"#))]);
        assert_eq!((played.turn.text(), played.unknown), ("Hi", 1), "{part}");
    }
    let signed = parts(r#"{"text":"","thoughtSignature":"s"},{"thoughtSignature":"s"}"#);
    assert_eq!(play(GEMINI, &[&signed]).unknown, 0);
}

#[test]
fn a_function_call_is_signed() {
    let calls = parts(
        r#"{"functionCall":{"name":"f","args":{}},"thoughtSignature":"s1"},{"functionCall":{"name":"g","args":{}}},{"functionCall":{"name":"h","args":{}},"thoughtSignature":"s3"}"#,
    );
    let signed = |index, token: &str| {
        let (choice, signs, token) = (0, Signed::ToolCall { index }, token.to_owned());
        Signature { choice, signs, token }
    };
    assert_eq!(play(GEMINI, &[&calls]).turn.signatures, [signed(0, "s1"), signed(2, "s3")]);
    let wrong = parts(r#"{"functionCall":{"name":"f","args":{}},"thoughtSignature":{"a":1}}"#);
    assert_eq!(play(GEMINI, &[&wrong]).turn.signatures, []);
}

#[test]
fn a_block_reason_that_nobody_set_blocks_nothing() {
    let unset = content("Hi").replace(
        "{\"candidates\"",
        r#"{"promptFeedback":{"blockReason":"BLOCK_REASON_UNSPECIFIED"},"candidates""#,
    );
    let played = play(GEMINI, &[&unset]);
    assert_eq!((played.turn.text(), played.blocked), ("Hi", None));
}
