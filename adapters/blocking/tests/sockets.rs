//! What no scenario says: dropping, cancelling from another thread, proxies, names, uploads.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use steadfast_blocking::{
    Client, Dialect, ErrorKind, Outcome, Overrides, Phase, Piece, Proxies, Proxy, Request, Stream,
};

/// No wait of these tests is meant to take so long
const CAP: Duration = Duration::from_secs(60);
const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
const DELTA: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":null}]}\n\n";
const END: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

struct Server(TcpListener);

impl Server {
    fn start() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").expect("a free port"))
    }

    fn address(&self) -> SocketAddr {
        self.0.local_addr().expect("an address")
    }

    fn url(&self) -> String {
        format!("http://{}", self.address())
    }

    fn accept(&self) -> TcpStream {
        let listener = self.0.try_clone().expect("a clone");
        let (sender, accepted) = mpsc::channel();
        thread::spawn(move || sender.send(listener.accept()));
        let (socket, _) = accepted.recv_timeout(CAP).expect("a client in time").expect("a connection");
        socket.set_read_timeout(Some(CAP)).expect("a timeout");
        socket
    }
}

/// Reads until `end` has come; what came
fn read_until(socket: &mut TcpStream, end: &str) -> String {
    let (mut text, mut byte) = (String::new(), [0]);
    while !text.ends_with(end) {
        socket.read_exact(&mut byte).expect("more to read");
        text.push(byte[0].into());
    }
    text
}

fn has_ended(socket: &mut TcpStream) -> bool {
    let mut rest = [0; 4096];
    loop {
        match socket.read(&mut rest) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }
}

fn client() -> Client {
    Client::new().with_proxies(Proxies::none())
}

fn request(url: &str) -> Request {
    request_with(url, Overrides::new())
}

fn request_with(url: &str, overrides: Overrides) -> Request {
    Request::post(url)
        .json(&json!({"stream": true}))
        .dialect(Dialect::OpenAiChat)
        .overrides(overrides)
        .stream()
        .build()
        .expect("a valid request")
}

fn kind(outcome: Outcome) -> ErrorKind {
    outcome.result.expect_err("a failure").kind
}

/// Cancels from another thread once `due` returns, which leaves what it returned open until the call has
/// ended; how it ended, and how long after that
fn cancelled(stream: Stream, due: impl FnOnce() -> Option<TcpStream> + Send) -> (Outcome, Duration) {
    let canceller = stream.canceller();
    thread::scope(|scope| {
        let at = scope.spawn(move || {
            let open = due();
            let at = Instant::now();
            canceller.cancel();
            (at, open)
        });
        let outcome = stream.outcome();
        let ended = Instant::now();
        (outcome, ended - at.join().expect("no panic").0)
    })
}

/// Far less than any bound of these calls, and far more than a thread takes to wake
const AT_ONCE: Duration = Duration::from_secs(2);

#[test]
fn the_pieces_of_a_stream_are_iterated_over_and_its_outcome_follows() {
    let server = Server::start();
    let mut stream = client().stream(request(&server.url()));
    let pieces = thread::scope(|scope| {
        scope.spawn(|| {
            let mut socket = server.accept();
            read_until(&mut socket, "{\"stream\":true}");
            socket.write_all([HEAD, DELTA, DELTA, END].concat().as_bytes()).expect("a reader");
            assert!(has_ended(&mut socket));
        });
        let pieces: Vec<Piece> = stream.by_ref().collect();
        assert_eq!(stream.next(), None);
        assert_eq!(stream.turn().text(), "HiHi");
        assert_eq!(stream.outcome().word(), "completed");
        pieces
    });
    let text: String = pieces.iter().map(Piece::text).collect();
    assert_eq!((text.as_str(), pieces.last()), ("HiHi", Some(&Piece::Finished)));
}

#[test]
fn dropping_a_call_closes_its_connection() {
    let server = Server::start();
    let mut stream = client().stream(request(&server.url()));
    thread::scope(|scope| {
        let serving = scope.spawn(|| {
            let mut socket = server.accept();
            read_until(&mut socket, "{\"stream\":true}");
            socket.write_all([HEAD, DELTA].concat().as_bytes()).expect("a reader");
            has_ended(&mut socket)
        });
        assert_eq!(stream.next().expect("a piece").text(), "Hi");
        drop(stream);
        assert!(serving.join().expect("no panic"));
    });
}

