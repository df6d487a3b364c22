//! `steadfast serve`: the relay as apps, providers and service managers meet it.

mod calls;
mod check;
mod full_disk;
mod keys;
mod killed;
mod postgres;
mod postgres_server;
mod running;
mod sdks;
mod secrets;
mod support;
mod tls;

use serde_json::Value;

use crate::support::{decode, finish, run, spawn, steadfast};
use support::{Provider, Serving};

/// How each dialect is asked: its name, the path, and what asks for a stream
const DIALECTS: [(&str, &str, &str); 4] = [
    ("openai-chat", "/openai/v1/chat/completions", "/openai/v1/chat/completions"),
    ("openai-responses", "/openai/v1/responses", "/openai/v1/responses"),
    ("anthropic", "/anthropic/v1/messages", "/anthropic/v1/messages"),
    (
        "gemini",
        "/gemini/v1beta/models/any:generateContent",
        "/gemini/v1beta/models/any:streamGenerateContent?alt=sse",
    ),
];

#[test]
fn with_nothing_configured_the_embedded_provider_answers_in_every_dialect() {
    let mut serving = Serving::start(&[]);
    assert_eq!(serving.listening["upstreams"], serde_json::json!(["openai", "anthropic", "gemini"]));
    serving
        .await_said("an embedded provider answers, a script and no model; try\n  curl -N http://127.0.0.1:");
    let mut texts = Vec::new();
    for (dialect, unary, stream) in DIALECTS {
        let whole = serving.answer(unary, "", r#"{"model": "any"}"#);
        assert!(whole.starts_with("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"), "{whole}");
        let streamed = serving.answer(stream, "", r#"{"model": "any", "stream": true}"#);
        assert!(streamed.starts_with("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"), "{streamed}");
        for (answer, more) in [(whole, &["--unary"][..]), (streamed, &[])] {
            let arguments = [&["--dialect", dialect, "--http"], more].concat();
            let decoded: Value =
                serde_json::from_str(&decode(&arguments, answer.as_bytes()).stdout).expect("JSON");
            assert_eq!(decoded["result"], "completed", "{dialect}: {decoded}");
            assert_eq!(
                (&decoded["unknown"], &decoded["malformed"]),
                (&Value::from(0), &Value::from(0)),
                "{decoded}"
            );
            texts.push(decoded["text"].as_str().expect("a text").to_owned());
        }
    }
    assert!(texts[0].starts_with("Hello! ") && texts[0].ends_with("in its place."), "{}", texts[0]);
    assert!(texts.iter().all(|text| *text == texts[0]), "{texts:?}");

    let array = serving.answer("/gemini/v1beta/models/any:streamGenerateContent", "", "{}");
    assert!(array.contains("\r\n[{") || array.contains("\n[{"), "{array}");
    let unknown = serving.answer("/openai/v1/audio", "", "{}");
    assert!(unknown.starts_with("HTTP/1.1 404 ") && unknown.contains("invalid_request_error"), "{unknown}");
    let broken = serving.answer("/openai/v1/responses", "", "{");
    assert!(broken.starts_with("HTTP/1.1 400 ") && broken.contains("the body is no JSON"), "{broken}");
    let nowhere = serving.answer("/groq/v1/responses", "", "{}");
    assert!(nowhere.starts_with("HTTP/1.1 404 ") && nowhere.contains("not_found"), "{nowhere}");
    assert_eq!(serving.stop().code, Some(0));
}

#[test]
fn an_upstream_of_the_command_line_gets_the_call_as_it_came() {
    let provider = Provider::new();
    let upstream = format!("local={}/base", provider.url);
    let serving = Serving::start(&["--upstream", &upstream]);
    let mut app = serving.ask("/local/v1/x?a=%2F", "authorization: Bearer sk-of-the-app\r\n", "{}");
    let (mut peer, request) = provider.accept();
    assert!(request.starts_with("POST /base/v1/x?a=%2F HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("\r\nauthorization: Bearer sk-of-the-app\r\n"), "{request}");
    let answer = "HTTP/1.1 200 Fine\r\nX-Odd: a\r\nContent-Length: 2\r\n\r\nhi";
    peer.send(answer);
    assert_eq!(app.until("\r\n\r\nhi"), answer);
    drop(app);
    let ended = serving.stop();
    assert!(ended.is_quiet(), "{:?} {}", ended.code, ended.said);
}

#[test]
fn where_it_listens_is_the_first_line() {
    let mut child = spawn(&mut steadfast(&["serve", "--listen", "127.0.0.1:0", "--upstream", "openai"]));
    let mut stdout = child.stdout.take().expect("a pipe");
    crate::support::await_text(&mut stdout, "\n");
    crate::support::signal(&child, "INT");
    let ran = finish(child);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
}

#[test]
fn processes_share_a_port_only_where_each_says_so() {
    let first = Serving::start(&["--share-port", "--upstream", "openai"]);
    let address = first.address().to_owned();
    let arguments = ["serve", "--json", "--listen", &address, "--upstream", "openai"];
    let second = Serving::with(&mut steadfast(&arguments), &["--share-port"]);
    assert_eq!(second.address(), address);
    let ran = run(&mut steadfast(&arguments));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    assert!(ran.stderr.starts_with(&format!("steadfast: cannot listen on {address}: ")), "{}", ran.stderr);
    assert_eq!((first.stop().code, second.stop().code), (Some(0), Some(0)));
}
