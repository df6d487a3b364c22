//! Answers pass byte for byte, and one that breaks off is never taken for one that ended (rule RLY-1).

use std::time::{Duration, Instant};

use crate::support::{Peer, Rig, post};

const EVENTS: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

/// What an SSE parser may trip over, part by part
const ODD: [&[u8]; 16] = [
    b"\xef\xbb\xbf: OPENROUTER PROCESSING\n\n",
    b"event: message_start\r\nid: 7\r\nretry: 1500\r\ndata: {\"a\": \"caf\xc3",
    b"\xa9 \xf0\x9f",
    b"\x98\x80\"}\r\n\r\n",
    b"event: ping\ndata: {\"type\": \"ping\"}\n\n",
    b":\n\n",
    b"data: \xff\xfe\x00 no text\n\n",
    b"unknown: field\nDATA: case\ndata\ndata:\ndata:  two blanks\n\n",
    b"data: an end by CR\r\r",
    b"data: {\"x_new_field\": {\"a\": 1.0, \"b\": 1.50e3}, \"c\": \"\\u00e9\"}\n\n",
    b"\n\n\n",
    b"data: [DONE]\n\n",
    b": trailing comment\n\n",
    b"data: {\"after\": \"the end\"}\n\n",
    b"0\r\n\r\n",
    b"no line end",
];

fn chunk(part: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", part.len()).as_bytes(), part, b"\r\n"].concat()
}

#[tokio::test]
async fn odd_event_streams_are_the_same_bytes_in_the_same_parts() {
    let rig = Rig::new().await;
    let (mut app, mut provider) = rig.call().await;
    provider.send(EVENTS).await;
    assert_eq!(app.until("\r\n\r\n").await, EVENTS);
    for part in ODD.iter().map(|part| chunk(part)).chain([b"0\r\n\r\n".to_vec()]) {
        provider.send(&part).await;
        // The next part is sent once this one has come: each passes when it comes.
        assert_eq!(app.exactly(part.len()).await, part, "{:?}", String::from_utf8_lossy(&part));
    }
}

#[tokio::test]
async fn chunk_extensions_and_trailers_of_the_provider_are_the_same_bytes_too() {
    let rig = Rig::new().await;
    let (mut app, mut provider) = rig.call().await;
    let head = "HTTP/1.1 200 Fine, thanks\r\nX-ODD-case:  two blanks \r\nset-cookie: a=1\r\nSet-Cookie: a=2\r\n\
        Server-Timing: x;dur=1\r\nTransfer-Encoding: chunked\r\n\r\n";
    let body = "5;name=\"va;lue\"\r\nhello\r\n000000002\r\n!!\r\n0;last\r\nX-Trailer: t\r\n\r\n";
    provider.send(head).await;
    provider.send(body).await;
    let got = app.until("X-Trailer: t\r\n\r\n").await;
    // White space around a value is no part of it (RFC 9112 5.1).
    assert_eq!(got, format!("{head}{body}").replace(":  two blanks \r", ": two blanks\r"));
}

#[tokio::test]
async fn a_compressed_answer_passes_with_its_fields_and_is_not_decoded() {
    // gzip of `hello hello hello`, by RFC 1952
    const GZIP: [u8; 29] = [
        0x1f, 0x8b, 0x08, 0, 0, 0, 0, 0, 0, 0x03, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x57, 0xc8, 0x40, 0x27, 0x00,
        0xd3, 0x02, 0x22, 0xfc, 0x11, 0, 0, 0, 0xff,
    ];
    let rig = Rig::new().await;
    let mut app = rig.app().await;
    app.send(post("{}").replace("Host: relay", "Host: relay\r\nAccept-Encoding: br;q=0.5, gzip")).await;
    let mut provider = rig.accept().await;
    let asked = provider.until("\r\n\r\n{}").await;
    assert!(asked.contains("\r\nAccept-Encoding: br;q=0.5, gzip\r\n"), "{asked}");
    let head =
        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nVary: Accept-Encoding\r\nContent-Length: 29\r\n\r\n";
    provider.send([head.as_bytes(), &GZIP].concat()).await;
    assert_eq!(app.exactly(head.len() + GZIP.len()).await, [head.as_bytes(), &GZIP].concat());

    app.send(post("{}")).await;
    provider.until("\r\n\r\n{}").await;
    let head = EVENTS.replace("Transfer", "Content-Encoding: gzip\r\nTransfer");
    let answer = [head.as_bytes(), &chunk(&GZIP[..13]), &chunk(&GZIP[13..]), b"0\r\n\r\n"].concat();
    provider.send(&answer).await;
    assert_eq!(app.exactly(answer.len()).await, answer);
}

/// How a provider says where its answer ends
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Chunked,
    Length,
    UntilClose,
}

/// How it goes down
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Death {
    Closed,
    Reset,
}

