use super::super::Dialect::Cohere as COHERE;
use super::super::finish::Ending;
use super::super::testing::{malformed, play, play_unary};
use super::*;

const START: &str = r#"{"id":"c1","type":"message-start","delta":{"message":{"role":"assistant","content":[],"tool_plan":"","tool_calls":[],"citations":[]}}}"#;

fn content(content: &str) -> String {
    format!(r#"{{"type":"content-delta","index":0,"delta":{{"message":{{"content":{content}}}}}}}"#)
}

fn text(text: &str) -> String {
    content(&format!(r#"{{"text":"{text}"}}"#))
}

fn end(word: &str) -> String {
    format!(
        r#"{{"type":"message-end","delta":{{"finish_reason":"{word}","usage":{{"billed_units":{{"input_tokens":3,"output_tokens":1}},"tokens":{{"input_tokens":5,"output_tokens":2}}}}}}}}"#
    )
}

#[test]
fn text_then_the_end_of_the_message() {
    let started =
        r#"{"type":"content-start","index":0,"delta":{"message":{"content":{"type":"text","text":"He"}}}}"#;
    let stopped = r#"{"type":"content-end","index":0}"#;
    let played = play(COHERE, &[START, started, &text("llo"), stopped, &end("COMPLETE"), "[DONE]"]);
    assert_eq!((played.turn.text(), played.ending()), ("Hello", Ending::Completed));
    assert_eq!((played.turn.id.as_deref(), played.tokens()), (Some("c1"), Some([Some(5), Some(2), None])));
    assert_eq!(played.progress[3..], [Progress::Open, Progress::Ended, Progress::Ended]);
    assert_eq!((played.opened, played.skipped, played.unknown), (1, 1, 0));
}

#[test]
fn no_message_end_is_no_end() {
    let played = play(COHERE, &[START, &text("Half"), "[DONE]"]);
    assert_eq!((played.turn.text(), played.last()), ("Half", Progress::Open));
}

#[test]
fn content_of_other_kinds_goes_to_the_consumer() {
    let picture = content(r#"{"type":"image_url","image_url":{"url":"data:image/png;base64,eA=="}}"#);
    let played = play(COHERE, &[START, &text("Hi"), &picture, &end("COMPLETE")]);
    assert_eq!((played.turn.text(), played.unknown, played.ending()), ("Hi", 1, Ending::Completed));
}

#[test]
fn finish_reasons() {
    for word in ["STOP_SEQUENCE", "TOOL_CALL"] {
        assert_eq!(play(COHERE, &[START, &end(word)]).ending(), Ending::Completed);
    }
    for word in ["MAX_TOKENS", "TIMEOUT", "NEW_REASON_7"] {
        let played = play(COHERE, &[START, &text("Half"), &end(word)]);
        assert_eq!(played.ending(), Ending::Incomplete(word.to_owned()));
    }
}

#[test]
fn an_end_by_error_is_an_error() {
    let told = r#"{"type":"message-end","delta":{"finish_reason":"ERROR","error":"worker lost"}}"#;
    let played = play(COHERE, &[START, &text("Half"), told]);
    assert_eq!(played.error(), (Some("ERROR"), None, None, "worker lost"));
    assert_eq!((played.turn.text(), played.turn.finish_reason()), ("Half", None));
    let other = play(COHERE, &[START, r#"{"type":"error","error":{"message":"no","code":500}}"#]);
    assert_eq!(other.error(), (None, Some("500"), Some(500), "no"));
}

#[test]
fn thinking_and_the_plan_are_reasoning() {
    let plan = |text: &str| {
        format!(r#"{{"type":"tool-plan-delta","delta":{{"message":{{"tool_plan":"{text}"}}}}}}"#)
    };
    let played = play(COHERE, &[START, &content(r#"{"thinking":"Hm. "}"#), &plan("I "), &plan("will\\n")]);
    assert_eq!((&*played.turn.choices[0].reasoning, played.turn.text()), ("Hm. I will\n", ""));
}

#[test]
fn tool_calls_in_fragments() {
    let call = |kind: &str, index: u32, call: &str| {
        format!(
            r#"{{"type":"tool-call-{kind}","index":{index},"delta":{{"message":{{"tool_calls":{call}}}}}}}"#
        )
    };
    let open = |id: &str| {
        format!(r#"{{"id":"{id}","type":"function","function":{{"name":"f_{id}","arguments":""}}}}"#)
    };
    let piece = |text: &str| format!(r#"{{"function":{{"arguments":"{text}"}}}}"#);
    let played = play(
        COHERE,
        &[
            START,
            &call("start", 0, &open("a")),
            &call("delta", 0, &piece(r#"{\"x\""#)),
            &call("start", 1, &open("b")),
            &call("delta", 0, &piece(":1}")),
            r#"{"type":"tool-call-end","index":0}"#,
            &call("delta", 1, &piece("{}")),
            r#"{"type":"tool-call-end","index":1}"#,
            &end("TOOL_CALL"),
        ],
    );
    assert_eq!(played.calls(), [["a", "f_a", r#"{"x":1}"#], ["b", "f_b", "{}"]]);
    assert_eq!((played.unknown, played.ending()), (0, Ending::Completed));
}

#[test]
fn citations_and_unknown_events_pass_as_they_came() {
    let played = play(
        COHERE,
        &[
            START,
            &text("Hi"),
            r#"{"type":"citation-start","index":0,"delta":{"message":{"citations":{"start":0,"end":2,"text":"Hi","sources":[]}}}}"#,
            r#"{"type":"citation-end","index":0}"#,
            r#"{"type":"debug","prompt":"p"}"#,
            r#"{"type":"shiny","delta":[1],"index":"x"}"#,
            &end("COMPLETE"),
        ],
    );
    assert_eq!((played.turn.text(), played.unknown, played.ending()), ("Hi", 3, Ending::Completed));
}

#[test]
fn null_equals_absent_and_the_rest_is_malformed() {
    let played = play(
        COHERE,
        &[
            r#"{"type":"message-start","id":null,"delta":null}"#,
            r#"{"type":"content-delta","delta":{"message":null}}"#,
            r#"{"type":"content-delta","index":null,"delta":{"message":{"content":{"text":null}}},"logprobs":null}"#,
            r#"{"type":"tool-call-start","delta":{"message":{"tool_calls":{"id":null,"function":null}}}}"#,
            r#"{"type":"message-end","delta":{"finish_reason":null,"usage":null}}"#,
        ],
    );
    assert_eq!((played.opened, played.tokens(), played.ending()), (1, None, Ending::Empty));
    assert_eq!(
        malformed(COHERE, &[r#"{"type":"content-delta","delta":{"message":{"content":5}}}"#]),
        "JSON of an unexpected shape: no object"
    );
}

#[test]
fn a_message_that_is_a_text_is_no_answer() {
    let played = play_unary(COHERE, r#"{"id":"e1","message":"too many tokens"}"#);
    assert_eq!((played.unknown, played.opened, played.ending()), (1, 0, Ending::Empty));
    let failed = play_unary(COHERE, r#"{"message":"no","status_code":500,"code":"internal"}"#);
    assert_eq!(failed.error(), (None, Some("internal"), Some(500), "no"));
}
