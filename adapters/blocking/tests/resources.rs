//! What calls hold and give back: threads and file descriptors. Counted for the whole process, so this
//! is one test in a process of its own.

#![cfg(target_os = "linux")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use steadfast_blocking::{Client, Dialect, ErrorKind, Overrides, Phase, Proxies, Request};

/// No wait of this test is meant to take so long
const CAP: Duration = Duration::from_secs(60);
const ANSWER: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n\
    data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\n\
    data: [DONE]\n\n";

fn count(folder: &str) -> usize {
    std::fs::read_dir(folder).expect("Linux").count()
}

/// Descriptors and threads of this process
fn held() -> (usize, usize) {
    (count("/proc/self/fd"), count("/proc/self/task"))
}

/// A server in one thread: says nothing until it is told to answer, and tells when a client has left
fn server() -> (u16, mpsc::Sender<bool>, mpsc::Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    let (answers, is_to_answer) = mpsc::channel();
    let (tell, left) = mpsc::channel();
    thread::spawn(move || {
        while let Ok(answers) = is_to_answer.recv() {
            let (mut socket, _) = listener.accept().expect("a connection");
            socket.set_read_timeout(Some(CAP)).expect("a timeout");
            if answers {
                let _ = socket.read(&mut [0; 4096]);
                socket.write_all(ANSWER.as_bytes()).expect("a reader");
            }
            read_to_end(socket);
            tell.send(()).expect("the test listens");
        }
    });
    (port, answers, left)
}

fn read_to_end(mut socket: TcpStream) {
    let mut rest = [0; 4096];
    while socket.read(&mut rest).is_ok_and(|read| read > 0) {}
}

#[test]
fn timeouts_cancels_and_drops_leave_no_thread_and_no_descriptor_and_the_host_works_again() {
    let (port, answers, left) = server();
    let client = Client::new().with_proxies(Proxies::none());
    let request = |overrides: Overrides| {
        // By name, so that there are look-up threads.
        Request::post(&format!("http://localhost:{port}/v1"))
            .json(&json!({"stream": true}))
            .dialect(Dialect::OpenAiChat)
            .overrides(overrides.max_attempts(1))
            .stream()
            .build()
            .expect("a valid request")
    };
    let completes = || {
        answers.send(true).expect("a server");
        assert_eq!(client.send(request(Overrides::new())).word(), "completed");
        left.recv_timeout(CAP).expect("the client leaves");
    };
    completes();
    let before = held();
    for _ in 0..20 {
        answers.send(false).expect("a server");
        let kind =
            client.send(request(Overrides::new().request_timeout(0.02))).result.expect_err("a breach").kind;
        assert!(matches!(kind, ErrorKind::Timeout(timeout) if timeout.phase == Phase::Request), "{kind}");
        left.recv_timeout(CAP).expect("the client leaves");

        answers.send(true).expect("a server");
        let mut stream = client.stream(request(Overrides::new()));
        assert_eq!(stream.next().expect("a piece").text(), "Hi");
        drop(stream);
        left.recv_timeout(CAP).expect("the client leaves");

        answers.send(true).expect("a server");
        let mut stream = client.stream(request(Overrides::new()));
        assert_eq!(stream.next().expect("a piece").text(), "Hi");
        stream.cancel();
        drop(stream.outcome());
        left.recv_timeout(CAP).expect("the client leaves");
    }
    completes();
    // A look-up thread is over once it has nothing to do, and that is not told to anybody.
    let began = Instant::now();
    while held().0 > before.0 || held().1 > before.1 {
        assert!(began.elapsed() < CAP, "{:?}, and {before:?} before", held());
        thread::yield_now();
    }
}
