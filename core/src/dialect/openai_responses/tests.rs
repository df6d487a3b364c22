use super::super::Dialect::OpenAiResponses as RESPONSES;
use super::super::finish::Ending;
use super::super::testing::{malformed, play, play_named, play_unary};
use super::*;
use crate::outcome::{Signature, Signed};

const CREATED: &str = r#"{"type":"response.created","sequence_number":0,"response":{"id":"r1","model":"gpt","status":"in_progress","output":[]}}"#;
const COMPLETED: &str = r#"{"type":"response.completed","sequence_number":9,"response":{"id":"r1","status":"completed","output":[],"usage":{"input_tokens":5,"output_tokens":2,"total_tokens":7}}}"#;

fn text(text: &str) -> String {
    piece("output_text", 0, text)
}

/// A delta of that kind
fn piece(kind: &str, output_index: u32, text: &str) -> String {
    format!(
        r#"{{"type":"response.{kind}.delta","sequence_number":1,"item_id":"i1","output_index":{output_index},"content_index":0,"delta":"{text}"}}"#
    )
}

fn added(output_index: u32, item: &str) -> String {
    format!(r#"{{"type":"response.output_item.added","output_index":{output_index},"item":{item}}}"#)
}

fn done(output_index: u32, item: &str) -> String {
    added(output_index, item).replace("added", "done")
}

fn completed(output: &str) -> String {
    COMPLETED.replace(r#""output":[]"#, &format!(r#""output":[{output}]"#))
}

fn message(text: &str) -> String {
    format!(r#"{{"type":"message","id":"i1","content":[{{"type":"output_text","text":"{text}"}}]}}"#)
}

#[test]
fn e01_completed_ends_at_once() {
    let played = play(RESPONSES, &[CREATED, &text("Hi"), COMPLETED, "[DONE]"]);
    let (open, ended) = (Progress::Open, Progress::Ended);
    assert_eq!(played.progress, [open, open, ended, ended]);
    assert_eq!((played.turn.text(), played.turn.finish_reason()), ("Hi", Some("completed")));
    assert_eq!((played.ending(), played.skipped, played.opened), (Ending::Completed, 1, 1));
    assert_eq!(played.tokens(), Some([Some(5), Some(2), Some(7)]));
    assert_eq!((played.turn.id.as_deref(), played.turn.model.as_deref()), (Some("r1"), Some("gpt")));
}

#[test]
fn e02_nothing_else_ends_a_response() {
    assert_eq!(play(RESPONSES, &[CREATED, &text("Hi")]).last(), Progress::Open);
    let created = play(RESPONSES, &[CREATED]);
    assert_eq!((created.last(), created.turn.choices[0].is_empty()), (Progress::Open, true));
    let done = play(RESPONSES, &[CREATED, &text("Hi"), "[DONE]"]);
    assert_eq!((done.last(), done.turn.finish_reason(), done.skipped), (Progress::Open, None, 1));
}

#[test]
fn e03_incomplete_keeps_its_reason() {
    for reason in ["max_output_tokens", "content_filter"] {
        let event = format!(
            r#"{{"type":"response.incomplete","sequence_number":5,"response":{{"id":"r1","status":"incomplete","incomplete_details":{{"reason":"{reason}"}},"usage":{{"input_tokens":5,"output_tokens":16}}}}}}"#
        );
        let played = play(RESPONSES, &[CREATED, &text("Hi"), &event]);
        assert_eq!(
            (played.ending(), played.last()),
            (Ending::Incomplete(reason.to_owned()), Progress::Ended)
        );
        assert_eq!((played.turn.text(), played.tokens()), ("Hi", Some([Some(5), Some(16), None])));
    }
    let wordless = play(RESPONSES, &[CREATED, r#"{"type":"response.incomplete","response":{}}"#]);
    assert_eq!(wordless.ending(), Ending::Incomplete("incomplete".to_owned()));
}

#[test]
fn e04_failed_is_an_error() {
    let failed = |error: &str| {
        let event = format!(
            r#"{{"type":"response.failed","sequence_number":2,"response":{{"id":"r1","status":"failed","error":{error},"output":[],"usage":null}}}}"#
        );
        let played = play(RESPONSES, &[CREATED, &event]);
        assert_eq!((played.errors.len(), played.turn.finish_reason()), (1, Some("failed")));
        played
    };
    for code in ["context_length_exceeded", "server_error", "rate_limit_exceeded"] {
        let played = failed(&format!(r#"{{"code":"{code}","message":"too long"}}"#));
        assert_eq!(played.error(), (None, Some(code), None, "too long"));
    }
    assert_eq!(failed("null").error(), (Some("response.failed"), None, None, ""));
}

/// Each listed item is looked for among all that came
#[test]
fn a_response_that_lists_without_end_is_refused() {
    let item = r#"{"type":"message","content":[{"text":"a"}]}"#;
    let list = |items: usize| completed(&vec![item; items].join(","));
    assert_eq!(play(RESPONSES, &[CREATED, &list(MAX_ITEMS)]).turn.text().len(), MAX_ITEMS);
    assert!(malformed(RESPONSES, &[CREATED, &list(MAX_ITEMS + 1)]).starts_with("more than 8192 output"));
}

#[test]
fn e06_unknown_events_pass() {
    let played = play(
        RESPONSES,
        &[
            CREATED,
            r#"{"type":"keepalive","sequence_number":1}"#,
            &text("Hi"),
            r#"{"type":"response.brand_new.thing","x":1}"#,
            r#"{"type":"response.output_text.done","text":"Hi"}"#,
            &added(1, r#"{"type":"brand_new_item","content":"x"}"#),
            COMPLETED,
        ],
    );
    assert_eq!((played.turn.text(), played.unknown, played.ending()), ("Hi", 2, Ending::Completed));
}

#[test]
fn citations_and_items_of_other_kinds_pass_as_they_came() {
    let search = r#"{"type":"file_search_call","id":"fs","results":[]}"#;
    let done = added(1, search).replace("output_item.added", "output_item.done");
    let cited = r#"{"type":"response.output_text.annotation.added","output_index":0,"annotation":{"type":"url_citation","url":"u"}}"#;
    let played = play(RESPONSES, &[CREATED, &added(1, search), &done, &text("Hi"), cited, COMPLETED]);
    assert_eq!((played.turn.text(), played.unknown, played.ending()), ("Hi", 2, Ending::Completed));
}

#[test]
fn e08_a_chat_style_error_frame_is_an_error() {
    let frame =
        r#"{"error":{"message":"quota exhausted","type":"insufficient_quota","code":"insufficient_quota"}}"#;
    let played = play(RESPONSES, &[CREATED, &text("Hi"), frame]);
    assert_eq!(played.turn.text(), "Hi");
    assert_eq!(
        played.error(),
        (Some("insufficient_quota"), Some("insufficient_quota"), None, "quota exhausted")
    );
    let flat = r#"{"type":"error","code":"server_error","message":"oops","param":null,"sequence_number":3}"#;
    let played = play_named(RESPONSES, &[("", CREATED), ("error", flat)]);
    assert_eq!((played.error().1, played.error().3), (Some("server_error"), "oops"));
}

#[test]
fn what_no_delta_said_is_taken_from_the_whole() {
    // From the item, and not again from the response.
    let by_item = play(RESPONSES, &[CREATED, &done(0, &message("Hi")), &completed(&message("Hi"))]);
    assert_eq!(by_item.turn.text(), "Hi");
    // Only in the response.
    let reasoning = r#"{"type":"reasoning","summary":[{"type":"summary_text","text":"Hm"}],"content":[{"type":"reasoning_text","text":"!"}]}"#;
    let call = r#"{"type":"function_call","id":"fc1","call_id":"t1","name":"f","arguments":"{\"a\":1}"}"#;
    let declined = r#"{"type":"message","content":[{"type":"refusal","refusal":"No."}]}"#;
    let plain = r#"{"type":"message","content":" Bye"}"#;
    let all = [reasoning, &message("Hi"), call, declined, plain].join(",");
    let at_end = play(RESPONSES, &[CREATED, &completed(&all)]);
    let choice = &at_end.turn.choices[0];
    assert_eq!((&*choice.text, &*choice.reasoning, &*choice.refusal), ("Hi Bye", "Hm!", "No."));
    assert_eq!(at_end.calls(), [["t1", "f", r#"{"a":1}"#]]);
    // The first of two messages came in pieces; the response leaves the reasoning out and renames.
    let two = [message("Hi").replace("i1", "other"), message(" there")].join(",");
    let shifted = play(
        RESPONSES,
        &[CREATED, &piece("reasoning_text", 0, "Hm"), &piece("output_text", 1, "Hi"), &completed(&two)],
    );
    assert_eq!((shifted.turn.text(), &*shifted.turn.choices[0].reasoning), ("Hi there", "Hm"));
}

#[test]
fn tool_calls_open_once_under_their_first_id() {
    let call = |id: &str, arguments: &str| {
        format!(
            r#"{{"type":"function_call","id":"fc","call_id":"{id}","name":"f","arguments":"{arguments}"}}"#
        )
    };
    let custom = r#"{"type":"custom_tool_call","call_id":"t3","name":"patch","input":""}"#;
    let mcp = r#"{"type":"mcp_call","id":"m1","name":"ask","arguments":"","output":null}"#;
    let played = play(
        RESPONSES,
        &[
            CREATED,
            &added(1, &call("t1", "")),
            &piece("function_call_arguments", 1, r#"{\"a\""#),
            &added(2, &call("t2", "")),
            &piece("function_call_arguments", 1, ":1}"),
            &done(1, &call("rotated", r#"{\"a\":1}"#)),
            &done(2, &call("t2", "{}")),
            &added(3, custom),
            &piece("custom_tool_call_input", 3, "*** Begin"),
            &added(4, mcp),
            &piece("mcp_call_arguments", 4, "{}"),
            &completed(&[&*call("t1", r#"{\"a\":1}"#), &call("t2", "{}"), custom, mcp].join(",")),
        ],
    );
    assert_eq!(
        played.calls(),
        [["t1", "f", r#"{"a":1}"#], ["t2", "f", "{}"], ["t3", "patch", "*** Begin"], ["m1", "ask", "{}"]]
    );
    let kinds: Vec<_> = played.turn.choices[0].tool_calls.iter().map(|call| call.kind).collect();
    assert_eq!(kinds, [ToolKind::Function, ToolKind::Function, ToolKind::Custom, ToolKind::Server]);
    // Without the event that opens it: the id and the name come with the whole call.
    let late = play(RESPONSES, &[&piece("function_call_arguments", 0, "{}"), &done(0, &call("t1", "{}"))]);
    assert_eq!(late.calls(), [["t1", "f", "{}"]]);
}

#[test]
fn summaries_and_refusals() {
    let played = play(
        RESPONSES,
        &[
            CREATED,
            &piece("reasoning_summary_text", 0, "**A**"),
            &piece("reasoning_summary_text", 0, "\\n"),
            &piece("refusal", 1, "No."),
            &piece("output_text", 1, ""),
            &completed(
                r#"{"type":"reasoning","summary":[{"text":"**A**\n"}]},{"type":"message","content":[{"refusal":"No."}]}"#,
            ),
        ],
    );
    let choice = &played.turn.choices[0];
    assert_eq!((&*choice.reasoning, &*choice.refusal, &*choice.text), ("**A**\n", "No.", ""));
}

#[test]
fn c02_a_whole_response() {
    let body = |status: &str, rest: &str| {
        format!(
            r#"{{"id":"r1","object":"response","model":"gpt","status":"{status}","error":null,"output":[{}]{rest}}}"#,
            message("Hi")
        )
    };
    let whole = play_unary(RESPONSES, &body("completed", ""));
    assert_eq!((whole.turn.text(), whole.last(), whole.ending()), ("Hi", Progress::Ended, Ending::Completed));
    let cut =
        play_unary(RESPONSES, &body("incomplete", r#","incomplete_details":{"reason":"max_output_tokens"}"#));
    assert_eq!(cut.ending(), Ending::Incomplete("max_output_tokens".to_owned()));
    let queued = play_unary(RESPONSES, &body("queued", ""));
    assert_eq!(queued.ending(), Ending::Incomplete("queued".to_owned()));
    let failed = play_unary(RESPONSES, r#"{"error":{"message":"no","type":"server_error"}}"#);
    assert_eq!(failed.error(), (Some("server_error"), None, None, "no"));
    assert_eq!(play_unary(RESPONSES, "{}").ending(), Ending::Empty);
}

#[test]
fn data_that_is_no_event_is_malformed() {
    assert_eq!(malformed(RESPONSES, &["{\"type\":"]), "not JSON, at line 1 column 8");
    assert_eq!(malformed(RESPONSES, &["true"]), "JSON, but not an object");
}

#[test]
fn arguments_that_come_in_their_done_event_alone() {
    let call = |arguments: &str| {
        let opened = added(0, r#"{"type":"function_call","call_id":"c","name":"f","arguments":""}"#);
        let done =
            r#"{"type":"response.function_call_arguments.done","output_index":0,"arguments":"{\"a\":1}"}"#;
        let pieces = (!arguments.is_empty()).then(|| piece("function_call_arguments", 0, arguments));
        let events: Vec<_> = [CREATED, &opened].into_iter().chain(pieces.as_deref()).collect();
        play(RESPONSES, &[&events[..], &[done, COMPLETED]].concat())
    };
    assert_eq!(call("").calls(), [["c", "f", r#"{"a":1}"#]]);
    assert_eq!(call(r#"{\"b\":2}"#).calls(), [["c", "f", r#"{"b":2}"#]]);
}

#[test]
fn text_is_said_once_wherever_its_item_is_numbered() {
    let ab = [text("a"), text("b")];
    let [a, b] = [&*ab[0], &*ab[1]];
    for id in ["i1", "rotated", ""] {
        let whole = message("ab").replace("i1", id);
        let shifted = play(RESPONSES, &[CREATED, a, b, &done(1, &whole), &completed(&whole)]);
        assert_eq!(shifted.turn.text(), "ab", "{id}");
    }
    // Lost deltas: the id tells what the text does not.
    let cut = play(RESPONSES, &[CREATED, a, &done(1, &message("ab")), &completed(&message("ab"))]);
    assert_eq!(cut.turn.text(), "a");
    let both = [message("A").replace("i1", "i0"), message("B")].join(",");
    let second = play(RESPONSES, &[CREATED, &piece("output_text", 1, "B"), &completed(&both)]);
    assert_eq!(second.turn.text(), "BA");
    let same = play(RESPONSES, &[CREATED, a, &completed(&[message("a"), message("a")].join(","))]);
    assert_eq!(same.turn.text(), "aa");
}

#[test]
fn parts_that_were_not_streamed_are_taken_from_the_item() {
    let item = r#"{"type":"message","id":"i1","content":[{"type":"output_text","text":"a"},{"type":"output_text","text":"\u0062"},{"type":"refusal","refusal":"No."}]}"#;
    let played = play(RESPONSES, &[CREATED, &text("a"), &done(0, item), &completed(item)]);
    assert_eq!((played.turn.text(), &*played.turn.choices[0].refusal), ("ab", "No."));
    // All under one number.
    let played =
        play(RESPONSES, &[CREATED, &text("a"), &text("b"), &piece("refusal", 0, "No."), &done(0, item)]);
    assert_eq!((played.turn.text(), &*played.turn.choices[0].refusal), ("ab", "No."));
}

#[test]
fn a_part_that_comes_in_its_done_event_alone() {
    let event = |kind: &str, member: &str| {
        format!(
            r#"{{"type":"response.{kind}.done","item_id":"i1","output_index":0,"content_index":0,"{member}":"x"}}"#
        )
    };
    let whole = event("output_text", "text");
    assert_eq!(play(RESPONSES, &[CREATED, &whole, &completed(&message("x"))]).turn.text(), "x");
    assert_eq!(play(RESPONSES, &[CREATED, &text("x"), &whole, &whole, COMPLETED]).turn.text(), "x");
    let played = play(
        RESPONSES,
        &[CREATED, &event("reasoning_summary_text", "text"), &event("refusal", "refusal"), COMPLETED],
    );
    let choice = &played.turn.choices[0];
    assert_eq!((&*choice.reasoning, &*choice.refusal), ("x", "x"));
}

#[test]
fn parts_of_one_text_are_each_said() {
    let item = r#"{"type":"message","id":"i1","content":[{"text":"a"},{"text":"a"}]}"#;
    assert_eq!(play(RESPONSES, &[CREATED, &text("a"), &done(0, item), &completed(item)]).turn.text(), "aa");
    let twice = r#"{"type":"reasoning","summary":[{"text":"Hm"}],"content":[{"text":"Hm"}]}"#;
    let played = play(RESPONSES, &[CREATED, &piece("reasoning_text", 0, "Hm"), &done(0, twice)]);
    assert_eq!(played.turn.choices[0].reasoning, "Hm");
}

#[test]
fn encrypted_reasoning_is_kept_once_where_it_stood() {
    let item = r#"{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"Hm"}],"encrypted_content":"gAA="}"#;
    let bare = r#"{"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"gBB="}"#;
    let added = r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gA"}}"#;
    let delta = r#"{"type":"response.reasoning_summary_text.delta","output_index":0,"item_id":"rs_1","summary_index":0,"delta":"Hm"}"#;
    let done = |at: u32, item: &str| {
        format!(r#"{{"type":"response.output_item.done","output_index":{at},"item":{item}}}"#)
    };
    let response = format!(r#"{{"id":"r","status":"completed","output":[{item},{bare}]}}"#);
    let completed = format!(r#"{{"type":"response.completed","response":{response}}}"#);
    let events = [added, delta, &done(0, item), &done(1, bare), &completed];
    let signed = |token: &str| {
        let (choice, signs, token) = (0, Signed::Reasoning { end: 2 }, token.to_owned());
        Signature { choice, signs, token }
    };
    for played in [play(RESPONSES, &events), play(RESPONSES, &events[4..]), play_unary(RESPONSES, &response)]
    {
        assert_eq!(played.turn.signatures, [signed("gAA="), signed("gBB=")]);
        assert_eq!((&*played.turn.choices[0].reasoning, played.unknown), ("Hm", 0));
    }
}
