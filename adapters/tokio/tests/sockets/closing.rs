//! Dropping or cancelling a call ends it: its connection closes, and nothing is sent again.

use steadfast::call::State;
use steadfast::outcome::ErrorKind;
use steadfast_tokio::{CallStream, Client, Overrides};
use tokio::runtime::Handle;

use crate::peer::{Left, Peer, Server};
use crate::requests::{
    DONE, HEAD, STOP, client_of, current_thread, mock, next_text, poll_once, stream_from, text, within_cap,
};

/// Where a call is when its consumer loses interest
#[derive(Clone, Copy, Debug)]
enum Phase {
    Waiting,
    Streaming,
    Finished,
    Pausing,
}

const PHASES: [Phase; 4] = [Phase::Waiting, Phase::Streaming, Phase::Finished, Phase::Pausing];

/// A call that is there, its server, and its connection unless that is closed
async fn call_in(phase: Phase) -> (CallStream, Server, Option<Peer>) {
    let server = Server::start();
    let mut stream = Client::new().stream(stream_from(&server.url(), Overrides::new().after_marker(60.0)));
    assert!(poll_once(&mut stream).await.is_pending());
    let mut peer = server.accept();
    let head = match phase {
        Phase::Waiting => String::new(),
        Phase::Streaming => HEAD.to_owned() + &text("a"),
        Phase::Finished => HEAD.to_owned() + &text("a") + STOP,
        Phase::Pausing => {
            "HTTP/1.1 503 Busy\r\nconnection: close\r\nretry-after: 60\r\ncontent-length: 2\r\n\r\nno"
                .to_owned()
        }
    };
    // The request is on its way once the connection is open, which takes the client some turns.
    loop {
        assert!(poll_once(&mut stream).await.is_pending());
        if stream.progress().state == State::Waiting {
            break;
        }
        tokio::task::yield_now().await;
    }
    peer.request();
    peer.write(head);
    let peer = match phase {
        Phase::Waiting => Some(peer),
        Phase::Streaming => {
            assert_eq!(next_text(&mut stream).await, "a");
            Some(peer)
        }
        Phase::Finished => {
            assert_eq!(next_text(&mut stream).await, "a");
            assert!(stream.next().await.is_some());
            Some(peer)
        }
        Phase::Pausing => {
            while stream.progress().state != State::Pausing {
                assert!(poll_once(&mut stream).await.is_pending());
                tokio::task::yield_now().await;
            }
            assert_eq!(peer.left(), Left::Fin);
            None
        }
    };
    (stream, server, peer)
}

#[test]
fn dropping_closes_and_leaves_nothing_behind() {
    for phase in PHASES {
        current_thread().block_on(within_cap(async {
            let (stream, server, peer) = call_in(phase).await;
            drop(stream);
            if let Some(peer) = peer {
                assert_eq!(peer.left(), Left::Fin, "{phase:?}");
            }
            assert_eq!(Handle::current().metrics().num_alive_tasks(), 0, "{phase:?}");
            assert!(!server.has_another(), "{phase:?}");
        }));
    }
}

#[test]
fn cancelling_closes_and_says_so_at_once() {
    for phase in PHASES {
        current_thread().block_on(within_cap(async {
            let (mut stream, server, peer) = call_in(phase).await;
            stream.cancel();
            assert!(matches!(poll_once(&mut stream).await, std::task::Poll::Ready(None)));
            if let Some(peer) = peer {
                assert_eq!(peer.left(), Left::Fin, "{phase:?}");
            }
            let outcome = stream.outcome().await;
            match (phase, outcome.result) {
                // The turn is whole, and paid for.
                (Phase::Finished, Ok(completion)) => assert_eq!(completion.turn.text(), "a"),
                (_, Err(error)) => assert_eq!(error.kind, ErrorKind::Cancelled, "{phase:?}"),
                (phase, Ok(_)) => panic!("{phase:?}: a success"),
            }
            assert!(!server.has_another(), "{phase:?}");
        }));
    }
}

#[test]
fn another_thread_ends_a_call_that_waits() {
    for phase in PHASES {
        current_thread().block_on(within_cap(async {
            let (mut stream, server, peer) = call_in(phase).await;
            let canceller = stream.canceller();
            let end = tokio::spawn(stream.outcome());
            // It waits, until it is woken.
            tokio::task::yield_now().await;
            let other = canceller.clone();
            std::thread::spawn(move || other.cancel()).join().expect("a thread");
            let outcome = end.await.expect("a task");
            match (phase, outcome.result) {
                (Phase::Finished, Ok(completion)) => assert_eq!(completion.turn.text(), "a"),
                (_, Err(error)) => assert_eq!(error.kind, ErrorKind::Cancelled, "{phase:?}"),
                (phase, Ok(_)) => panic!("{phase:?}: a success"),
            }
            if let Some(peer) = peer {
                assert_eq!(peer.left(), Left::Fin, "{phase:?}");
            }
            assert!(canceller.is_cancelled() && !server.has_another(), "{phase:?}");
            // Once more does no harm.
            canceller.cancel();
        }));
    }
}

#[test]
fn dropping_in_connect_gives_up_the_connection() {
    // Over TLS the connection is there to be seen, though the call is still connecting.
    let mock = mock("tls = true", "", &[r#"{ read = "request" }, "await-close""#]);
    current_thread().block_on(within_cap(async {
        let mut stream = client_of(&mock).stream(stream_from(&mock.base_url(), Overrides::new()));
        while mock.recorded().connections.is_empty() {
            assert!(poll_once(&mut stream).await.is_pending());
            tokio::task::yield_now().await;
        }
        drop(stream);
    }));
    let seen = mock.wait_for(crate::peer::CAP, |seen| seen.connections[0].closed_by_peer.is_some());
    let seen = seen.expect("the connection closes");
    assert_eq!((seen.requests.len(), seen.connections.len()), (0, 1));
}

#[test]
fn a_call_that_is_done_says_goodbye() {
    for tls in ["tls = true", ""] {
        let answer = r#"{ read = "request" }, { answer = { head = ["200 OK", "content-type: application/json"],
            body = '{"choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}]}' } },
            "await-close""#;
        let mock = mock(tls, "", &[answer]);
        let request = crate::requests::unary_from(&mock.base_url(), Overrides::new(), 0);
        let outcome = current_thread().block_on(within_cap(client_of(&mock).send(request)));
        assert_eq!(outcome.result.expect("a success").turn.text(), "Hi");
        let seen = mock.wait_for(crate::peer::CAP, |seen| seen.connections[0].closed_by_peer.is_some());
        let closed = seen.expect("it closes").connections[0].closed_by_peer.expect("it closed");
        // A FIN, which over TLS has a close_notify before it.
        assert_eq!(closed.how, steadfast_mock::Close::Fin, "{tls}");
    }
}

#[test]
fn the_end_of_a_stream_closes_at_the_sentinel() {
    current_thread().block_on(within_cap(async {
        let (stream, _server, peer) = call_in(Phase::Finished).await;
        let mut peer = peer.expect("a connection");
        peer.write(DONE);
        assert!(stream.outcome().await.result.is_ok());
        assert_eq!(peer.left(), Left::Fin);
    }));
}
