//! D: OpenAI Chat Completions and compatible servers.

use steadfast::call::CloseMode;
use steadfast::dialect::Dialect;
use steadfast::outcome::{Billing, ErrorKind, Note, ProviderError, Truncation};
use steadfast_tests::corpus::events::{D, U, c, f, tool};
use steadfast_tests::corpus::{Answer, Case, End, Ran};

const USAGE: Option<[u64; 3]> = Some([5, 2, 7]);

/// A stream of that body, for which three attempts may be made
fn chat(body: impl AsRef<[u8]>) -> Case {
    Case::stream(Dialect::OpenAiChat).body(body, End::Clean).config(|config| config.max_attempts(3))
}

/// One attempt that ended at the sentinel, with nothing else to say of it
fn assert_stopped<'a>(ran: &'a Ran, text: &str, usage: Option<[u64; 3]>) -> &'a Ran {
    ran.assert_completed(Some("stop"), text).assert_usage(usage).assert_notes(&[]).assert_requests(1);
    assert_eq!((ran.turn().choices.len(), &ran.turn().choices[0].tool_calls[..]), (1, &[][..]));
    ran
}

/// One attempt whose answer never came to its end
fn assert_no_terminal_state<'a>(ran: &'a Ran, text: &str) -> &'a Ran {
    assert_eq!(ran.kind(), &ErrorKind::Truncated(Truncation::NoTerminalState));
    ran.assert_failed("truncated", text).assert_usage(None).assert_notes(&[]).assert_requests(1);
    assert_eq!((ran.turn().finish_reason(), ran.played.turn_at), (None, None));
    ran.assert_billing(Billing::Delivered)
}

/// An error inside the answer
fn assert_in_band<'a>(ran: &'a Ran, error: &ProviderError, text: &str) -> &'a Ran {
    assert_eq!(ran.provider_error(), error);
    ran.assert_failed("in_band", text).assert_usage(None).assert_notes(&[]);
    assert_eq!((ran.turn().finish_reason(), ran.played.turn_at), (None, None));
    ran.assert_billing(if text.is_empty() { Billing::MaybeBilled } else { Billing::Delivered })
}

/// Three attempts were made; one that answers in place of the second is the last
fn assert_retried(bad: &str) {
    chat(bad).play().assert_requests(3);
    let ran = chat(bad).body(c("Hi") + &f("stop") + D, End::Clean).play();
    ran.assert_completed(Some("stop"), "Hi").assert_usage(None).assert_requests(2);
}

fn error(kind: Option<&str>, code: Option<&str>, status: Option<u16>, message: &str) -> ProviderError {
    let [kind, code] = [kind, code].map(|word| word.map(str::to_owned));
    ProviderError { kind, code, status, message: message.to_owned(), request_id: None }
}

#[test]
fn d01_finish_reason_then_usage_then_the_sentinel() {
    assert_stopped(&chat(c("Hi") + &f("stop") + U + D).play(), "Hi", USAGE);
    // The turn is delivered at the finish reason, and the usage is waited for.
    let answer = Answer::stream().send(c("Hi")).at(1.0).send(f("stop")).at(2.0).send(U).at(2.5).send(D);
    let ran = Case::stream(Dialect::OpenAiChat).answer(answer.end(End::Open)).play();
    assert_stopped(&ran, "Hi", USAGE).assert_times(Some(1.0), 2.5);
}

#[test]
fn d02_finish_reason_and_a_clean_end_without_the_sentinel() {
    for (usage, counts) in [("", None), (U, USAGE)] {
        let ran = chat(c("Hi") + &f("stop") + usage).play();
        ran.assert_completed(Some("stop"), "Hi").assert_usage(counts).assert_requests(1);
        ran.assert_notes(&[Note::MissingSentinel]).assert_times(Some(0.0), 0.0);
        assert_eq!(ran.closed(), Some(CloseMode::Keep));
    }
}

#[test]
fn d03_a_clean_end_without_finish_reason_and_sentinel() {
    let ran = chat(c("Half an ") + &c("answ")).play();
    assert_no_terminal_state(&ran, "Half an answ").assert_times(None, 0.0);
    // Usage alone does not say that it ended either, and is not lost.
    let ran = chat(c("Half an ") + U).play();
    ran.assert_failed("truncated", "Half an ").assert_usage(USAGE).assert_requests(1);
}

#[test]
fn d05_azure_first_chunk_with_filter_results_and_no_choice() {
    let filter = "data: {\"id\":\"\",\"object\":\"\",\"created\":0,\"model\":\"\",\"choices\":[],\"prompt_filter_results\":[{\"prompt_index\":0,\"content_filter_results\":{\"hate\":{\"filtered\":false,\"severity\":\"safe\"}}}]}\n\n";
    let ran = chat(filter.to_owned() + &c("Hi") + &f("stop") + D).play();
    assert_stopped(&ran, "Hi", None);
    assert_eq!((&ran.turn().id, &ran.turn().model, ran.events()), (&None, &None, 4));
    // It is no answer: with nothing behind it there is none.
    chat(filter).config(|config| config.max_attempts(1)).play().assert_failed("empty", "");
}

