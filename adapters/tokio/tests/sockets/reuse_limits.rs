//! Bounds of the pool: a cap and its line, idle connections that grow old, and who watches them.

use std::net::TcpListener;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use steadfast::config::RequestConfig;
use steadfast::outcome::{ErrorKind, Phase};
use steadfast::time::Bound;
use steadfast_tokio::{Client, Overrides, PoolSettings};
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use crate::peer::{CAP, Left, Peer, Server};
use crate::requests::{current_thread, multi_thread, once, poll_once, unary_from, within_cap};
use crate::reuse::{answer, serving, until};

fn capped(cap: usize) -> Client {
    Client::new()
        .with_pool(PoolSettings { max_connections: NonZeroUsize::new(cap), ..PoolSettings::default() })
}

/// A request that says which one it is by its length
fn numbered(url: &str, number: usize) -> steadfast_tokio::Request {
    unary_from(url, once(), 1_000 * number)
}

fn number(request: &[u8]) -> usize {
    request.len() / 1_000
}

#[test]
fn at_the_cap_calls_wait_in_line() {
    const CALLS: usize = 8;
    let server = Server::start();
    let url = server.url();
    let (begin, begun) = mpsc::channel();
    let thread = serving(server, move |server| {
        let mut peer = server.accept();
        begun.recv_timeout(CAP).expect("the test speaks");
        let mut order = Vec::new();
        for _ in 0..CALLS {
            order.push(number(&peer.request()));
            peer.write(answer("Hi"));
        }
        assert!(!server.has_another());
        assert_eq!(peer.left(), Left::Fin);
        order
    });
    let client = capped(1);
    current_thread().block_on(within_cap(async {
        let mut calls: Vec<_> = (0..CALLS).map(|call| client.stream(numbered(&url, call))).collect();
        for call in &mut calls {
            assert!(poll_once(call).await.is_pending());
        }
        assert_eq!((client.pool_statistics().in_use, client.pool_statistics().waiting), (1, CALLS - 1));
        begin.send(()).expect("the server listens");
        let calls: Vec<_> = calls.into_iter().map(|call| tokio::spawn(call.outcome())).collect();
        for call in calls {
            assert!(call.await.expect("no panic").result.is_ok());
        }
        let statistics = client.pool_statistics();
        assert_eq!((statistics.opened, statistics.reused, statistics.waiting), (1, 7, 0));
    }));
    drop(client);
    assert_eq!(thread.join().expect("the server is well"), (0..CALLS).collect::<Vec<_>>());
}

#[test]
fn the_wait_for_a_connection_counts_as_connecting_and_is_left_by_whoever_gives_up() {
    let server = Server::start();
    let url = server.url();
    let (go_on, told) = mpsc::channel();
    let thread = serving(server, move |server| {
        let mut peer = server.accept();
        let mut order = vec![number(&peer.request())];
        told.recv_timeout(CAP).expect("the test speaks");
        peer.write(answer("Hi"));
        order.push(number(&peer.request()));
        peer.write(answer("Hi"));
        peer.left();
        order
    });
    let client = capped(1);
    current_thread().block_on(within_cap(async {
        let first = tokio::spawn(client.stream(numbered(&url, 1)).outcome());
        until(|| client.pool_statistics().in_use == 1).await;
        let mut dropped = client.stream(numbered(&url, 2));
        assert!(poll_once(&mut dropped).await.is_pending());
        let in_time = unary_from(&url, once().connect_timeout(0.05), 3_000);
        let error = client.send(in_time).await.result.expect_err("a breach");
        let ErrorKind::Timeout(timeout) = error.kind else { panic!("{error}") };
        assert_eq!((timeout.phase, timeout.limit), (Phase::Connect, Duration::from_millis(50)));
        let mut last = client.stream(numbered(&url, 4));
        assert!(poll_once(&mut last).await.is_pending());
        assert_eq!(client.pool_statistics().waiting, 2);
        drop(dropped);
        assert_eq!(client.pool_statistics().waiting, 1);
        go_on.send(()).expect("the server listens");
        assert!(last.outcome().await.result.is_ok());
        assert!(first.await.expect("no panic").result.is_ok());
    }));
    drop(client);
    assert_eq!(thread.join().expect("the server is well"), [1, 4]);
}

