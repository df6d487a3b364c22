//! Apps that send too much, or too slowly.

use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt;

use crate::hostile::Attacked;
use crate::support::{post, soon};

/// How long a head of that many bytes takes that comes byte by byte, and what it comes to
async fn byte_by_byte(attacked: &Attacked, bytes: usize) -> (Duration, String) {
    let mut app = attacked.rig.app().await;
    app.0.set_nodelay(true).unwrap();
    let head = format!("GET /openai/v1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX: {}", "y".repeat(bytes));
    let began = Instant::now();
    for byte in head.as_bytes().chunks(1).chain([&b"\r\n\r\n"[..]]) {
        // Who refuses has closed before all is sent.
        if soon("it takes a byte", app.0.write_all(byte)).await.is_err() {
            break;
        }
        // Each is a read of its own.
        tokio::task::yield_now().await;
    }
    let (got, _) = app.rest().await;
    (began.elapsed(), got)
}

#[tokio::test]
async fn a_head_that_comes_byte_by_byte_takes_linear_time() {
    let attacked = Attacked::new().await;
    let mut fastest = [Duration::MAX; 2];
    for _ in 0..5 {
        for (fastest, bytes) in fastest.iter_mut().zip([3_000, 48_000]) {
            let (took, got) = byte_by_byte(&attacked, bytes).await;
            assert!(got.starts_with("HTTP/1.1 200 "), "{got}");
            *fastest = took.min(*fastest);
        }
    }
    // Sixteen times the bytes; in quadratic time it would be 256 times as long.
    let ratio = fastest[1].as_secs_f64() / fastest[0].as_secs_f64();
    assert!(ratio < 64.0, "{fastest:?}");
}

#[tokio::test]
async fn a_head_that_comes_byte_by_byte_ends_at_its_bound() {
    let attacked = Attacked::new().await;
    let (_, got) = byte_by_byte(&attacked, 70_000).await;
    assert!(got.starts_with("HTTP/1.1 431 "), "{got}");
    let reached = attacked.reached().await;
    assert!(reached.whole.is_empty() && reached.cut.is_empty(), "{reached:?}");
}

/// Sends `unit` until the relay has had enough; how much it took, and what it says
async fn flood(attacked: &Attacked, beginning: &str, unit: &str) -> (usize, String) {
    const ENOUGH: usize = 256 << 20;
    let mut app = attacked.rig.app().await;
    app.send(beginning).await;
    let unit = unit.repeat((1 << 16) / unit.len());
    let mut sent = 0;
    while sent < ENOUGH && soon("it takes or closes", app.0.write_all(unit.as_bytes())).await.is_ok() {
        sent += unit.len();
    }
    (sent, app.rest().await.0)
}

#[tokio::test]
async fn heads_without_end_are_ended() {
    /// What is read behind an answer of the relay's own, and what sockets hold
    const MOST: usize = (64 << 20) + (64 << 20);
    let attacked = Attacked::new().await;
    let line = "POST /openai/v1 HTTP/1.1\r\nHost: a\r\n";
    for (beginning, unit) in [
        (line, "X: y\r\n"),
        (line, "y"),
        ("POST /openai/", "x"),
        ("", "\r\n"),
        ("", "GET /"),
        (line, "X: y\r\n\t"),
    ] {
        let (sent, _) = flood(&attacked, beginning, unit).await;
        assert!(sent < MOST, "{beginning:?} {unit:?}: {sent}");
    }
    let reached = attacked.reached().await;
    assert!(reached.whole.is_empty() && reached.cut.is_empty(), "{reached:?}");
}

#[tokio::test]
async fn trailers_and_chunk_lines_without_end_are_ended() {
    const MOST: usize = (64 << 20) + (64 << 20);
    let attacked = Attacked::new().await;
    let head = "POST /openai/v1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (body, unit) in [("5;", "x"), ("", "0"), ("0\r\n", "X: y\r\n"), ("0\r\nX: ", "y")] {
        let (sent, _) = flood(&attacked, &format!("{head}{body}"), unit).await;
        assert!(sent < MOST, "{body:?} {unit:?}: {sent}");
    }
    let reached = attacked.reached().await;
    assert!(reached.whole.is_empty(), "{reached:?}");
}

#[tokio::test]
async fn ten_thousand_pipelined_requests_are_answered_in_turn() {
    let attacked = Attacked::new().await;
    let mut app = attacked.rig.app().await;
    let requests = post("{}").repeat(100);
    for _ in 0..100 {
        app.send(&requests).await;
        let mut got = 0;
        while got < 100 {
            let (answers, _) = app.rest_or_answer().await;
            got += answers.matches("HTTP/1.1 200 OK\r\n").count();
        }
    }
    drop(app);
    assert_eq!(attacked.reached().await.whole.len(), 10_000);
}
