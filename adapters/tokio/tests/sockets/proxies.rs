//! Proxies: what they are asked, how calls go through them, and how their failures are told.

use std::io::Read;
use std::net::Ipv4Addr;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use steadfast::machine::{FailureKind, ProxyRefusal, Stage};
use steadfast::outcome::{Billing, ErrorKind, Phase};
use steadfast_tokio::{Client, Outcome, Overrides, Proxies, Proxy, Resolving, TlsConfig};

use crate::certificates::{Authority, Identity};
use crate::peer::{BlackHole, Left, Peer, Server};
use crate::requests::{DONE, HEAD, STOP, current_thread, once, stream_from, text, within_cap};

const OPEN: &str = "HTTP/1.1 200 Connection established\r\n\r\n";

fn answer() -> String {
    HEAD.to_owned() + &text("Hi") + STOP + DONE
}

/// What a proxy's URL is made of: `scheme://[user_info@]127.0.0.1:port`
fn proxy(scheme: &str, user_info: &str, server: &Server) -> Proxy {
    Proxy::new(&format!("{scheme}://{user_info}127.0.0.1:{}", server.port())).expect("a proxy's URL")
}

/// Nobody is to be looked up: the proxy does that
fn no_look_up(host: &str, _: u16) -> Resolving {
    panic!("{host} was looked up")
}

fn run(proxy: Proxy, tls: Option<TlsConfig>, url: &str, overrides: Overrides) -> Outcome {
    let mut client = Client::new().with_proxies(Proxies::all(proxy)).with_resolver(no_look_up);
    if let Some(tls) = tls {
        client = client.with_tls(tls);
    }
    current_thread().block_on(within_cap(client.send(stream_from(url, overrides))))
}

/// The head that ends in an empty line
fn head(peer: &mut Peer) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        peer.read_exact(&mut byte).expect("a head");
        head.extend(byte);
    }
    String::from_utf8(head).expect("text")
}

fn bytes<const N: usize>(peer: &mut Peer) -> [u8; N] {
    let mut bytes = [0; N];
    peer.read_exact(&mut bytes).expect("so many bytes");
    bytes
}

fn trusted(names: &[&str]) -> (Identity, TlsConfig) {
    let authority = Authority::new("Test Authority");
    let tls = TlsConfig::roots_only(authority.pem().as_bytes()).expect("roots");
    (authority.issue(names), tls)
}

fn refusal(outcome: &Outcome) -> FailureKind {
    let error = outcome.result.as_ref().expect_err("a failure");
    assert_eq!(error.billing, Billing::NotSent);
    let ErrorKind::Proxy(failure) = &error.kind else { panic!("{error}") };
    assert_eq!(failure.stage, Stage::Proxy);
    failure.kind
}

