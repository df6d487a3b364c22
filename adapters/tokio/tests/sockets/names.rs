//! Hosts by name and by address, IPv4 and IPv6.

use std::net::Ipv6Addr;
use std::thread;

use steadfast::machine::{FailureKind, Stage};
use steadfast::outcome::ErrorKind;
use steadfast_tokio::{Client, TlsConfig};

use crate::certificates::Authority;
use crate::peer::Server;
use crate::requests::{DONE, HEAD, STOP, current_thread, once, stream_from, text, within_cap};

/// A call to `host`; the request that the server saw
fn call(server: Server, host: &str, tls: bool) -> String {
    let authority = Authority::new("Test Authority");
    let identity = authority.issue(&["localhost", "127.0.0.1", "::1"]);
    let scheme = if tls { "https" } else { "http" };
    let url = format!("{scheme}://{host}:{}", server.port());
    let serving = thread::spawn(move || {
        let mut peer = server.accept();
        if tls {
            peer = peer.secure(identity.config());
        }
        let request = peer.request();
        peer.write(HEAD.to_owned() + &text("Hi") + STOP + DONE);
        peer.left();
        String::from_utf8(request).expect("text")
    });
    let client = Client::new().with_tls(TlsConfig::roots_only(authority.pem().as_bytes()).expect("roots"));
    let outcome = current_thread().block_on(within_cap(client.send(stream_from(&url, once()))));
    assert_eq!(outcome.result.expect("a success").turn.text(), "Hi");
    serving.join().expect("the server is well")
}

#[test]
fn hosts_of_every_form() {
    for tls in [false, true] {
        for (host, ipv6) in [("localhost", false), ("127.0.0.1", false), ("[::1]", true)] {
            let server = if ipv6 { Server::start_on(Ipv6Addr::LOCALHOST.into()) } else { Server::start() };
            let expected = format!("\r\nhost: {host}:{}\r\n", server.port());
            let request = call(server, host, tls).to_ascii_lowercase();
            assert!(request.contains(&expected), "{request}");
        }
    }
}

#[test]
fn a_name_that_does_not_exist_is_a_failure_of_the_look_up() {
    let request = stream_from("http://does-not-exist.invalid", once());
    let error =
        current_thread().block_on(within_cap(Client::new().send(request))).result.expect_err("no host");
    let ErrorKind::Transport(failure) = &error.kind else { panic!("{error}") };
    assert_eq!((failure.stage, failure.kind), (Stage::Resolve, FailureKind::NotFound));
    assert!(failure.message.starts_with("does-not-exist.invalid: "), "{failure}");
}
