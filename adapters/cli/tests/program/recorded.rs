//! `steadfast decode` on what others recorded and collected (`../shared/conformance`).

use std::fs;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use steadfast_tests::shared;

use crate::support::{Ran, decode};

#[derive(Deserialize)]
struct Cases<T> {
    cases: Vec<T>,
}

/// The cases of a file, if it is there
fn cases<T: DeserializeOwned>(name: &str) -> Option<Vec<T>> {
    let text = fs::read_to_string(shared::path(name)?).expect("it can be read");
    let cases: Cases<T> = serde_json::from_str(&text).expect("cases");
    assert!(!cases.cases.is_empty());
    Some(cases.cases)
}

/// What the program makes of `input`, which must be the same for every split
fn decode_split(name: &str, arguments: &[&str], input: &[u8]) -> Ran {
    let whole = decode(arguments, input);
    for split in ["bytes", "7"] {
        let cut = decode(&[arguments, &["--split", split]].concat(), input);
        assert_eq!(cut, whole, "{name}, --split {split}");
    }
    whole
}

fn object(name: &str, ran: &Ran) -> Value {
    assert_eq!((ran.stdout.lines().count(), ran.stderr.as_str()), (1, ""), "{name}");
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{name}: {error}: {}", ran.stdout))
}

#[derive(Deserialize)]
struct Stream {
    name: String,
    dialect: String,
    status: u16,
    content_type: String,
    body_file: String,
    expected: Expected,
    expected_with_tail_flush: Option<Expected>,
}

#[derive(Deserialize)]
struct Expected {
    text: Option<String>,
    finish_reason: Option<String>,
    #[serde(default)]
    tool_calls: Vec<Value>,
    error: Option<Value>,
    block_reason: Option<String>,
    sse_event_count: Option<u64>,
}

/// Where a rule of ours and the data part ways, for a call as a whole
const EXCEPTIONS: &str = include_str!("../../../../tests/tests/data/conformance_streams_exceptions.json");

#[derive(Deserialize)]
struct Exceptions {
    of_a_call: Vec<Exception>,
}

#[derive(Debug, Deserialize)]
struct Exception {
    name: String,
    field: String,
    /// What we give, as JSON
    ours: String,
    rule: String,
}

/// Bedrock's binary framing is out of scope
fn dialect(name: &str) -> Option<&'static str> {
    Some(match name {
        "openai-chat" => "openai-chat",
        "openai-completion" => "openai-completions",
        "openai-responses" => "openai-responses",
        "anthropic-messages" => "anthropic",
        "gemini-generate" => "gemini",
        "gemini-interactions" => "gemini-interactions",
        "ollama-ndjson" => "ollama",
        "cohere-v2" => "cohere",
        "bedrock-converse" => return None,
        _ => panic!("{name} is new"),
    })
}

#[test]
fn every_recorded_stream_gives_the_text_finish_reason_and_tool_calls_that_its_data_states() {
    let Some(path) = shared::path("conformance/streams.json") else { return };
    let streams: Vec<Stream> = cases("conformance/streams.json").expect("it is there");
    let Exceptions { of_a_call: mut exceptions } = serde_json::from_str(EXCEPTIONS).expect("a list");
    let mut counts = (0, 0);
    for Stream { name, dialect: of, status, content_type, body_file, expected, expected_with_tail_flush } in
        &streams
    {
        let Some(dialect) = dialect(of) else {
            counts.1 += 1;
            continue;
        };
        let body = fs::read(path.with_file_name(body_file)).expect("a body");
        let status = status.to_string();
        let arguments = ["--dialect", dialect, "--status", &status, "--content-type", content_type];
        let ran = decode_split(name, &arguments, &body);
        let got = object(name, &ran);
        let expected = expected_with_tail_flush.as_ref().unwrap_or(expected);

        assert_eq!(got["text"].as_str(), Some(expected.text.as_deref().unwrap_or_default()), "{name}");
        let calls = got["tool_calls"].as_array().expect("a list");
        assert_eq!(calls.len(), expected.tool_calls.len(), "{name}");
        for (call, expected) in calls.iter().zip(&expected.tool_calls) {
            assert_eq!(call["name"], expected["name"], "{name}");
            assert_eq!(call["id"], expected["id"], "{name}");
            let arguments = call["arguments"].as_str().expect("a string");
            match (&expected["arguments"], &expected["arguments_json"]) {
                (Value::String(text), _) => assert_eq!(arguments, text, "{name}"),
                (_, Value::Null) => {}
                (_, value) => assert_eq!(&serde_json::from_str::<Value>(arguments).unwrap(), value, "{name}"),
            }
        }
        let agrees = got["finish_reason"].as_str() == expected.finish_reason.as_deref();
        match exceptions.iter().position(|exception| exception.name == *name) {
            None => assert!(agrees, "{name}: {} for {:?}", got["finish_reason"], expected.finish_reason),
            Some(listed) => {
                let exception = exceptions.swap_remove(listed);
                assert!(!agrees, "{name} is listed as an exception, but passes");
                assert_eq!(got[&exception.field].to_string(), exception.ours, "{name}");
                println!("exception: {name}: {}", exception.rule);
            }
        }
        let status_kind = if status == "200" { "in_band" } else { "status" };
        let (results, kind): (&[&str], _) = match (&expected.error, &expected.block_reason) {
            (_, Some(_)) => (&["blocked"], Some("blocked")),
            (Some(_), None) => (&["error"], Some(status_kind)),
            (None, None) => (&["completed", "incomplete"], None),
        };
        assert!(got["result"].as_str().is_some_and(|result| results.contains(&result)), "{name}: {got}");
        assert_eq!(got["error"]["kind"].as_str(), kind, "{name}");
        if let Some(count) = expected.sse_event_count {
            // A call that is over does not wait for the `[DONE]` of a gateway, or for a second error.
            let is_over = kind.is_some() || body.trim_ascii().ends_with(b"data: [DONE]");
            let events = got["events"].as_u64().expect("a number");
            assert!(events == count || is_over && events + 1 == count, "{name}: {events} of {count} events");
        }
        counts.0 += 1;
    }
    assert!(exceptions.is_empty(), "no such cases: {exceptions:?}");
    println!("conformance decode: streams {}/{0}, {} out of scope", counts.0, counts.1);
    assert_eq!(counts, (144, 3));
}

