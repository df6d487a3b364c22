//! One connection for many calls: what is reused, what is replaced, and what never is.

use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use steadfast::outcome::{Billing, ErrorKind, Note, Outcome, SpanKind};
use steadfast_tokio::{Client, Overrides, Request, Retries, TlsConfig};

use crate::certificates::Authority;
use crate::peer::{CAP, Left, Peer, Server};
use crate::requests::{
    DONE, STOP, client_of, current_thread, mock, next_text, once, poll_once, stream_from, text, unary_from,
    within_cap,
};

const CHUNKED: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
const LAST_CHUNK: &str = "0\r\n\r\n";

fn chunk(bytes: &str) -> String {
    format!("{:x}\r\n{bytes}\r\n", bytes.len())
}

/// A unary answer
pub(crate) fn answer(said: &str) -> String {
    let body = format!(
        r#"{{"choices":[{{"index":0,"message":{{"role":"assistant","content":"{said}"}},"finish_reason":"stop"}}]}}"#
    );
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Lets a server act on a thread of its own
pub(crate) fn serving<T: Send + 'static>(
    server: Server,
    act: impl FnOnce(&Server) -> T + Send + 'static,
) -> JoinHandle<T> {
    thread::spawn(move || act(&server))
}

#[track_caller]
fn said(outcome: &Outcome) -> &str {
    outcome.result.as_ref().unwrap_or_else(|error| panic!("{error}\n{}", outcome.timeline)).turn.text()
}

/// Waits for what the client's tasks do, without a word from outside
pub(crate) async fn until(mut holds: impl FnMut() -> bool) {
    while !holds() {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
}

#[test]
fn a_second_call_uses_the_connection_of_the_first() {
    let whole = r#"{ read = "request" }, { answer = { head = ["200 OK", "content-type: application/json"],
        body = '{"choices":[{"index":0,"message":{"content":"Hi"},"finish_reason":"stop"}]}' } }"#;
    let streamed = r#"{ read = "request" },
        { head = ["200 OK", "content-type: text/event-stream", "transfer-encoding: chunked"] },
        { chunk = "$hi" }, { chunk = "$stop" }, { chunk = "$done" }, "last-chunk""#;
    let bytes = format!("hi = '''{}'''\nstop = '''{STOP}'''\ndone = '''{DONE}'''", text("Hi"));
    for tls in ["", "tls = true"] {
        for (steps, is_stream) in [(whole, false), (streamed, true)] {
            let mock = mock(tls, &bytes, &[&format!("{steps}, {steps}, {steps}, \"await-close\"")]);
            let client = client_of(&mock);
            current_thread().block_on(within_cap(async {
                for call in 0..3 {
                    // The end of the message may come a read after that of the call.
                    until(|| client.pool_statistics().finishing == 0).await;
                    let url = mock.base_url();
                    let request =
                        if is_stream { stream_from(&url, once()) } else { unary_from(&url, once(), 0) };
                    let outcome = client.clone().send(request).await;
                    assert_eq!(said(&outcome), "Hi");
                    assert_eq!(outcome.timeline.attempts[0].reused, call > 0);
                    assert_eq!(outcome.timeline.attempt_count(), 1);
                }
                let statistics = client.pool_statistics();
                assert_eq!((statistics.opened, statistics.reused, statistics.lost), (1, 2, 0));
                client.close_idle();
                assert_eq!(client.pool_statistics().idle, 0);
            }));
            let seen =
                mock.wait_for(CAP, |seen| seen.connections[0].closed_by_peer.is_some()).expect("it closes");
            assert_eq!((seen.connections.len(), seen.requests.len()), (1, 3), "{tls} {is_stream}");
            // Over TLS with a close_notify.
            assert_eq!(seen.connections[0].closed_by_peer.expect("closed").how, steadfast_mock::Close::Fin);
        }
    }
}

