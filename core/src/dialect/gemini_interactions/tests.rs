use super::super::Dialect::GeminiInteractions as INTERACTIONS;
use super::super::finish::Ending;
use super::super::testing::{malformed, play, play_named, play_unary};
use super::*;
use crate::outcome::{Signature, Signed};

const CREATED: &str =
    r#"{"interaction":{"id":"i1","status":"in_progress","model":"m"},"event_type":"interaction.created"}"#;
const OUTPUT: &str = r#"{"index":1,"step":{"type":"model_output"},"event_type":"step.start"}"#;
const STOP: &str = r#"{"index":1,"event_type":"step.stop"}"#;

fn start(index: u32, step: &str) -> String {
    format!(r#"{{"index":{index},"step":{step},"event_type":"step.start"}}"#)
}

fn delta(index: u32, delta: &str) -> String {
    format!(r#"{{"index":{index},"delta":{delta},"event_type":"step.delta"}}"#)
}

fn stop(index: u32) -> String {
    format!(r#"{{"index":{index},"event_type":"step.stop"}}"#)
}

fn text(text: &str) -> String {
    delta(1, &format!(r#"{{"text":"{text}","type":"text"}}"#))
}

fn completed(status: &str) -> String {
    format!(
        r#"{{"interaction":{{"id":"i1","status":"{status}","usage":{{"total_tokens":16,"total_input_tokens":5,"total_output_tokens":2,"total_thought_tokens":9}}}},"event_type":"interaction.completed"}}"#
    )
}

#[test]
fn text_then_the_completed_interaction() {
    let update = r#"{"interaction_id":"i1","status":"in_progress","event_type":"interaction.status_update"}"#;
    let played = play_named(
        INTERACTIONS,
        &[
            ("interaction.created", CREATED),
            ("interaction.status_update", update),
            ("step.start", OUTPUT),
            ("step.delta", &text("Hi")),
            ("step.stop", STOP),
            ("interaction.completed", &completed("completed")),
            ("done", "[DONE]"),
        ],
    );
    assert_eq!((played.turn.text(), played.ending()), ("Hi", Ending::Completed));
    assert_eq!((played.turn.id.as_deref(), played.turn.model.as_deref()), (Some("i1"), Some("m")));
    assert_eq!(played.tokens(), Some([Some(5), Some(2), Some(16)]));
    assert_eq!(played.progress[4..], [Progress::Open, Progress::Ended, Progress::Ended]);
    assert_eq!((played.opened, played.unknown, played.skipped), (1, 0, 1));
}

#[test]
fn no_completed_interaction_is_no_end() {
    let played = play(INTERACTIONS, &[CREATED, OUTPUT, &text("Half"), STOP, "[DONE]"]);
    assert_eq!((played.turn.text(), played.last()), ("Half", Progress::Open));
}

#[test]
fn statuses_are_the_words() {
    let ending = |status| play(INTERACTIONS, &[CREATED, &completed(status)]).ending();
    assert_eq!(ending("requires_action"), Ending::Completed);
    for status in ["incomplete", "cancelled", "budget_exceeded", "in_progress"] {
        assert_eq!(ending(status), Ending::Incomplete(status.to_owned()));
    }
}

#[test]
fn a_failed_interaction_is_an_error() {
    let played = play(INTERACTIONS, &[CREATED, OUTPUT, &text("Half"), &completed("failed")]);
    assert_eq!(played.error(), (Some("failed"), None, None, ""));
    assert_eq!((played.turn.text(), played.turn.finish_reason()), ("Half", None));
    assert_eq!(played.last(), Progress::Open);
    let update = r#"{"interaction_id":"i1","status":"failed","event_type":"interaction.status_update"}"#;
    assert_eq!(play(INTERACTIONS, &[CREATED, update]).error().0, Some("failed"));
    let error = r#"{"event_type":"error","error":{"code":"quota","message":"no"}}"#;
    let expected = (None, Some("quota"), None, "no");
    assert_eq!(play(INTERACTIONS, &[CREATED, error]).error(), expected);
    assert_eq!(play_named(INTERACTIONS, &[("error", error)]).error(), expected);
    let whole = r#"{"id":"i1","status":"failed","error":{"code":503,"message":"busy"}}"#;
    assert_eq!(play_unary(INTERACTIONS, whole).error(), (None, Some("503"), Some(503), "busy"));
}

#[test]
fn thoughts_are_reasoning() {
    let played = play(
        INTERACTIONS,
        &[
            CREATED,
            &start(0, r#"{"type":"thought","summary":[{"type":"text","text":"Let"}]}"#),
            &delta(0, r#"{"type":"thought_summary","content":{"type":"text","text":" me"}}"#),
            &delta(0, r#"{"type":"thought_signature","signature":"s"}"#),
            &stop(0),
            &start(1, r#"{"type":"model_output","content":[{"type":"text","text":"He"}]}"#),
            &text("y"),
        ],
    );
    assert_eq!((&*played.turn.choices[0].reasoning, played.turn.text()), ("Let me", "Hey"));
    assert_eq!(played.unknown, 0);
    assert_eq!(played.turn.signatures, [signed(Signed::Reasoning { end: 6 }, "s")]);
}

fn signed(signs: Signed, token: &str) -> Signature {
    Signature { choice: 0, signs, token: token.to_owned() }
}

#[test]
fn thoughts_and_calls_are_signed_once() {
    let thought = r#"{"type":"thought","signature":"s1"}"#;
    let call = r#"{"type":"function_call","id":"a","name":"f","arguments":{},"signature":"s2"}"#;
    let steps = format!("[{thought},{call}]");
    let interaction = format!(r#"{{"id":"i1","model":"m","status":"requires_action","steps":{steps}}}"#);
    let end = format!(r#"{{"interaction":{interaction},"event_type":"interaction.completed"}}"#);
    let sign = delta(0, r#"{"type":"thought_signature","signature":"s1"}"#);
    let opened = [start(0, r#"{"type":"thought"}"#), start(0, thought), start(1, call), stop(0), stop(1)];
    let [bare, whole, called, stop, stopped] = opened.each_ref().map(String::as_str);
    let expected = [signed(Signed::Reasoning { end: 0 }, "s1"), signed(Signed::ToolCall { index: 0 }, "s2")];
    for played in [
        play(INTERACTIONS, &[CREATED, bare, &sign, stop, called, stopped, &end]),
        play(INTERACTIONS, &[CREATED, whole, stop, called, stopped, &end]),
        play(INTERACTIONS, &[CREATED, &end]),
        play_unary(INTERACTIONS, &interaction),
    ] {
        assert_eq!(played.turn.signatures, expected);
        assert_eq!(played.calls(), [["a", "f", "{}"]]);
    }
}

#[test]
fn tool_calls_of_the_caller_and_of_google() {
    let call = |id: &str, arguments: &str| {
        format!(r#"{{"id":"{id}","signature":"","type":"function_call","name":"f","arguments":{arguments}}}"#)
    };
    let piece = |index, name: &str, json: &str| {
        delta(index, &format!(r#"{{"type":"arguments_delta","{name}":"{json}"}}"#))
    };
    let played = play(
        INTERACTIONS,
        &[
            CREATED,
            &start(1, &call("a", "{}")),
            &start(2, &call("b", "{}")),
            &piece(1, "arguments", r#"{\"x\""#),
            &piece(1, "partial_arguments", ":1}"),
            &stop(1),
            &stop(2),
            &start(3, &call("c", r#"{"y":[2]}"#)),
            &piece(3, "arguments", "{}"),
            &start(4, r#"{"id":"d","type":"google_search_call"}"#),
            &delta(4, r#"{"type":"google_search_call","arguments":{"queries":["q"]}}"#),
            &delta(4, r#"{"type":"google_search_call","arguments":{"queries":["q"]}}"#),
            &stop(4),
            &start(
                5,
                r#"{"id":"e","type":"mcp_server_tool_call","name":"g","server_name":"s","arguments":{}}"#,
            ),
            &piece(9, "arguments", "lost"),
            &completed("requires_action"),
        ],
    );
    assert_eq!(
        played.calls(),
        [
            ["a", "f", r#"{"x":1}"#],
            ["b", "f", "{}"],
            ["c", "f", r#"{"y":[2]}"#],
            ["d", "google_search", r#"{"queries":["q"]}"#],
            // Nothing says that it stopped.
            ["e", "g", "{"],
        ]
    );
    let kinds: Vec<_> = played.turn.choices[0].tool_calls.iter().map(|call| call.kind).collect();
    let (function, server) = (ToolKind::Function, ToolKind::Server);
    assert_eq!(kinds, [function, function, function, server, server]);
    assert_eq!((played.unknown, played.ending()), (1, Ending::Completed));
}

#[test]
fn steps_that_only_the_whole_interaction_has_are_taken_once() {
    let whole = |steps: &str| {
        format!(
            r#"{{"event_type":"interaction.completed","interaction":{{"id":"i1","status":"requires_action","steps":[{steps}]}}}}"#
        )
    };
    let said = r#"{"type":"user_input","content":[{"type":"text","text":"?"}]},{"type":"thought","summary":[{"text":"Hm"}]},
        {"type":"model_output","content":[{"type":"text","text":"Hi"}]},{"type":"function_call","id":"a","name":"f","arguments":{"x":1}}"#;
    let thought = start(1, r#"{"type":"thought"}"#);
    let summary = delta(1, r#"{"type":"thought_summary","content":{"type":"text","text":"Hm"}}"#);
    let output = start(2, r#"{"type":"model_output"}"#);
    let text = delta(2, r#"{"type":"text","text":"Hi"}"#);
    let call = start(3, r#"{"type":"function_call","id":"a","name":"f","arguments":{}}"#);
    let arguments = delta(3, r#"{"type":"arguments_delta","arguments":"{\"x\":1}"}"#);
    let events = [CREATED, &thought, &summary, &output, &text, &call, &arguments];
    for count in 1..=events.len() {
        let end = whole(said);
        let played = play(INTERACTIONS, &[&events[..count], &[&*end]].concat());
        assert_eq!((&*played.turn.choices[0].reasoning, played.turn.text()), ("Hm", "Hi"), "{count}");
        assert_eq!(played.calls(), [["a", "f", r#"{"x":1}"#]], "{count}");
        assert_eq!((played.unknown, played.ending()), (1, Ending::Completed), "{count}");
    }
}

#[test]
fn a_call_that_has_not_stopped_is_not_whole() {
    for arguments in ["{}", "null"] {
        let step = format!(r#"{{"type":"function_call","id":"a","name":"f","arguments":{arguments}}}"#);
        let call = start(0, &step);
        let cut = play(INTERACTIONS, &[CREATED, &call, &completed("requires_action")]);
        assert_eq!(cut.calls(), [["a", "f", "{"]], "{arguments}");
    }
    let call = start(0, r#"{"type":"function_call","id":"a","name":"f","arguments":{}}"#);
    let stopped = play(INTERACTIONS, &[CREATED, &call, &stop(0), &completed("requires_action")]);
    assert_eq!(stopped.calls(), [["a", "f", "{}"]]);
}

#[test]
fn the_events_of_before_may_2026() {
    let played = play(
        INTERACTIONS,
        &[
            r#"{"event_type":"interaction.start","interaction":{"id":"i1","model":"m"}}"#,
            r#"{"event_type":"content.start","index":0,"content":{"type":"text"}}"#,
            r#"{"event_type":"content.delta","index":0,"delta":{"type":"text","text":"Hi"}}"#,
            r#"{"event_type":"content.stop","index":0}"#,
            r#"{"event_type":"content.start","index":1,"content":{"type":"function_call"}}"#,
            r#"{"event_type":"content.delta","index":1,"delta":{"type":"function_call","id":"a","name":"f","arguments":{"x":1}}}"#,
            r#"{"event_type":"content.stop","index":1}"#,
            r#"{"event_type":"content.delta","index":2,"delta":{"type":"function_call","id":"b","name":"g","arguments":{}}}"#,
            r#"{"event_type":"interaction.complete","interaction":{"id":"i1","status":"requires_action"}}"#,
        ],
    );
    assert_eq!(played.turn.text(), "Hi");
    assert_eq!(played.calls(), [["a", "f", r#"{"x":1}"#], ["b", "g", "{}"]]);
    assert_eq!((played.last(), played.ending(), played.unknown), (Progress::Ended, Ending::Completed, 0));
    let whole = play_unary(
        INTERACTIONS,
        r#"{"id":"i1","status":"completed","outputs":[
            {"type":"thought","summary":[{"type":"text","text":"Hm"}]},{"type":"text","text":"Hi"},
            {"type":"function_call","id":"a","name":"f","arguments":{"x":1}}]}"#,
    );
    assert_eq!((whole.turn.text(), &*whole.turn.choices[0].reasoning), ("Hi", "Hm"));
    assert_eq!(whole.calls(), [["a", "f", r#"{"x":1}"#]]);
}

#[test]
fn citations_pictures_and_results_pass_as_they_came() {
    let played = play(
        INTERACTIONS,
        &[
            CREATED,
            OUTPUT,
            &text("Hi"),
            &delta(
                1,
                r#"{"type":"text_annotation_delta","annotations":[{"type":"url_citation","url":"u"}]}"#,
            ),
            &delta(1, r#"{"type":"image","data":"eA==","mime_type":"image/png"}"#),
            STOP,
            &start(2, r#"{"call_id":"d","type":"google_search_result","content":"anything"}"#),
            &delta(2, r#"{"type":"google_search_result","result":[{"url":"u"}]}"#),
            r#"{"event_type":"shiny","index":[1],"delta":5}"#,
            &completed("completed"),
        ],
    );
    assert_eq!((played.turn.text(), played.unknown, played.ending()), ("Hi", 5, Ending::Completed));
    let cited = r#"{"status":"completed","steps":[{"type":"user_input","content":[{"text":"?"}]},
        {"type":"model_output","content":[{"type":"text","text":"Hi","annotations":[1]},{"type":"image"}]}]}"#;
    let whole = play_unary(INTERACTIONS, cited);
    assert_eq!((whole.turn.text(), whole.unknown), ("Hi", 1));
}

#[test]
fn null_equals_absent_and_the_rest_is_malformed() {
    let played = play(
        INTERACTIONS,
        &[
            r#"{"event_type":"interaction.created","interaction":null}"#,
            r#"{"event_type":"step.start","index":null,"step":null}"#,
            r#"{"event_type":"step.delta","delta":{"type":"thought_summary","content":null}}"#,
            r#"{"event_type":"step.delta","delta":{"type":"text","text":null,"annotations":null}}"#,
            r#"{"event_type":"interaction.completed","interaction":{"id":null,"usage":null,"error":null}}"#,
        ],
    );
    assert_eq!((played.opened, played.errors.len(), played.ending()), (1, 0, Ending::Empty));
    assert_eq!(
        malformed(INTERACTIONS, &[r#"{"event_type":"step.delta","delta":"x"}"#]),
        "JSON of an unexpected shape: no object"
    );
    assert_eq!(play_unary(INTERACTIONS, "{}").ending(), Ending::Empty);
}
