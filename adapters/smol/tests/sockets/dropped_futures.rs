//! Futures of `next` that are dropped at any point lose nothing.

use std::sync::mpsc;
use std::task::Poll;
use std::thread;

use smol::future::{or, yield_now};
use steadfast_smol::{CallStream, Client};

use crate::peer::{DONE, HEAD, STOP, Server, once, poll_once, run, stream_from, text};

const DELTAS: usize = 3_000;
const DROPS: usize = 1_000;

/// Takes all text, dropping a thousand futures on the way; tells of each, so that more is sent
async fn take_all(stream: &mut CallStream, random: &mut fastrand::Rng, dropped: mpsc::Sender<()>) -> String {
    let mut all = String::new();
    let mut drops = 0;
    while drops < DROPS {
        let piece = match random.u32(0..3) {
            0 => poll_once(stream).await,
            1 => {
                or(async { Poll::Ready(stream.next().await) }, async {
                    yield_now().await;
                    Poll::Pending
                })
                .await
            }
            _ => or(std::future::ready(Poll::Pending), async { Poll::Ready(stream.next().await) }).await,
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
    all
}

/// Deltas of any length, cut into pieces of any length
fn answer(random: &mut fastrand::Rng) -> (String, Vec<Vec<u8>>) {
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
        let mut random = fastrand::Rng::with_seed(seed);
        let server = Server::start();
        let url = server.url();
        let (expected, pieces) = answer(&mut random);
        let (dropped, drops) = mpsc::channel();
        let serving = thread::spawn(move || {
            let mut peer = server.accept();
            peer.request();
            for piece in pieces {
                // So the client finds nothing again and again; at the end it just waits.
                let _ = drops.recv();
                peer.write(piece);
            }
            peer.left();
        });
        let all = run(async {
            let mut stream = Client::new().stream(stream_from(&url, once()));
            let all = take_all(&mut stream, &mut random, dropped).await;
            assert!(stream.outcome().await.result.is_ok());
            all
        });
        assert_eq!(all, expected, "seed {seed}");
        serving.join().expect("the server saw the end");
    }
}
