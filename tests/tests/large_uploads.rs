//! Uploads without measure, read as they go out: the memory held stays flat, over real sockets and for every client.

#![cfg(target_os = "linux")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write, copy, sink};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use smol::io::AsyncReadExt as _;
use steadfast::body::Body;
use steadfast::call::Request;
use steadfast::config::Overrides;
use steadfast::outcome::Outcome;
use tokio::io::AsyncReadExt as _;

/// Of each upload; the debug build takes many times as long for each byte
const LONG: u64 = if cfg!(debug_assertions) { 64 << 20 } else { 1 << 30 };
/// After which the buffers that there are have been filled once
const WARM: u64 = 4 << 20;
/// The most that may be held beside what was there before
const MOST_GROWTH: u64 = 16 << 20;
/// How often the memory is looked at, in bytes that came
const LOOK: u64 = 1 << 20;
/// No upload is meant to take so long
const CAP: f64 = 600.0;

/// How a client sends so many bytes to that URL
type Client = fn(&str, u64) -> Outcome;

const CLIENTS: [(&str, Client); 3] = [("tokio", on_tokio), ("smol", on_smol), ("blocking", on_blocking)];

fn request(url: &str, body: Body) -> Request {
    let bounds = Overrides::new().max_attempts(1).request_timeout(CAP).total_deadline(CAP);
    Request::post(url).body(body).overrides(bounds).build().expect("a valid request")
}

fn on_tokio(url: &str, bytes: u64) -> Outcome {
    let body = Body::once(steadfast_tokio::reader(tokio::io::repeat(b'x').take(bytes)));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(steadfast_tokio::Client::new().send(request(url, body)))
}

fn on_smol(url: &str, bytes: u64) -> Outcome {
    let body = Body::once(steadfast_smol::reader(smol::io::repeat(b'x').take(bytes)));
    smol::block_on(steadfast_smol::Client::new().send(request(url, body)))
}

fn on_blocking(url: &str, bytes: u64) -> Outcome {
    let body = Body::once(steadfast_blocking::reader(std::io::repeat(b'x').take(bytes)));
    steadfast_blocking::Client::new().send(request(url, body))
}

/// What of this process lies in memory, in bytes
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux tells");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it has memory");
    let kib = line.trim().strip_suffix(" kB").expect("in KiB");
    kib.parse::<u64>().expect("a number") * 1024
}

/// Takes one upload in chunks, and answers it; how many bytes of body came, and the most memory meanwhile
fn serve(socket: TcpStream) -> (u64, u64) {
    socket.set_read_timeout(Some(Duration::from_secs_f64(CAP))).expect("a bound");
    let mut reading = BufReader::with_capacity(64 * 1024, socket);
    let mut line = String::new();
    let mut next_line = |reading: &mut BufReader<TcpStream>| {
        line.clear();
        reading.read_line(&mut line).expect("a line");
        line.trim_end().to_ascii_lowercase()
    };
    let mut is_chunked = false;
    loop {
        let field = next_line(&mut reading);
        is_chunked |= field == "transfer-encoding: chunked";
        if field.is_empty() {
            break;
        }
    }
    assert!(is_chunked, "its length is not known");
    let (mut came, mut most, mut look_at) = (0, 0, 0);
    loop {
        let length = u64::from_str_radix(&next_line(&mut reading), 16).expect("a chunk's length");
        let read = copy(&mut (&mut reading).take(length), &mut sink()).expect("a chunk");
        assert_eq!(read, length);
        assert_eq!(next_line(&mut reading), "", "the end of a chunk");
        came += length;
        if came >= look_at || length == 0 {
            (most, look_at) = (most.max(resident()), came + LOOK);
        }
        if length == 0 {
            break;
        }
    }
    reading.get_mut().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").expect("a client");
    (came, most)
}

fn upload(client: Client, bytes: u64) -> u64 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/v1/files", listener.local_addr().expect("an address"));
    let serving = thread::spawn(move || serve(listener.accept().expect("a connection").0));
    let outcome = client(&url, bytes);
    assert_eq!(&outcome.result.expect("a success").body[..], b"ok");
    let (came, most) = serving.join().expect("the server is well");
    assert_eq!(came, bytes);
    most
}

/// One test, for memory is the process's
#[test]
fn a_body_without_measure_goes_out_in_flat_memory() {
    for (name, client) in CLIENTS {
        upload(client, WARM);
        let before = resident();
        let most = upload(client, LONG);
        let growth = most.saturating_sub(before);
        println!("{name}: {} MiB sent, {} KiB more held", LONG >> 20, growth >> 10);
        assert!(growth < MOST_GROWTH, "{name}: {growth} bytes");
    }
}
