use super::super::Dialect::Ollama as OLLAMA;
use super::super::finish::Ending;
use super::super::testing::{malformed, play, play_unary};
use super::*;

fn content(text: &str) -> String {
    format!(r#"{{"model":"m","message":{{"role":"assistant","content":"{text}"}},"done":false}}"#)
}

const STOP: &str = r#"{"model":"m","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","total_duration":9,"prompt_eval_count":5,"eval_count":2}"#;

#[test]
fn h01_text_and_usage_of_the_last_line() {
    let last = r#"{"model":"m","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","eval_count":1}"#;
    let played = play(OLLAMA, &[&content("你"), last]);
    assert_eq!((played.turn.text(), played.ending()), ("你", Ending::Completed));
    assert_eq!((played.turn.finish_reason(), played.tokens()), (Some("stop"), Some([None, Some(1), None])));
    assert_eq!(played.progress, [Progress::Open, Progress::Ended]);
    assert_eq!((played.opened, played.turn.model.as_deref()), (1, Some("m")));
}

#[test]
fn h02_content_of_the_last_line_counts() {
    let played = play(
        OLLAMA,
        &[
            r#"{"message":{"content":"a"},"done":false}"#,
            r#"{"message":{"content":"b"},"done":false}"#,
            r#"{"message":{"content":"c"},"done":true,"done_reason":"stop"}"#,
        ],
    );
    assert_eq!((played.turn.text(), played.ending(), played.tokens()), ("abc", Ending::Completed, None));
}

#[test]
fn h03_an_error_line() {
    let played = play(
        OLLAMA,
        &[r#"{"message":{"content":"Yes"},"done":false}"#, r#"{"error":"model runner stopped"}"#],
    );
    assert_eq!(played.error(), (None, None, None, "model runner stopped"));
    assert_eq!((played.turn.text(), played.last()), ("Yes", Progress::Open));
}

#[test]
fn h04_no_done_line_is_no_end() {
    let played = play(OLLAMA, &[r#"{"message":{"content":"Half"},"done":false}"#]);
    assert_eq!((played.turn.text(), played.last(), played.opened), ("Half", Progress::Open, 1));
    assert_eq!(played.turn.finish_reason(), None);
}

#[test]
fn generate_has_a_response_and_no_message() {
    let played = play(
        OLLAMA,
        &[
            r#"{"model":"m","response":"","thinking":"Hm","done":false}"#,
            r#"{"model":"m","response":"Hi","done":false}"#,
            r#"{"model":"m","response":"!","done":true,"done_reason":"length","context":[1,2],"prompt_eval_count":5,"eval_count":2,"eval_duration":7}"#,
        ],
    );
    assert_eq!((played.turn.text(), &*played.turn.choices[0].reasoning), ("Hi!", "Hm"));
    assert_eq!(played.ending(), Ending::Incomplete("length".to_owned()));
    assert_eq!(played.turn.usage.unwrap().raw, r#"{"eval_count":2,"eval_duration":7,"prompt_eval_count":5}"#);
}

#[test]
fn every_tool_call_is_whole() {
    let call = |members: &str| {
        format!(r#"{{"message":{{"content":"","thinking":"Hm","tool_calls":[{members}]}},"done":false}}"#)
    };
    let played = play(
        OLLAMA,
        &[
            &call(
                r#"{"function":{"name":"f","arguments":{"a":"\n"}}},{"function":{"name":"f","arguments":{}}}"#,
            ),
            &call(r#"{"id":"t3","function":{"index":0,"name":"g"}}"#),
            STOP,
        ],
    );
    assert_eq!(played.calls(), [["", "f", r#"{"a":"\n"}"#], ["", "f", "{}"], ["t3", "g", ""]]);
    assert_eq!((&*played.turn.choices[0].reasoning, played.ending()), ("HmHm", Ending::Completed));
}

#[test]
fn an_old_server_says_no_reason() {
    let played = play(OLLAMA, &[&content("Hi"), r#"{"model":"m","done":true}"#]);
    assert_eq!((played.ending(), played.turn.finish_reason()), (Ending::Completed, None));
    assert_eq!(play(OLLAMA, &[r#"{"done":true}"#]).ending(), Ending::Empty);
}

#[test]
fn a_whole_answer_is_a_line() {
    let played = play_unary(
        OLLAMA,
        r#"{"model":"m","message":{"role":"assistant","content":"Hi"},"done":true,"done_reason":"stop"}"#,
    );
    assert_eq!((played.turn.text(), played.last()), ("Hi", Progress::Ended));
    assert_eq!(play_unary(OLLAMA, r#"{"error":"no such model"}"#).error().3, "no such model");
}

#[test]
fn pictures_go_to_the_consumer() {
    let pictured =
        r#"{"model":"m","message":{"role":"assistant","content":"Hi","images":["eA=="]},"done":false}"#;
    let generated = r#"{"model":"m","image":"eA==","done":true,"done_reason":"stop"}"#;
    let none = r#"{"model":"m","message":{"content":"!","images":[]},"image":"","done":false}"#;
    let played = play(OLLAMA, &[pictured, none, generated]);
    assert_eq!((played.turn.text(), played.unknown, played.ending()), ("Hi!", 2, Ending::Completed));
}

#[test]
fn other_lines_pass_and_null_equals_absent() {
    let played = play(
        OLLAMA,
        &[
            r#"{"status":"pulling manifest"}"#,
            r#"{"message":{"content":null,"thinking":null,"tool_calls":null},"done":null,"error":null}"#,
            r#"{"message":null,"response":null,"done":false}"#,
            STOP,
        ],
    );
    assert_eq!((played.unknown, played.errors.len(), played.ending()), (1, 0, Ending::Completed));
    assert_eq!(malformed(OLLAMA, &["pulling"]), "not JSON, at line 1 column 1");
}