#[test]
fn a_cancel_from_another_thread_ends_a_wait_for_the_head_at_once() {
    let server = Server::start();
    let (outcome, after) = cancelled(client().stream(request(&server.url())), || {
        let mut socket = server.accept();
        read_until(&mut socket, "{\"stream\":true}");
        Some(socket)
    });
    assert!(matches!(kind(outcome), ErrorKind::Cancelled));
    assert!(after < AT_ONCE, "{after:?}");
}

#[test]
fn a_cancel_from_another_thread_ends_a_handshake_at_once() {
    let server = Server::start();
    let url = format!("https://{}", server.address());
    let pem = steadfast_mock::Mock::start(
        &steadfast_scenario::find("tls-happy").expect("it is there").script,
        None,
    )
    .expect("a server");
    let pem = pem.ca_pem().expect("it speaks TLS").as_bytes();
    let client = client().with_tls(steadfast_blocking::TlsConfig::roots_only(pem).expect("a root"));
    let (outcome, after) = cancelled(client.stream(request(&url)), || {
        // The first flight is there, and will have no answer.
        let mut socket = server.accept();
        socket.read_exact(&mut [0; 5]).expect("a record");
        Some(socket)
    });
    assert!(matches!(kind(outcome), ErrorKind::Cancelled));
    assert!(after < AT_ONCE, "{after:?}");
}

#[test]
fn a_cancel_from_another_thread_ends_a_pause_between_attempts_at_once() {
    let server = Server::start();
    let (outcome, after) = cancelled(client().stream(request(&server.url())), || {
        let mut socket = server.accept();
        read_until(&mut socket, "{\"stream\":true}");
        socket
            .write_all(b"HTTP/1.1 503 No\r\nretry-after: 300\r\ncontent-length: 0\r\n\r\n")
            .expect("a reader");
        assert!(has_ended(&mut socket));
        None
    });
    assert!(matches!(kind(outcome), ErrorKind::Cancelled));
    assert!(after < AT_ONCE, "{after:?}");
}

#[test]
fn a_call_that_is_over_is_not_cancelled_any_more() {
    let server = Server::start();
    let mut stream = client().stream(request(&server.url()));
    let canceller = stream.canceller();
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut socket = server.accept();
            read_until(&mut socket, "{\"stream\":true}");
            socket.write_all([HEAD, DELTA, END].concat().as_bytes()).expect("a reader");
            assert!(has_ended(&mut socket));
        });
        assert_eq!(stream.by_ref().count(), 2);
        canceller.cancel();
        assert_eq!(stream.outcome().word(), "completed");
    });
}

#[test]
fn a_name_is_looked_up_and_one_that_does_not_exist_is_said_so() {
    let server = Server::start();
    let url = format!("http://localhost:{}", server.address().port());
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut socket = server.accept();
            assert!(read_until(&mut socket, "{\"stream\":true}").contains("localhost"));
            socket.write_all([HEAD, DELTA, END].concat().as_bytes()).expect("a reader");
        });
        assert_eq!(client().send(request(&url)).word(), "completed");
    });
    let once = Overrides::new().max_attempts(1).connect_timeout(30.0);
    let outcome = client().send(request_with("http://nowhere.invalid", once));
    assert_eq!(outcome.timeline.attempts.len(), 1);
    let ErrorKind::Transport(failure) = kind(outcome) else { panic!("no transport failure") };
    assert!(failure.to_string().contains("nowhere.invalid"), "{failure}");
}

#[test]
fn a_tunnel_through_a_proxy() {
    let proxy = Server::start();
    let proxies = Proxies::all(Proxy::new(&format!("socks5://{}", proxy.address())).expect("a proxy"));
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut socket = proxy.accept();
            let mut greeting = [0; 3];
            socket.read_exact(&mut greeting).expect("a greeting");
            assert_eq!(greeting, *b"\x05\x01\x00");
            socket.write_all(b"\x05\x00").expect("a reader");
            let mut asked = [0; 18];
            socket.read_exact(&mut asked).expect("what to connect to");
            assert_eq!(asked, *b"\x05\x01\x00\x03\x0bsome.origin\x00\x50");
            socket.write_all(b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00").expect("a reader");
            read_until(&mut socket, "{\"stream\":true}");
            socket.write_all([HEAD, DELTA, END].concat().as_bytes()).expect("a reader");
        });
        let client = Client::new().with_proxies(proxies);
        assert_eq!(client.send(request("http://some.origin")).word(), "completed");
    });
}

