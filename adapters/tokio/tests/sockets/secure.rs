//! TLS: happy ends, ends without `close_notify`, and servers that are mute or speak plain HTTP.

use std::thread;
use std::time::Duration;

use steadfast::machine::{FailureKind, Stage};
use steadfast::outcome::{Billing, ErrorKind, Note, Phase, Truncation};
use steadfast_tokio::{Client, Outcome, TlsConfig};

use crate::certificates::{Authority, Identity};
use crate::peer::{Left, Server};
use crate::requests::{
    DONE, HEAD, STOP, client_of, current_thread, mock, next_text, once, stream_from, text, unary_from,
    within_cap,
};

const BODY: &str =
    r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}]}"#;

/// A call to a server of that identity, which sends `answer` and cuts the connection
fn call(authority: &Authority, identity: &Identity, host: &str, unary: bool, answer: String) -> Outcome {
    let server = Server::start();
    let config = identity.config();
    let url = format!("https://{host}:{}", server.port());
    let serving = thread::spawn(move || {
        let mut peer = server.accept().secure(config);
        peer.request();
        peer.write(answer);
        peer.cut();
    });
    let client = Client::new().with_tls(TlsConfig::roots_only(authority.pem().as_bytes()).expect("roots"));
    let request = if unary { unary_from(&url, once(), 0) } else { stream_from(&url, once()) };
    let outcome = current_thread().block_on(within_cap(client.send(request)));
    serving.join().expect("the server is well");
    outcome
}

#[test]
fn a_cut_without_close_notify_is_noted_where_the_answer_is_whole() {
    let authority = Authority::new("Our Authority");
    let identity = authority.issue(&["localhost"]);
    let call = |unary, answer: String| call(&authority, &identity, "localhost", unary, answer);

    let framed = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{BODY}", BODY.len());
    let outcome = call(true, framed);
    assert_eq!(outcome.turn().text(), "Hi");
    assert_eq!((outcome.result.is_ok(), &outcome.timeline.notes[..]), (true, &[][..]));

    let until_eof = format!("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{BODY}");
    let outcome = call(true, until_eof);
    assert_eq!((outcome.result.is_ok(), &outcome.timeline.notes[..]), (true, &[Note::NoCloseNotify][..]));

    let whole = HEAD.to_owned() + &text("Hi") + STOP;
    let outcome = call(false, whole.clone());
    assert_eq!(outcome.turn().text(), "Hi");
    assert!(outcome.result.is_ok());
    let outcome = call(false, whole + DONE);
    assert_eq!((outcome.result.is_ok(), &outcome.timeline.notes[..]), (true, &[][..]));

    let error = call(false, HEAD.to_owned() + &text("Hi")).result.expect_err("a cut");
    assert!(matches!(error.kind, ErrorKind::Truncated(Truncation::NoTerminalState)), "{error}");
    assert_eq!(error.turn.text(), "Hi");
}

#[test]
fn a_server_that_is_mute_in_the_handshake_is_a_timeout_of_the_connection() {
    let limit = Duration::from_millis(200);
    let mock = mock("tls = true", "", &[r#""hold""#]);
    let request = unary_from(&mock.base_url(), once().connect_timeout(limit.as_secs_f64()), 0);
    let error =
        current_thread().block_on(within_cap(client_of(&mock).send(request))).result.expect_err("a breach");
    let ErrorKind::Timeout(timeout) = error.kind else { panic!("{error}") };
    assert_eq!((timeout.phase, timeout.limit, error.billing), (Phase::Connect, limit, Billing::NotSent));
    assert!(timeout.elapsed >= limit);
}

#[test]
fn plain_http_on_the_port_is_told_apart() {
    let server = Server::start();
    let url = server.url().replace("http:", "https:");
    let serving = thread::spawn(move || {
        let mut peer = server.accept();
        // The client's hello has no line end to wait for, and a client that is answered sends no more.
        std::io::Read::read_exact(&mut peer, &mut [0; 5]).expect("a hello");
        peer.write("HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n");
        peer.left()
    });
    let client =
        Client::new().with_tls(TlsConfig::roots_only(Authority::new("Any").pem().as_bytes()).expect("roots"));
    let error = current_thread()
        .block_on(within_cap(client.send(unary_from(&url, once(), 0))))
        .result
        .expect_err("no TLS");
    let ErrorKind::Transport(failure) = &error.kind else { panic!("{error}") };
    assert_eq!((failure.stage, failure.kind), (Stage::Tls, FailureKind::Tls), "{failure}");
    assert!(failure.message.ends_with("the peer does not speak TLS on this port"), "{failure}");
    assert_eq!(serving.join().expect("the server is well"), Left::Fin);
}

/// The server is held up while the consumer is away, over TLS as without
#[test]
fn a_slow_consumer_holds_up_the_server() {
    let bytes = r#"
        open = 'data: {"choices":[{"index":0,"delta":{"content":"'
        close = """"},"finish_reason":null}]}\n\n"""
        large = ["$open", { repeat = "0123456789", times = 400000 }, "$close"]
        end = """data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n"""
    "#;
    let steps = r#"{ read = "request" }, { head = ["200 OK", "content-type: text/event-stream"] },
        { repeat = { times = 4, steps = [{ send = "$large" }] } }, { send = "$end" }, "await-close""#;
    for server in ["send_buffer = 65536", "send_buffer = 65536\ntls = true"] {
        let mock = mock(server, bytes, &[steps]);
        let outcome = current_thread().block_on(within_cap(async {
            let overrides = once().stream_idle_timeout(0.2);
            let mut stream = client_of(&mock).stream(stream_from(&mock.base_url(), overrides));
            for _ in 0..4 {
                assert_eq!(next_text(&mut stream).await.len(), 4_000_000);
                tokio::time::sleep(Duration::from_millis(600)).await;
            }
            stream.outcome().await
        }));
        assert_eq!(outcome.result.expect("a success").turn.text().len(), 16_000_000);
        let blocked = mock.recorded().tally().blocked;
        assert!(blocked >= Duration::from_millis(500), "{server}: {blocked:?}");
    }
}
