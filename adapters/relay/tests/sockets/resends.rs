//! What is sent again, and what never is (rule RLY-2).

use std::time::{Duration, Instant};

use steadfast_relay::{Relay, Route, Routes, Shape};
use steadfast_tokio::Client;
use steadfast_tokio::steadfast::connect::{Proxies, Proxy};
use tokio::net::TcpListener;

use crate::support::{Peer, Rig, post};

const BUSY: &str = "HTTP/1.1 503 Busy\r\nX-Odd: a\r\nRetry-After: 7\r\nContent-Length: 4\r\n\r\nbusy";
const GOOD: &str = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood";
/// The longest body that is kept to be sent again
const MAX_KEPT: usize = 4 << 20;

/// Reads a request whose body is so many bytes of `x`
async fn read_request(provider: &mut Peer, length: usize) {
    let head = provider.until("\r\n\r\n").await;
    assert!(head.contains(&format!("Content-Length: {length}\r\n")), "{head}");
    let body = provider.exactly(length).await;
    assert!(body.iter().all(|byte| *byte == b'x'));
}

/// Answers with these, one after the other, and tells when each request was there; what the app gets
async fn answers(rig: &Rig, length: usize, answers: &[&str]) -> (String, Vec<Instant>) {
    let mut app = rig.app().await;
    let app = tokio::spawn(async move {
        app.send(post(&"x".repeat(length))).await;
        app.rest_or_answer().await.0
    });
    let mut sends = Vec::new();
    for answer in answers {
        let mut provider = rig.accept().await;
        read_request(&mut provider, length).await;
        sends.push(Instant::now());
        provider.send(answer).await;
    }
    let got = app.await.unwrap();
    // Whoever asks next is the next one to be seen.
    let mut next = rig.app().await;
    next.send(post("[]")).await;
    let mut provider = rig.accept().await;
    assert!(provider.until("\r\n\r\n[]").await.ends_with("[]"), "no more is sent");
    (got, sends)
}

#[tokio::test]
async fn a_busy_provider_is_asked_three_times_with_longer_pauses() {
    let rig = Rig::new().await;
    let (got, sends) = answers(&rig, 2, &[BUSY, BUSY, GOOD]).await;
    assert_eq!(got, GOOD);
    let pauses: Vec<_> = sends.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // 200 ms and 400 ms, less the tenth that is drawn
    assert!(pauses[0] >= Duration::from_millis(179), "{pauses:?}");
    assert!(pauses[1] >= Duration::from_millis(359), "{pauses:?}");
}

#[tokio::test]
async fn the_third_refusal_passes_as_it_is() {
    let rig = Rig::new().await;
    let last = BUSY.replace("503 Busy", "503 Still Busy");
    assert_eq!(answers(&rig, 2, &[BUSY, BUSY, &last]).await.0, last);
}

#[tokio::test]
async fn a_body_of_four_mebibytes_is_sent_up_to_three_times() {
    let rig = Rig::new().await;
    assert_eq!(answers(&rig, MAX_KEPT, &[BUSY, BUSY, GOOD]).await.0, GOOD);
}

#[tokio::test]
async fn a_body_of_a_byte_more_is_sent_once() {
    let rig = Rig::new().await;
    assert_eq!(answers(&rig, MAX_KEPT + 1, &[BUSY]).await.0, BUSY);
}

#[tokio::test]
async fn no_refusal_but_that_one_is_sent_again() {
    for status in ["400", "401", "404", "408", "409", "429", "500", "502", "504", "529"] {
        let rig = Rig::new().await;
        let answer = BUSY.replace("503", status);
        assert_eq!(answers(&rig, 2, &[&answer]).await.0, answer);
    }
}

#[tokio::test]
async fn once_a_part_of_an_answer_is_out_a_refusal_within_it_is_part_of_it() {
    let rig = Rig::new().await;
    let (mut app, mut provider) = rig.call().await;
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let part = format!("{:x}\r\n{BUSY}\r\n", BUSY.len());
    provider.send(head).await;
    app.until("\r\n\r\n").await;
    provider.send(&part).await;
    assert_eq!(app.exactly(part.len()).await, part.as_bytes());
    // And one in the place of a chunk is a break.
    provider.send(BUSY).await;
    assert_eq!(app.rest().await.0, "");
    assert_eq!(provider.rest().await.0, "");
    let mut next = rig.app().await;
    next.send(post("[]")).await;
    assert!(rig.accept().await.until("\r\n\r\n[]").await.ends_with("[]"), "nothing was sent again");
}

