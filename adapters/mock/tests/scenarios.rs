//! The embedded scenarios on real sockets, with plain clients in the caller's place.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use steadfast_mock::Mock;

const CAP: Duration = Duration::from_secs(10);

fn start(name: &str) -> Mock {
    let scenario = steadfast_scenario::find(name).expect("a scenario of that name");
    Mock::start(&scenario.script, None).expect("the server starts")
}

fn ask(mock: &Mock, body: usize) -> TcpStream {
    let mut socket = TcpStream::connect(mock.addr()).expect("it accepts");
    socket.set_read_timeout(Some(CAP)).expect("a timeout");
    let head = format!("POST / HTTP/1.1\r\ncontent-length: {body}\r\n\r\n");
    socket.write_all(head.as_bytes()).expect("it takes the head");
    socket
}

#[test]
fn every_scenario_starts_and_stops() {
    for scenario in steadfast_scenario::all() {
        let mock = Mock::start(&scenario.script, None);
        let mock = mock.unwrap_or_else(|error| panic!("{}: {error}", scenario.name()));
        assert_eq!(mock.ca_pem().is_some(), scenario.script.server.tls, "{}", scenario.name());
        let start = Instant::now();
        let seen = mock.shutdown();
        assert!(start.elapsed() < Duration::from_secs(2), "{}: {:?}", scenario.name(), start.elapsed());
        assert_eq!((seen.connections.len(), seen.requests.len()), (0, 0), "{}", scenario.name());
    }
}

#[test]
fn a_slow_consumer_holds_the_server_up() {
    let mock = start("slow-consumer");
    let mut socket = ask(&mock, 0);
    let mut read = 0;
    let mut buffer = vec![0; 64 * 1024];
    for event in 1..=4 {
        while read < event * 4_000_000 {
            read += socket.read(&mut buffer).expect("the stream goes on");
        }
        // The consumer's own work.
        std::thread::sleep(Duration::from_millis(600));
    }
    let seen = mock.wait_for(CAP, |seen| seen.tally().blocked >= Duration::from_millis(500));
    let seen = seen.unwrap_or_else(|| panic!("held up for {:?} only", mock.recorded().tally().blocked));
    println!("held up for {:?} at {:?}", seen.tally().blocked, seen.connections[0].blocked.first());
}

#[test]
fn a_reader_that_keeps_up_is_hardly_held_up() {
    let mock = start("stream-happy");
    let mut socket = ask(&mock, 0);
    let mut bytes = vec![0; 400];
    let read = socket.read(&mut bytes).expect("the stream begins");
    assert!(bytes[..read].starts_with(b"HTTP/1.1 200 OK\r\n"));
    drop(socket);
    let seen = mock.wait_for(CAP, |seen| seen.tally().closed_by_peer == 1).expect("it sees the close");
    assert_eq!(seen.tally().blocked, Duration::ZERO);
    assert_eq!(seen.tally().requests, 1);
}

#[test]
fn an_upload_read_slowly_is_answered_in_the_end() {
    let mock = start("upload-read-slowly");
    let start = Instant::now();
    let mut socket = ask(&mock, 1_000_000);
    socket.write_all(&vec![b' '; 1_000_000]).expect("it takes the body");
    let mut bytes = [0; 15];
    socket.read_exact(&mut bytes).expect("the answer");
    assert_eq!(&bytes, b"HTTP/1.1 200 OK");
    assert!(start.elapsed() >= Duration::from_millis(400), "{:?}", start.elapsed());
    let request = &mock.recorded().requests[0];
    assert_eq!((request.body_len, request.body.len(), request.complete), (1_000_000, 65_536, true));
}
