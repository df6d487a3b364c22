//! No socket is left behind by calls that apps abandon.
//!
//! Counted for the whole process, so it is alone in this one. Apps and provider are in the same process,
//! which makes six descriptors of a call that leaks.

#![cfg(target_os = "linux")]

#[expect(dead_code, reason = "the other tests use the rest")]
#[path = "sockets/support.rs"]
mod support;

use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::support::{Peer, Rig, post, soon};

const CALLS: usize = 10_000;
const AT_ONCE: usize = 100;
const HEAD: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

/// Open descriptors of this process, but for the one that lists them
fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count() - 1
}

/// A call that is given up: before a connection is there, before the first byte, in silence, within an
/// answer, or with its body cut
async fn abandon(rig: &Rig, number: usize) {
    let mut app = rig.app().await;
    match number % 5 {
        0 => app.send(&post("{}")[..20]).await,
        1 => app.send(post("{}")).await,
        2 => {
            app.send(post("{}")).await;
            app.until("\r\n\r\n").await;
        }
        3 => {
            app.send(post("{}")).await;
            app.until("data").await;
        }
        _ => app.send(post("{}").replace("Length: 2", "Length: 9")).await,
    }
    if number.is_multiple_of(2) { app.reset() } else { drop(app) }
}

/// Answers until it is left
async fn answer(mut provider: Peer) {
    let mut request = [0; 512];
    // Who has left already may have taken the request along.
    if !matches!(provider.0.read(&mut request).await, Ok(1..)) {
        return;
    }
    for part in [HEAD, "4\r\ndata\r\n"] {
        if provider.0.write_all(part.as_bytes()).await.is_err() {
            return;
        }
    }
    provider.rest().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_abandoned_calls_leave_no_socket() {
    let mut rig = Rig::new().await;
    let provider = std::mem::replace(&mut rig.provider, TcpListener::bind("127.0.0.1:0").await.unwrap());
    let rig = Arc::new(rig);
    let (answering, mut answers) = watch::channel(0_usize);
    let accepts = tokio::spawn(async move {
        loop {
            let peer = Peer(provider.accept().await.unwrap().0);
            answering.send_modify(|open| *open += 1);
            let answering = answering.clone();
            tokio::spawn(async move {
                answer(peer).await;
                answering.send_modify(|open| *open -= 1);
            });
        }
    });
    // What the runtime opens on its first connection is there from then on.
    let mut before = 0;
    let mut most = 0;
    for workers in [1, AT_ONCE] {
        let mut apps = JoinSet::new();
        for worker in 0..workers {
            let rig = rig.clone();
            apps.spawn(async move {
                for number in 0..CALLS / AT_ONCE {
                    abandon(&rig, worker + number).await;
                }
                descriptors()
            });
        }
        while let Some(open) = apps.join_next().await {
            most = most.max(open.unwrap());
        }
        // Connections are accepted in their order: once this one is answered, so are all before it.
        abandon(&rig, 2).await;
        soon("no connection of an app is left", rig.relay.drained()).await;
        soon("the provider is left", answers.wait_for(|open| *open == 0)).await.unwrap();
        if workers == 1 {
            before = descriptors();
        }
    }
    assert!(most > before + AT_ONCE / 2, "{most}: hardly a call was open when they were counted");
    assert_eq!(descriptors(), before, "of up to {most}");
    assert_eq!(rig.relay.open(), (0, 0));
    accepts.abort();
}
