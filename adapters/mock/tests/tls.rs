//! Over TLS: the certificate can be trusted, and an end with and without `close_notify` differs.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use steadfast_mock::{Close, Mock};
use steadfast_scenario::Script;

const CAP: Duration = Duration::from_secs(10);

fn start(steps: &str) -> Mock {
    let text = format!(
        "name = \"x\"\nabout = \"a test\"\n[server]\ntls = true\n[[connection]]\nsteps = [{steps}]\n"
    );
    Mock::start(&Script::parse(&text).expect("a valid script"), None).expect("the server starts")
}

fn connect(mock: &Mock, name: &'static str) -> StreamOwned<ClientConnection, TcpStream> {
    let mut roots = RootCertStore::empty();
    let pem = mock.ca_pem().expect("it speaks TLS");
    roots.add(CertificateDer::from_pem_slice(pem.as_bytes()).expect("PEM")).expect("a certificate authority");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(name).expect("a name");
    let connection = ClientConnection::new(Arc::new(config), name).expect("a client");
    let socket = TcpStream::connect(mock.addr()).expect("it accepts");
    socket.set_read_timeout(Some(CAP)).expect("a timeout");
    StreamOwned::new(connection, socket)
}

fn ask(mock: &Mock, name: &'static str) -> (Vec<u8>, Option<ErrorKind>) {
    let mut stream = connect(mock, name);
    stream
        .write_all(b"POST / HTTP/1.1\r\ncontent-length: 2\r\n\r\nhi")
        .expect("the handshake and the request");
    let mut bytes = Vec::new();
    let end = stream.read_to_end(&mut bytes);
    (bytes, end.err().map(|error| error.kind()))
}

#[test]
fn an_end_with_close_notify_is_clean() {
    let mock = start(r#"{ read = "request" }, { send = "hello" }, "close-notify", "fin", "await-close""#);
    assert!(mock.base_url().starts_with("https://127.0.0.1:"));
    for name in ["127.0.0.1", "localhost"] {
        assert_eq!(ask(&mock, name), (b"hello".to_vec(), None));
    }
    let seen = mock.wait_for(CAP, |seen| seen.tally().closed_by_peer == 2).expect("it sees the closes");
    assert_eq!(
        seen.connections[0].closed_by_peer.map(|closed| closed.how),
        Some(Close::FinWithoutCloseNotify)
    );
    assert_eq!((seen.requests[0].body.as_slice(), seen.requests[0].complete), (&b"hi"[..], true));
}

#[test]
fn an_end_without_close_notify_shows() {
    let mock = start(r#"{ read = "request" }, { send = "hello" }, "fin", "await-close""#);
    assert_eq!(ask(&mock, "localhost"), (b"hello".to_vec(), Some(ErrorKind::UnexpectedEof)));
}

#[test]
fn a_peer_that_says_close_notify_is_recorded_so() {
    let mock = start(r#"{ read = "request" }, { send = "hello" }, "await-close""#);
    let mut stream = connect(&mock, "localhost");
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("the handshake and the request");
    let mut bytes = [0; 5];
    stream.read_exact(&mut bytes).expect("the answer");
    stream.conn.send_close_notify();
    stream.flush().expect("the alert goes out");
    let seen = mock
        .wait_for(CAP, |seen| seen.connections.first().is_some_and(|first| first.ended.is_some()))
        .expect("it ends");
    assert_eq!(seen.connections[0].closed_by_peer.map(|closed| closed.how), Some(Close::Fin));
    assert_eq!((seen.connections[0].received, seen.connections[0].sent), (18, 5));
}

#[test]
fn a_large_answer_is_held_up_and_comes_whole() {
    let mock = start(
        r#"{ read = "request" }, { send = { repeat = "0123456789", times = 1500000 } }, "close-notify", "fin", "await-close""#,
    );
    let mut stream = connect(&mock, "localhost");
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("the handshake and the request");
    mock.wait_for(CAP, |seen| seen.connections.first().is_some_and(|first| !first.blocked.is_empty()))
        .expect("nobody reads");
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("a clean end");
    assert_eq!(bytes.len(), 15_000_000);
    assert_eq!(mock.shutdown().connections[0].sent, 15_000_000);
}

#[test]
fn a_client_that_speaks_no_tls_is_a_failure_in_words() {
    let mock = start(r#"{ read = "request" }, "close""#);
    let mut socket = TcpStream::connect(mock.addr()).expect("it accepts");
    socket.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("it takes the bytes");
    let seen = mock
        .wait_for(CAP, |seen| seen.connections.first().is_some_and(|first| first.ended.is_some()))
        .expect("it ends");
    assert_eq!(
        seen.connections[0].failed.as_deref(),
        Some("received corrupt message of type InvalidContentType")
    );
    assert_eq!(seen.requests, []);
}
