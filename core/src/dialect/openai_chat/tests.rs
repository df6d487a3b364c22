mod oddities;
mod reasoning;
mod whole_messages;

use super::super::Dialect::{OpenAiChat as CHAT, OpenAiCompletions as COMPLETIONS};
use super::super::finish::Ending;
use super::super::testing::{malformed, play, play_named, play_unary};
use super::*;
use crate::outcome::ToolKind;

const DONE: &str = "[DONE]";
const USAGE: &str = r#"{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}"#;
const COUNTED: Option<[Option<u64>; 3]> = Some([Some(5), Some(2), Some(7)]);

fn content(text: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{{"content":"{text}"}},"finish_reason":null}}]}}"#)
}

fn finish(word: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{{}},"finish_reason":"{word}"}}]}}"#)
}

/// A chunk with these elements of `tool_calls`
fn tools(elements: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{{"tool_calls":[{elements}]}},"finish_reason":null}}]}}"#)
}

fn incomplete(word: &str) -> Ending {
    Ending::Incomplete(word.to_owned())
}

#[test]
fn a20_a_comment_wrapped_as_data_is_passed_over() {
    let played =
        play(CHAT, &[": keepalive", &content("Hi"), ": OPENROUTER PROCESSING", &finish("stop"), DONE]);
    assert_eq!((played.turn.text(), played.skipped, played.ending()), ("Hi", 2, Ending::Completed));
    assert_eq!(malformed(CHAT, &["keepalive"]), "not JSON, at line 1 column 1");
}

#[test]
fn a21_null_says_nothing() {
    let played = play(CHAT, &["null", &content("Hi"), "null", &finish("stop"), USAGE, " null ", DONE, ""]);
    assert_eq!((played.turn.text(), played.turn.finish_reason()), ("Hi", Some("stop")));
    assert_eq!((played.skipped, played.tokens()), (3, COUNTED));
}