#[derive(Deserialize)]
struct Message {
    name: String,
    method: String,
    bytes_b64: String,
    expected: Value,
    allowed_outcomes: Vec<String>,
    certainty: String,
}

/// Fields in the order in which they came; their names compare in any case
fn fields(lines: &Value) -> Vec<(String, String)> {
    let lines: Vec<(String, String)> = serde_json::from_value(lines.clone()).unwrap_or_default();
    lines.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value)).collect()
}

#[test]
fn every_http_message_gives_the_outcome_that_its_data_allows() {
    let Some(messages) = cases::<Message>("conformance/http.json") else { return };
    for Message { name, method, bytes_b64, expected, allowed_outcomes, certainty } in &messages {
        let bytes = BASE64_STANDARD.decode(bytes_b64).expect("base64");
        let ran = decode_split(name, &["--http", "--raw", "--method", method], &bytes);
        let got = object(name, &ran);
        let outcome = got["outcome"].as_str().expect("a word");
        assert!(allowed_outcomes.iter().any(|allowed| allowed == outcome), "{name}: {got}");
        if outcome == "complete" {
            for field in ["status", "keep_alive"] {
                assert_eq!(got[field], expected[field], "{name}: {field}");
            }
            for field in ["headers", "trailers"] {
                assert_eq!(fields(&got[field]), fields(&expected[field]), "{name}: {field}");
            }
            let interim = expected["interim"].as_array().expect("a list");
            assert_eq!(
                got["interim"],
                interim.iter().map(|one| one["status"].clone()).collect::<Value>(),
                "{name}"
            );
            assert_eq!(got["body"], expected["body_b64"], "{name}");
        }
        if certainty == "must" && outcome == expected["outcome"] {
            assert_eq!(got["error_kind"], expected["error_kind"], "{name}");
        }
        let code = match outcome {
            "complete" => 0,
            "incomplete" => 12,
            "upgrade" if method == "CONNECT" => 0,
            _ => 14,
        };
        assert_eq!(ran.code, Some(code), "{name}");
    }
    println!("conformance decode: http {}/{0}", messages.len());
}

#[derive(Deserialize)]
struct Events {
    name: String,
    chunks_b64: Vec<String>,
    expected_events: Vec<Value>,
    expected_last_event_id: String,
    expected_retry_ms: Option<u64>,
}

#[test]
fn every_event_stream_gives_the_events_of_the_standard() {
    let Some(streams) = cases::<Events>("conformance/sse.json") else { return };
    for Events { name, chunks_b64, expected_events, expected_last_event_id, expected_retry_ms } in &streams {
        let chunks = chunks_b64.iter().map(|chunk| BASE64_STANDARD.decode(chunk).expect("base64"));
        let body = chunks.collect::<Vec<_>>().concat();
        let ran = decode_split(name, &["--framing", "sse"], &body);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{name}");
        let mut lines: Vec<Value> =
            ran.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let mut last = lines.pop().expect("a last line");
        last.as_object_mut().expect("an object").remove("tail");
        assert_eq!(last, json!({"last_event_id": expected_last_event_id, "bytes": body.len()}), "{name}");
        let mut retry = None;
        for line in &mut lines {
            retry = line.as_object_mut().expect("an object").remove("retry");
        }
        if let Some(retry) = retry {
            assert_eq!(retry.as_u64(), *expected_retry_ms, "{name}");
        }
        assert_eq!(&lines, expected_events, "{name}");
    }
    println!("conformance decode: sse {}/{0}", streams.len());
}
