//! What a script says is what a plain client sees, and what the client does is recorded.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use steadfast_mock::{Close, Mock, Recorded, Sighting};
use steadfast_scenario::Script;

/// No wait of these tests is meant to take so long
const CAP: Duration = Duration::from_secs(10);
const REQUEST: &[u8] =
    b"POST /v1/chat?key=s3cret HTTP/1.1\r\nx-api-key: s3cret\r\ncontent-length: 2\r\n\r\nhi";

fn start(server: &str, connections: &[&str]) -> Mock {
    let mut text = format!("name = \"x\"\nabout = \"a test\"\n[server]\n{server}\n");
    for steps in connections {
        text.push_str(&format!("[[connection]]\nsteps = [{steps}]\n"));
    }
    let script = Script::parse(&text).expect("a valid script");
    Mock::start(&script, None).expect("the server starts")
}

fn connect(mock: &Mock) -> TcpStream {
    let socket = TcpStream::connect(mock.addr()).expect("it accepts");
    socket.set_read_timeout(Some(CAP)).expect("a timeout");
    socket
}

fn ask(mock: &Mock) -> TcpStream {
    let mut socket = connect(mock);
    socket.write_all(REQUEST).expect("it takes the request");
    socket
}

/// Whether the first connection is over
fn has_ended(seen: &Recorded) -> bool {
    seen.connections.first().is_some_and(|connection| connection.ended.is_some())
}

/// Everything until the end, and how that came
fn drain(mut socket: impl Read) -> (Vec<u8>, Option<ErrorKind>) {
    let mut bytes = Vec::new();
    let end = socket.read_to_end(&mut bytes);
    (bytes, end.err().map(|error| error.kind()))
}

#[test]
fn bytes_and_chunks_arrive_exactly_and_then_a_fin() {
    let mock = start(
        "",
        &[
            r#"{ read = "request" }, { head = ["200 OK", "a: b"] }, { chunk = "hello" }, { send = { hex = "00ff" } },
            { repeat = { times = 2, steps = [{ chunk = "x" }] } }, "last-chunk", "fin", "await-close""#,
        ],
    );
    let (bytes, end) = drain(ask(&mock));
    assert_eq!(bytes, b"HTTP/1.1 200 OK\r\na: b\r\n\r\n5\r\nhello\r\n\x00\xff1\r\nx\r\n1\r\nx\r\n0\r\n\r\n");
    assert_eq!(end, None);
    let seen = mock.wait_for(CAP, has_ended).expect("it sees the close");
    assert_eq!(seen.connections[0].closed_by_peer.map(|closed| closed.how), Some(Close::Fin));
    assert_eq!(seen.connections[0].sent, bytes.len() as u64);
    assert_eq!(seen.connections[0].received, REQUEST.len() as u64);
    let request = &seen.requests[0];
    assert_eq!((request.method.as_str(), request.target.as_str()), ("POST", "/v1/chat?key=[redacted]"));
    assert_eq!(
        (request.header("x-api-key"), request.header("content-length")),
        (Some("[redacted]"), Some("2"))
    );
    assert_eq!((request.body.as_slice(), request.body_len, request.complete), (&b"hi"[..], 2, true));
    assert_eq!(mock.shutdown(), seen);
}

