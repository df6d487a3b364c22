//! A thread that was busy elsewhere: what came meanwhile is not late, and silence still is.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use steadfast::outcome::{ErrorKind, Outcome, Phase, Timeout};
use steadfast_tokio::{Client, Overrides};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use crate::peer::{CAP, Peer, Server};
use crate::requests::{
    DONE, HEAD, STOP, current_thread, multi_thread, next_text, once, poll_once, stream_from, text, within_cap,
};

const BOUND: f64 = 0.15;
const BUSY: Duration = Duration::from_millis(300);

fn idle() -> Overrides {
    once().stream_idle_timeout(BOUND)
}

fn timeout(outcome: &Outcome) -> Timeout {
    match &outcome.result {
        Err(error) => match error.kind {
            ErrorKind::Timeout(timeout) => timeout,
            _ => panic!("no timeout but {error}"),
        },
        Ok(_) => panic!("no failure"),
    }
}

/// A call waits for the second delta while a task of the same thread first lets `meanwhile` happen and
/// then blocks for `busy`
fn blocked(
    runtime: &Runtime,
    busy: Duration,
    meanwhile: impl FnOnce(&mut Peer) + Send + 'static,
) -> (Outcome, Peer) {
    let server = Server::start();
    let url = server.url();
    let (waiting, waits) = oneshot::channel();
    runtime.block_on(within_cap(async move {
        let call = tokio::spawn(async move {
            let mut stream = Client::new().stream(stream_from(&url, idle()));
            assert_eq!(next_text(&mut stream).await, "a");
            waiting.send(()).expect("somebody listens");
            stream.outcome().await
        });
        let peer = tokio::task::spawn_blocking(move || {
            let mut peer = server.accept();
            peer.request();
            peer.write(HEAD.to_owned() + &text("a"));
            peer
        });
        let mut peer = peer.await.expect("a peer");
        let blocking = tokio::spawn(async move {
            waits.await.expect("the call waits");
            meanwhile(&mut peer);
            thread::sleep(busy);
            peer
        });
        (call.await.expect("no panic"), blocking.await.expect("no panic"))
    }))
}

#[test]
fn bytes_that_came_while_the_only_thread_was_blocked_are_not_late() {
    for runtime in [current_thread(), multi_thread(1)] {
        let (outcome, _peer) = blocked(&runtime, BUSY, |peer| peer.write(text("b") + STOP + DONE));
        assert_eq!(outcome.result.expect("a success").turn.text(), "ab");
    }
}

#[test]
fn a_silent_server_is_late_at_the_bound() {
    for runtime in [current_thread(), multi_thread(1)] {
        let (outcome, _peer) = blocked(&runtime, Duration::ZERO, |peer| peer.write(text("b")));
        let timeout = timeout(&outcome);
        assert_eq!((timeout.phase, timeout.limit), (Phase::StreamIdle, Duration::from_millis(150)));
        assert!(timeout.elapsed >= timeout.limit, "{timeout}");
        assert_eq!(outcome.turn().text(), "ab");
    }
}

#[test]
fn a_silent_server_is_late_though_the_thread_was_blocked() {
    for runtime in [current_thread(), multi_thread(1)] {
        let (outcome, _peer) = blocked(&runtime, BUSY, |_| {});
        let timeout = timeout(&outcome);
        assert_eq!((timeout.phase, timeout.limit), (Phase::StreamIdle, Duration::from_millis(150)));
        assert!(timeout.elapsed >= BUSY, "{timeout}");
        assert_eq!(outcome.turn().text(), "a");
    }
}

/// All workers are blocked, and with them the reactor; the call is polled on a thread of its own
#[test]
fn bytes_that_came_while_all_workers_were_blocked_are_not_late() {
    let runtime = multi_thread(2);
    let server = Server::start();
    let outcome = runtime.block_on(async {
        let mut stream = Client::new().stream(stream_from(&server.url(), idle()));
        assert!(poll_once(&mut stream).await.is_pending());
        let mut peer = server.accept();
        peer.write(HEAD.to_owned() + &text("a"));
        assert_eq!(within_cap(next_text(&mut stream)).await, "a");
        assert!(poll_once(&mut stream).await.is_pending());

        let (releases, blocked): (Vec<_>, Vec<_>) = (0..2).map(|_| mpsc::channel::<()>()).unzip();
        let (tell, both) = mpsc::channel();
        for released in blocked {
            let tell = tell.clone();
            runtime.spawn(async move {
                tell.send(()).expect("the test listens");
                released.recv().expect_err("it ends when the sender is dropped");
            });
        }
        for _ in 0..2 {
            both.recv_timeout(CAP).expect("a blocked worker");
        }
        peer.write(text("b") + STOP + DONE);
        thread::sleep(BUSY);
        assert_eq!(within_cap(next_text(&mut stream)).await, "b");
        drop(releases);
        within_cap(stream.outcome()).await
    });
    assert!(outcome.result.is_ok());
}

#[test]
fn a_connection_that_opened_while_the_thread_was_blocked_is_not_late() {
    for runtime in [current_thread(), multi_thread(1)] {
        let server = Server::start();
        let url = server.url();
        let outcome = runtime.block_on(within_cap(async move {
            let call = tokio::spawn(async move {
                let mut stream = Client::new().stream(stream_from(&url, once().connect_timeout(BOUND)));
                assert!(poll_once(&mut stream).await.is_pending());
                thread::sleep(BUSY);
                stream.outcome().await
            });
            let mut peer = tokio::task::spawn_blocking(move || server.accept()).await.expect("a peer");
            peer.write(HEAD.to_owned() + &text("a") + STOP + DONE);
            (call.await.expect("no panic"), peer).0
        }));
        assert_eq!(outcome.result.expect("a success").turn.text(), "a");
    }
}
