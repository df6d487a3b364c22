//! Whole messages where pieces were expected.

use super::*;

#[test]
fn a_whole_message_after_deltas_that_said_nothing() {
    let role = r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#;
    let said = r#"{"choices":[{"index":0,"delta":{"content":"Hi"}}]}"#;
    let whole = r#"{"choices":[{"index":0,"message":{"content":"Hi"},"finish_reason":"stop"}]}"#;
    for before in [&[role][..], &[said], &[role, said], &[]] {
        let played = play(CHAT, &[before, &[whole, "[DONE]"]].concat());
        assert_eq!(played.turn.text(), "Hi", "{before:?}");
    }
}

#[test]
fn calls_of_a_whole_message_stay_apart_under_one_id() {
    let call = |index: &str, name: &str, arguments: &str| {
        format!(
            r#"{{{index}"id":"t1","type":"function","function":{{"name":"{name}","arguments":"{arguments}"}}}}"#
        )
    };
    for index in ["", r#""index":0,"#] {
        let calls = [call(index, "f", r#"{\"a\":1}"#), call(index, "f", "{}"), "{}".to_owned()].join(",");
        let body = format!(
            r#"{{"id":"1","choices":[{{"message":{{"tool_calls":[{calls}]}},"finish_reason":"tool_calls"}}]}}"#
        );
        let whole = play_unary(CHAT, &body);
        assert_eq!(whole.calls(), [["t1", "f", r#"{"a":1}"#], ["t1", "f", "{}"]]);
    }
}