#[test]
fn a_connection_that_the_server_closed_between_two_calls_costs_nothing() {
    for (secure, is_noticed) in [(false, true), (false, false), (true, true), (true, false)] {
        let authority = Authority::new("Our Authority");
        let identity = secure.then(|| authority.issue(&["127.0.0.1"]).config());
        let server = Server::start();
        let url = if secure { server.url().replace("http", "https") } else { server.url() };
        let (tell, cut) = mpsc::channel();
        let (over, told) = mpsc::channel();
        let thread = serving(server, move |server| {
            let accept = || match &identity {
                Some(config) => server.accept().secure(config.clone()),
                None => server.accept(),
            };
            let mut first = accept();
            first.request();
            first.write(answer("one"));
            told.recv_timeout(CAP).expect("the test speaks");
            first.cut();
            tell.send(()).expect("the test listens");
            let mut second = accept();
            second.request();
            second.write(answer("two"));
            assert_eq!(second.left(), Left::Fin);
        });
        let client =
            Client::new().with_tls(TlsConfig::roots_only(authority.pem().as_bytes()).expect("roots"));
        current_thread().block_on(within_cap(async {
            assert_eq!(said(&client.send(unary_from(&url, once(), 0)).await), "one");
            over.send(()).expect("the server listens");
            // No other task runs meanwhile: here nobody but the next call can notice.
            cut.recv_timeout(CAP).expect("it is cut");
            if is_noticed {
                until(|| client.pool_statistics().idle == 0).await;
            }
            let outcome = client.send(unary_from(&url, once(), 0)).await;
            assert_eq!((said(&outcome), outcome.timeline.attempt_count()), ("two", 1));
            let statistics = client.pool_statistics();
            assert_eq!((statistics.opened, statistics.reused, statistics.lost), (2, 0, 1));
            client.close_idle();
        }));
        thread.join().expect("the server is well");
    }
}

/// Serves a first call, then reads a second request on the same connection and cuts it unanswered
fn cutting(server: Server) -> JoinHandle<usize> {
    serving(server, |server| {
        let mut first = server.accept();
        first.request();
        first.write(answer("one"));
        first.request();
        first.cut();
        let mut requests = 2;
        let mut next = server.accept();
        if next.try_request().is_some() {
            requests += 1;
            next.write(answer("two"));
            next.left();
        }
        requests
    })
}

#[test]
fn a_connection_that_closes_as_the_next_request_is_written_costs_an_attempt_but_no_pause() {
    let server = Server::start();
    let url = server.url();
    let thread = cutting(server);
    let client = Client::new();
    current_thread().block_on(within_cap(async {
        assert_eq!(said(&client.send(unary_from(&url, once(), 0)).await), "one");
        let outcome = client.send(unary_from(&url, Overrides::new().max_attempts(2), 0)).await;
        assert_eq!((said(&outcome), outcome.timeline.attempt_count()), ("two", 2));
        assert!(!outcome.timeline.spans.iter().any(|span| span.kind == SpanKind::Backoff));
        assert_eq!(outcome.timeline.attempts.iter().map(|of| of.reused).collect::<Vec<_>>(), [true, false]);
    }));
    drop(client);
    assert_eq!(thread.join().expect("the server is well"), 3);
}

#[test]
fn a_request_that_may_have_been_seen_is_not_sent_again_where_that_is_forbidden() {
    let unbilled = |url: &str, retries: Retries| {
        Request::post(url).body("{}").retries(retries).build().expect("a valid request")
    };
    for retries in [Retries::Never, Retries::UnlessBilled] {
        let server = Server::start();
        let (url, port) = (server.url(), server.port());
        let thread = cutting(server);
        let client = Client::new();
        current_thread().block_on(within_cap(async {
            client.send(unbilled(&url, retries)).await.result.expect("an answer");
            let error = client.send(unbilled(&url, retries)).await.result.expect_err("a cut");
            assert!(matches!(error.kind, ErrorKind::Transport(_)), "{error}");
            assert_eq!(error.billing, Billing::MaybeBilled);
        }));
        // A connection that asks for nothing ends the server.
        drop(std::net::TcpStream::connect(("127.0.0.1", port)).expect("it accepts"));
        assert_eq!(thread.join().expect("the server is well"), 2, "{retries:?}");
    }
}

