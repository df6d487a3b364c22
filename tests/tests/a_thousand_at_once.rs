//! A thousand calls at once, to one host and spread over fifty, by every client.
//!
//! That they are under way at the same time is what the server sees, and no matter of time: it answers
//! none before it has all. Descriptors and threads are counted for the whole process, so this is one
//! test in a process of its own.

#![cfg(target_os = "linux")]

use std::net::TcpListener;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit, setrlimit};
use socket2::SockRef;
use steadfast::call::Request;
use steadfast::connect::Proxies;
use steadfast::outcome::Outcome;
use steadfast::pool::{Settings, Statistics};
use tokio::runtime::{Builder, Handle};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

const CALLS: usize = 1_000;
const HOSTS: [usize; 2] = [1, 50];
/// They are made so often by the same client
const ROUNDS: usize = 2;
/// So long after the last request has come every one is answered
const AFTER: Duration = Duration::from_millis(200);
/// No wait of this test is meant to take so long
const CAP: Duration = Duration::from_secs(120);
const ANSWER: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nHi";

fn count(folder: &str) -> usize {
    std::fs::read_dir(folder).expect("Linux").count()
}

/// Descriptors and threads of this process
fn held() -> (usize, usize) {
    (count("/proc/self/fd"), count("/proc/self/task"))
}

/// What a server has seen
#[derive(Clone, Copy, Default)]
struct Seen {
    connections: usize,
    requests: usize,
    answered: usize,
    /// The most requests that waited for their answers at the same time
    peak: usize,
}

/// A server on a thread of its own that has every loopback address, so that it can stand for many hosts
struct Server {
    port: u16,
    seen: watch::Receiver<Seen>,
    thread: JoinHandle<()>,
    stop: oneshot::Sender<()>,
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind("0.0.0.0:0").expect("a free port");
        // The standard library's own queue is too short for so many at once.
        SockRef::from(&listener).listen(4096).expect("a longer queue");
        listener.set_nonblocking(true).expect("non-blocking");
        let port = listener.local_addr().expect("an address").port();
        let (tell, seen) = watch::channel(Seen::default());
        let (stop, stopped) = oneshot::channel();
        let (runs, is_running) = mpsc::channel();
        let thread = thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
                let tell = Arc::new(tell);
                runs.send(()).expect("the test waits");
                let serve = async {
                    loop {
                        let (socket, _) = listener.accept().await.expect("a connection");
                        tell.send_modify(|seen| seen.connections += 1);
                        tokio::spawn(answer_when_all_are_there(socket, Arc::clone(&tell)));
                    }
                };
                tokio::select! { () = serve => {}, _ = stopped => {} }
            });
        });
        is_running.recv_timeout(CAP).expect("a server");
        Self { port, seen, thread, stop }
    }

    fn requests(&self, hosts: usize) -> Vec<Request> {
        let request = |call: usize| {
            let url = format!("http://127.0.0.{}:{}/v1/answers", 1 + call % hosts, self.port);
            Request::post(&url).body("{}").build().expect("a valid request")
        };
        (0..CALLS).map(request).collect()
    }

    fn stop(self) -> Seen {
        let seen = *self.seen.borrow();
        self.stop.send(()).expect("the server runs");
        self.thread.join().expect("the server is well");
        seen
    }
}

/// Answers each request once the thousand of its round has come
async fn answer_when_all_are_there(socket: tokio::net::TcpStream, tell: Arc<watch::Sender<Seen>>) {
    let mut seen = tell.subscribe();
    loop {
        socket.readable().await.expect("a socket");
        // A request comes in one piece.
        match socket.try_read(&mut [0; 4096]) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
            Err(_) => return,
        }
        tell.send_modify(|seen| {
            seen.requests += 1;
            seen.peak = seen.peak.max(seen.requests - seen.answered);
        });
        let round = (seen.borrow_and_update().requests - 1) / CALLS + 1;
        seen.wait_for(|seen| seen.requests >= round * CALLS).await.expect("the server runs");
        tokio::time::sleep(AFTER).await;
        tell.send_modify(|seen| seen.answered += 1);
        // So few bytes find room.
        let _ = socket.try_write(ANSWER.as_bytes());
    }
}

/// Makes all calls of all rounds with one client, and leaves nothing open; what is in its pool before
/// that, where it has one
type Rounds = fn(&mut dyn FnMut() -> Vec<Request>) -> Option<Statistics>;

