//! What calls hold and give back: memory, file descriptors, tasks. Counted for the whole process, so
//! the tests here run one after the other, and their servers allocate nothing while they are watched.

#![allow(clippy::wildcard_enum_match_arm, reason = "whatever else comes fails the test")]

use std::alloc::System;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::json;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use steadfast::call::Item;
use steadfast::outcome::{Delta, ErrorKind, Phase};
use steadfast_tokio::{Client, Dialect, Overrides, Request};
use tokio::runtime::{Builder, Handle};
use tokio::task::JoinSet;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// No wait of these tests is meant to take so long
const CAP: Duration = Duration::from_secs(60);
const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
const DELTA: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":null}]}\n\n";
const END: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

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

fn allocations() -> usize {
    let stats = ALLOCATOR.stats();
    stats.allocations + stats.reallocations
}

/// File descriptors of this process
fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("Linux").count()
}

/// A server in one thread that keeps twenty connections open at a time, and answers as it is told
struct Server {
    url: String,
    address: SocketAddr,
    answer: Arc<Mutex<Option<String>>>,
    /// Says that twenty clients have left and their connections are closed
    left: mpsc::Receiver<()>,
    thread: JoinHandle<()>,
}

impl Server {
    fn start(answer: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Mutex::new(Some(answer.to_owned())));
        let (tell, left) = mpsc::channel();
        let thread = thread::spawn({
            let answer = Arc::clone(&shared);
            move || {
                let mut open = Vec::with_capacity(20);
                loop {
                    let (mut socket, _) = listener.accept().expect("a connection");
                    socket.set_read_timeout(Some(CAP)).expect("a timeout");
                    let answer = answer.lock().expect("no panic");
                    let Some(answer) = answer.as_deref() else { return };
                    // The request comes in one piece. A client may be gone by now.
                    let _ = socket.read(&mut [0; 4096]);
                    let _ = socket.write_all(answer.as_bytes());
                    open.push(socket);
                    if open.len() == 20 || answer.ends_with(END) {
                        open.drain(..).for_each(read_to_end);
                        tell.send(()).expect("the test listens");
                    }
                }
            }
        });
        let url = format!("http://{address}/v1/chat/completions");
        Self { url, address, answer: shared, left, thread }
    }

    fn answer(&self, answer: String) {
        *self.answer.lock().expect("no panic") = Some(answer);
    }

    fn twenty_left(&self) {
        self.left.recv_timeout(CAP).expect("twenty clients that leave");
    }

    fn stop(self) {
        *self.answer.lock().expect("no panic") = None;
        TcpStream::connect(self.address).expect("it accepts");
        self.thread.join().expect("the server is well");
    }
}

fn read_to_end(mut socket: TcpStream) {
    let mut rest = [0; 4096];
    while socket.read(&mut rest).is_ok_and(|read| read > 0) {}
}

fn stream(url: &str, overrides: Overrides) -> Request {
    Request::post(url)
        .json(&json!({"stream": true}))
        .dialect(Dialect::OpenAiChat)
        .overrides(overrides.max_attempts(1))
        .stream()
        .build()
        .expect("a valid request")
}

fn run<F: Future>(future: F) -> F::Output {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async { tokio::time::timeout(CAP, future).await.expect("an end in time") })
}

/// What may differ though nothing leaks: what tokio and the channel of the server keep for later
const SLACK: usize = 2 * 1024;

/// Makes calls that time out, twenty in a row or at once, again and again; then the same host works
fn timeouts_leak_nothing(answer: &str, overrides: Overrides, phase: Phase, at_once: bool) {
    const ROUNDS: usize = 10;
    let server = Server::start(answer);
    let client = Client::new();
    let times_out = |client: Client, request: Request| async move {
        let kind = client.send(request).await.result.expect_err("a breach").kind;
        assert!(matches!(kind, ErrorKind::Timeout(timeout) if timeout.phase == phase), "{kind}");
    };
    let twenty = async || {
        let mut calls = JoinSet::new();
        for _ in 0..20 {
            let call = times_out(client.clone(), stream(&server.url, overrides));
            if at_once {
                calls.spawn(call);
            } else {
                call.await;
            }
        }
        calls.join_all().await;
        server.twenty_left();
    };
    run(async {
        twenty().await;
        twenty().await;
        let (held, open) = (live(), descriptors());
        for _ in 0..ROUNDS {
            twenty().await;
        }
        assert_eq!(Handle::current().metrics().num_alive_tasks(), 0);
        assert_eq!(descriptors(), open);
        let now = live();
        assert!(now <= held + SLACK, "{held} bytes became {now} in {ROUNDS} rounds of 20 calls");

        server.answer([HEAD, DELTA, END].concat());
        let outcome = client.send(stream(&server.url, Overrides::new())).await;
        assert_eq!(outcome.result.expect("a success").turn.text(), "Hi");
    });
    server.stop();
}