/// A stream's call to its sentinel, whose message has yet to end
async fn unfinished(client: &Client, url: &str, after_sentinel: f64) {
    let overrides = once().after_sentinel(after_sentinel);
    assert_eq!(said(&client.send(stream_from(url, overrides)).await), "Hi");
    assert_eq!(client.pool_statistics().finishing, 1);
}

fn to_the_sentinel(peer: &mut Peer) {
    peer.request();
    peer.write(CHUNKED.to_owned() + &chunk(&text("Hi")) + &chunk(STOP) + &chunk(DONE));
}

#[test]
fn what_comes_late_is_no_answer_to_the_next_request() {
    let server = Server::start();
    let url = server.url();
    let (finish, told) = mpsc::channel();
    let thread = serving(server, move |server| {
        let mut first = server.accept();
        to_the_sentinel(&mut first);
        let mut second = server.accept();
        second.request();
        second.write(answer("two"));
        told.recv_timeout(CAP).expect("the test speaks");
        first.write(chunk(": late\n\n") + LAST_CHUNK);
        // Its message has ended, so it is used again.
        first.request();
        first.write(answer("three"));
        assert_eq!((first.left(), second.left()), (Left::Fin, Left::Fin));
    });
    let client = Client::new();
    current_thread().block_on(within_cap(async {
        unfinished(&client, &url, 60.0).await;
        assert_eq!(said(&client.send(unary_from(&url, once(), 0)).await), "two");
        assert_eq!((client.pool_statistics().finishing, client.pool_statistics().idle), (1, 1));
        finish.send(()).expect("the server listens");
        until(|| client.pool_statistics().idle == 2).await;
        assert_eq!(said(&client.send(unary_from(&url, once(), 0)).await), "three");
        assert_eq!((client.pool_statistics().opened, client.pool_statistics().reused), (2, 1));
        client.close_idle();
    }));
    drop(client);
    thread.join().expect("the server is well");
}

/// The rest of the message is there when the next call begins, and nobody has looked since
#[test]
fn a_message_that_has_ended_is_read_to_its_end_before_the_next_request() {
    let server = Server::start();
    let url = server.url();
    let (tell, told) = mpsc::channel();
    let (finish, finished) = mpsc::channel();
    let thread = serving(server, move |server| {
        let mut first = server.accept();
        to_the_sentinel(&mut first);
        finished.recv_timeout(CAP).expect("the test speaks");
        first.write(chunk(": late\n\n") + LAST_CHUNK);
        tell.send(()).expect("the test listens");
        first.request();
        first.write(answer("two"));
        assert_eq!(first.left(), Left::Fin);
    });
    let client = Client::new();
    current_thread().block_on(within_cap(async {
        unfinished(&client, &url, 60.0).await;
        finish.send(()).expect("the server listens");
        told.recv_timeout(CAP).expect("it is sent");
        let outcome = client.send(unary_from(&url, once(), 0)).await;
        assert_eq!((said(&outcome), outcome.timeline.attempts[0].reused), ("two", true));
    }));
    drop(client);
    thread.join().expect("the server is well");
}

#[test]
fn a_message_that_does_not_end_in_time_costs_the_connection() {
    let server = Server::start();
    let url = server.url();
    let thread = serving(server, |server| {
        let mut first = server.accept();
        to_the_sentinel(&mut first);
        first.left()
    });
    let client = Client::new();
    current_thread().block_on(within_cap(async {
        unfinished(&client, &url, 0.05).await;
        until(|| client.pool_statistics().unfinished == 1).await;
        assert_eq!((client.pool_statistics().finishing, client.pool_statistics().idle), (0, 0));
    }));
    assert_eq!(thread.join().expect("the server is well"), Left::Fin);
}

#[test]
fn what_a_server_says_unasked_is_no_answer() {
    let server = Server::start();
    let url = server.url();
    let (tell, told) = mpsc::channel();
    let thread = serving(server, move |server| {
        let mut first = server.accept();
        first.request();
        first.write(answer("one"));
        first.write("HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n");
        tell.send(()).expect("the test listens");
        let mut second = server.accept();
        second.request();
        second.write(answer("two"));
        second.left();
    });
    let client = Client::new();
    current_thread().block_on(within_cap(async {
        assert_eq!(said(&client.send(unary_from(&url, once(), 0)).await), "one");
        told.recv_timeout(CAP).expect("it is sent");
        assert_eq!(said(&client.send(unary_from(&url, once(), 0)).await), "two");
        assert_eq!(client.pool_statistics().opened, 2);
    }));
    drop(client);
    thread.join().expect("the server is well");
}

