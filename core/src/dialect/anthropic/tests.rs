use super::super::Dialect::Anthropic as MESSAGES;
use super::super::finish::Ending;
use super::super::testing::{malformed, play, play_named, play_unary};
use super::*;
use crate::outcome::{Signature, Signed};

const START: &str = r#"{"type":"message_start","message":{"id":"m1","type":"message","role":"assistant","model":"claude","content":[],"stop_reason":null,"usage":{"input_tokens":5,"output_tokens":1}}}"#;
const BLOCK: &str = r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#;
const BLOCK_STOP: &str = r#"{"type":"content_block_stop","index":0}"#;
const STOP: &str = r#"{"type":"message_stop"}"#;
const PING: &str = r#"{"type":"ping"}"#;

fn text(text: &str) -> String {
    delta(0, &format!(r#"{{"type":"text_delta","text":"{text}"}}"#))
}

fn delta(index: u32, delta: &str) -> String {
    format!(r#"{{"type":"content_block_delta","index":{index},"delta":{delta}}}"#)
}

fn end(word: &str) -> String {
    format!(
        r#"{{"type":"message_delta","delta":{{"stop_reason":"{word}","stop_sequence":null}},"usage":{{"output_tokens":2}}}}"#
    )
}

#[test]
fn f01_overloaded_after_text() {
    let error = r#"{"type":"error","error":{"details":null,"type":"overloaded_error","message":"busy"},"request_id":"req_x"}"#;
    let played = play_named(
        MESSAGES,
        &[
            ("message_start", START),
            ("content_block_start", BLOCK),
            ("", &text("Half of the")),
            ("error", error),
        ],
    );
    assert_eq!((played.turn.text(), played.last()), ("Half of the", Progress::Open));
    assert_eq!(played.errors[0].kind.as_deref(), Some("overloaded_error"));
    assert_eq!((&*played.errors[0].message, played.errors[0].request_id.as_deref()), ("busy", Some("req_x")));
}

#[test]
fn f02_overloaded_before_any_content() {
    let error = r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#;
    let played = play(MESSAGES, &[START, error]);
    assert_eq!((played.turn.choices[0].is_empty(), played.errors.len()), (true, 1));
    assert_eq!(played.errors[0].kind.as_deref(), Some("overloaded_error"));
}

#[test]
fn f03_pings_say_nothing() {
    let played = play(MESSAGES, &[START, PING, PING, BLOCK, &text("Hi"), BLOCK_STOP, &end("end_turn"), STOP]);
    assert_eq!((played.turn.text(), played.ending()), ("Hi", Ending::Completed));
    assert_eq!((played.unknown, played.opened, played.skipped), (0, 1, 0));
}

#[test]
fn f05_an_end_without_a_stop_reason_is_open() {
    let played = play(MESSAGES, &[START, BLOCK, &text("Half")]);
    assert_eq!((played.turn.text(), played.last()), ("Half", Progress::Open));
    assert_eq!(played.turn.finish_reason(), None);
}

#[test]
fn f06_the_stop_reason_marks_and_message_stop_ends() {
    let played = play(MESSAGES, &[START, BLOCK, &text("Hi"), BLOCK_STOP, &end("end_turn"), STOP, PING]);
    assert_eq!(played.progress[3..], [Progress::Open, Progress::Marked, Progress::Ended, Progress::Ended]);
    assert_eq!(played.tokens(), Some([Some(5), Some(2), None]));
    assert_eq!(played.turn.usage.unwrap().raw, r#"{"input_tokens":5,"output_tokens":2}"#);
    assert_eq!((played.turn.id.as_deref(), played.turn.model.as_deref()), (Some("m1"), Some("claude")));
}

#[test]
fn f08_new_deltas_and_events_pass() {
    let compaction = delta(0, r#"{"type":"compaction_delta","content":"zz"}"#);
    let shiny = r#"{"type":"shiny_event","delta":"x","message":[1],"content_block":true}"#;
    let signature = delta(0, r#"{"type":"signature_delta","signature":"s"}"#);
    let events =
        [START, BLOCK, &compaction, &signature, &text("Hi"), shiny, BLOCK_STOP, &end("end_turn"), STOP];
    let played = play(MESSAGES, &events);
    assert_eq!((played.turn.text(), played.unknown, played.ending()), ("Hi", 2, Ending::Completed));
}

#[test]
fn what_was_thought_is_signed_in_a_stream_and_in_a_whole_answer() {
    let thought = |text: &str| delta(0, &format!(r#"{{"type":"thinking_delta","thinking":"{text}"}}"#));
    let sign = |token: &str| delta(0, &format!(r#"{{"type":"signature_delta","signature":"{token}"}}"#));
    let begin = r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#;
    let events = [
        START,
        begin,
        &thought("Hé"),
        &thought("m"),
        &sign("s1"),
        BLOCK_STOP,
        begin,
        &thought("So"),
        &sign("s2"),
        BLOCK_STOP,
        &end("end_turn"),
        STOP,
    ];
    let streamed = play(MESSAGES, &events).turn;
    let signed = |end, token: &str| {
        let (choice, signs, token) = (0, Signed::Reasoning { end }, token.to_owned());
        Signature { choice, signs, token }
    };
    assert_eq!(streamed.choices[0].reasoning, "HémSo");
    assert_eq!(streamed.signatures, [signed(4, "s1"), signed(6, "s2")]);
    let whole = r#"{"content":[{"type":"thinking","thinking":"Hém","signature":"s1"},{"type":"thinking","thinking":"So","signature":"s2"}],"stop_reason":"end_turn"}"#;
    assert_eq!(play_unary(MESSAGES, whole).turn.signatures, streamed.signatures);
}

#[test]
fn redacted_thinking_is_kept_as_it_came_and_never_shown() {
    let block = r#"{"type":"redacted_thinking","data":"EroB+/="}"#;
    let start = format!(r#"{{"type":"content_block_start","index":0,"content_block":{block}}}"#);
    let streamed =
        play(MESSAGES, &[START, &start, BLOCK_STOP, BLOCK, &text("Hi"), BLOCK_STOP, &end("end_turn"), STOP]);
    let hidden = Signature { choice: 0, signs: Signed::Hidden, token: "EroB+/=".to_owned() };
    let whole = format!(r#"{{"content":[{block},{{"type":"text","text":"Hi"}}],"stop_reason":"end_turn"}}"#);
    for played in [streamed, play_unary(MESSAGES, &whole)] {
        assert_eq!(played.turn.signatures, std::slice::from_ref(&hidden));
        let choice = &played.turn.choices[0];
        assert_eq!((&*choice.text, &*choice.reasoning, played.unknown), ("Hi", "", 0));
    }
}

#[test]
fn citations_pass_as_they_came() {
    let cited =
        delta(0, r#"{"type":"citations_delta","citation":{"type":"char_location","cited_text":"a"}}"#);
    let found = r#"{"type":"content_block_start","index":1,"content_block":{"type":"web_search_tool_result","tool_use_id":"s","content":[]}}"#;
    let events = [START, BLOCK, &text("Hi"), &cited, BLOCK_STOP, found, &end("end_turn"), STOP];
    let played = play(MESSAGES, &events);
    assert_eq!((played.turn.text(), played.unknown, played.ending()), ("Hi", 2, Ending::Completed));
}

#[test]
fn f09_the_type_in_the_json_wins_except_over_an_event_named_error() {
    let events = [START, BLOCK, &text("Hi"), BLOCK_STOP, &end("end_turn"), STOP];
    assert_eq!(play(MESSAGES, &events).ending(), Ending::Completed);
    let misnamed: Vec<_> = events.iter().map(|data| ("ping", *data)).collect();
    let played = play_named(MESSAGES, &misnamed);
    assert_eq!((played.turn.text(), played.last()), ("Hi", Progress::Ended));
    let failed = play_named(MESSAGES, &[("message_start", START), ("error", PING)]);
    assert_eq!((failed.errors.len(), failed.error().3), (1, PING));
}

#[test]
fn a_marker_while_a_block_is_open_does_not_count() {
    let second = BLOCK.replace(r#""index":0"#, r#""index":1"#);
    let events = [START, BLOCK, &text("Hi"), &end("end_turn"), BLOCK_STOP, &second, &text("!"), STOP];
    let (open, marked) = (Progress::Open, Progress::Marked);
    assert_eq!(
        play(MESSAGES, &events).progress,
        [open, open, open, open, marked, open, open, Progress::Ended]
    );
}

#[test]
fn stop_reasons_that_are_no_end_of_the_turn() {
    for word in ["max_tokens", "refusal", "pause_turn", "model_context_window_exceeded"] {
        let played = play(MESSAGES, &[START, &end(word), STOP]);
        assert_eq!(played.ending(), Ending::Incomplete(word.to_owned()));
    }
}

#[test]
fn tool_calls_are_numbered_among_themselves() {
    let tool = |index: u32, kind: &str, id: &str, input: &str| {
        let block = format!(r#"{{"type":"{kind}","id":"{id}","name":"f","input":{input}}}"#);
        format!(r#"{{"type":"content_block_start","index":{index},"content_block":{block}}}"#)
    };
    let piece = |index, json: &str| {
        delta(index, &format!(r#"{{"type":"input_json_delta","partial_json":"{json}"}}"#))
    };
    let stop = |index: u32| format!(r#"{{"type":"content_block_stop","index":{index}}}"#);
    let played = play(
        MESSAGES,
        &[
            START,
            &tool(1, "tool_use", "a", "{}"),
            &piece(1, ""),
            &piece(1, r#"{\"x\""#),
            &tool(2, "server_tool_use", "b", "{}"),
            &piece(1, ":1}"),
            &stop(1),
            &stop(2),
            &tool(3, "tool_use", "c", r#"{"y":"\n"}"#),
            &stop(3),
            &tool(4, "mcp_tool_use", "a", r#"{"z":0}"#),
            &piece(4, "{}"),
            &piece(9, "lost"),
            &end("tool_use"),
            STOP,
        ],
    );
    let calls =
        [["a", "f", r#"{"x":1}"#], ["b", "f", "{}"], ["c", "f", r#"{"y":"\n"}"#], ["a", "f", r#"{"z":0}"#]];
    assert_eq!(played.calls(), calls);
    let kinds: Vec<_> = played.turn.choices[0].tool_calls.iter().map(|call| call.kind).collect();
    let (function, server) = (ToolKind::Function, ToolKind::Server);
    assert_eq!(kinds, [function, server, function, server]);
    assert_eq!((played.unknown, played.ending()), (1, Ending::Completed));
}

#[test]
fn usage_that_keeps_growing_is_not_kept() {
    let counted = |member: usize| {
        let usage = format!(r#"{{"m{member}":"{}","output_tokens":{member}}}"#, "x".repeat(20_000));
        format!(r#"{{"type":"message_delta","delta":{{}},"usage":{usage}}}"#)
    };
    let events: Vec<_> = (0..9).map(counted).collect();
    let events: Vec<_> = events.iter().map(String::as_str).collect();
    let played = play(MESSAGES, &events);
    assert_eq!(played.tokens(), Some([None, Some(8), None]));
    assert!(played.turn.usage.unwrap().raw.len() <= 64 * 1024);
}

#[test]
fn thinking_is_reasoning_and_an_early_text_counts() {
    let thinking =
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"Let"}}"#;
    let block = r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"He"}}"#;
    let played = play(
        MESSAGES,
        &[
            START,
            thinking,
            &delta(0, r#"{"type":"thinking_delta","thinking":" me"}"#),
            BLOCK_STOP,
            block,
            &text("y"),
        ],
    );
    assert_eq!((&*played.turn.choices[0].reasoning, played.turn.text()), ("Let me", "Hey"));
}

/// A gateway starts over upstream: words that were delivered would be there twice
#[test]
fn a_message_may_start_over_only_before_its_first_word() {
    let again = START.replace("m1", "m2");
    let left_open = BLOCK.replace(r#""index":0"#, r#""index":1"#);
    let thinking =
        r#"{"type":"content_block_start","index":2,"content_block":{"type":"thinking","thinking":"Hm"}}"#;
    let call = r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t1","name":"f","input":{}}}"#;
    let events = [START, &left_open, thinking, call, &again, BLOCK, &text("b"), BLOCK_STOP, &end("end_turn")];
    let played = play(MESSAGES, &events);
    assert_eq!((played.turn.text(), played.turn.id.as_deref(), played.opened), ("b", Some("m1"), 1));
    assert_eq!((played.calls(), played.last()), (vec![["t1", "f", "{"]], Progress::Marked));

    let whole = START.replace(r#""content":[]"#, r#""content":[{"type":"text","text":"a"}]"#);
    let early = BLOCK.replace(r#""text":"""#, r#""text":"a""#);
    assert_ne!(early, BLOCK);
    for said in [&[START, BLOCK, &text("a")][..], &[START, &early], &[START, call, BLOCK_STOP], &[&whole]] {
        let events = [said, &[&again]].concat();
        assert_eq!(
            malformed(MESSAGES, &events),
            "a second message after words or a whole tool call of the first"
        );
    }
}

#[test]
fn content_that_comes_with_the_start_of_a_message_counts() {
    let start = START.replace(
        r#""content":[]"#,
        r#""content":[{"type":"thinking","thinking":"Hm"},{"type":"text","text":"He"},{"type":"tool_use","id":"t1","name":"f","input":{"a":1}}]"#,
    );
    let block = BLOCK.replace(r#""index":0"#, r#""index":3"#);
    let played = play(MESSAGES, &[&start, &block, &delta(3, r#"{"type":"text_delta","text":"y"}"#)]);
    assert_eq!((&*played.turn.choices[0].reasoning, played.turn.text()), ("Hm", "Hey"));
    assert_eq!(played.calls(), [["t1", "f", r#"{"a":1}"#]]);
}

#[test]
fn a_trailing_done_is_passed_over() {
    let played = play(MESSAGES, &[START, &end("end_turn"), STOP, "[DONE]"]);
    assert_eq!((played.last(), played.skipped), (Progress::Ended, 1));
    assert_eq!(play(MESSAGES, &[START, "[DONE]"]).last(), Progress::Open);
    assert_eq!(malformed(MESSAGES, &[START, "DONE"]), "not JSON, at line 1 column 1");
}

#[test]
fn c02_a_whole_message() {
    let played = play_unary(
        MESSAGES,
        r#"{"id":"m1","type":"message","model":"claude","content":[
            {"type":"thinking","thinking":"Hm","signature":"s"},{"type":"text","text":"Hi"},
            {"type":"tool_use","id":"t1","name":"f","input":{"a":"\u00e9"}}],
            "stop_reason":"tool_use","usage":{"input_tokens":5,"output_tokens":2}}"#,
    );
    assert_eq!((played.turn.text(), &*played.turn.choices[0].reasoning), ("Hi", "Hm"));
    assert_eq!(played.calls(), [["t1", "f", r#"{"a":"\u00e9"}"#]]);
    assert_eq!((played.last(), played.ending()), (Progress::Ended, Ending::Completed));
    let failed = play_unary(MESSAGES, r#"{"type":"error","error":{"type":"api_error","message":"no"}}"#);
    assert_eq!((failed.error().0, failed.error().3, failed.opened), (Some("api_error"), "no", 0));
}

/// PHP has one type for lists and objects, and printers put blanks in between
#[test]
fn empty_arguments_in_any_spelling_stand_only_if_no_piece_follows() {
    for empty in ["{}", "{ }", "[]", "[ ]", "null", "\"\""] {
        let call = format!(
            r#"{{"type":"content_block_start","index":0,"content_block":{{"type":"tool_use","id":"t","name":"f","input":{empty}}}}}"#
        );
        let piece = delta(0, r#"{"type":"input_json_delta","partial_json":"{\"a\":1}"}"#);
        let played = play(MESSAGES, &[START, &call, &piece, BLOCK_STOP, &end("tool_use"), STOP]);
        assert_eq!(played.calls(), [["t", "f", r#"{"a":1}"#]], "{empty}");
    }
}

#[test]
fn a_call_that_has_not_stopped_is_not_whole() {
    let call = r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t1","name":"f","input":{}}}"#;
    let cut = play(MESSAGES, &[START, call, &end("tool_use"), STOP]);
    assert_eq!((cut.calls(), cut.last()), (vec![["t1", "f", "{"]], Progress::Ended));
    let stopped = play(MESSAGES, &[START, call, BLOCK_STOP, &end("tool_use"), STOP]);
    assert_eq!(stopped.calls(), [["t1", "f", "{}"]]);
}
