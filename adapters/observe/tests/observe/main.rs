//! A retried streaming call, and a tool loop, against the scripted server, as those see them who watch.

mod metrics;
mod spans;
mod tools;

use serde_json::json;
use steadfast_blocking::{Client, Dialect, Overrides, Proxies, Request};
use steadfast_mock::Mock;
use steadfast_scenario::Script;

/// The first connection is told to come back in 20 ms; the second gets a stream and its usage
const SCRIPT: &str = r#"
name = "x"
about = "busy, then an answer"
[bytes]
hi = """data: {"id":"c-1","model":"gpt-test-0613","choices":[{"index":0,"delta":{"content":"Hi"}}]}\n\n"""
stop = """data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n"""
usage = """data: {"choices":[],"usage":{"prompt_tokens":11,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":1}}}\n\n"""
[[connection]]
steps = [{ read = "request" }, { answer = { head = ["503 Service Unavailable", "retry-after-ms: 20"], body = "busy" } }, "close"]
[[connection]]
steps = [
  { read = "request" },
  { head = ["200 OK", "content-type: text/event-stream"] },
  { send = ["$hi", "$stop", "$usage", "data: [DONE]\n\n"] },
  "close",
]
"#;

/// What must be seen nowhere: a key, and words of the prompt and of the URL
const SECRETS: [&str; 4] = ["sk-secret", "query-secret", "prompt-secret", "/v1/chat"];

fn mock() -> Mock {
    Mock::start(&Script::parse(SCRIPT).expect("a valid script"), None).expect("the server starts")
}

fn client() -> Client {
    Client::new().with_proxies(Proxies::none())
}

fn request(mock: &Mock) -> Request {
    Request::post(&format!("{}/v1/chat/completions?key=query-secret", mock.base_url()))
        .bearer("sk-secret")
        .json(&json!({
            "model": "gpt-test",
            "stream": true,
            "messages": [{"role": "user", "content": "prompt-secret"}],
        }))
        .dialect(Dialect::OpenAiChat)
        .overrides(Overrides::new().total_deadline(60.0))
        .stream()
        .build()
        .expect("a valid request")
}
