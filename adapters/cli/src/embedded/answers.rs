//! What the embedded provider answers, in each provider's form.

use std::fmt;

use serde_json::{Value, json};

use crate::provider::Provider;

/// Its name as a model, and of its answers
const NAME: &str = "embedded";

/// An event of a streamed answer
pub(super) struct Event {
    /// What it is called, where it has a name
    name: Option<String>,
    /// What it says: JSON, or the marker that ends a stream
    pub(super) data: String,
    /// Whether it brings a word, which takes its time
    pub(super) has_text: bool,
}

/// As a server-sent event
impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = &self.name {
            writeln!(f, "event: {name}")?;
        }
        write!(f, "data: {}\n\n", self.data)
    }
}

/// The body of an answer in one piece
pub(super) fn whole(provider: Provider, answer: &str) -> String {
    let message = json!({ "role": "assistant", "content": answer });
    let body = match provider {
        Provider::OpenAi => json!({
            "id": NAME,
            "object": "chat.completion",
            "created": 0,
            "model": NAME,
            "choices": [{ "index": 0, "message": message, "finish_reason": "stop" }],
            "usage": chat_usage(answer),
        }),
        Provider::Responses => response("completed", answer, &[item("completed", &[answer])]),
        Provider::Anthropic => json!({
            "id": NAME,
            "type": "message",
            "role": "assistant",
            "model": NAME,
            "content": [{ "type": "text", "text": answer }],
            "stop_reason": "end_turn",
            "stop_sequence": null,
            "usage": { "input_tokens": 0, "output_tokens": words(answer) },
        }),
        Provider::Gemini => gemini(answer, answer, Some("STOP")),
    };
    body.to_string()
}

/// The events of a streamed answer
pub(super) fn events(provider: Provider, answer: &str) -> Vec<Event> {
    let deltas = answer.split_inclusive(' ').map(|word| (delta(provider, word, answer), true));
    let events = opening(provider, answer).into_iter().map(|event| (event, false));
    let events = events.chain(deltas).chain(ending(provider, answer).into_iter().map(|event| (event, false)));
    let mut events: Vec<_> = events
        .enumerate()
        .map(|(number, (mut data, has_text))| {
            if provider == Provider::Responses {
                data["sequence_number"] = number.into();
            }
            let name = data["type"].as_str().map(str::to_owned);
            Event { name, data: data.to_string(), has_text }
        })
        .collect();
    if provider == Provider::OpenAi {
        events.push(Event { name: None, data: "[DONE]".to_owned(), has_text: false });
    }
    events
}

fn opening(provider: Provider, answer: &str) -> Vec<Value> {
    match provider {
        Provider::OpenAi => vec![chat(json!({ "role": "assistant", "content": "" }), None)],
        Provider::Gemini => Vec::new(),
        Provider::Responses => vec![
            json!({ "type": "response.created", "response": response("in_progress", answer, &[]) }),
            json!({ "type": "response.output_item.added", "output_index": 0, "item": item("in_progress", &[]) }),
            part("response.content_part.added", json!({ "part": output_text("") })),
        ],
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
                    "stop_sequence": null,
                    "usage": { "input_tokens": 0, "output_tokens": 0 },
                },
            }),
            json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } }),
        ],
    }
}

fn delta(provider: Provider, word: &str, answer: &str) -> Value {
    match provider {
        Provider::OpenAi => chat(json!({ "content": word }), None),
        Provider::Responses => part("response.output_text.delta", json!({ "delta": word })),
        Provider::Anthropic => json!({
            "type": "content_block_delta",
            "index": 0,
            "delta": { "type": "text_delta", "text": word },
        }),
        Provider::Gemini => gemini(word, answer, None),
    }
}

fn ending(provider: Provider, answer: &str) -> Vec<Value> {
    match provider {
        Provider::OpenAi => {
            let mut usage = chat(json!({}), None);
            usage["choices"] = json!([]);
            usage["usage"] = chat_usage(answer);
            vec![chat(json!({}), Some("stop")), usage]
        }
        Provider::Responses => {
            let item = item("completed", &[answer]);
            vec![
                part("response.output_text.done", json!({ "text": answer })),
                part("response.content_part.done", json!({ "part": output_text(answer) })),
                json!({ "type": "response.output_item.done", "output_index": 0, "item": item }),
                json!({ "type": "response.completed", "response": response("completed", answer, &[item]) }),
            ]
        }
        Provider::Anthropic => vec![
            json!({ "type": "content_block_stop", "index": 0 }),
            json!({
                "type": "message_delta",
                "delta": { "stop_reason": "end_turn", "stop_sequence": null },
                "usage": { "output_tokens": words(answer) },
            }),
            json!({ "type": "message_stop" }),
        ],
        Provider::Gemini => vec![gemini("", answer, Some("STOP"))],
    }
}

fn chat(delta: Value, finish_reason: Option<&str>) -> Value {
    let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish_reason });
    json!({ "id": NAME, "object": "chat.completion.chunk", "created": 0, "model": NAME, "choices": [choice] })
}

fn chat_usage(answer: &str) -> Value {
    json!({ "prompt_tokens": 0, "completion_tokens": words(answer), "total_tokens": words(answer) })
}

/// An event about the one part of the one message
fn part(kind: &str, more: Value) -> Value {
    let mut event = json!({ "type": kind, "item_id": NAME, "output_index": 0, "content_index": 0 });
    if let (Value::Object(event), Value::Object(more)) = (&mut event, more) {
        event.extend(more);
    }
    event
}

fn response(status: &str, answer: &str, output: &[Value]) -> Value {
    json!({
        "id": NAME,
        "object": "response",
        "created_at": 0,
        "model": NAME,
        "status": status,
        "output": output,
        "usage": {
            "input_tokens": 0,
            "output_tokens": words(answer),
            "total_tokens": words(answer),
        },
    })
}

fn item(status: &str, texts: &[&str]) -> Value {
    let content: Vec<_> = texts.iter().map(|text| output_text(text)).collect();
    json!({ "id": NAME, "type": "message", "role": "assistant", "status": status, "content": content })
}

fn output_text(text: &str) -> Value {
    json!({ "type": "output_text", "text": text, "annotations": [] })
}

fn gemini(text: &str, answer: &str, finish_reason: Option<&str>) -> Value {
    let mut candidate = json!({ "index": 0, "content": { "role": "model", "parts": [{ "text": text }] } });
    if let Some(reason) = finish_reason {
        candidate["finishReason"] = reason.into();
    }
    let words = words(answer);
    let usage = json!({ "promptTokenCount": 0, "candidatesTokenCount": words, "totalTokenCount": words });
    json!({ "responseId": NAME, "modelVersion": NAME, "candidates": [candidate], "usageMetadata": usage })
}

/// The number of its words, which stand for tokens
fn words(answer: &str) -> usize {
    answer.split(' ').count()
}
