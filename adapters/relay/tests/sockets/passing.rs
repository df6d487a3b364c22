//! What passes through.

use crate::support::{Rig, post, soon};

const EVENTS: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

#[tokio::test]
async fn calls_follow_one_another_over_the_same_connections() {
    let rig = Rig::new().await;
    let (mut app, mut provider) = rig.call().await;
    for number in 0..100 {
        let answer = format!("HTTP/1.1 200 OK\r\nX-Odd: a\r\nContent-Length: 3\r\n\r\n{number:03}");
        provider.send(&answer).await;
        assert_eq!(app.until(&format!("\r\n\r\n{number:03}")).await, answer);
        app.send(post("{}")).await;
        provider.until("\r\n\r\n{}").await;
    }
    assert_eq!(rig.relay.open(), (1, 1));
}

#[tokio::test]
async fn each_part_reaches_the_app_when_it_comes() {
    let rig = Rig::new().await;
    let (mut app, mut provider) = rig.call().await;
    provider.send(EVENTS).await;
    assert_eq!(app.until("\r\n\r\n").await, EVENTS);
    for number in 0..100 {
        let part = format!("9\r\ndata: {number:01}\n\n\r\n", number = number % 10);
        provider.send(&part).await;
        assert_eq!(app.until("\n\n\r\n").await, part);
    }
    provider.send("0\r\n\r\n").await;
    assert_eq!(app.until("0\r\n\r\n").await, "0\r\n\r\n");
}

#[tokio::test]
async fn a_provider_that_breaks_off_is_seen_as_a_break_at_once() {
    let rig = Rig::new().await;
    let (mut app, mut provider) = rig.call().await;
    provider.send(EVENTS).await;
    provider.send("5\r\nhel").await;
    drop(provider);
    let (got, _) = app.rest().await;
    assert_eq!(got, format!("{EVENTS}5\r\nhel"));
}

#[tokio::test]
async fn a_large_answer_is_held_back_by_a_slow_app_and_reaches_it_whole() {
    const LENGTH: usize = 64 * 1024 * 1024;
    let rig = Rig::new().await;
    let (mut app, mut provider) = rig.call().await;
    let sends = tokio::spawn(async move {
        provider.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {LENGTH}\r\n\r\n")).await;
        for piece in 0..LENGTH / 65_536 {
            provider.send(vec![piece as u8; 65_536]).await;
        }
        provider
    });
    app.until("\r\n\r\n").await;
    let mut got = 0;
    let mut buffer = vec![0; 65_536];
    while got < LENGTH {
        let read = soon("it comes", tokio::io::AsyncReadExt::read(&mut app.0, &mut buffer)).await.unwrap();
        assert_ne!(read, 0, "after {got}");
        for (at, byte) in buffer[..read].iter().enumerate() {
            assert_eq!(*byte, ((got + at) / 65_536) as u8);
        }
        got += read;
    }
    sends.await.unwrap();
}
