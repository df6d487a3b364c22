//! Futures of `next` that are dropped at any point lose nothing.

use std::sync::mpsc;
use std::task::Poll;
use std::thread;
use std::time::Duration;

use steadfast_tokio::{CallStream, Client, TlsConfig};
use tokio::time::timeout;

use crate::certificates::Authority;
use crate::peer::Server;
use crate::requests::{
    DONE, HEAD, STOP, current_thread, multi_thread, once, poll_once, stream_from, text, within_cap,
};

const DELTAS: usize = 3_000;
const DROPS: usize = 1_000;

/// Takes all text, dropping a thousand futures on the way; tells of each, so that more is sent
async fn take_all(mut stream: CallStream, seed: u64, dropped: mpsc::Sender<()>) -> (String, CallStream) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut all = String::new();
    let mut drops = 0;
    while drops < DROPS {
        let piece = match random.u32(0..4) {
            0 => poll_once(&mut stream).await,
            1 => match timeout(Duration::ZERO, stream.next()).await {
                Ok(piece) => Poll::Ready(piece),
                Err(_) => Poll::Pending,
            },
            2 => tokio::select! {
                biased;
                piece = stream.next() => Poll::Ready(piece),
                () = tokio::task::yield_now() => Poll::Pending,
            },
            _ => tokio::select! {
                biased;
                () = std::future::ready(()) => Poll::Pending,
                piece = stream.next() => Poll::Ready(piece),
            },
        };
        match piece {
            Poll::Pending => {
                drops += 1;
                dropped.send(()).expect("the server listens");
            }
            Poll::Ready(Some(piece)) => all.push_str(piece.text()),
            Poll::Ready(None) => panic!("only {drops} futures were dropped"),
        }
    }
    drop(dropped);
    while let Some(piece) = stream.next().await {
        all.push_str(piece.text());
    }
    (all, stream)
}

/// Deltas of any length, cut into pieces of any length
fn answer(seed: u64) -> (String, Vec<Vec<u8>>) {
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut all, mut wire) = (String::new(), HEAD.to_owned());
    for number in 0..DELTAS {
        let delta = format!("{number}{} ", "é".repeat(random.usize(0..60)));
        wire.push_str(&text(&delta));
        all.push_str(&delta);
    }
    wire.push_str(STOP);
    wire.push_str(DONE);
    let mut pieces = Vec::new();
    let mut rest = wire.as_bytes();
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(random.usize(1..600).min(rest.len()));
        pieces.push(piece.to_vec());
        rest = after;
    }
    (all, pieces)
}

#[test]
fn a_thousand_dropped_futures_lose_no_byte() {
    for seed in 0..3 {
        for (tls, runtime) in [(false, current_thread()), (true, current_thread()), (false, multi_thread(2))]
        {
            let authority = Authority::new("Test Authority");
            let identity = authority.issue(&["127.0.0.1"]);
            let server = Server::start();
            let url = if tls { server.url().replace("http:", "https:") } else { server.url() };
            let (expected, pieces) = answer(seed);
            let (dropped, drops) = mpsc::channel();
            let serving = thread::spawn(move || {
                let mut peer = server.accept();
                if tls {
                    peer = peer.secure(identity.config());
                }
                peer.request();
                for piece in pieces {
                    // So the client finds nothing again and again; at the end it just waits.
                    let _ = drops.recv();
                    peer.write(piece);
                }
                peer.left();
            });
            let client =
                Client::new().with_tls(TlsConfig::roots_only(authority.pem().as_bytes()).expect("roots"));
            let all = runtime.block_on(within_cap(async move {
                let stream = client.stream(stream_from(&url, once()));
                let taken = tokio::spawn(take_all(stream, seed, dropped));
                let (all, stream) = taken.await.expect("no panic");
                assert!(stream.outcome().await.result.is_ok());
                all
            }));
            assert_eq!(all, expected, "seed {seed}, TLS {tls}");
            serving.join().expect("the server saw the end");
        }
    }
}