const CLIENTS: [(&str, Rounds); 3] = [("tokio", on_tokio), ("smol", on_smol), ("blocking", on_blocking)];

fn assert_answered(outcome: &Outcome) {
    let completion = outcome.result.as_ref().expect("an answer");
    assert_eq!((&completion.body[..], outcome.timeline.attempt_count()), (&b"Hi"[..], 1));
}

fn settings() -> Settings {
    Settings { max_idle: CALLS, ..Settings::default() }
}

fn on_tokio(requests: &mut dyn FnMut() -> Vec<Request>) -> Option<Statistics> {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let client = steadfast_tokio::Client::new().with_proxies(Proxies::none()).with_pool(settings());
    let rounds = async {
        for _ in 0..ROUNDS {
            let mut calls = JoinSet::new();
            for request in requests() {
                calls.spawn(client.send(request));
            }
            calls.join_all().await.iter().for_each(assert_answered);
        }
        let statistics = client.pool_statistics();
        client.close_idle();
        while Handle::current().metrics().num_alive_tasks() > 0 {
            tokio::task::yield_now().await;
        }
        statistics
    };
    Some(runtime.block_on(async { tokio::time::timeout(CAP, rounds).await.expect("an end in time") }))
}

fn on_smol(requests: &mut dyn FnMut() -> Vec<Request>) -> Option<Statistics> {
    let client = steadfast_smol::Client::new().with_proxies(Proxies::none()).with_pool(settings());
    let executor = smol::LocalExecutor::new();
    let rounds = async {
        for _ in 0..ROUNDS {
            let calls: Vec<_> =
                requests().into_iter().map(|request| executor.spawn(client.send(request))).collect();
            for call in calls {
                assert_answered(&call.await);
            }
        }
        let statistics = client.pool_statistics();
        client.close_idle();
        statistics
    };
    let too_late = async {
        smol::Timer::after(CAP).await;
        panic!("no end in time")
    };
    Some(smol::block_on(executor.run(smol::future::or(rounds, too_late))))
}

fn on_blocking(requests: &mut dyn FnMut() -> Vec<Request>) -> Option<Statistics> {
    let client = steadfast_blocking::Client::new().with_proxies(Proxies::none());
    for _ in 0..ROUNDS {
        thread::scope(|scope| {
            for request in requests() {
                let client = &client;
                let call = move || assert_answered(&client.send(request));
                thread::Builder::new().stack_size(256 * 1024).spawn_scoped(scope, call).expect("a thread");
            }
        });
    }
    None
}

/// Both ends of each connection, and up to three descriptors for a thread that waits
fn allow_descriptors() {
    let needed = 6 * CALLS as u64;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < needed) {
        let raised = rustix::process::Rlimit {
            current: limit.maximum.map_or(Some(needed), |most| Some(most.min(needed))),
            ..limit
        };
        setrlimit(Resource::Nofile, raised).expect("the soft limit may be raised to the hard one");
    }
}

#[test]
fn a_thousand_calls_are_under_way_at_once_and_leave_nothing() {
    allow_descriptors();
    // What is kept for the process is there before anything is counted.
    smol::block_on(smol::spawn(smol::Timer::after(Duration::ZERO)));
    for (name, rounds) in CLIENTS {
        for hosts in HOSTS {
            let server = Server::start();
            let before = held();
            let began = Instant::now();
            let statistics = rounds(&mut || server.requests(hosts));
            println!("{name}: {ROUNDS} times {CALLS} calls to {hosts} hosts in {:?}", began.elapsed());
            // The server closes its side in its own time, and threads are reaped in theirs.
            let began = Instant::now();
            while held().0 > before.0 || held().1 > before.1 {
                assert!(began.elapsed() < CAP, "{name}: {:?}, and {before:?} before", held());
                thread::sleep(Duration::from_millis(5));
            }
            let seen = server.stop();
            assert_eq!((seen.peak, seen.requests), (CALLS, ROUNDS * CALLS), "{name}");
            if let Some(statistics) = statistics {
                let count = (statistics.opened, statistics.reused, statistics.idle);
                assert_eq!(count, (CALLS as u64, CALLS as u64, CALLS), "{name}");
                assert_eq!(seen.connections, CALLS, "{name}");
            }
        }
    }
}
