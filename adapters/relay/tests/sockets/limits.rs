//! Each limit of the table, scaled down.

use steadfast_tokio::Bound;

use crate::support::{Rig, post};

const HEAD: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

/// More than the sockets between a provider and an app hold, with the largest buffers that are common
const MAX_IN_SOCKETS: usize = 128 << 20;

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
        assert!(sent < MAX_IN_SOCKETS, "nobody holds it back");
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
async fn a_connection_that_does_not_open_is_tried_once_more_and_then_unreachable() {
    // It accepts, and says nothing to the beginning of TLS.
    let provider = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let upstream = format!("https://{}", provider.local_addr().unwrap());
    let rig = Rig::towards(provider, &upstream, |limits| limits.connect = short(), None).await;
    let mut app = rig.app().await;
    app.send(post("{}")).await;
    let began = std::time::Instant::now();
    let (mut first, mut second) = (rig.accept().await, rig.accept().await);
    assert!(began.elapsed() >= std::time::Duration::from_millis(200), "{:?}", began.elapsed());
    let (got, _) = app.rest_or_answer().await;
    assert!(began.elapsed() >= std::time::Duration::from_millis(400), "{:?}", began.elapsed());
    assert!(got.starts_with("HTTP/1.1 502 ") && got.contains(r#""code":"upstream_unreachable""#), "{got}");
    assert!(!got.contains("x-should-retry"), "nothing was sent: {got}");
    for connection in [&mut first, &mut second] {
        let (hello, _) = connection.rest().await;
        assert!(!hello.contains("POST"), "{hello}");
    }
}

#[tokio::test]
async fn the_first_byte_is_waited_for_over_all_attempts_together() {
    // It is busy, and the pause goes past the limit.
    let rig = Rig::with(|limits| limits.first_byte = Bound::seconds(0.1).unwrap(), None).await;
    let (mut app, mut provider) = rig.call().await;
    provider.send("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n").await;
    let (got, _) = app.rest_or_answer().await;
    assert!(got.starts_with("HTTP/1.1 504 ") && got.contains(r#""code":"upstream_timeout""#), "{got}");
}

/// The table of rule RLY with its own values, on sockets: the clock stands still while anything can be
/// done, and jumps to the next deadline when nothing can
mod in_full {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::time::{Duration, Instant};

    use super::{HEAD, Rig, post};
    use crate::support::Peer;

    async fn rest(peer: &mut Peer) -> String {
        let mut got = Vec::new();
        // A reset ends it as well.
        _ = peer.0.read_to_end(&mut got).await;
        String::from_utf8(got).unwrap()
    }

    /// After so many seconds, and what the timer's grain of a millisecond adds
    fn assert_after(began: Instant, seconds: u64) {
        let (took, exact) = (began.elapsed(), Duration::from_secs(seconds));
        assert!(took >= exact && took < exact + Duration::from_millis(100), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn connecting_takes_twice_ten_seconds() {
        let provider = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let upstream = format!("https://{}", provider.local_addr().unwrap());
        let rig = Rig::towards(provider, &upstream, |_| {}, None).await;
        let mut app = rig.app().await;
        let began = Instant::now();
        app.send(post("{}").replace("Host", "Connection: close\r\nHost")).await;
        let got = rest(&mut app).await;
        assert!(got.contains(r#""code":"upstream_unreachable""#), "{got}");
        assert_after(began, 20);
    }

    #[tokio::test(start_paused = true)]
    async fn a_first_byte_takes_610_seconds() {
        let rig = Rig::new().await;
        let began = Instant::now();
        let (mut app, mut provider) = rig.call().await;
        assert_eq!(rest(&mut provider).await, "");
        assert_after(began, 610);
        let mut head = [0; 13];
        app.0.read_exact(&mut head).await.unwrap();
        assert_eq!(&head, b"HTTP/1.1 504 ");
    }

    #[tokio::test(start_paused = true)]
    async fn silence_takes_15_minutes() {
        let rig = Rig::new().await;
        let (mut app, mut provider) = rig.call().await;
        provider.send(HEAD).await;
        app.until("\r\n\r\n").await;
        let began = Instant::now();
        assert_eq!(rest(&mut app).await, "");
        assert_after(began, 15 * 60);
        assert_eq!(rest(&mut provider).await, "");
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_takes_an_hour() {
        let rig = Rig::new().await;
        let began = Instant::now();
        let (mut app, mut provider) = rig.call().await;
        provider.send(HEAD).await;
        let feeds = tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(30)).await;
            while provider.0.write_all(b"1\r\na\r\n").await.is_ok() {
                tokio::time::sleep(Duration::from_secs(60)).await;
            }
        });
        let got = rest(&mut app).await;
        assert_after(began, 3_600);
        assert_eq!(got, format!("{HEAD}{}", "1\r\na\r\n".repeat(60)));
        feeds.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_that_does_not_end_takes_30_seconds_and_an_idle_connection_75() {
        let rig = Rig::new().await;
        let began = Instant::now();
        let mut idle = rig.app().await;
        let mut slow = rig.app().await;
        slow.send("POST /openai/v1 HTTP/1.1\r\nHost: a").await;
        let got = rest(&mut slow).await;
        assert_after(began, 30);
        assert!(got.starts_with("HTTP/1.1 408 "), "{got}");
        assert_eq!(rest(&mut idle).await, "");
        assert_after(began, 75);
    }
}