#[tokio::test]
async fn anthropics_529_is_sent_again_and_its_errors_have_its_shape() {
    let provider = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let upstream = format!("http://{}", provider.local_addr().unwrap());
    let route = Route::new("openai", &upstream, Shape::Anthropic).unwrap();
    let routes = Routes::new(vec![route], &[]).unwrap();
    let rig = Rig::before(provider, Relay::new(routes, Client::new().with_proxies(Proxies::none()), None));
    let busy = BUSY.replace("503 Busy", "529 Overloaded");
    assert_eq!(answers(&rig, 2, &[&busy, &busy, GOOD]).await.0, GOOD);
    assert_eq!(answers(&rig, 2, &[&busy, BUSY, &busy]).await.0, busy);
    let (mut app, provider) = rig.call().await;
    drop(provider);
    let (got, _) = app.rest_or_answer().await;
    assert!(got.starts_with("HTTP/1.1 502 ") && got.contains(r#""type":"error""#), "{got}");
    assert!(got.contains("upstream_failed"), "{got}");
}

/// When a provider breaks off
#[derive(Clone, Copy, Debug)]
enum Cut {
    WithinTheRequest,
    BehindTheRequest,
    BehindAnInterimAnswer,
    WithinTheHead,
}

#[tokio::test]
async fn a_call_that_began_to_go_out_and_broke_is_sent_once() {
    for cut in [Cut::WithinTheRequest, Cut::BehindTheRequest, Cut::BehindAnInterimAnswer, Cut::WithinTheHead]
    {
        for is_reset in [true, false] {
            let rig = Rig::new().await;
            let mut app = rig.app().await;
            app.send(post(&"x".repeat(1_000))).await;
            let mut provider = rig.accept().await;
            match cut {
                Cut::WithinTheRequest => drop(provider.until("\r\n\r\nxxx").await),
                Cut::BehindTheRequest | Cut::BehindAnInterimAnswer | Cut::WithinTheHead => {
                    read_request(&mut provider, 1_000).await;
                }
            }
            match cut {
                Cut::WithinTheRequest | Cut::BehindTheRequest => {}
                Cut::BehindAnInterimAnswer => provider.send("HTTP/1.1 103 Early Hints\r\n\r\n").await,
                Cut::WithinTheHead => provider.send("HTTP/1.1 200 OK\r\nContent-Le").await,
            }
            if is_reset {
                provider.reset()
            } else {
                drop(provider)
            }
            let (got, _) = app.rest_or_answer().await;
            assert!(got.starts_with("HTTP/1.1 502 "), "{cut:?}: {got}");
            assert!(got.contains(r#""code":"upstream_failed""#), "{cut:?}: {got}");
            assert!(got.contains("x-should-retry: false\r\n"), "{cut:?}: {got}");
            let mut next = rig.app().await;
            next.send(post("[]")).await;
            assert!(rig.accept().await.until("\r\n\r\n[]").await.ends_with("[]"), "{cut:?}: one send");
        }
    }
}

/// The provider's side of a SOCKS proxy's handshake (RFC 1928), with no authentication
async fn tunnel(proxy: &mut Peer) {
    assert_eq!(proxy.exactly(3).await, [5, 1, 0]);
    proxy.send([5, 0]).await;
    assert_eq!(proxy.exactly(4).await, [5, 1, 0, 1], "to an IPv4 address");
    proxy.exactly(4 + 2).await;
    proxy.send([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await;
}

#[tokio::test]
async fn a_connection_is_tried_again_without_a_byte_of_a_large_body_in_hand() {
    const LENGTH: usize = 3 * MAX_KEPT;
    let provider = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = Proxy::new(&format!("socks5://{}", provider.local_addr().unwrap())).unwrap();
    let route = Route::new("openai", "http://192.0.2.1", Shape::OpenAi).unwrap();
    let routes = Routes::new(vec![route], &[]).unwrap();
    let client = Client::new().with_proxies(Proxies::all(proxy));
    let rig = Rig::before(provider, Relay::new(routes, client, None));
    let mut app = rig.app().await;
    let app = tokio::spawn(async move {
        app.send(post(&"x".repeat(LENGTH))).await;
        app.rest_or_answer().await.0
    });
    drop(rig.accept().await);
    let mut provider = rig.accept().await;
    tunnel(&mut provider).await;
    read_request(&mut provider, LENGTH).await;
    provider.send(GOOD).await;
    assert_eq!(app.await.unwrap(), GOOD);
}