/// Ends `provider` after three events, and tells what the app had then, whether it saw a reset, and how
/// long that took
async fn after_three_events(framing: Framing, death: Death, version: &str) -> (String, bool, Duration) {
    let rig = Rig::new().await;
    let mut app = rig.app().await;
    app.send(post("{}").replace("HTTP/1.1", &format!("{version}\r\nConnection: close"))).await;
    let mut provider = rig.accept().await;
    provider.until("\r\n\r\n{}").await;
    let framed = match framing {
        Framing::Chunked => "Transfer-Encoding: chunked\r\n",
        Framing::Length => "Content-Length: 1000\r\n",
        Framing::UntilClose => "",
    };
    provider.send(format!("HTTP/1.1 200 OK\r\n{framed}\r\n")).await;
    let mut got = app.until("\r\n\r\n").await;
    for number in 0..3 {
        let event = format!("data: {number}\n\n");
        let is_chunked = framing == Framing::Chunked;
        provider.send(if is_chunked { chunk(event.as_bytes()) } else { event.clone().into() }).await;
        got += &app.until(&event).await;
    }
    let began = Instant::now();
    match death {
        Death::Closed => drop(provider),
        Death::Reset => provider.reset(),
    }
    let (rest, is_reset) = app.rest().await;
    (got + &rest, is_reset, began.elapsed())
}

/// Whether a client that keeps to RFC 9112 takes it for a whole answer
fn is_whole(got: &str, is_reset: bool) -> bool {
    let (head, body) = got.split_once("\r\n\r\n").unwrap();
    let head = head.to_ascii_lowercase();
    if head.contains("transfer-encoding: chunked") {
        body.ends_with("0\r\n\r\n")
    } else if head.contains("content-length: 1000") {
        body.len() >= 1000
    } else {
        !is_reset
    }
}

#[tokio::test]
async fn a_provider_that_dies_after_three_events_is_seen_as_a_break_at_once() {
    for (framing, death, version) in [
        (Framing::Chunked, Death::Closed, "HTTP/1.1"),
        (Framing::Chunked, Death::Reset, "HTTP/1.1"),
        (Framing::Chunked, Death::Closed, "HTTP/1.0"),
        (Framing::Chunked, Death::Reset, "HTTP/1.0"),
        (Framing::Length, Death::Closed, "HTTP/1.1"),
        (Framing::Length, Death::Reset, "HTTP/1.1"),
        (Framing::Length, Death::Closed, "HTTP/1.0"),
        (Framing::UntilClose, Death::Reset, "HTTP/1.1"),
        (Framing::UntilClose, Death::Reset, "HTTP/1.0"),
    ] {
        let mut soonest = Duration::MAX;
        for _ in 0..5 {
            let (got, is_reset, took) = after_three_events(framing, death, version).await;
            assert!(!is_whole(&got, is_reset), "{framing:?} {death:?} {version}: {got:?}");
            assert!(got.contains("data: 2\n\n"), "{framing:?} {death:?} {version}: {got:?}");
            soonest = soonest.min(took);
        }
        assert!(soonest < Duration::from_millis(250), "{framing:?} {death:?} {version}: {soonest:?}");
    }
}

#[tokio::test]
async fn only_the_end_of_the_connection_ends_it_and_that_is_a_whole_answer() {
    for version in ["HTTP/1.1", "HTTP/1.0"] {
        let (got, is_reset, _) = after_three_events(Framing::UntilClose, Death::Closed, version).await;
        assert!(is_whole(&got, is_reset), "{version}: {got:?}");
    }
}

#[tokio::test]
async fn another_protocol_is_not_switched_to() {
    let rig = Rig::new().await;
    let mut app = rig.app().await;
    let upgrade = "Host: relay\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13";
    app.send(post("{}").replace("Host: relay", upgrade)).await;
    let mut provider = rig.accept().await;
    let asked = provider.until("\r\n\r\n{}").await;
    assert!(!asked.contains("pgrade"), "{asked}");
    provider
        .send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nraw")
        .await;
    let (got, _) = app.rest_or_answer().await;
    assert!(got.starts_with("HTTP/1.1 502 ") && got.contains("upstream_failed"), "{got}");
    assert_eq!(provider.rest().await.0, "");
}

#[tokio::test]
async fn bytes_behind_an_answer_go_nowhere_and_end_the_connection() {
    for surplus in ["x", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", "HTTP/1.1 503 No\r\n\r\n"] {
        let rig = Rig::new().await;
        let (mut app, mut provider) = rig.call().await;
        let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        provider.send(format!("{answer}{surplus}")).await;
        assert_eq!(app.until("ok").await, answer);
        assert_eq!(provider.rest().await.0, "", "nothing is sent again, and nothing else");
        app.send(post("[]")).await;
        let mut next: Peer = rig.accept().await;
        next.until("\r\n\r\n[]").await;
        next.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood").await;
        assert!(app.until("good").await.starts_with("HTTP/1.1 200 OK\r\n"), "{surplus:?}");
    }
}