#[test]
fn l08_a_tunnel_by_connect_carries_tls_to_the_origin() {
    for open in [OPEN, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"] {
        let server = Server::start();
        let proxy = proxy("http", "me:secret@", &server);
        let (identity, tls) = trusted(&["api.test"]);
        let serving = thread::spawn(move || {
            let mut peer = server.accept();
            let head = head(&mut peer);
            peer.write(open);
            let mut origin = peer.secure(identity.config());
            let request = String::from_utf8(origin.request()).expect("text");
            origin.write(answer());
            origin.left();
            (head, request)
        });
        let outcome = run(proxy, Some(tls), "https://api.test:8443", once());
        assert_eq!(outcome.result.expect("a success").turn.text(), "Hi");
        let (head, request) = serving.join().expect("the proxy is well");
        assert!(head.starts_with("CONNECT api.test:8443 HTTP/1.1\r\nhost: api.test:8443\r\n"), "{head}");
        assert!(head.contains("\r\nproxy-authorization: Basic bWU6c2VjcmV0\r\n"), "{head}");
        assert!(request.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{request}");
        assert!(!request.contains("proxy-authorization"), "the origin must not see it: {request}");
    }
}

#[test]
fn an_http_origin_gets_its_request_from_the_proxy() {
    let server = Server::start();
    let proxy = proxy("http", "me:secret@", &server);
    let serving = thread::spawn(move || {
        let mut peer = server.accept();
        let request = String::from_utf8(peer.request()).expect("text");
        peer.write(answer());
        peer.left();
        request
    });
    let outcome = run(proxy, None, "http://api.test", once());
    assert_eq!(outcome.result.expect("a success").turn.text(), "Hi");
    let request = serving.join().expect("the proxy is well");
    assert!(
        request.starts_with("POST http://api.test/v1/chat/completions HTTP/1.1\r\nhost: api.test\r\n"),
        "{request}"
    );
    assert!(request.contains("\r\nproxy-authorization: Basic bWU6c2VjcmV0\r\n"), "{request}");
}

/// A proxy that answers each of so many CONNECTs in this way
fn refusing(server: Server, answer: &'static str, times: usize) -> JoinHandle<bool> {
    thread::spawn(move || {
        for _ in 0..times {
            let mut peer = server.accept();
            head(&mut peer);
            peer.write(answer);
            peer.left();
        }
        server.has_another()
    })
}

#[test]
fn l08_refusals_are_the_proxy_s_and_only_some_are_tried_again() {
    let denied = "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\n\r\n";
    let broken =
        "HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\nContent-Length: 15\r\n\r\n<html>x</html>\n";
    for (answer, kind, connections) in [
        (denied, ProxyRefusal::AuthenticationRequired, 1),
        (broken, ProxyRefusal::Status(502), 2),
        ("HTTP/1.1 403 Forbidden\r\n\r\n", ProxyRefusal::Status(403), 1),
        ("SSH-2.0-OpenSSH_9.6\r\n", ProxyRefusal::Protocol, 1),
    ] {
        let server = Server::start();
        let proxy = proxy("http", "", &server);
        let serving = refusing(server, answer, connections);
        let outcome = run(proxy, None, "https://api.test", Overrides::new().max_attempts(2));
        assert_eq!(refusal(&outcome), FailureKind::Proxy(kind));
        assert!(!serving.join().expect("the proxy is well"), "no further connection");
    }
}

#[test]
fn a_proxy_that_stalls_ends_at_the_connect_timeout() {
    for (scheme, reads) in [("http", true), ("socks5", true), ("http", false)] {
        let server = Server::start();
        let proxy = proxy(scheme, "", &server);
        let serving = thread::spawn(move || {
            let mut peer = server.accept();
            if reads {
                bytes::<3>(&mut peer);
            }
            peer.left()
        });
        let outcome = run(proxy, None, "https://api.test", once().connect_timeout(0.2));
        let error = outcome.result.expect_err("no tunnel");
        let ErrorKind::Timeout(timeout) = error.kind else { panic!("{error}") };
        assert_eq!((timeout.phase, timeout.limit), (Phase::Connect, Duration::from_millis(200)));
        assert_eq!(error.billing, Billing::NotSent);
        assert_eq!(serving.join().expect("the proxy is well"), Left::Fin);
    }
}

#[test]
fn a_proxy_that_leaves_or_is_not_there_is_a_failure_of_the_proxy() {
    let server = Server::start();
    let leaving = proxy("http", "", &server);
    let serving = thread::spawn(move || {
        let mut peer = server.accept();
        head(&mut peer);
        peer.write("HTTP/1.1 200 OK\r\n");
        peer.cut();
    });
    assert_eq!(refusal(&run(leaving, None, "https://api.test", once())), FailureKind::Reset);
    serving.join().expect("the proxy is well");

    let nobody = BlackHole::refusing(Ipv4Addr::LOCALHOST.into());
    for (scheme, url) in
        [("http", "https://api.test"), ("http", "http://api.test"), ("socks5", "http://api.test")]
    {
        let proxy = Proxy::new(&format!("{scheme}://{}", nobody.address())).expect("a proxy's URL");
        let outcome = run(proxy.clone(), None, url, once());
        assert_eq!(refusal(&outcome), FailureKind::Refused);
        let message = outcome.result.expect_err("a failure").to_string();
        assert!(
            message.starts_with(&format!("the way through the proxy failed: {proxy} cannot be reached: ")),
            "{message}"
        );
    }
}

#[test]
fn a_tunnel_by_socks5_gets_the_name_and_no_early_byte_is_lost() {
    let server = Server::start();
    let proxy = proxy("socks5", "me:secret@", &server);
    let serving = thread::spawn(move || {
        let mut peer = server.accept();
        assert_eq!(bytes(&mut peer), *b"\x05\x02\x00\x02");
        peer.write(b"\x05\x02");
        assert_eq!(bytes(&mut peer), *b"\x01\x02me\x06secret");
        peer.write(b"\x01\x00");
        assert_eq!(bytes(&mut peer), *b"\x05\x01\x00\x03\x08api.test\x00\x50");
        // The origin's answer comes in the same segment as the proxy's.
        peer.write([b"\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x50", answer().as_bytes()].concat());
        peer.left();
    });
    let outcome = run(proxy, None, "http://api.test", once());
    assert_eq!(outcome.result.expect("a success").turn.text(), "Hi");
    serving.join().expect("the proxy is well");
}

#[test]
fn a_tunnel_by_socks5_carries_tls_and_refusals_have_their_code() {
    let server = Server::start();
    let open = proxy("socks5h", "", &server);
    let (identity, tls) = trusted(&["api.test"]);
    let serving = thread::spawn(move || {
        let mut peer = server.accept();
        bytes::<3>(&mut peer);
        peer.write(b"\x05\x00");
        bytes::<15>(&mut peer);
        peer.write(b"\x05\x00\x00\x03\x01x\x00\x50");
        let mut origin = peer.secure(identity.config());
        origin.request();
        origin.write(answer());
        origin.left();
    });
    let outcome = run(open, Some(tls), "https://api.test", once());
    assert_eq!(outcome.result.expect("a success").turn.text(), "Hi");
    serving.join().expect("the proxy is well");

    let server = Server::start();
    let refusing = proxy("socks5", "", &server);
    let serving = thread::spawn(move || {
        let mut peer = server.accept();
        bytes::<3>(&mut peer);
        peer.write(b"\x05\x00");
        bytes::<15>(&mut peer);
        peer.write(b"\x05\x02\x00\x01\x00\x00\x00\x00\x00\x00");
        peer.left();
        server.has_another()
    });
    let outcome = run(refusing, None, "https://api.test", Overrides::new().max_attempts(2));
    assert_eq!(refusal(&outcome), FailureKind::Proxy(ProxyRefusal::Socks(2)));
    assert!(!serving.join().expect("the proxy is well"), "no further connection");
}
