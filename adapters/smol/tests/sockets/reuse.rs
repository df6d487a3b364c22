//! Connections between calls: reused, watched, closed, and waited for.

use std::num::NonZeroUsize;
use std::thread;
use std::time::Duration;

use steadfast::outcome::{ErrorKind, Phase};
use steadfast_smol::{Bound, Client, PoolSettings};

use crate::peer::{Server, answer, once, poll_once, run, stream_from, unary_from, until};

#[test]
fn a_second_call_uses_the_connection_of_the_first_until_it_is_closed() {
    let server = Server::start();
    let request = unary_from(&server.url(), once());
    let serving = thread::spawn(move || {
        let mut peer = server.accept();
        for said in ["one", "two"] {
            peer.request();
            peer.write(answer(said));
        }
        peer.left();
    });
    let client = Client::new();
    for said in ["one", "two"] {
        let outcome = run(client.clone().send(request.clone()));
        assert_eq!(outcome.result.expect("a success").turn.text(), said);
    }
    let statistics = client.pool_statistics();
    assert_eq!((statistics.opened, statistics.reused, statistics.idle), (1, 1, 1));
    client.close_idle();
    serving.join().expect("the server saw the end");
    assert_eq!(client.pool_statistics().idle, 0);
}

#[test]
fn what_the_server_closes_and_what_has_been_idle_too_long_is_closed_though_nobody_calls() {
    let (client, server) = (Client::new(), Server::start());
    let request = unary_from(&server.url(), once());
    let serving = thread::spawn(move || {
        let mut peer = server.accept();
        peer.request();
        peer.write(answer("Hi"));
        peer
    });
    assert!(run(client.send(request)).result.is_ok());
    assert_eq!(client.pool_statistics().idle, 1);
    drop(serving.join().expect("the server is well"));
    run(until(|| client.pool_statistics().idle == 0));

    let settings =
        PoolSettings { idle_timeout: Bound::Limited(Duration::from_millis(20)), ..PoolSettings::default() };
    let (client, server) = (Client::new().with_pool(settings), Server::start());
    let request = unary_from(&server.url(), once());
    let serving = thread::spawn(move || {
        let mut peer = server.accept();
        peer.request();
        peer.write(answer("Hi"));
        peer.left();
    });
    assert!(run(client.send(request)).result.is_ok());
    serving.join().expect("the server saw the end");
    run(until(|| client.pool_statistics().idle == 0));
}

#[test]
fn under_a_cap_calls_wait_for_their_turn_and_give_it_up() {
    let settings = PoolSettings { max_connections: NonZeroUsize::new(1), ..PoolSettings::default() };
    let (client, server) = (Client::new().with_pool(settings), Server::start());
    run(async {
        let mut first = client.stream(unary_from(&server.url(), once()));
        assert!(poll_once(&mut first).await.is_pending());
        let mut peer = server.accept();

        let bounded = client.send(stream_from(&server.url(), once().connect_timeout(0.05))).await;
        let error = bounded.result.expect_err("no connection");
        let ErrorKind::Timeout(timeout) = error.kind else { panic!("{error}") };
        assert_eq!(timeout.phase, Phase::Connect);

        let mut dropped = client.stream(unary_from(&server.url(), once()));
        assert!(poll_once(&mut dropped).await.is_pending());
        let mut second = client.stream(unary_from(&server.url(), once()));
        assert!(poll_once(&mut second).await.is_pending());
        drop(dropped);

        peer.request();
        peer.write(answer("one"));
        assert_eq!(first.outcome().await.result.expect("a success").turn.text(), "one");
        // What is granted and dropped before it is taken goes to the next.
        let mut third = client.stream(unary_from(&server.url(), once()));
        assert!(poll_once(&mut third).await.is_pending());
        drop(second);
        let serving = thread::spawn(move || {
            let mut peer = server.accept();
            peer.request();
            peer.write(answer("three"));
        });
        assert_eq!(third.outcome().await.result.expect("a success").turn.text(), "three");
        serving.join().expect("the server is well");
    });
}
