//! The embedded provider: a scripted server on loopback, for when nothing is configured.

use std::io;
use std::time::Duration;

use serde_json::{Value, json};
use steadfast_mock::Mock;
use steadfast_scenario::{Connection, Listen, Read, Script, Server, Step};

use crate::provider::Provider;

/// What it answers, whatever it is asked
pub(crate) const ANSWER: &str = "Hello! This answer comes from the provider that is embedded in \
    steadfast: a script, not a model. Set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY, or \
    name a server by --base-url, and a model will answer in its place.";

/// How long a word takes
const PAUSE: Duration = Duration::from_millis(30);
/// Its name as a model, and of its answers
const NAME: &str = "embedded";

/// Starts it
///
/// Errors: the system refuses a socket or a thread.
pub(crate) fn start(provider: Provider, stream: bool) -> io::Result<Mock> {
    let answer = if stream { streamed(provider) } else { whole(provider) };
    let steps = [Step::Read(Read::Request)].into_iter().chain(answer).chain([Step::AwaitClose]).collect();
    let script = Script {
        name: NAME.to_owned(),
        about: "a short answer".to_owned(),
        server: Server { listen: Listen::Accept, tls: false, receive_buffer: None, send_buffer: None },
        connections: vec![Connection { times: 1, steps }],
    };
    Mock::start(&script, None)
}

fn whole(provider: Provider) -> Vec<Step> {
    let message = json!({ "role": "assistant", "content": ANSWER });
    let body = match provider {
        Provider::OpenAi => json!({
            "id": NAME,
            "model": NAME,
            "choices": [{ "index": 0, "message": message, "finish_reason": "stop" }],
            "usage": chat_usage(),
        }),
        Provider::Responses => response("completed", &[ANSWER]),
        Provider::Anthropic => json!({
            "id": NAME,
            "type": "message",
            "role": "assistant",
            "model": NAME,
            "content": [{ "type": "text", "text": ANSWER }],
            "stop_reason": "end_turn",
            "usage": { "input_tokens": 0, "output_tokens": words() },
        }),
        Provider::Gemini => gemini(ANSWER, Some("STOP")),
    };
    let body = body.to_string();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    vec![Step::Pause(PAUSE), Step::Send((head + &body).into_bytes())]
}

fn streamed(provider: Provider) -> Vec<Step> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let mut steps = vec![Step::Send(head.as_bytes().to_vec())];
    steps.extend(opening(provider).iter().map(event));
    for word in ANSWER.split_inclusive(' ') {
        steps.extend([event(&delta(provider, word)), Step::Pause(PAUSE)]);
    }
    steps.extend(ending(provider).iter().map(event));
    if provider == Provider::OpenAi {
        steps.push(chunk("data: [DONE]\n\n"));
    }
    steps.push(Step::Send(b"0\r\n\r\n".to_vec()));
    steps
}

fn opening(provider: Provider) -> Vec<Value> {
    match provider {
        Provider::OpenAi | Provider::Gemini => Vec::new(),
        Provider::Responses => {
            vec![json!({ "type": "response.created", "response": response("in_progress", &[]) })]
        }
        Provider::Anthropic => vec![
            json!({
                "type": "message_start",
                "message": {
                    "id": NAME,
                    "type": "message",
                    "role": "assistant",
                    "model": NAME,
                    "content": [],
                    "stop_reason": null,
                    "usage": { "input_tokens": 0, "output_tokens": 0 },
                },
            }),
            json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } }),
        ],
    }
}

fn delta(provider: Provider, word: &str) -> Value {
    match provider {
        Provider::OpenAi => chat(json!({ "content": word }), None),
        Provider::Responses => json!({
            "type": "response.output_text.delta",
            "item_id": NAME,
            "output_index": 0,
            "content_index": 0,
            "delta": word,
        }),
        Provider::Anthropic => json!({
            "type": "content_block_delta",
            "index": 0,
            "delta": { "type": "text_delta", "text": word },
        }),
        Provider::Gemini => gemini(word, None),
    }
}

fn ending(provider: Provider) -> Vec<Value> {
    match provider {
        Provider::OpenAi => vec![
            chat(json!({}), Some("stop")),
            json!({ "id": NAME, "model": NAME, "choices": [], "usage": chat_usage() }),
        ],
        Provider::Responses => {
            vec![json!({ "type": "response.completed", "response": response("completed", &[ANSWER]) })]
        }
        Provider::Anthropic => vec![
            json!({ "type": "content_block_stop", "index": 0 }),
            json!({
                "type": "message_delta",
                "delta": { "stop_reason": "end_turn", "stop_sequence": null },
                "usage": { "output_tokens": words() },
            }),
            json!({ "type": "message_stop" }),
        ],
        Provider::Gemini => vec![gemini("", Some("STOP"))],
    }
}

fn chat(delta: Value, finish_reason: Option<&str>) -> Value {
    let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish_reason });
    json!({ "id": NAME, "model": NAME, "choices": [choice] })
}

fn chat_usage() -> Value {
    json!({ "prompt_tokens": 0, "completion_tokens": words(), "total_tokens": words() })
}

fn response(status: &str, texts: &[&str]) -> Value {
    let item = |text: &&str| {
        json!({
            "id": NAME,
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [{ "type": "output_text", "text": text, "annotations": [] }],
        })
    };
    json!({
        "id": NAME,
        "model": NAME,
        "status": status,
        "output": texts.iter().map(item).collect::<Vec<_>>(),
        "usage": { "input_tokens": 0, "output_tokens": words(), "total_tokens": words() },
    })
}

fn gemini(text: &str, finish_reason: Option<&str>) -> Value {
    let mut candidate = json!({ "index": 0, "content": { "role": "model", "parts": [{ "text": text }] } });
    if let Some(reason) = finish_reason {
        candidate["finishReason"] = reason.into();
    }
    let usage = json!({ "promptTokenCount": 0, "candidatesTokenCount": words(), "totalTokenCount": words() });
    json!({ "responseId": NAME, "modelVersion": NAME, "candidates": [candidate], "usageMetadata": usage })
}

/// The number of its words, which stand for tokens
fn words() -> usize {
    ANSWER.split(' ').count()
}

/// An event, with its type as its name where it has one
fn event(data: &Value) -> Step {
    let name = data["type"].as_str().map(|name| format!("event: {name}\n")).unwrap_or_default();
    chunk(&format!("{name}data: {data}\n\n"))
}

fn chunk(data: &str) -> Step {
    Step::Send(format!("{:x}\r\n{data}\r\n", data.len()).into_bytes())
}
