//! Names, addresses and proxies on the way to a connection.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::thread;
use std::time::{Duration, Instant};

use steadfast::machine::{FailureKind, Stage};
use steadfast::outcome::{Billing, ErrorKind, Outcome, Phase};
use steadfast_smol::{Client, Proxies, Proxy, Resolving};

use crate::peer::{BlackHole, DONE, HEAD, Peer, STOP, Server, once, run, stream_from, text};

/// A call by `client` to `url`, which `server` answers after `before`; the request that it saw
fn call(client: &Client, url: &str, server: Server, before: fn(&mut Peer)) -> (Outcome, String) {
    let serving = thread::spawn(move || {
        let mut peer = server.accept();
        before(&mut peer);
        let request = peer.request();
        peer.write(HEAD.to_owned() + &text("Hi") + STOP + DONE);
        peer.left();
        request
    });
    let outcome = run(client.send(stream_from(url, once())));
    (outcome, serving.join().expect("the server is well"))
}

#[track_caller]
fn said(outcome: &Outcome) -> &str {
    outcome.result.as_ref().unwrap_or_else(|error| panic!("{error}")).turn.text()
}

#[test]
fn the_system_s_resolver_knows_this_machine_and_not_every_name() {
    let server = Server::start();
    let url = format!("http://localhost:{}", server.address().port());
    let (outcome, _) = call(&Client::new(), &url, server, |_| {});
    assert_eq!(said(&outcome), "Hi");

    let outcome = run(Client::new().send(stream_from("http://does-not-exist.invalid", once())));
    let error = outcome.result.expect_err("no host");
    let ErrorKind::Transport(failure) = &error.kind else { panic!("{error}") };
    assert_eq!((failure.stage, failure.kind), (Stage::Resolve, FailureKind::NotFound));
    assert!(failure.message.starts_with("does-not-exist.invalid: "), "{failure}");
}

/// A port at `::1` that is taken, and where nobody listens
fn refusing() -> (socket2::Socket, SocketAddr) {
    let socket = socket2::Socket::new(socket2::Domain::IPV6, socket2::Type::STREAM, None).expect("a socket");
    socket.bind(&SocketAddr::from((Ipv6Addr::LOCALHOST, 0)).into()).expect("a free port");
    let address = socket.local_addr().expect("an address").as_socket().expect("an IP address");
    (socket, address)
}

#[test]
fn an_address_that_refuses_gives_way_to_the_next() {
    let (_held, refusing) = refusing();
    let server = Server::start();
    let known = vec![refusing, server.address()];
    let client = Client::new().with_resolver(move |_: &str, _: u16| -> Resolving {
        let known = known.clone();
        Box::pin(async move { Ok(known) })
    });
    let (outcome, _) = call(&client, "http://api.test", server, |_| {});
    assert_eq!(said(&outcome), "Hi");

    let client = Client::new()
        .with_resolver(move |_: &str, _: u16| -> Resolving { Box::pin(async move { Ok(vec![refusing]) }) });
    let error = run(client.send(stream_from("http://api.test", once()))).result.expect_err("nobody");
    let ErrorKind::Transport(failure) = &error.kind else { panic!("{error}") };
    assert_eq!((failure.stage, failure.kind), (Stage::Connect, FailureKind::Refused));
}

/// A client to which every host has these addresses
fn knowing(known: Vec<SocketAddr>) -> Client {
    Client::new().with_resolver(move |_: &str, _: u16| -> Resolving {
        let known = known.clone();
        Box::pin(async move { Ok(known) })
    })
}

#[test]
fn l04_a_black_hole_at_ipv6_does_not_keep_a_call_from_ipv4() {
    let hole = BlackHole::start_on(Ipv6Addr::LOCALHOST.into());
    let server = Server::start();
    let client = knowing(vec![hole.address(), server.address()]);
    let began = Instant::now();
    let (outcome, _) = call(&client, "http://api.test", server, |_| {});
    assert_eq!(said(&outcome), "Hi");
    let took = began.elapsed();
    assert!((Duration::from_millis(250)..Duration::from_secs(1)).contains(&took), "{took:?}");
}

#[test]
fn l04_two_black_holes_end_at_the_connect_timeout() {
    let holes =
        [BlackHole::start_on(Ipv6Addr::LOCALHOST.into()), BlackHole::start_on(Ipv4Addr::LOCALHOST.into())];
    let client = knowing(holes.iter().map(BlackHole::address).collect());
    let outcome = run(client.send(stream_from("http://api.test", once().connect_timeout(0.6))));
    let error = outcome.result.expect_err("no connection");
    let ErrorKind::Timeout(timeout) = error.kind else { panic!("{error}") };
    assert_eq!((timeout.phase, timeout.limit), (Phase::Connect, Duration::from_millis(600)));
    assert_eq!(error.billing, Billing::NotSent);
    assert!((timeout.limit..Duration::from_secs(2)).contains(&timeout.elapsed), "{timeout:?}");
}

/// Nobody is to be looked up: the proxy does that
fn no_look_up(host: &str, _: u16) -> Resolving {
    panic!("{host} was looked up")
}

#[test]
fn calls_go_through_a_proxy() {
    let server = Server::start();
    let proxy = Proxy::new(&format!("socks5h://{}", server.address())).expect("a proxy");
    let client = Client::new().with_proxies(Proxies::all(proxy)).with_resolver(no_look_up);
    let (outcome, request) = call(&client, "http://a.test", server, |peer| {
        assert_eq!(peer.bytes(), *b"\x05\x01\x00");
        peer.write(b"\x05\x00");
        assert_eq!(peer.bytes(), *b"\x05\x01\x00\x03\x06a.test\x00\x50");
        peer.write(b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00");
    });
    assert_eq!(said(&outcome), "Hi");
    assert!(request.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{request}");

    let server = Server::start();
    let proxy = Proxy::new(&server.url()).expect("a proxy");
    let client = Client::new().with_proxies(Proxies::all(proxy)).with_resolver(no_look_up);
    let (outcome, request) = call(&client, "http://a.test", server, |_| {});
    assert_eq!(said(&outcome), "Hi");
    assert!(request.starts_with("POST http://a.test/v1/chat/completions HTTP/1.1\r\n"), "{request}");
}
