//! Each limit of the table, scaled down.

use steadfast_tokio::Bound;

use crate::support::{Rig, post};

const HEAD: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

fn short() -> Bound {
    Bound::seconds(0.2).unwrap()
}

#[tokio::test]
async fn a_head_that_does_not_come_is_a_timeout_of_the_provider() {
    let rig = Rig::with(|limits| limits.first_byte = short(), None).await;
    let (mut app, mut provider) = rig.call().await;
    let head = app.until("\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 504 ") && head.contains("x-should-retry: false"), "{head}");
    assert_eq!(provider.rest().await.0, "");
}

#[tokio::test]
async fn silence_closes_and_adds_nothing() {
    let rig = Rig::with(|limits| limits.silence = short(), None).await;
    let (mut app, mut provider) = rig.call().await;
    provider.send(HEAD).await;
    provider.send("1\r\na\r\n").await;
    assert_eq!(app.rest().await.0, format!("{HEAD}1\r\na\r\n"));
    assert_eq!(provider.rest().await.0, "");
}

#[tokio::test]
async fn an_app_that_stops_reading_holds_the_provider_back_and_then_ends_by_silence() {
    let rig = Rig::with(|limits| limits.silence = Bound::seconds(1.0).unwrap(), None).await;
    let (app, mut provider) = rig.call().await;
    provider.send(HEAD).await;
    let piece = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
    let mut sent = 0;
    // It takes what the sockets hold, then nothing, and then it is closed.
    while tokio::io::AsyncWriteExt::write_all(&mut provider.0, piece.as_bytes()).await.is_ok() {
        sent += piece.len();
        assert!(sent < 1 << 30, "nobody holds it back");
    }
    drop(app);
}

#[tokio::test]
async fn a_call_ends_at_its_total() {
    let rig = Rig::with(|limits| limits.total = short(), None).await;
    let (mut app, mut provider) = rig.call().await;
    provider.send(HEAD).await;
    let feeds = tokio::spawn(async move {
        while tokio::io::AsyncWriteExt::write_all(&mut provider.0, b"1\r\na\r\n").await.is_ok() {
            tokio::task::yield_now().await;
        }
    });
    let (got, _) = app.rest().await;
    assert!(got.starts_with(HEAD) && !got.ends_with("0\r\n\r\n"));
    feeds.await.unwrap();
}

#[tokio::test]
async fn a_busy_provider_is_asked_three_times() {
    let rig = Rig::new().await;
    let mut app = rig.app().await;
    app.send(post("{}")).await;
    let began = std::time::Instant::now();
    for _ in 0..2 {
        let mut provider = rig.accept().await;
        provider.until("\r\n\r\n{}").await;
        provider.send("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n").await;
    }
    let mut provider = rig.accept().await;
    provider.until("\r\n\r\n{}").await;
    assert!(began.elapsed() >= std::time::Duration::from_millis(180 + 360), "{:?}", began.elapsed());
    provider.send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na").await;
    assert_eq!(app.until("\r\n\r\na").await, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na");
}

#[tokio::test]
async fn nobody_listens() {
    let provider = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let gone = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let rig = Rig::towards(provider, &format!("http://{gone}"), |_| {}, None).await;
    let mut app = rig.app().await;
    app.send(post("{}")).await;
    let head = app.until("\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 502 ") && !head.contains("x-should-retry"), "{head}");
}

#[tokio::test]
async fn a_provider_that_reads_all_and_leaves_gets_one_send() {
    let rig = Rig::new().await;
    let (mut app, provider) = rig.call().await;
    drop(provider);
    let head = app.until("\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 502 ") && head.contains("x-should-retry: false"), "{head}");
    let mut next = rig.app().await;
    next.send(post("[]")).await;
    let mut provider = rig.accept().await;
    assert!(provider.until("\r\n\r\n[]").await.ends_with("[]"), "the first was not sent again");
}