#[test]
fn d07_finish_reason_content_filter() {
    for text in ["I can", ""] {
        let said = if text.is_empty() { String::new() } else { c(text) };
        let ran = chat(said + &f("content_filter") + D).play();
        ran.assert_incomplete("content_filter", text).assert_usage(None).assert_notes(&[]);
        ran.assert_requests(1).assert_times(Some(0.0), 0.0);
        assert_eq!(ran.turn().finish_reason(), Some("content_filter"));
    }
}

#[test]
fn d08_null_equals_absent() {
    let usage = "data: {\"choices\":null,\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2,\"total_tokens\":7}}\n\n";
    assert_stopped(&chat(c("Hi") + &f("stop") + usage + D).play(), "Hi", USAGE);
    for null in [
        r#"{"choices":null,"usage":null,"error":null,"id":null,"model":null}"#,
        r#"{"choices":[null],"usage":null}"#,
        r#"{"choices":[{"index":0,"delta":null,"finish_reason":null}],"usage":null}"#,
        r#"{"choices":[{"index":null,"delta":{"content":null},"finish_reason":null}]}"#,
        r#"{"choices":[{"index":0,"delta":{"role":null,"content":null,"refusal":null,"reasoning":null,"reasoning_content":null,"tool_calls":null,"function_call":null}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[null]},"message":null,"text":null,"logprobs":null}]}"#,
    ] {
        let null = format!("data: {null}\n\n");
        let body = [&null, &c("Hi"), &null, &f("stop"), usage, &null, D].concat();
        assert_stopped(&chat(body).play(), "Hi", USAGE);
    }
    // A tool call whose members are null is none, and one with a null id or arguments is one.
    let call = r#"{"index":0,"id":null,"function":{"name":null,"arguments":null}}"#;
    assert_stopped(&chat([tool(call), c("Hi"), f("stop"), D.to_owned()].concat()).play(), "Hi", None);
    let call = r#"{"index":0,"id":null,"type":null,"function":{"name":"f","arguments":null}}"#;
    let ran = chat([tool(call), f("tool_calls"), D.to_owned()].concat()).play();
    ran.assert_completed(Some("tool_calls"), "").assert_requests(1);
    assert_eq!(ran.tool_calls(), [("", "f", "", true)]);
}

