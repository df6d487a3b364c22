//! A thread that was busy elsewhere: what came meanwhile is not late, and silence still is.

use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};
use steadfast::outcome::{ErrorKind, Phase};
use steadfast_smol::{Client, Overrides};

use crate::peer::{DONE, HEAD, Peer, STOP, Server, once, poll_once, run, stream_from, text};

const BOUND: f64 = 0.15;
const BUSY: Duration = Duration::from_millis(300);

/// A call that has taken its first delta and waits for the second, and its server
async fn waiting(overrides: Overrides) -> (steadfast_smol::CallStream, Peer) {
    let server = Server::start();
    let mut stream = Client::new().stream(stream_from(&server.url(), overrides));
    assert!(poll_once(&mut stream).await.is_pending());
    let mut peer = server.accept();
    peer.write(HEAD.to_owned() + &text("a"));
    assert_eq!(stream.next().await.expect("a piece").text(), "a");
    assert!(poll_once(&mut stream).await.is_pending());
    (stream, peer)
}

#[test]
fn bytes_that_came_while_the_thread_was_blocked_are_not_late() {
    run(async {
        let (stream, mut peer) = waiting(once().stream_idle_timeout(BOUND)).await;
        peer.write(text("b") + STOP + DONE);
        thread::sleep(BUSY);
        let outcome = stream.outcome().await;
        assert_eq!(outcome.result.expect("a success").turn.text(), "ab");
    });
}

#[test]
fn a_silent_server_is_late_whether_the_thread_was_blocked_or_not() {
    for busy in [Duration::ZERO, BUSY] {
        let outcome = run(async {
            let (stream, _peer) = waiting(once().stream_idle_timeout(BOUND)).await;
            thread::sleep(busy);
            stream.outcome().await
        });
        assert_eq!(outcome.turn().text(), "a");
        let error = outcome.result.expect_err("a breach");
        let ErrorKind::Timeout(timeout) = error.kind else { panic!("{error}") };
        assert_eq!((timeout.phase, timeout.limit), (Phase::StreamIdle, Duration::from_millis(150)));
        assert!(timeout.elapsed >= timeout.limit.max(busy), "{timeout}");
    }
}

/// The system tries again after a second, when there is room; the reactor hears of it too late
#[test]
fn a_connection_that_opened_while_the_thread_was_blocked_is_not_late() {
    let listener = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    let any_port = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    listener.bind(&any_port.into()).expect("a free port");
    listener.listen(0).expect("a listener");
    let address = listener.local_addr().expect("an address");
    let filler = || {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).ok()?;
        socket.connect_timeout(&address, Duration::from_millis(100)).ok().map(|()| socket)
    };
    let fillers: Vec<Socket> = std::iter::from_fn(filler).take(16).collect();
    assert!(fillers.len() < 16, "it is still open");
    let server = Server::on(TcpListener::from(listener));

    let bound = Duration::from_millis(1_500);
    let outcome = run(async {
        let began = Instant::now();
        let overrides = once().connect_timeout(bound.as_secs_f64());
        let mut stream = Client::new().stream(stream_from(&server.url(), overrides));
        assert!(poll_once(&mut stream).await.is_pending());
        let _accepted: Vec<Peer> = fillers.iter().map(|_| server.accept()).collect();
        let mut peer = server.accept();
        assert!(began.elapsed() < bound, "the system took its time");
        peer.write(HEAD.to_owned() + &text("a") + STOP + DONE);
        thread::sleep((began + bound + BUSY).saturating_duration_since(Instant::now()));
        stream.outcome().await
    });
    assert_eq!(outcome.result.expect("a success").turn.text(), "a");
}
