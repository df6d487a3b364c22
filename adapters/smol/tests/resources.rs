//! What calls hold and give back: file descriptors and memory, counted for the whole process, so the
//! tests here run one after the other.

use std::alloc::System;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::json;
use smol::{LocalExecutor, Timer};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use steadfast::outcome::{ErrorKind, Phase};
use steadfast_smol::{Client, Dialect, Overrides, Request};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// No wait of these tests is meant to take so long
const CAP: Duration = Duration::from_secs(60);
/// So many calls make a round
const CALLS: usize = 20;
/// So many rounds are watched, after two that fill what is kept for later
const ROUNDS: usize = 10;
/// What may differ though nothing leaks: what smol's reactor and the test's own threads keep for later;
/// 45 bytes of a call would be more
const SLACK: usize = 8 * 1024;

const BEGUN: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n\
    data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":null}]}\n\n";

/// One test at a time
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes in use now
fn live() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

/// File descriptors of this process
fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("Linux").count()
}

/// A server in one thread that keeps the connections of a round open until their clients have left
fn server(answer: &'static str) -> (String, mpsc::Receiver<()>, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/v1/chat/completions", listener.local_addr().expect("an address"));
    let (tell, left) = mpsc::channel();
    let thread = thread::spawn(move || {
        let mut open = Vec::with_capacity(CALLS);
        for _ in 0..(2 + ROUNDS) {
            for _ in 0..CALLS {
                let (mut socket, _) = listener.accept().expect("a connection");
                socket.set_read_timeout(Some(CAP)).expect("a timeout");
                // The request comes in one piece. A client may be gone by now.
                let _ = socket.read(&mut [0; 4096]);
                let _ = socket.write_all(answer.as_bytes());
                open.push(socket);
            }
            for mut socket in open.drain(..) {
                while socket.read(&mut [0; 4096]).is_ok_and(|read| read > 0) {}
            }
            tell.send(()).expect("the test listens");
        }
    });
    (url, left, thread)
}

/// Makes calls that time out, in a row or at once, again and again
fn timeouts_leak_nothing(answer: &'static str, overrides: Overrides, phase: Phase) {
    for at_once in [false, true] {
        let (url, left, server) = server(answer);
        let client = Client::new();
        let times_out = || async {
            let request = Request::post(&url).json(&json!({"stream": true})).dialect(Dialect::OpenAiChat);
            let request = request.overrides(overrides.max_attempts(1)).stream().build().expect("a request");
            let kind = client.send(request).await.result.expect_err("a breach").kind;
            assert!(matches!(kind, ErrorKind::Timeout(timeout) if timeout.phase == phase), "{kind}");
        };
        let round = || {
            let executor = LocalExecutor::new();
            smol::block_on(executor.run(async {
                if at_once {
                    let calls: Vec<_> = (0..CALLS).map(|_| executor.spawn(times_out())).collect();
                    for call in calls {
                        call.await;
                    }
                } else {
                    for _ in 0..CALLS {
                        times_out().await;
                    }
                }
            }));
            left.recv_timeout(CAP).expect("clients that leave");
        };
        round();
        round();
        let (held, open) = (live(), descriptors());
        for _ in 1..ROUNDS {
            round();
        }
        assert_eq!(descriptors(), open);
        let now = live();
        assert!(now <= held + SLACK, "{held} bytes became {now} in {ROUNDS} rounds of {CALLS} calls");
        round();
        let statistics = client.pool_statistics();
        assert_eq!((statistics.in_use, statistics.idle, statistics.finishing), (0, 0, 0));
        assert_eq!(statistics.opened, ((2 + ROUNDS) * CALLS) as u64);
        server.join().expect("the server is well");
    }
}

#[test]
fn calls_that_get_no_answer_leak_nothing() {
    let _alone = alone();
    timeouts_leak_nothing("", Overrides::new().request_timeout(0.005), Phase::Request);
}

#[test]
fn streams_that_fall_silent_leak_nothing() {
    let _alone = alone();
    timeouts_leak_nothing(BEGUN, Overrides::new().stream_idle_timeout(0.005), Phase::StreamIdle);
}

/// A call that is dropped while it waits, at any stage, closes its connection
#[test]
fn dropped_calls_leave_nothing_open() {
    let _alone = alone();
    let client = Client::new();
    // The reactor holds some of its own, from its first timer on.
    smol::block_on(Timer::after(Duration::from_millis(1)));
    let open = descriptors();
    let (url, left, server) = server(BEGUN);
    for round in 0..(2 + ROUNDS) {
        smol::block_on(async {
            let request = Request::post(&url).json(&json!({"stream": true})).dialect(Dialect::OpenAiChat);
            let request = request.stream().build().expect("a request");
            let mut streams: Vec<_> = (0..CALLS).map(|_| client.stream(request.clone())).collect();
            for (number, stream) in streams.iter_mut().enumerate() {
                // Even ones have begun to connect, odd ones have had their first piece.
                if number % 2 == 0 {
                    let began = async {
                        stream.next().await;
                    };
                    smol::future::or(began, smol::future::ready(())).await;
                } else {
                    assert_eq!(stream.next().await.expect("a piece").text(), "Hi");
                }
            }
        });
        left.recv_timeout(CAP).unwrap_or_else(|_| panic!("clients that leave in round {round}"));
        assert_eq!(client.pool_statistics().in_use, 0);
    }
    server.join().expect("the server is well");
    assert_eq!(descriptors(), open);
}