#[test]
fn a_reset_is_a_reset() {
    let mock = start("", &[r#"{ read = "request" }, { send = "a" }, { read = 1 }, "rst""#]);
    let mut socket = ask(&mock);
    let mut byte = [0];
    socket.read_exact(&mut byte).expect("the byte before the reset");
    socket.write_all(b"!").expect("the connection is still open");
    assert_eq!(socket.read(&mut byte).expect_err("a reset").kind(), ErrorKind::ConnectionReset);
    let seen = mock.wait_for(CAP, has_ended).expect("it ends");
    assert_eq!(seen.connections[0].closed_by_peer, None);
}

#[test]
fn hold_neither_answers_nor_closes_until_the_server_ends() {
    let mock = start("", &[r#"{ read = "request" }, "hold""#]);
    let mut socket = ask(&mock);
    mock.wait_for(CAP, |seen| seen.requests.len() == 1).expect("it reads the request");
    socket.set_read_timeout(Some(Duration::from_millis(150))).expect("a timeout");
    let kind = socket.read(&mut [0]).expect_err("nothing comes").kind();
    assert!(matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut), "{kind:?}");
    assert_eq!(mock.recorded().connections[0].ended, None);
    let seen = mock.shutdown();
    assert!(has_ended(&seen));
    assert_eq!((&seen.connections[0].closed_by_peer, &seen.connections[0].failed), (&None, &None));
    assert_eq!(drain(socket), (Vec::new(), None));
}

#[test]
fn each_connection_has_its_own_steps_and_the_last_ones_go_on() {
    let mock = start("", &[r#"{ send = "first" }, "close""#, r#"{ send = "later" }, "close""#]);
    for expected in [&b"first"[..], b"later", b"later"] {
        assert_eq!(drain(connect(&mock)), (expected.to_vec(), None));
    }
    assert_eq!(mock.shutdown().tally().connections, 3);
}

#[test]
fn many_connections_are_served_at_once() {
    let mock = start("", &[r#"{ read = "request" }, "await-close""#]);
    let sockets: Vec<TcpStream> = (0..30).map(|_| ask(&mock)).collect();
    mock.wait_for(CAP, |seen| seen.tally().requests == 30).expect("all are read while all are open");
    drop(sockets);
    let seen = mock.wait_for(CAP, |seen| seen.tally().closed_by_peer == 30).expect("all closes are seen");
    assert_eq!(seen.tally().received, 30 * REQUEST.len() as u64);
}

#[test]
fn one_connection_carries_several_requests() {
    let mock = start(
        "",
        &[r#"{ repeat = { times = "forever", steps = [{ read = "head" }, { read = "request" },
            { answer = { head = ["200 OK"], body = "ok" } }] } }"#],
    );
    let mut socket = connect(&mock);
    for _ in 0..3 {
        socket.write_all(REQUEST).expect("it takes the request");
        let mut answer = [0; 40];
        socket.read_exact(&mut answer).expect("an answer");
        assert_eq!(&answer[..], b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
    }
    drop(socket);
    let seen = mock.wait_for(CAP, |seen| seen.tally().closed_by_peer == 1).expect("it sees the close");
    assert_eq!(seen.requests.iter().filter(|request| request.complete).count(), 3);
}

#[test]
fn a_peer_that_cuts_its_request_is_recorded_so() {
    let mock = start("", &[r#"{ read = "request" }, "await-close""#]);
    let mut socket = connect(&mock);
    socket.write_all(&REQUEST[..REQUEST.len() - 1]).expect("it takes the bytes");
    socket.shutdown(Shutdown::Write).expect("the socket is open");
    let seen = mock.wait_for(CAP, has_ended).expect("it ends");
    assert_eq!(seen.connections[0].closed_by_peer.map(|closed| closed.how), Some(Close::Fin));
    assert_eq!((seen.requests[0].body_len, seen.requests[0].complete), (1, false));
}

#[test]
fn pauses_and_trickles_take_their_time() {
    let mock = start("", &[r#"{ pause = 0.2 }, { trickle = { data = "abcd", every = 0.05 } }, "close""#]);
    let start = Instant::now();
    assert_eq!(drain(connect(&mock)), (b"abcd".to_vec(), None));
    let elapsed = start.elapsed();
    assert!((Duration::from_millis(350)..Duration::from_secs(3)).contains(&elapsed), "{elapsed:?}");
    // No timer is exact, so the latest of four pauses was too long by something, and by no more than all.
    let late = mock.wait_for(CAP, has_ended).expect("it ends").late();
    assert!(late > Duration::ZERO && late <= elapsed - Duration::from_millis(350), "{late:?} of {elapsed:?}");
}

#[test]
fn what_is_never_read_stays_with_the_client() {
    let mock = start("receive_buffer = 16384", &[r#""hold""#]);
    let mut socket = connect(&mock);
    socket.set_write_timeout(Some(Duration::from_millis(200))).expect("a timeout");
    let body = vec![0; 10_000_000];
    let error = socket.write_all(&body).expect_err("the kernels do not hold 10 MB");
    assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error:?}");
    assert_eq!(mock.shutdown().tally().received, 0);
}

#[test]
fn an_answer_overtakes_the_upload_and_the_reset_follows() {
    let mock = start(
        "receive_buffer = 16384",
        &[
            r#"{ read = "head" }, { answer = { head = ["413 Content Too Large"], body = "no" } }, { pause = 0.1 }, "rst""#,
        ],
    );
    let mut socket = connect(&mock);
    socket.write_all(b"POST / HTTP/1.1\r\ncontent-length: 10000000\r\n\r\n").expect("it takes the head");
    let reset = socket.write_all(&vec![0; 10_000_000]).expect_err("a reset cuts the upload");
    assert!(matches!(reset.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{reset:?}");
    let expected = b"HTTP/1.1 413 Content Too Large\r\ncontent-length: 2\r\n\r\nno";
    let mut answer = vec![0; expected.len()];
    socket.read_exact(&mut answer).expect("the answer lies in the kernel");
    assert_eq!(answer, expected);
    let seen = mock.shutdown();
    assert!(!seen.requests[0].complete);
    assert!(seen.tally().received < 100_000, "{}", seen.tally().received);
}

#[test]
fn back_pressure_is_recorded() {
    let mock = start(
        "send_buffer = 65536",
        &[r#"{ read = "request" }, { send = { repeat = "0123456789", times = 3000000 } }, "close""#],
    );
    let socket = ask(&mock);
    let held = mock
        .wait_for(CAP, |seen| seen.tally().connections == 1 && !seen.connections[0].blocked.is_empty())
        .expect("nobody reads");
    let taken = held.connections[0].blocked[0].taken;
    assert!((1..30_000_000).contains(&taken), "{taken}");
    assert_eq!(held.connections[0].blocked[0].resumed, None);
    // The time for which it is held up is what is measured here; there is nothing to wait for.
    assert_eq!(mock.wait_for(Duration::from_millis(200), |_| false), None);
    let (bytes, end) = drain(socket);
    assert_eq!((bytes.len(), end), (30_000_000, None));
    let seen = mock.wait_for(CAP, has_ended).expect("it ends");
    assert!(seen.tally().blocked >= Duration::from_millis(200), "{:?}", seen.tally().blocked);
}

#[test]
fn a_closed_port_refuses() {
    let mock = start("listen = \"refuse\"", &[]);
    let error = TcpStream::connect(mock.addr()).expect_err("nobody listens");
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
}

#[test]
fn behind_a_full_backlog_a_connect_hangs() {
    let mock = start("listen = \"full-backlog\"", &[]);
    let start = Instant::now();
    let error =
        TcpStream::connect_timeout(&mock.addr(), Duration::from_millis(500)).expect_err("no SYN is answered");
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert!(start.elapsed() >= Duration::from_millis(500));
}

#[test]
fn a_named_port_can_be_served_again_at_once() {
    let script = Script::parse("name = \"x\"\nabout = \"a test\"\n[[connection]]\nsteps = [\"close\"]")
        .expect("valid");
    // Of a server on it a connection would be left that keeps the port for a while.
    let port =
        TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port").port();
    let first = Mock::start(&script, Some(port)).expect("that port");
    assert_eq!(drain(connect(&first)), (Vec::new(), None));
    drop(first);
    let second = Mock::start(&script, Some(port)).expect("the same port");
    assert_eq!(second.base_url(), format!("http://127.0.0.1:{port}"));
    assert_eq!(drain(connect(&second)), (Vec::new(), None));
    assert!(Mock::start(&script, Some(port)).is_err(), "a port that is in use is no success");
}

#[test]
#[cfg(target_os = "linux")]
fn shutdown_ends_every_thread_whatever_it_is_doing() {
    let mock = start(
        "",
        &[
            r#""hold""#,
            r#"{ pause = 3600 }, "close""#,
            r#"{ read = "request" }, "close""#,
            r#""await-close""#,
            r#"{ send = { repeat = "0123456789", times = 5000000 } }, "close""#,
            r#"{ repeat = { times = "forever", steps = [{ pause = 3600 }] } }"#,
        ],
    );
    let threads = format!("mock-{}", mock.addr().port());
    let count = || {
        let tasks = std::fs::read_dir("/proc/self/task").expect("Linux lists threads there");
        let name = |task: std::io::Result<std::fs::DirEntry>| {
            task.ok().and_then(|task| std::fs::read_to_string(task.path().join("comm")).ok())
        };
        tasks.filter_map(name).filter(|name| name.trim_end() == threads).count()
    };
    let sockets: Vec<TcpStream> = (0..6).map(|_| connect(&mock)).collect();
    mock.wait_for(CAP, |seen| seen.connections.len() == 6 && !seen.connections[4].blocked.is_empty())
        .expect("all are served");
    assert_eq!(count(), 7);
    let start = Instant::now();
    let seen = mock.shutdown();
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    assert_eq!(count(), 0);
    assert!(seen.connections.iter().all(|connection| connection.ended.is_some()));
    drop(sockets);
}

#[test]
fn a_watcher_is_told_in_order_and_the_record_lets_go_of_what_it_was_told() {
    let script = Script::parse(
        r#"
        name = "x"
        about = "a test"
        [[connection]]
        steps = [{ read = "request" }, { answer = { head = ["200 OK"], body = "ok" } }, "await-close"]
        [[connection]]
        steps = [{ read = "head" }, "await-close"]
        "#,
    )
    .expect("a valid script");
    let (told, telling) = std::sync::mpsc::channel();
    let mock = Mock::watch(&script, None, move |sighting| drop(told.send(sighting))).expect("it starts");
    let next = || telling.recv_timeout(CAP).expect("it tells");

    let mut socket = ask(&mock);
    socket.read_exact(&mut [0; b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok".len()]).expect("the answer");
    assert!(matches!(next(), Sighting::Opened { connection: 0, .. }));
    let Sighting::Request(request) = next() else { panic!("not a request") };
    assert_eq!((request.connection, request.complete, &request.body[..]), (0, true, &b"hi"[..]));
    assert_eq!(request.header("x-api-key"), Some("[redacted]"));
    drop(socket);
    let Sighting::Closed(closed) = next() else { panic!("not a close") };
    assert_eq!(closed.closed_by_peer.map(|closed| closed.how), Some(Close::Fin));

    let mut socket = connect(&mock);
    socket.write_all(&REQUEST[..REQUEST.len() - 1]).expect("it takes part of a request");
    assert!(matches!(next(), Sighting::Opened { connection: 1, .. }));
    drop(socket);
    let Sighting::Request(request) = next() else { panic!("not a request") };
    assert_eq!((request.connection, request.complete, request.body_len), (1, false, 1));
    let Sighting::Closed(closed) = next() else { panic!("not a close") };
    assert_eq!((closed.connection, closed.received), (1, REQUEST.len() as u64 - 1));

    let seen = mock.shutdown();
    assert_eq!(seen.tally().requests, 2);
    assert!(seen.requests.iter().all(|request| request.headers.is_empty() && request.body.is_empty()));
    assert!(telling.recv().is_err(), "nothing more is told after the end");
}