#[test]
fn calls_that_get_no_answer_leak_nothing() {
    let _alone = alone();
    for at_once in [false, true] {
        timeouts_leak_nothing("", Overrides::new().request_timeout(0.005), Phase::Request, at_once);
    }
}

#[test]
fn streams_that_fall_silent_leak_nothing() {
    let _alone = alone();
    let answer = [HEAD, DELTA].concat();
    for at_once in [false, true] {
        timeouts_leak_nothing(
            &answer,
            Overrides::new().stream_idle_timeout(0.005),
            Phase::StreamIdle,
            at_once,
        );
    }
}

/// Serves one client with a head and then with `piece` so many times; how long it was held up at most
fn pouring(piece: String, times: usize, end: &'static str) -> (String, JoinHandle<Duration>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/v1/chat/completions", listener.local_addr().expect("an address"));
    let serving = thread::spawn(move || {
        let (mut socket, _) = listener.accept().expect("a connection");
        socket.set_read_timeout(Some(CAP)).expect("a timeout");
        let _ = socket.read(&mut [0; 4096]);
        socket.write_all(HEAD.as_bytes()).expect("a client");
        let mut longest = Duration::ZERO;
        for _ in 0..times {
            let began = Instant::now();
            socket.write_all(piece.as_bytes()).expect("a client");
            longest = longest.max(began.elapsed());
        }
        socket.write_all(end.as_bytes()).expect("a client");
        read_to_end(socket);
        longest
    });
    (url, serving)
}

/// What is not part of the turn is not kept, however much of it there is and however slowly it is taken
#[test]
fn a_slow_consumer_holds_up_the_server_and_costs_no_memory() {
    let _alone = alone();
    const EVENTS: usize = 4_000;
    let event = format!("event: custom\ndata: {{\"padding\":\"{}\"}}\n\n", "x".repeat(10_000));
    let (url, serving) = pouring(event, EVENTS, END);
    let (events, peak) = run(async {
        let mut stream = Client::new().stream(stream(&url, Overrides::new().stream_idle_timeout(0.1)));
        let (mut events, mut peak, before) = (0, 0, live());
        while stream
            .next_with(|item| events += usize::from(matches!(item, Item::Unknown { .. })))
            .await
            .is_some()
        {
            peak = peak.max(live().saturating_sub(before));
            if events % 500 == 1 {
                // Longer than the idle bound, which does not run while it is the consumer who is awaited.
                tokio::time::sleep(Duration::from_millis(250)).await;
                peak = peak.max(live().saturating_sub(before));
            }
        }
        (events, peak)
    });
    assert_eq!(events, EVENTS);
    let longest = serving.join().expect("the server is well");
    assert!(longest >= Duration::from_millis(100), "the server was never held up: {longest:?}");
    assert!(peak <= 96 * 1024, "{peak} bytes for {} of events", EVENTS * 10_000);
}

/// A text is held once, in the turn, with the room that a growing string leaves
#[test]
fn a_long_answer_is_held_once() {
    let _alone = alone();
    const EVENTS: usize = 4_000;
    let delta = DELTA.replace("Hi", &"0123456789".repeat(1_000));
    let (url, serving) = pouring(delta, EVENTS, END);
    let (bytes, peak) = run(async {
        let mut stream = Client::new().stream(stream(&url, Overrides::new()));
        let (mut bytes, mut peak, before) = (0, 0, live());
        let mut take = |item: Item<'_>| {
            if let Item::Delta(Delta::Text { text, .. }) = item {
                bytes += text.len();
            }
        };
        while stream.next_with(&mut take).await.is_some() {
            peak = peak.max(live().saturating_sub(before));
        }
        (bytes, peak)
    });
    serving.join().expect("the server is well");
    assert_eq!(bytes, EVENTS * 10_000);
    assert!(peak <= 2 * bytes + 96 * 1024, "{peak} bytes for a text of {bytes}");
}

/// Nothing is allocated for an item that is lent, from the socket to the consumer
#[test]
fn an_item_that_is_lent_costs_no_allocation() {
    let _alone = alone();
    let (url, serving) = pouring(DELTA.repeat(100), 200, END);
    let counts = run(async {
        let mut stream = Client::new().stream(stream(&url, Overrides::new()));
        let mut counts = Vec::with_capacity(30_000);
        let mut bytes = 0;
        let mut take = |item: Item<'_>| {
            if let Item::Delta(Delta::Text { text, .. }) = item {
                bytes += text.len();
            }
        };
        while stream.next_with(&mut take).await.is_some() {
            counts.push(allocations());
        }
        counts
    });
    serving.join().expect("the server is well");
    assert!(counts.len() > 20_000);
    // The text doubles its room now and then, and the machine keeps what a paused drain left of a read.
    let cost = counts[20_000] - counts[100];
    assert!(cost < 20_000 / 20, "{cost} allocations for 19,900 items");
}