#[test]
fn d09_a_finish_reason_that_is_an_empty_string() {
    let said = (c("Hel") + &c("lo")).replace("null}", "\"\"}");
    assert_eq!(said.matches(r#""finish_reason":"""#).count(), 2);
    assert_stopped(&chat(said.clone() + &f("stop") + D).play(), "Hello", None);
    assert_no_terminal_state(&chat(&said).play(), "Hello");
    // The bare sentinel after content is enough, and no reason is made up (rule STR-11).
    let ran = chat(said + D).play();
    ran.assert_completed(None, "Hello").assert_notes(&[]).assert_requests(1);
}

#[test]
fn d11_usage_in_every_chunk() {
    let counted = |text: &str, tokens: u32| {
        let usage = format!(
            "}}],\"usage\":{{\"prompt_tokens\":5,\"completion_tokens\":{tokens},\"total_tokens\":{}}}}}",
            5 + tokens
        );
        c(text).replacen("}]}", &usage, 1)
    };
    let body = counted("a", 1) + &counted("b", 2) + &f("stop") + D;
    let ran = chat(body).play();
    assert_eq!(assert_stopped(&ran, "ab", USAGE).events(), 4);
    assert_eq!(ran.played.outcome.timeline.attempts[0].deltas, 2);
}

#[test]
fn d13_an_error_object_then_the_sentinel() {
    let timed_out =
        "data: {\"error\":{\"message\":\"backend timed out\",\"type\":\"GatewayTimeout\",\"code\":504}}\n\n"
            .to_owned()
            + D;
    let gateway = error(Some("GatewayTimeout"), Some("504"), Some(504), "backend timed out");
    let ran = chat(&timed_out).config(|config| config.max_attempts(1)).play();
    assert_in_band(&ran, &gateway, "").assert_requests(1).assert_times(None, 0.0);
    assert_retried(&timed_out);
    // Once a delta is out, nothing is tried again, and an error beats a marker before it (rule STR-7).
    assert_in_band(&chat(c("Hi") + &timed_out).play(), &gateway, "Hi").assert_requests(1);
    let ran = chat(c("Hi") + &f("stop") + &timed_out).play();
    assert_eq!(ran.provider_error(), &gateway);
    ran.assert_failed("in_band", "Hi").assert_requests(1);
    // The old flat shape of vLLM
    let flat = "data: {\"object\":\"error\",\"message\":\"max context\",\"type\":\"BadRequestError\",\"param\":null,\"code\":400}\n\n".to_owned()
        + D;
    let bad_request = error(Some("BadRequestError"), Some("400"), Some(400), "max context");
    assert_in_band(&chat(flat).play(), &bad_request, "").assert_requests(1);
    // After the sentinel it is not even read.
    assert_stopped(&chat(c("Hi") + &f("stop") + D + &timed_out).play(), "Hi", None);
}

#[test]
fn d14_openrouter_finish_reason_error_and_an_error_object() {
    let failed = |error: &str| {
        format!(
            "data: {{\"id\":\"g1\",\"object\":\"chat.completion.chunk\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"\"}},\"finish_reason\":\"error\"}}]{error}}}\n\n{D}"
        )
    };
    let gone = failed(",\"error\":{\"code\":\"server_error\",\"message\":\"upstream gone\"}");
    let server_error = error(None, Some("server_error"), None, "upstream gone");
    assert_in_band(&chat(c("Let me ") + &gone).play(), &server_error, "Let me ").assert_requests(1);
    // With nothing delivered, the code's class decides (rule RTY-1).
    assert_retried(&gone);
    let ran = chat(failed(",\"error\":{\"code\":400,\"message\":\"no\"}")).play();
    assert_in_band(&ran, &error(None, Some("400"), Some(400), "no"), "").assert_requests(1);
    // Without the object, the word is all there is (rule STR-11).
    let ran = chat(c("Let me ") + &failed("")).play();
    assert_in_band(&ran, &error(Some("error"), None, None, ""), "Let me ").assert_requests(1);
}

/// Rule STR-11 decides: an error of the provider, and not tried again even where nothing was delivered
#[test]
fn d15_vllm_engine_abort() {
    let aborted = error(Some("abort"), None, None, "");
    for text in ["Half", ""] {
        let said = if text.is_empty() { String::new() } else { c(text) };
        let ran = chat(said + &f("abort") + D).play();
        assert_in_band(&ran, &aborted, text).assert_requests(1).assert_times(None, 0.0);
    }
}

/// Rule CFG decides: `after_marker` is counted from the marker, and usage behind it changes nothing
#[test]
fn d17_finish_seen_no_sentinel_and_heartbeats() {
    let ended = |usage: &str, seconds: f64| {
        let answer = Answer::stream().at(0.5).send(c("Hi")).at(1.0).send(f("stop"));
        let answer = if usage.is_empty() { answer } else { answer.at(1.2).send(usage) };
        let case = Case::stream(Dialect::OpenAiChat)
            .config(|config| config.stream_idle_timeout(60.0).after_marker(2.0).max_attempts(3))
            .answer(answer.for_ever(seconds, ": hb\n\n").end(End::Open));
        case.play()
    };
    for (usage, counts) in [(U, USAGE), ("", None)] {
        for every in [5.0, 0.5] {
            let ran = ended(usage, every);
            ran.assert_completed(Some("stop"), "Hi").assert_usage(counts).assert_requests(1);
            ran.assert_notes(&[Note::MissingSentinel]).assert_times(Some(1.0), 3.0);
            assert_eq!(ran.closed(), Some(CloseMode::Abort));
        }
    }
    // A finished tool call, which once hung so
    let call = r#"{"index":0,"id":"t1","function":{"name":"f","arguments":"{}"}}"#;
    let answer = Answer::stream().at(1.0).send(tool(call)).send(f("tool_calls")).for_ever(5.0, ": hb\n\n");
    let ran = Case::stream(Dialect::OpenAiChat).answer(answer.end(End::Open)).play();
    ran.assert_completed(Some("tool_calls"), "").assert_times(Some(1.0), 3.0);
    assert_eq!(ran.tool_calls(), [("t1", "f", "{}", true)]);
}

#[test]
fn d18_the_sentinel_and_the_socket_stays_open() {
    let said = Answer::stream().at(0.5).send(c("Hi") + &f("stop") + D);
    for answer in [said.clone(), said.for_ever(0.1, ": hb\n\n")] {
        let ran = Case::stream(Dialect::OpenAiChat).answer(answer.end(End::Open)).play();
        assert_stopped(&ran, "Hi", None).assert_times(Some(0.5), 0.5);
        assert!(matches!(ran.closed(), Some(CloseMode::Finish(_))));
    }
}

#[test]
fn d20_last_token_and_finish_reason_in_one_chunk() {
    let last = |reason: &str| c("lo").replacen("null}", &format!("\"{reason}\"}}"), 1) + D;
    let ran = chat(c("Hel") + &last("length")).play();
    ran.assert_incomplete("length", "Hello").assert_usage(None).assert_notes(&[]).assert_requests(1);
    assert_eq!(ran.turn().finish_reason(), Some("length"));
    assert_stopped(&chat(c("Hel") + &last("stop")).play(), "Hello", None);
}

#[test]
fn d22_changing_ids_and_unknown_fields() {
    let body = "data: {\"id\":\"c.1\",\"p\":\"abcdefgh\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"H\"},\"message\":{\"content\":\"H\"},\"finish_reason\":null}]}\n\ndata: {\"id\":\"c.2\",\"p\":\"ab\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"i\"},\"message\":{\"content\":\"i\"},\"finish_reason\":\"stop\"}]}\n\n".to_owned()
        + D;
    let ran = chat(body).play();
    assert_eq!(assert_stopped(&ran, "Hi", None).turn().id.as_deref(), Some("c.1"));
}