#[test]
fn an_idle_connection_is_closed_after_its_bound_though_nobody_calls() {
    let server = Server::start();
    let url = server.url();
    let thread = serving(server, |server| {
        let mut peer = server.accept();
        peer.request();
        peer.write(answer("Hi"));
        peer.left()
    });
    let idle_timeout = Bound::seconds(0.05).expect("a bound");
    let client = Client::new().with_pool(PoolSettings { idle_timeout, ..PoolSettings::default() });
    current_thread().block_on(within_cap(async {
        assert!(client.send(numbered(&url, 0)).await.result.is_ok());
        assert_eq!(Handle::current().metrics().num_alive_tasks(), 1);
        until(|| client.pool_statistics().expired == 1).await;
        // Nothing rests any more, so nobody watches.
        until(|| Handle::current().metrics().num_alive_tasks() == 0).await;
    }));
    assert_eq!(thread.join().expect("the server is well"), Left::Fin);
}

#[test]
fn whoever_watches_goes_with_the_last_connection_and_with_the_client() {
    for closes_idle in [true, false] {
        let server = Server::start();
        let url = server.url();
        let thread = serving(server, |server| {
            let mut peer = server.accept();
            peer.request();
            peer.write(answer("Hi"));
            peer.left()
        });
        let client = Client::new();
        current_thread().block_on(within_cap(async {
            assert!(client.send(numbered(&url, 0)).await.result.is_ok());
            assert_eq!(Handle::current().metrics().num_alive_tasks(), 1);
            if closes_idle {
                client.close_idle();
            } else {
                drop(client);
            }
            until(|| Handle::current().metrics().num_alive_tasks() == 0).await;
        }));
        assert_eq!(thread.join().expect("the server is well"), Left::Fin);
    }
}

/// Serves as many connections as come, a thread each: every third answer is the last on its connection,
/// and half of those do not say so
fn unreliable(url: &mpsc::Sender<String>, stopped: &AtomicBool) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    url.send(format!("http://{}", listener.local_addr().expect("an address"))).expect("the test listens");
    thread::scope(|scope| {
        for socket in listener.incoming() {
            let socket = socket.expect("a connection");
            if stopped.load(Ordering::Relaxed) {
                return;
            }
            scope.spawn(move || {
                let mut peer = Peer::Plain(socket);
                for number in 1.. {
                    if peer.try_request().is_none() {
                        return;
                    }
                    let close = if number == 6 { "\r\nconnection: close\r\n" } else { "\r\n" };
                    // A client may have given up.
                    if peer.try_write(answer("Hi").replacen("\r\n", close, 1)).is_err() || number % 3 == 0 {
                        return;
                    }
                }
            });
        }
    });
}

#[test]
fn any_mixture_of_calls_ends_and_leaves_nothing() {
    const CALLS: u64 = 600;
    let stopped = Arc::new(AtomicBool::new(false));
    let (tell, url) = mpsc::channel();
    let server = thread::spawn({
        let stopped = Arc::clone(&stopped);
        move || unreliable(&tell, &stopped)
    });
    let url = url.recv_timeout(CAP).expect("a server");
    for cap in [1, 4, usize::MAX] {
        let client = capped(cap);
        multi_thread(2).block_on(within_cap(async {
            let mut calls = JoinSet::new();
            for call in 0..CALLS {
                let mut stream = client.stream(unary_from(&url, Overrides::new(), 0));
                calls.spawn(async move {
                    // Every fourth is given up at some point: in line, while it connects, or later.
                    let patience = if call % 4 == 0 { Duration::from_micros(call * 50) } else { CAP };
                    match tokio::time::timeout(patience, stream.next()).await {
                        Ok(_) => Some(stream.outcome().await),
                        Err(_) => None,
                    }
                });
            }
            for outcome in calls.join_all().await.into_iter().flatten() {
                assert_eq!(
                    outcome.result.expect("an answer, by another attempt if need be").turn.text(),
                    "Hi"
                );
            }
            let statistics = client.pool_statistics();
            assert_eq!((statistics.in_use, statistics.waiting), (0, 0), "{statistics:?}");
            assert!(statistics.reused > 0 && statistics.idle <= cap);
            client.close_idle();
            assert_eq!(client.pool_statistics().idle, 0);
            until(|| Handle::current().metrics().num_alive_tasks() == 0).await;
        }));
    }
    stopped.store(true, Ordering::Relaxed);
    drop(std::net::TcpStream::connect(url.trim_start_matches("http://")).expect("it accepts"));
    server.join().expect("the server is well");
}

/// The default stays what the documentation says
#[test]
fn without_a_word_there_is_no_cap() {
    let settings = PoolSettings::default();
    assert_eq!((settings.max_connections, settings.max_idle), (None, 128));
    assert_eq!(settings.idle_timeout, Bound::Limited(Duration::from_secs(60)));
    assert_eq!(RequestConfig::default().after_sentinel(), Bound::Limited(Duration::from_millis(500)));
}
