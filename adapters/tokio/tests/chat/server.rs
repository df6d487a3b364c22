//! The scripted server: an answer for each connection, and what was asked for on it.

use std::time::Duration;

use serde_json::{Value, json};
use steadfast_mock::Mock;
use steadfast_scenario::Script;
use steadfast_tokio::{Client, Conversation, Format, Prices, Proxies, Request};

/// Long enough for any machine; nothing is expected to take it
pub(crate) const CAP: Duration = Duration::from_secs(60);

/// What a connection does once it has a request
pub(crate) enum Does {
    /// Answers with these events
    Streams(Vec<Value>),
    /// Answers with this, in one piece
    Answers(Value),
    /// Answers with this status
    Refuses(u16),
    /// Says nothing
    Holds,
}

/// A server that does this, a connection each
pub(crate) fn serve(connections: impl IntoIterator<Item = Does>) -> Mock {
    let mut script = "name = \"x\"\nabout = \"a test\"\n".to_owned();
    for does in connections {
        let steps = match does {
            Does::Streams(events) => {
                let body: String = events.iter().map(event).collect();
                // JSON writes its strings as TOML does, and `$` stands for a fragment.
                let body = Value::from(body.replace('$', "$$")).to_string();
                format!(
                    r#"{{ head = ["200 OK", "content-type: text/event-stream"] }}, {{ send = {body} }}, "close""#
                )
            }
            Does::Answers(body) => {
                let body = Value::from(body.to_string().replace('$', "$$")).to_string();
                let head = r#"["200 OK", "content-type: application/json", "connection: close"]"#;
                format!(r#"{{ answer = {{ head = {head}, body = {body} }} }}, "close""#)
            }
            Does::Refuses(status) => {
                format!(
                    r#"{{ answer = {{ head = ["{status} No", "connection: close"], body = "no" }} }}, "close""#
                )
            }
            Does::Holds => r#""await-close""#.to_owned(),
        };
        script.push_str(&format!("[[connection]]\nsteps = [{{ read = \"request\" }}, {steps}]\n"));
    }
    Mock::start(&Script::parse(&script).expect("a valid script"), None).expect("the server starts")
}

/// An event under its `type`, as Anthropic and OpenAI Responses name theirs; text as it is
fn event(data: &Value) -> String {
    match (data, data["type"].as_str()) {
        (Value::String(text), _) => format!("data: {text}\n\n"),
        (_, Some(name)) => format!("event: {name}\ndata: {data}\n\n"),
        (_, None) => format!("data: {data}\n\n"),
    }
}

/// An answer of OpenAI Chat: text, calls by id, name and arguments, and why it stopped
pub(crate) fn chat(text: &str, calls: &[(&str, &str, &str)], stop: &str) -> Does {
    let calls: Vec<Value> = calls
        .iter()
        .enumerate()
        .map(|(index, (id, name, arguments))| {
            json!({"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
        })
        .collect();
    Does::Streams(vec![
        json!({"id": "c", "choices": [{"index": 0, "delta": {"content": text, "tool_calls": calls}}]}),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": stop}]}),
        json!({"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 3}}),
        "[DONE]".into(),
    ])
}

pub(crate) fn client() -> Client {
    Client::new().with_proxies(Proxies::none())
}

pub(crate) fn conversation(mock: &Mock, format: Format) -> Conversation {
    let endpoint = Request::post(&format!("{}/v1/chat", mock.base_url())).bearer("sk-secret");
    let price = |text: &str| text.parse().expect("a price");
    Conversation::new(format, endpoint, "m-1").prices(Prices::new(price("1"), price("2")))
}

/// The bodies of the requests so far
pub(crate) fn bodies(mock: &Mock) -> Vec<Value> {
    let requests = mock.recorded().requests;
    requests.iter().map(|request| serde_json::from_slice(&request.body).expect("JSON")).collect()
}