#[test]
fn a_call_that_timed_out_or_was_dropped_leaves_no_connection() {
    for times_out in [true, false] {
        let server = Server::start();
        let url = server.url();
        let thread = serving(server, move |server| {
            let mut first = server.accept();
            first.request();
            first.write(CHUNKED.to_owned() + &chunk(&text("Hi")));
            let mut second = server.accept();
            second.request();
            second.write(answer("two"));
            // What comes late, if it can still be sent, comes to nobody.
            let _ = first.try_write(chunk(STOP) + &chunk(DONE) + LAST_CHUNK);
            second.request();
            second.write(answer("three"));
            second.left();
        });
        let client = Client::new();
        current_thread().block_on(within_cap(async {
            let bound = if times_out { 0.05 } else { 60.0 };
            let mut stream = client.stream(stream_from(&url, once().stream_idle_timeout(bound)));
            assert_eq!(next_text(&mut stream).await, "Hi");
            if times_out {
                let error = stream.outcome().await.result.expect_err("a breach");
                assert!(matches!(error.kind, ErrorKind::Timeout(_)), "{error}");
            } else {
                assert!(poll_once(&mut stream).await.is_pending());
                drop(stream);
            }
            for (said_then, reused) in [("two", false), ("three", true)] {
                let outcome = client.send(unary_from(&url, once(), 0)).await;
                assert_eq!((said(&outcome), outcome.timeline.attempts[0].reused), (said_then, reused));
                assert_eq!(outcome.timeline.notes, [] as [Note; 0]);
            }
        }));
        drop(client);
        thread.join().expect("the server is well");
    }
}

#[test]
fn another_trust_has_connections_of_its_own() {
    let server = Server::start();
    let url = server.url();
    let thread = serving(server, |server| {
        let mut peers = Vec::new();
        for said in ["one", "two"] {
            let mut peer = server.accept();
            peer.request();
            peer.write(answer(said));
            peers.push(peer);
        }
    });
    let client = Client::new();
    let authority = Authority::new("Our Authority");
    let other = client.clone().with_tls(TlsConfig::roots_only(authority.pem().as_bytes()).expect("roots"));
    current_thread().block_on(within_cap(async {
        assert_eq!(said(&client.send(unary_from(&url, once(), 0)).await), "one");
        assert_eq!(said(&other.send(unary_from(&url, once(), 0)).await), "two");
        // Another configuration has no other connections.
        let configured = client.clone().with_config(&once()).expect("in range");
        assert_eq!(configured.pool_statistics(), client.pool_statistics());
        assert_eq!((client.pool_statistics().opened, other.pool_statistics().opened), (1, 1));
    }));
    thread.join().expect("the server is well");
}

/// A socket belongs to the reactor of its runtime, which may not run, or not be there any more
#[test]
fn a_connection_is_not_used_by_another_runtime() {
    for first_lives_on in [true, false] {
        let server = Server::start();
        let url = server.url();
        let thread = serving(server, |server| {
            let mut first = server.accept();
            first.request();
            first.write(answer("one"));
            let mut second = server.accept();
            for said in ["two", "three"] {
                second.request();
                second.write(answer(said));
            }
            second.left();
        });
        let client = Client::new();
        let (first, second) = (current_thread(), current_thread());
        let call = async || client.send(unary_from(&url, once(), 0)).await;
        assert_eq!(said(&first.block_on(within_cap(call()))), "one");
        if !first_lives_on {
            drop(first);
        }
        for (expected, reused) in [("two", false), ("three", true)] {
            let outcome = second.block_on(within_cap(call()));
            assert_eq!((said(&outcome), outcome.timeline.attempts[0].reused), (expected, reused));
        }
        drop(client);
        thread.join().expect("the server is well");
    }
}