#[test]
fn c02_one_json_body_is_a_whole_answer() {
    let body =
        r#"{"object":"chat.completion","choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}]}"#;
    let played = play_unary(CHAT, body);
    assert_eq!(
        (played.turn.text(), played.last(), played.ending()),
        ("Hi", Progress::Ended, Ending::Completed)
    );
    let failed = play_unary(CHAT, r#"{"error":{"message":"no","type":"server_error","code":null}}"#);
    assert_eq!(failed.error(), (Some("server_error"), None, None, "no"));
    assert_eq!(play_unary(CHAT, "{}").ending(), Ending::Empty);
}

#[test]
fn a_whole_body_gives_what_its_stream_would() {
    let played = play_unary(
        CHAT,
        r#"{"id":"c1","model":"m","choices":[
            {"index":0,"message":{"role":"assistant","content":null,"reasoning":"Hm","refusal":null,"tool_calls":[
                {"id":"t1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}},
                {"id":"t2","type":"custom","custom":{"name":"g","input":"free text"}}]},"finish_reason":"tool_calls"},
            {"index":1,"message":{"content":null,"refusal":"No."},"finish_reason":"stop"}],
            "usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}"#,
    );
    assert_eq!(played.calls(), [["t1", "f", r#"{"a":1}"#], ["t2", "g", "free text"]]);
    let calls = &played.turn.choices[0].tool_calls;
    assert_eq!((calls[0].kind, calls[1].kind), (ToolKind::Function, ToolKind::Custom));
    assert!(calls[1].looks_whole());
    assert_eq!((&*played.turn.choices[0].reasoning, &*played.turn.choices[1].refusal), ("Hm", "No."));
    assert_eq!((played.turn.id.as_deref(), played.turn.model.as_deref()), (Some("c1"), Some("m")));
    assert_eq!((played.opened, played.tokens()), (2, COUNTED));
}

#[test]
fn c08_a_sentinel_alone_is_no_answer() {
    assert_eq!(play(CHAT, &[DONE]).ending(), Ending::Empty);
    let counted = play(CHAT, &[USAGE, DONE]);
    assert_eq!((counted.ending(), counted.progress[0]), (Ending::Empty, Progress::Open));
    let role = r#"{"choices":[{"index":0,"delta":{"role":"assistant"},"finish_reason":null}]}"#;
    let played = play(CHAT, &[role, &finish("stop"), DONE]);
    assert_eq!((played.turn.text(), played.ending()), ("", Ending::Completed));
    assert_eq!(play(CHAT, &[role, DONE]).ending(), Ending::Empty);
}

#[test]
fn d01_usage_follows_the_finish_reason() {
    let played = play(CHAT, &[&content("Hi"), &finish("stop"), USAGE, DONE]);
    assert_eq!((played.turn.text(), played.tokens(), played.ending()), ("Hi", COUNTED, Ending::Completed));
    assert_eq!(played.progress, [Progress::Open, Progress::Marked, Progress::Marked, Progress::Ended]);
    assert_eq!((played.opened, played.unknown), (1, 0));
}

#[test]
fn d02_a_finish_reason_marks_the_end_without_a_sentinel() {
    let played = play(CHAT, &[&content("Hi"), &finish("stop"), USAGE]);
    assert_eq!((played.last(), played.tokens()), (Progress::Marked, COUNTED));
    assert_eq!(played.turn.finish_reason(), Some("stop"));
}

#[test]
fn d03_text_alone_ends_nothing() {
    let played = play(CHAT, &[&content("Half an "), &content("answ")]);
    assert_eq!((played.turn.text(), played.last()), ("Half an answ", Progress::Open));
    assert_eq!((played.turn.finish_reason(), played.tokens()), (None, None));
}

#[test]
fn d05_filter_results_open_no_answer() {
    let filter = r#"{"id":"","object":"","created":0,"model":"","choices":[],"prompt_filter_results":[{"prompt_index":0,"content_filter_results":{"hate":{"filtered":false,"severity":"safe"}}}]}"#;
    assert_eq!(play(CHAT, &[filter, DONE]).ending(), Ending::Empty);
    let played = play(CHAT, &[filter, &content("Hi"), &finish("stop"), DONE]);
    assert_eq!((played.turn.text(), played.errors.len(), played.ending()), ("Hi", 0, Ending::Completed));
}

#[test]
fn d07_a_content_filter_is_incomplete() {
    let played = play(CHAT, &[&content("I can"), &finish("content_filter"), DONE]);
    assert_eq!((played.turn.text(), played.ending()), ("I can", incomplete("content_filter")));
}

#[test]
fn d08_null_equals_absent_everywhere() {
    let null = r#"{"choices":null,"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}"#;
    let nulls = [
        r#"{"id":null,"model":null,"choices":[{"index":0,"delta":null,"finish_reason":null}],"usage":null,"error":null}"#,
        r#"{"choices":[{"index":null,"delta":{"content":null,"tool_calls":null,"refusal":null,"function_call":null},"finish_reason":null}],"x_groq":null}"#,
        r#"{"choices":[null],"usage":null}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":null,"id":null,"function":null}],"content":null}}]}"#,
    ];
    let played = play(CHAT, &[nulls[0], &content("Hi"), nulls[1], nulls[2], &finish("stop"), null, DONE]);
    assert_eq!((played.turn.text(), played.tokens(), played.ending()), ("Hi", COUNTED, Ending::Completed));
    assert_eq!(play(CHAT, &[&content("Hi"), nulls[3]]).calls(), [] as [[&str; 3]; 0]);
}

#[test]
fn d09_an_empty_finish_reason_finishes_nothing() {
    let empty = |text: &str| content(text).replace("null", r#""""#);
    let played = play(CHAT, &[&empty("Hel"), &empty("lo"), &finish("stop"), DONE]);
    assert_eq!((played.turn.text(), played.ending()), ("Hello", Ending::Completed));
    assert_eq!(played.progress[..3], [Progress::Open, Progress::Open, Progress::Marked]);
    let cut = play(CHAT, &[&empty("Hel"), &empty("lo")]);
    assert_eq!((cut.last(), cut.turn.finish_reason()), (Progress::Open, None));
}

#[test]
fn d11_the_last_usage_stands() {
    let counted = |text, out| {
        let usage = format!(
            r#","usage":{{"prompt_tokens":5,"completion_tokens":{out},"total_tokens":{}}}}}"#,
            5 + out
        );
        content(text).strip_suffix('}').unwrap().to_owned() + &usage
    };
    let played = play(CHAT, &[&counted("a", 1), &counted("b", 2), &finish("stop"), DONE]);
    assert_eq!((played.turn.text(), played.tokens()), ("ab", COUNTED));
    assert_eq!(played.progress[..2], [Progress::Open, Progress::Open]);
}

#[test]
fn d13_an_error_object_is_an_error_whatever_follows() {
    let error = r#"{"error":{"message":"backend timed out","type":"GatewayTimeout","code":504}}"#;
    let alone = play(CHAT, &[error, DONE]);
    assert_eq!(alone.error(), (Some("GatewayTimeout"), Some("504"), Some(504), "backend timed out"));
    let after = play(CHAT, &[&content("Hi"), error, DONE]);
    assert_eq!((after.turn.text(), after.errors.len()), ("Hi", 1));
    let flat =
        r#"{"object":"error","message":"max context","type":"BadRequestError","param":null,"code":400}"#;
    assert_eq!(
        play(CHAT, &[flat, DONE]).error(),
        (Some("BadRequestError"), Some("400"), Some(400), "max context")
    );
    let unreadable = play(CHAT, &[r#"{"choices":[],"error":5}"#]);
    assert_eq!(unreadable.errors.len(), 1);
    for none in ["null", "false", "{}", r#""""#] {
        let event = format!(r#"{{"id":"c","choices":[],"error":{none}}}"#);
        assert_eq!(play(CHAT, &[&event]).errors, [], "{none}");
    }
}

#[test]
fn d14_the_error_object_says_more_than_the_finish_reason() {
    let error = r#"{"id":"g1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"."},"finish_reason":"error"}],"error":{"code":"server_error","message":"upstream gone"}}"#;
    let played = play(CHAT, &[&content("Let me "), error, DONE]);
    assert_eq!((played.turn.text(), played.errors.len()), ("Let me .", 1));
    assert_eq!(played.error(), (None, Some("server_error"), None, "upstream gone"));
    let wordless = play(CHAT, &[&content("Let me "), &finish("error"), DONE]);
    assert_eq!(wordless.error(), (Some("error"), None, None, ""));
}

#[test]
fn d15_abort_is_an_error() {
    let played = play(CHAT, &[&content("Half"), &finish("abort"), DONE]);
    assert_eq!(played.error(), (Some("abort"), None, None, ""));
    assert_eq!((played.turn.text(), played.turn.finish_reason()), ("Half", None));
    assert_eq!(played.progress[1], Progress::Open);
}

#[test]
fn d18_the_sentinel_ends_at_once() {
    let played = play(CHAT, &[&content("Hi"), &finish("stop"), " [DONE] "]);
    assert_eq!((played.last(), played.ending()), (Progress::Ended, Ending::Completed));
}

#[test]
fn d20_text_next_to_the_finish_reason_is_kept() {
    let last = content("lo").replace("null", r#""length""#);
    let played = play(CHAT, &[&content("Hel"), &last, DONE]);
    assert_eq!((played.turn.text(), played.ending()), ("Hello", incomplete("length")));
}

#[test]
fn d22_ids_may_change_and_a_delta_wins_over_a_message() {
    let played = play(
        CHAT,
        &[
            r#"{"id":"c.1","p":"abcdefgh","choices":[{"index":0,"delta":{"content":"H"},"message":{"content":"H"},"finish_reason":null}]}"#,
            r#"{"id":"c.2","p":"ab","choices":[{"index":0,"delta":{"content":"i"},"message":{"content":"i"},"finish_reason":"stop"}]}"#,
            r#"{"id":"c.3","choices":[{"index":0,"message":{"content":"Hi"},"finish_reason":"stop"}]}"#,
            DONE,
        ],
    );
    assert_eq!((played.turn.text(), played.turn.id.as_deref()), ("Hi", Some("c.1")));
    assert_eq!(played.identities, 1);
    assert_eq!(played.ending(), Ending::Completed);
}

#[test]
fn several_choices_are_marked_when_the_last_has_finished() {
    let choice = |index: u32, text: &str, word: &str| {
        format!(
            r#"{{"choices":[{{"index":{index},"delta":{{"content":"{text}"}},"finish_reason":{word}}}]}}"#
        )
    };
    let played = play(
        CHAT,
        &[
            &choice(0, "a", "null"),
            &choice(0, "", r#""stop""#),
            &choice(1, "b", "null"),
            &choice(1, "", r#""length""#),
            DONE,
        ],
    );
    let (open, marked) = (Progress::Open, Progress::Marked);
    assert_eq!(played.progress, [open, marked, open, marked, Progress::Ended]);
    assert_eq!((&*played.turn.choices[1].text, played.ending()), ("b", incomplete("length")));
    let many: Vec<_> = (0..1025).map(|index| choice(index, "", "null")).collect();
    let many: Vec<_> = many.iter().map(String::as_str).collect();
    assert_eq!(malformed(CHAT, &many), "more than 1024 choices");
}

#[test]
fn reasoning_is_said_once_under_either_name() {
    let delta = |delta: &str| format!(r#"{{"choices":[{{"index":0,"delta":{delta}}}]}}"#);
    let played = play(
        CHAT,
        &[
            &delta(r#"{"reasoning_content":"a"}"#),
            &delta(r#"{"reasoning":"b"}"#),
            &delta(r#"{"reasoning_content":"c","reasoning":"c"}"#),
            &delta(
                r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"d"}]},{"type":"text","text":"Hi"}]}"#,
            ),
        ],
    );
    assert_eq!((&*played.turn.choices[0].reasoning, played.turn.text()), ("abcd", "Hi"));
}

#[test]
fn completions_give_text_without_a_delta() {
    let played = play(
        COMPLETIONS,
        &[
            r#"{"id":"c","choices":[{"text":"a\n","index":0,"logprobs":null,"finish_reason":null}],"usage":null}"#,
            r#"{"id":"c","choices":[{"text":"","index":0,"finish_reason":"length"}]}"#,
            DONE,
        ],
    );
    assert_eq!((played.turn.text(), played.ending()), ("a\n", incomplete("length")));
    assert_eq!(played.progress, [Progress::Open, Progress::Marked, Progress::Ended]);
}

#[test]
fn completions_of_mistral_have_deltas_and_messages() {
    let played = play(COMPLETIONS, &[&content("a"), &finish("stop"), DONE]);
    assert_eq!((played.turn.text(), played.ending()), ("a", Ending::Completed));
    let whole =
        play_unary(COMPLETIONS, r#"{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}]}"#);
    assert_eq!((whole.turn.text(), whole.last()), ("a", Progress::Ended));
}

#[test]
fn quirks_of_azure() {
    let filter = r#""content_filter_results":{"hate":{"filtered":false,"severity":"safe"}}"#;
    let with_filter = content("Hi").replace(r#""finish_reason""#, &format!(r#"{filter},"finish_reason""#));
    // An asynchronous filter reports on text that came before, in choices without a delta.
    let later = format!(
        r#"{{"id":"","choices":[{{"index":0,"finish_reason":null,{filter},"content_filter_offsets":{{"check_offset":0,"start_offset":0,"end_offset":2}}}}],"usage":null}}"#
    );
    let played = play(CHAT, &[&with_filter, &later, &finish("stop"), &later, DONE]);
    assert_eq!((played.turn.text(), played.unknown, played.ending()), ("Hi", 0, Ending::Completed));
    assert_eq!((played.turn.id, played.progress[3]), (None, Progress::Marked));
}

#[test]
fn quirks_of_deepseek() {
    let thought = r#"{"id":"c","choices":[{"index":0,"delta":{"content":null,"reasoning_content":"Hm"},"logprobs":null,"finish_reason":null}]}"#;
    let usage =
        r#","usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7,"prompt_cache_hit_tokens":0}}"#;
    let last = finish("insufficient_system_resource").strip_suffix('}').unwrap().to_owned() + usage;
    let played = play(CHAT, &[thought, &content("Hi"), &last, DONE]);
    assert_eq!((&*played.turn.choices[0].reasoning, played.turn.text()), ("Hm", "Hi"));
    assert_eq!((played.tokens(), played.ending()), (COUNTED, incomplete("insufficient_system_resource")));
}

#[test]
fn quirks_of_mistral() {
    let padded = content("Hi").replacen('{', r#"{"id":"c","p":"abc","#, 1);
    let call = tools(r#"{"index":0,"id":"t1","function":{"name":"f","arguments":{"a":1}}}"#);
    let played = play(CHAT, &[&padded, &call, &finish("model_length"), DONE]);
    assert_eq!((played.turn.text(), played.ending()), ("Hi", incomplete("model_length")));
    assert_eq!(played.calls(), [["t1", "f", r#"{"a":1}"#]]);
    assert_eq!(play(CHAT, &[&padded, &finish("error"), DONE]).error().0, Some("error"));
}

#[test]
fn quirks_of_groq() {
    let with_groq =
        |chunk: &str, groq: &str| format!(r#"{},"x_groq":{groq}}}"#, chunk.strip_suffix('}').unwrap());
    let first = with_groq(&content("Hi"), r#"{"id":"req_1","seed":1,"error":null}"#);
    let usage = r#"{"id":"req_1","usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}"#;
    let played = play(CHAT, &[&first, &with_groq(&finish("stop"), usage), DONE]);
    assert_eq!((played.turn.text(), played.tokens(), played.ending()), ("Hi", COUNTED, Ending::Completed));
    let stopped = [r#"{"id":"c","choices":[],"x_groq":{"error":"over capacity"}}"#, DONE];
    assert_eq!(play(CHAT, &stopped).error(), (None, None, None, "over capacity"));
    let told = r#"{"x_groq":{"error":{"message":"no","type":"internal_server_error"}}}"#;
    assert_eq!(play(CHAT, &[&first, told]).error(), (Some("internal_server_error"), None, None, "no"));
}

#[test]
fn quirks_of_openrouter() {
    let chunk = r#"{"id":"g1","provider":"P","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning":"Hm","reasoning_details":[{"type":"reasoning.text","text":"Hm"}]},"finish_reason":null,"native_finish_reason":null}]}"#;
    let last =
        finish("stop").replace(r#""finish_reason""#, r#""native_finish_reason":"STOP","finish_reason""#);
    let played = play(CHAT, &[": OPENROUTER PROCESSING", chunk, &content("Hi"), &last, USAGE, DONE]);
    assert_eq!((&*played.turn.choices[0].reasoning, played.turn.text()), ("Hm", "Hi"));
    assert_eq!((played.tokens(), played.skipped, played.ending()), (COUNTED, 1, Ending::Completed));
}

#[test]
fn quirks_of_vllm() {
    let stopped = finish("stop").replace(r#""finish_reason""#, r#""stop_reason":128001,"finish_reason""#);
    let counted = content("Hi").strip_suffix('}').unwrap().to_owned() + r#","usage":null}"#;
    let played = play(CHAT, &[&counted, &stopped, USAGE, DONE]);
    assert_eq!((played.turn.text(), played.tokens(), played.ending()), ("Hi", COUNTED, Ending::Completed));
    let nested = r#"{"error":{"message":"max context","type":"BadRequestError","param":null,"code":400}}"#;
    assert_eq!(
        play(CHAT, &[nested, DONE]).error(),
        (Some("BadRequestError"), Some("400"), Some(400), "max context")
    );
}

#[test]
fn quirks_of_llama_cpp() {
    let last = finish("length").strip_suffix('}').unwrap().to_owned()
        + r#","usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7},"timings":{"prompt_n":5}}"#;
    let played = play(CHAT, &[&content("Hi"), &last, DONE]);
    assert_eq!((played.turn.text(), played.tokens(), played.ending()), ("Hi", COUNTED, incomplete("length")));
    let error =
        r#"{"error":{"code":400,"message":"too large","type":"exceed_context_size_error","n_ctx":9}}"#;
    assert_eq!(
        play(CHAT, &[error]).error(),
        (Some("exceed_context_size_error"), Some("400"), Some(400), "too large")
    );
}

#[test]
fn quirks_of_lm_studio() {
    let error = r#"{"error":{"message":"The model has crashed"}}"#;
    let played = play_named(CHAT, &[("message", &content("Hi")), ("error", error)]);
    assert_eq!((played.error(), played.turn.text()), ((None, None, None, "The model has crashed"), "Hi"));
    let text = r#"{"error":"No models loaded"}"#;
    assert_eq!(play(CHAT, &[text]).error(), (None, None, None, "No models loaded"));
}

#[test]
fn citations_pass_as_they_came() {
    let annotated = r#"{"choices":[{"index":0,"delta":{"content":"Hi","annotations":[{"type":"url_citation","url_citation":{"url":"u"}}]}}]}"#;
    let cited = |citations: &str| {
        content("!").strip_suffix('}').unwrap().to_owned() + &format!(r#","citations":{citations}}}"#)
    };
    let alone = r#"{"citations":["u"]}"#;
    let none = content("").replace(r#""content""#, r#""annotations":[],"content""#);
    let events = [annotated, &none, &cited("[]"), &cited("[\"u\"]"), alone, &finish("stop"), DONE];
    let played = play(CHAT, &events);
    assert_eq!((played.turn.text(), played.unknown, played.ending()), ("Hi!!", 3, Ending::Completed));
}

#[test]
fn h06_an_event_named_error_is_one() {
    let data = r#"{"code":400,"message":"input larger than context","type":"invalid_request_error"}"#;
    let played = play_named(CHAT, &[("error", data), ("message", DONE)]);
    assert_eq!(
        played.error(),
        (Some("invalid_request_error"), Some("400"), Some(400), "input larger than context")
    );
    let bare = play_named(CHAT, &[("error", "out of memory")]);
    assert_eq!(bare.error(), (Some("error"), None, None, "out of memory"));
}

#[test]
fn i01_arguments_are_joined_as_they_came() {
    let open = tools(r#"{"index":0,"id":"t1","type":"function","function":{"name":"f","arguments":""}}"#);
    let piece = |text: &str| tools(&format!(r#"{{"index":0,"function":{{"arguments":"{text}"}}}}"#));
    let played = play(
        CHAT,
        &[
            &open,
            &piece(r#"{\"city\":\"S\\u00"#),
            &piece(r"e3o \\ud83c"),
            &piece(r#"\\udf0d\"}"#),
            &finish("tool_calls"),
            DONE,
        ],
    );
    assert_eq!(played.calls(), [["t1", "f", r#"{"city":"S\u00e3o \ud83c\udf0d"}"#]]);
    assert!(played.turn.choices[0].tool_calls[0].looks_whole());
    assert_eq!(played.ending(), Ending::Completed);
}

#[test]
fn i02_without_an_index_a_new_id_opens_a_call() {
    let played = play(
        CHAT,
        &[
            &tools(r#"{"id":"t1","type":"function","function":{"name":"w","arguments":"{\"c\":1}"}}"#),
            &tools(r#"{"id":"t2","type":"function","function":{"name":"w","arguments":"{\"c\":"}}"#),
            &tools(r#"{"function":{"arguments":"2}"}}"#),
            &finish("tool_calls"),
            DONE,
        ],
    );
    assert_eq!(played.calls(), [["t1", "w", r#"{"c":1}"#], ["t2", "w", r#"{"c":2}"#]]);
    let by_place = play(
        CHAT,
        &[&tools(
            r#"{"function":{"name":"a","arguments":"{}"}},{"function":{"name":"b","arguments":{"c":[1, 2]}}}"#,
        )],
    );
    assert_eq!(by_place.calls(), [["", "a", "{}"], ["", "b", r#"{"c":[1, 2]}"#]]);
}

#[test]
fn i03_repeated_ids_and_names_are_set_once() {
    let piece = |text: &str| {
        let function = format!(r#"{{"name":"f","arguments":"{text}"}}"#);
        tools(&format!(r#"{{"index":0,"id":"t1","type":"function","function":{function}}}"#))
    };
    let played = play(CHAT, &[&piece(r#"{\"a\""#), &piece(":1"), &piece("}"), &finish("tool_calls"), DONE]);
    assert_eq!(played.calls(), [["t1", "f", r#"{"a":1}"#]]);
}

#[test]
fn i04_empty_ids_and_names_overwrite_nothing() {
    let played = play(
        CHAT,
        &[
            &tools(r#"{"index":0,"id":"t1","type":"function","function":{"name":"f","arguments":""}}"#),
            &tools(r#"{"index":0,"id":null,"function":{"name":null,"arguments":"{"}}"#),
            &tools(r#"{"index":0,"id":"","function":{"name":"","arguments":"}"}}"#),
            &finish("tool_calls"),
            DONE,
        ],
    );
    assert_eq!(played.calls(), [["t1", "f", "{}"]]);
}

#[test]
fn i07_a_cut_call_is_never_ready_to_run() {
    let call = tools(
        r#"{"index":0,"id":"t1","function":{"name":"f","arguments":"{\"path\":\"/tmp/a\",\"text\":\"he"}}"#,
    );
    let cut = play(CHAT, &[&call, &finish("length"), DONE]);
    assert_eq!(cut.ending(), incomplete("length"));
    assert!(!cut.turn.choices[0].tool_calls[0].looks_whole());
    let claimed = play(CHAT, &[&call, &finish("tool_calls"), DONE]);
    assert_eq!(claimed.ending(), Ending::Completed);
    assert!(!claimed.turn.choices[0].tool_calls[0].looks_whole());
    assert_eq!(play(CHAT, &[&call, DONE]).ending(), Ending::Truncated);
}

#[test]
fn i09_a_call_without_arguments_is_a_call() {
    for (function, arguments) in [
        (r#"{"name":"now"}"#, ""),
        (r#"{"name":"now","arguments":""}"#, ""),
        (r#"{"name":"now","arguments":null}"#, ""),
        (r#"{"name":"now","arguments":"{}"}"#, "{}"),
    ] {
        let call = tools(&format!(r#"{{"index":0,"id":"t1","type":"function","function":{function}}}"#));
        let played = play(CHAT, &[&call, &finish("tool_calls"), DONE]);
        assert_eq!(played.calls(), [["t1", "now", arguments]]);
        assert_eq!(played.ending(), Ending::Completed);
    }
}

#[test]
fn a_new_id_with_a_name_opens_a_call_at_the_same_index() {
    let played = play(
        CHAT,
        &[
            &tools(r#"{"index":0,"id":"t1","function":{"name":"f","arguments":"{}"}}"#),
            &tools(r#"{"index":0,"id":"t2","function":{"name":"f","arguments":"["}}"#),
            &tools(r#"{"index":0,"id":"t1","function":{"name":"f","arguments":" "}}"#),
            &tools(r#"{"index":0,"function":{"arguments":"]"}}"#),
        ],
    );
    assert_eq!(played.calls(), [["t1", "f", "{} "], ["t2", "f", "[]"]]);
}

#[test]
fn an_index_tells_calls_apart_that_share_an_id() {
    let played = play(
        CHAT,
        &[
            &tools(r#"{"index":0,"id":"t1","function":{"name":"f","arguments":"{}"}}"#),
            &tools(r#"{"index":1,"id":"t1","function":{"name":"g","arguments":"["}}"#),
            &tools(r#"{"index":1,"id":"t1","function":{"arguments":"]"}}"#),
        ],
    );
    assert_eq!(played.calls(), [["t1", "f", "{}"], ["t1", "g", "[]"]]);
}

#[test]
fn an_id_or_a_name_may_come_late_and_indexes_may_leave_gaps() {
    let played = play(
        CHAT,
        &[
            &tools(r#"{"index":3,"id":"t1","function":{"arguments":""}}"#),
            &tools(r#"{"index":3,"function":{"name":"f\u002d1","arguments":"{"}}"#),
            &tools(r#"{"index":1,"function":{"name":"g"}}"#),
            &tools(r#"{"index":1,"id":"t2"}"#),
            &tools(r#"{"index":3,"function":{"arguments":"}"}}"#),
        ],
    );
    assert_eq!(played.calls(), [["t1", "f-1", "{}"], ["t2", "g", ""]]);
}

#[test]
fn a_legacy_function_call_is_a_call() {
    let delta = |delta: &str| format!(r#"{{"choices":[{{"index":0,"delta":{{"function_call":{delta}}}}}]}}"#);
    let played = play(
        CHAT,
        &[
            &delta(r#"{"name":"f","arguments":""}"#),
            &delta(r#"{"arguments":"{}"}"#),
            &finish("function_call"),
            DONE,
        ],
    );
    assert_eq!((played.calls(), played.ending()), (vec![["", "f", "{}"]], Ending::Completed));
}

#[test]
fn data_that_is_no_chunk_is_malformed() {
    assert_eq!(malformed(CHAT, &[&content("a"), "{\"choices\":["]), "not JSON, at line 1 column 12");
    assert_eq!(malformed(CHAT, &["\"error\""]), "JSON, but not an object");
    assert_eq!(malformed(CHAT, &["5"]), "JSON, but not an object");
    assert_eq!(
        malformed(CHAT, &[r#"{"choices":"secret"}"#]),
        "JSON of an unexpected shape, at line 1 column 19"
    );
    let array = play(CHAT, &[r#"[{"error":{"code":429,"message":"quota","status":"RESOURCE_EXHAUSTED"}}]"#]);
    assert_eq!(array.error(), (Some("RESOURCE_EXHAUSTED"), Some("429"), Some(429), "quota"));
}
