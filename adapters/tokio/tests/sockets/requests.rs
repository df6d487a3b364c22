//! What the tests ask for, and the bytes of the answers.

use std::fmt::Write;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use futures_util::Stream;
use serde_json::json;
use steadfast_mock::Mock;
use steadfast_scenario::Script;
use steadfast_tokio::{CallStream, Client, Dialect, Overrides, Piece, Request, TlsConfig};
use tokio::runtime::{Builder, Runtime};

use crate::peer::CAP;

pub(crate) const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
pub(crate) const STOP: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
pub(crate) const DONE: &str = "data: [DONE]\n\n";

/// An event that brings this text
pub(crate) fn text(text: &str) -> String {
    let chunk = json!({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": null}]});
    format!("data: {chunk}\n\n")
}

/// The text of the next piece, which must be one of text
pub(crate) async fn next_text(stream: &mut CallStream) -> String {
    match stream.next().await {
        Some(piece @ Piece::Text { .. }) => piece.text().to_owned(),
        other => panic!("no text but {other:?}"),
    }
}

/// One poll for the next piece, whose future is dropped then
pub(crate) async fn poll_once(stream: &mut CallStream) -> Poll<Option<Piece>> {
    poll_fn(|cx| Poll::Ready(Pin::new(&mut *stream).poll_next(cx))).await
}

/// A stream of OpenAI Chat with one attempt
pub(crate) fn stream_from(url: &str, overrides: Overrides) -> Request {
    Request::post(&format!("{url}/v1/chat/completions"))
        .json(&json!({"stream": true}))
        .dialect(Dialect::OpenAiChat)
        .overrides(overrides)
        .stream()
        .build()
        .expect("a valid request")
}

/// A unary request with a body of at least so many bytes
pub(crate) fn unary_from(url: &str, overrides: Overrides, bytes: usize) -> Request {
    Request::post(&format!("{url}/v1/chat/completions"))
        .json(&json!({"padding": "x".repeat(bytes)}))
        .dialect(Dialect::OpenAiChat)
        .overrides(overrides)
        .build()
        .expect("a valid request")
}

pub(crate) fn once() -> Overrides {
    Overrides::new().max_attempts(1)
}

/// A scripted server: the `[server]` table and the steps of each connection
pub(crate) fn mock(server: &str, bytes: &str, connections: &[&str]) -> Mock {
    let mut script = format!("name = \"x\"\nabout = \"a test\"\n[server]\n{server}\n[bytes]\n{bytes}\n");
    for steps in connections {
        write!(script, "[[connection]]\nsteps = [{steps}]\n").expect("a string takes all");
    }
    Mock::start(&Script::parse(&script).expect("a valid script"), None).expect("the server starts")
}

/// A client that trusts that server
pub(crate) fn client_of(mock: &Mock) -> Client {
    match mock.ca_pem() {
        Some(pem) => Client::new().with_tls(TlsConfig::roots_only(pem.as_bytes()).expect("roots")),
        None => Client::new(),
    }
}

pub(crate) fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

pub(crate) fn multi_thread(workers: usize) -> Runtime {
    Builder::new_multi_thread().worker_threads(workers).enable_all().build().expect("a runtime")
}

/// Waits for `future`, but not for ever
pub(crate) async fn within_cap<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(CAP, future).await.expect("an end in time")
}
