//! I: how tool calls are put together.

use serde_json::Value;
use steadfast::dialect::Dialect;
use steadfast_tests::corpus::events::{D, f, tool};
use steadfast_tests::corpus::{Case, End, Ran};

/// Fragments of `choices[0].delta.tool_calls`, each in its own chunk, then the finish reason
fn calls(fragments: &[&str], finish_reason: &str) -> Ran {
    let body: String = fragments.iter().map(|fragment| tool(fragment)).collect();
    Case::stream(Dialect::OpenAiChat).body(body + &f(finish_reason) + D, End::Clean).play()
}

/// A fragment with only a piece of arguments
fn piece(arguments: &str) -> String {
    format!(r#"{{"index":0,"function":{{"arguments":{}}}}}"#, Value::from(arguments))
}

const COMPLETED: &str = r#"completed "" finish=tool_calls usage=- turn@0 end@0 requests=1"#;

#[test]
fn i01_arguments_cut_at_arbitrary_points() {
    let opening = r#"{"index":0,"id":"t1","type":"function","function":{"name":"f","arguments":""}}"#;
    let pieces = [r#"{"city":"S\u00"#, r"e3o \ud83c", r#"\udf0d"}"#].map(piece);
    let ran = calls(&[opening, &pieces[0], &pieces[1], &pieces[2]], "tool_calls");
    assert_eq!(ran.told(), COMPLETED);
    let verbatim = r#"{"city":"S\u00e3o \ud83c\udf0d"}"#;
    assert_eq!(ran.tool_calls(), [("t1", "f", verbatim, true)]);
    let arguments: Value = serde_json::from_str(verbatim).unwrap();
    assert_eq!(arguments["city"], "S\u{e3}o \u{1F30D}");
    assert_eq!(ran.played.turn_of_deltas.choices[0].tool_calls, ran.turn().choices[0].tool_calls);
}

#[test]
fn i02_index_missing() {
    let ran = calls(
        &[
            r#"{"id":"t1","type":"function","function":{"name":"w","arguments":"{\"c\":1}"}}"#,
            r#"{"id":"t2","type":"function","function":{"name":"w","arguments":"{\"c\":"}}"#,
            r#"{"function":{"arguments":"2}"}}"#,
        ],
        "tool_calls",
    );
    assert_eq!(ran.told(), COMPLETED);
    assert_eq!(ran.tool_calls(), [("t1", "w", r#"{"c":1}"#, true), ("t2", "w", r#"{"c":2}"#, true)]);
}

#[test]
fn i03_id_type_and_name_repeated_in_each_fragment() {
    let fragment = |arguments: &str| {
        format!(
            r#"{{"index":0,"id":"t1","type":"function","function":{{"name":"f","arguments":{}}}}}"#,
            Value::from(arguments)
        )
    };
    let fragments = [r#"{"a""#, ":1", "}"].map(fragment);
    let ran = calls(&[&fragments[0], &fragments[1], &fragments[2]], "tool_calls");
    assert_eq!(ran.told(), COMPLETED);
    assert_eq!(ran.tool_calls(), [("t1", "f", r#"{"a":1}"#, true)]);
}

#[test]
fn i04_later_fragments_carry_null_or_empty_id_and_name() {
    let ran = calls(
        &[
            r#"{"index":0,"id":"t1","type":"function","function":{"name":"f","arguments":""}}"#,
            r#"{"index":0,"id":null,"function":{"name":null,"arguments":"{"}}"#,
            r#"{"index":0,"id":"","function":{"name":"","arguments":"}"}}"#,
        ],
        "tool_calls",
    );
    assert_eq!(ran.told(), COMPLETED);
    assert_eq!(ran.tool_calls(), [("t1", "f", "{}", true)]);
}

#[test]
fn i07_length_in_the_middle_of_arguments() {
    let cut = r#"{"path":"/tmp/a","text":"he"#;
    let fragment = format!(
        r#"{{"index":0,"id":"t1","type":"function","function":{{"name":"f","arguments":{}}}}}"#,
        Value::from(cut)
    );
    let ran = calls(&[&fragment], "length");
    assert_eq!(ran.told(), r#"incomplete(length) "" finish=length usage=- turn@0 end@0 requests=1"#);
    assert_eq!(ran.tool_calls(), [("t1", "f", cut, false)], "in neither case a call that may be run");
    let ran = calls(&[&fragment], "tool_calls");
    assert_eq!(ran.told(), COMPLETED);
    assert_eq!(ran.tool_calls(), [("t1", "f", cut, false)]);
}

#[test]
fn i09_a_call_without_arguments() {
    for (fragment, arguments) in [
        (r#"{"index":0,"id":"t1","type":"function","function":{"name":"now"}}"#, ""),
        (r#"{"index":0,"id":"t1","type":"function","function":{"name":"now","arguments":""}}"#, ""),
        (r#"{"index":0,"id":"t1","type":"function","function":{"name":"now","arguments":"{}"}}"#, "{}"),
    ] {
        let ran = calls(&[fragment], "tool_calls");
        assert_eq!(ran.told(), COMPLETED);
        assert_eq!(ran.tool_calls(), [("t1", "now", arguments, true)]);
    }
}