#[test]
fn a_proxy_that_says_nothing_is_a_connect_timeout_and_one_that_is_not_there_a_proxy_failure() {
    let proxy = Server::start();
    let url = format!("socks5://{}", proxy.address());
    let client = Client::new().with_proxies(Proxies::all(Proxy::new(&url).expect("a proxy")));
    let once = Overrides::new().max_attempts(1).connect_timeout(0.2);
    let outcome = client.send(request_with("http://some.origin", once));
    let ErrorKind::Timeout(timeout) = kind(outcome) else { panic!("no timeout") };
    assert_eq!(timeout.phase, Phase::Connect);
    drop(proxy);
    let once = Overrides::new().max_attempts(1);
    let outcome = client.send(request_with("http://some.origin", once));
    let kind = kind(outcome);
    assert!(matches!(kind, ErrorKind::Proxy(_)), "{kind}");
}

#[test]
fn what_arrived_before_a_late_driver_looked_beats_the_deadline() {
    let server = Server::start();
    let limit = Duration::from_millis(300);
    let overrides = Overrides::new().stream_deadline(limit.as_secs_f64());
    let began = Instant::now();
    let mut stream = client().stream(request_with(&server.url(), overrides));
    thread::scope(|scope| {
        let (took, is_taken) = mpsc::channel();
        let (wrote, is_written) = mpsc::channel();
        let server = &server;
        scope.spawn(move || {
            let mut socket = server.accept();
            read_until(&mut socket, "{\"stream\":true}");
            socket.write_all([HEAD, DELTA].concat().as_bytes()).expect("a reader");
            is_taken.recv_timeout(CAP).expect("the first piece is taken");
            socket.write_all([DELTA, END].concat().as_bytes()).expect("a reader");
            wrote.send(()).expect("a listener");
            assert!(has_ended(&mut socket));
        });
        assert_eq!(stream.next().expect("a piece").text(), "Hi");
        took.send(()).expect("a listener");
        is_written.recv_timeout(CAP).expect("the rest");
        // The consumer is the one who is late.
        thread::sleep((limit + Duration::from_millis(50)).saturating_sub(began.elapsed()));
        let outcome = stream.outcome();
        assert_eq!((outcome.word(), outcome.turn().text()), ("completed", "HiHi"));
    });
}

#[test]
fn a_peer_that_never_stops_sending_does_not_starve_the_clock() {
    let server = Server::start();
    let overrides = Overrides::new().stream_deadline(0.3);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut socket = server.accept();
            read_until(&mut socket, "{\"stream\":true}");
            socket.write_all([HEAD, DELTA].concat().as_bytes()).expect("a reader");
            let pings = ": ping\n\n".repeat(4096);
            let began = Instant::now();
            while began.elapsed() < CAP && socket.write_all(pings.as_bytes()).is_ok() {}
        });
        let outcome = client().send(request_with(&server.url(), overrides));
        let ErrorKind::Timeout(timeout) = kind(outcome) else { panic!("no timeout") };
        assert_eq!((timeout.phase, timeout.limit), (Phase::Deadline, Duration::from_millis(300)));
        assert!(timeout.elapsed < Duration::from_secs(2), "{:?}", timeout.elapsed);
    });
}

#[test]
fn an_answer_is_read_while_the_request_is_still_going_out() {
    let server = Server::start();
    let url = server.url();
    let request = Request::post(&url)
        .body(vec![b' '; 32 << 20])
        .dialect(Dialect::OpenAiChat)
        .overrides(Overrides::new().request_timeout(20.0).max_attempts(1))
        .build()
        .expect("a valid request");
    thread::scope(|scope| {
        let (over, is_over) = mpsc::channel();
        let server = &server;
        scope.spawn(move || {
            let mut socket = server.accept();
            read_until(&mut socket, "\r\n\r\n");
            // It reads no more, and does not close either.
            socket.write_all(b"HTTP/1.1 413 No\r\ncontent-length: 4\r\n\r\nlong").expect("a reader");
            is_over.recv_timeout(CAP).expect("the call is over");
        });
        let began = Instant::now();
        let ErrorKind::Status(status) = kind(client().send(request)) else { panic!("no status") };
        assert_eq!(status.status, 413);
        over.send(()).expect("a listener");
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    });
}
