//! Names and addresses: which of them a call connects to, and how it ends where none answers.

use std::future::pending;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use steadfast::machine::{FailureKind, IoFailure, Stage};
use steadfast::outcome::{Billing, ErrorKind, Phase};
use steadfast_tokio::{Client, Outcome, Overrides, Resolving};

use crate::peer::{BlackHole, Server};
use crate::requests::{DONE, HEAD, STOP, current_thread, once, stream_from, text, within_cap};

const URL: &str = "http://api.test";

/// A resolver that knows these addresses and no other
fn addresses(addresses: Vec<SocketAddr>) -> impl Fn(&str, u16) -> Resolving + Send + Sync {
    move |_, _| {
        let addresses = addresses.clone();
        Box::pin(async move { Ok(addresses) })
    }
}

/// Answers one call
fn serve(server: Server) -> JoinHandle<()> {
    thread::spawn(move || {
        let mut peer = server.accept();
        peer.request();
        peer.write(HEAD.to_owned() + &text("Hi") + STOP + DONE);
        peer.left();
    })
}

fn run(
    resolver: impl Fn(&str, u16) -> Resolving + Send + Sync + 'static,
    overrides: Overrides,
) -> (Outcome, Duration) {
    let client = Client::new().with_resolver(resolver);
    let began = Instant::now();
    let outcome = current_thread().block_on(within_cap(client.send(stream_from(URL, overrides))));
    (outcome, began.elapsed())
}

fn failure(outcome: &Outcome) -> &IoFailure {
    match &outcome.result.as_ref().expect_err("a failure").kind {
        ErrorKind::Transport(failure) => failure,
        kind => panic!("{kind}"),
    }
}

#[test]
fn l04_a_black_hole_at_ipv6_does_not_keep_a_call_from_ipv4() {
    let hole = BlackHole::start_on(Ipv6Addr::LOCALHOST.into());
    let server = Server::start();
    let known = vec![hole.address(), server.address()];
    let serving = serve(server);
    let (outcome, took) = run(addresses(known), once());
    assert_eq!(outcome.result.expect("a success").turn.text(), "Hi");
    assert!((Duration::from_millis(250)..Duration::from_secs(1)).contains(&took), "{took:?}");
    serving.join().expect("the server is well");
}

#[test]
fn l04_two_black_holes_end_at_the_connect_timeout() {
    let holes =
        [BlackHole::start_on(Ipv6Addr::LOCALHOST.into()), BlackHole::start_on(Ipv4Addr::LOCALHOST.into())];
    let (outcome, took) =
        run(addresses(holes.iter().map(BlackHole::address).collect()), once().connect_timeout(0.6));
    let error = outcome.result.expect_err("no connection");
    let ErrorKind::Timeout(timeout) = error.kind else { panic!("{error}") };
    assert_eq!((timeout.phase, timeout.limit), (Phase::Connect, Duration::from_millis(600)));
    assert_eq!(error.billing, Billing::NotSent);
    assert!((timeout.limit..Duration::from_secs(2)).contains(&took), "{took:?}");
}

#[test]
fn addresses_that_refuse_are_not_waited_out() {
    let server = Server::start();
    // Bound for as long as the test runs, so that nobody else listens there
    let refusing: Vec<_> = (0..6).map(|_| BlackHole::refusing(Ipv4Addr::LOCALHOST.into())).collect();
    let mut known: Vec<_> = refusing.iter().map(BlackHole::address).collect();
    let (outcome, _) = run(addresses(known.clone()), once());
    let failed = failure(&outcome);
    assert_eq!((failed.stage, failed.kind), (Stage::Connect, FailureKind::Refused));
    assert!(failed.message.starts_with(&format!("{}: ", known[0])), "{failed}");
    assert!(failed.message.ends_with("(and 5 more of the host's addresses failed)"), "{failed}");

    known.push(server.address());
    let serving = serve(server);
    let (outcome, took) = run(addresses(known), once());
    assert_eq!(outcome.result.expect("a success").turn.text(), "Hi");
    // Six delays would be 1.5 s.
    assert!(took < Duration::from_secs(1), "{took:?}");
    serving.join().expect("the server is well");
}

#[test]
fn l03_a_look_up_that_fails_for_now_is_tried_again() {
    let server = Server::start();
    let (address, serving) = (server.address(), serve(server));
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let resolver = move |_: &str, _: u16| -> Resolving {
        let first = count.fetch_add(1, Ordering::SeqCst) == 0;
        Box::pin(async move {
            if first {
                return Err(io::Error::other("Temporary failure in name resolution"));
            }
            Ok(vec![address])
        })
    };
    let (outcome, _) = run(resolver, Overrides::new().max_attempts(2));
    assert_eq!(outcome.result.expect("a success").turn.text(), "Hi");
    assert_eq!(asked.load(Ordering::SeqCst), 2);
    serving.join().expect("the server is well");
}

#[test]
fn l03_failed_look_ups_are_typed_and_name_the_host() {
    let failing = |message: &'static str| {
        move |_: &str, _: u16| -> Resolving { Box::pin(async move { Err(io::Error::other(message)) }) }
    };
    let told = |outcome: Outcome| failure(&outcome).clone();
    let resolve =
        |kind, message: &str| IoFailure { stage: Stage::Resolve, kind, message: message.to_owned() };
    let again = "Temporary failure in name resolution";
    assert_eq!(
        told(run(failing(again), once()).0),
        resolve(FailureKind::Other, "api.test: Temporary failure in name resolution")
    );
    assert_eq!(
        told(run(failing("Name or service not known"), once()).0),
        resolve(FailureKind::NotFound, "api.test: Name or service not known")
    );
    assert_eq!(
        told(run(addresses(Vec::new()), once()).0),
        resolve(FailureKind::NotFound, "api.test: the name has no address")
    );
    let silent = |_: &str, _: u16| -> Resolving { Box::pin(pending()) };
    let error = run(silent, once().connect_timeout(0.1)).0.result.expect_err("no end");
    let ErrorKind::Timeout(timeout) = error.kind else { panic!("{error}") };
    assert_eq!(timeout.phase, Phase::Connect);
}
