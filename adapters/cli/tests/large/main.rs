//! Bodies that no memory holds, through the relay in flat memory.
//!
//! What the process holds at the most is the system's own count (`VmHWM`), after a first call of each kind.
//! Apart from the other tests of the program, as these keep the machine busy.

#![cfg(target_os = "linux")]

#[expect(dead_code, reason = "the other tests use the rest")]
#[path = "../program/serve/support.rs"]
mod serving;
#[expect(dead_code, reason = "the other tests use the rest")]
#[path = "../program/support.rs"]
mod support;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::thread;

use serving::{ConfigFile, Serving};

/// How much more the process may hold than before
const MAX_GROWTH: u64 = 16 << 20;
/// Bytes that no read or write is as long as, nor a divisor of
const PATTERN_BYTES: usize = (1 << 20) - 3;

/// How a body says where it ends
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Length,
    Chunked,
}

impl Framing {
    /// How much is sent: of what is framed anew, less shows the same
    const fn bytes(self) -> u64 {
        match self {
            Self::Length => 2 << 30,
            Self::Chunked => 256 << 20,
        }
    }
}

/// Which of the two is large
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Large {
    Request,
    Answer,
}

/// Twice over, so that a read that begins anywhere is a part of it
fn pattern() -> Vec<u8> {
    let once: Vec<u8> = (0..PATTERN_BYTES).map(|at| (at * 31 + at / 251) as u8).collect();
    once.repeat(2)
}

fn write_body(to: &mut TcpStream, pattern: &[u8], length: u64, framing: Framing) {
    let mut left = length;
    while left > 0 {
        let piece = &pattern[..usize::try_from(left).unwrap_or(usize::MAX).min(PATTERN_BYTES)];
        match framing {
            Framing::Length => to.write_all(piece).expect("it reads"),
            Framing::Chunked => {
                to.write_all(format!("{:x}\r\n", piece.len()).as_bytes()).expect("it reads");
                to.write_all(piece).expect("it reads");
                to.write_all(b"\r\n").expect("it reads");
            }
        }
        left -= piece.len() as u64;
    }
    if framing == Framing::Chunked {
        to.write_all(b"0\r\n\r\n").expect("it reads");
    }
}

/// Reads a message to its end, where what is large is the pattern
fn read_message(from: &mut TcpStream, pattern: &[u8]) -> (String, u64) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        from.read_exact(&mut byte).expect("a head");
        head.extend(byte);
    }
    let head = String::from_utf8(head).expect("a head is text");
    let length = head
        .to_ascii_lowercase()
        .split_once("content-length: ")
        .map(|(_, rest)| rest.split("\r\n").next().expect("a value").parse::<u64>().expect("a length"));
    let mut got = 0;
    let mut buffer = vec![0; 1 << 20];
    let mut payload = |from: &mut TcpStream, length: u64| {
        let mut left = length;
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
            let read = from.read(&mut buffer[..most]).expect("a body");
            assert_ne!(read, 0, "cut after {got}");
            let at = (got % PATTERN_BYTES as u64) as usize;
            assert!(buffer[..read] == pattern[at..at + read], "other bytes behind {got}");
            got += read as u64;
            left -= read as u64;
        }
    };
    match length {
        Some(length) => payload(from, length),
        None if head.to_ascii_lowercase().contains("transfer-encoding: chunked") => loop {
            let mut line = Vec::new();
            while !line.ends_with(b"\r\n") {
                let mut byte = [0];
                from.read_exact(&mut byte).expect("a chunk");
                line.extend(byte);
            }
            let digits = std::str::from_utf8(&line).expect("a size").trim();
            let size = u64::from_str_radix(digits, 16).expect("a size");
            payload(from, size);
            from.read_exact(&mut [0; 2]).expect("the end of a chunk");
            if size == 0 {
                break;
            }
        },
        None => {}
    }
    (head, got)
}

/// One call of so many bytes through the relay
fn call(
    serving: &Serving,
    provider: &TcpListener,
    pattern: &[u8],
    large: Large,
    framing: Framing,
    length: u64,
) {
    let head = match framing {
        Framing::Length => format!("Content-Length: {length}\r\n\r\n"),
        Framing::Chunked => "Transfer-Encoding: chunked\r\n\r\n".to_owned(),
    };
    let (asks, answers) = match large {
        Large::Request => (head.as_str(), "Content-Length: 0\r\n\r\n"),
        Large::Answer => ("Content-Length: 0\r\n\r\n", head.as_str()),
    };
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut provider = provider.accept().expect("the relay connects").0;
            let (head, got) = read_message(&mut provider, pattern);
            assert!(head.starts_with("POST /v1/x HTTP/1.1\r\n"), "{head}");
            assert_eq!(got, if large == Large::Request { length } else { 0 });
            provider.write_all(format!("HTTP/1.1 200 OK\r\n{answers}").as_bytes()).expect("it reads");
            if large == Large::Answer {
                write_body(&mut provider, pattern, length, framing);
            }
        });
        let mut app = TcpStream::connect(serving.address()).expect("it accepts");
        let mut writes = app.try_clone().expect("another descriptor");
        scope.spawn(move || {
            let line = "POST /local/v1/x HTTP/1.1\r\nHost: relay\r\n";
            writes.write_all(format!("{line}{asks}").as_bytes()).expect("it reads");
            if large == Large::Request {
                write_body(&mut writes, pattern, length, framing);
            }
        });
        let (head, got) = read_message(&mut app, pattern);
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert_eq!(got, if large == Large::Answer { length } else { 0 });
    });
}

/// A line of the system's account of the process, in bytes
fn memory(serving: &Serving, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", serving.child.id())).expect("an account");
    let line = status.lines().find(|line| line.starts_with(name)).expect("a line of it");
    let kibibytes: u64 = line.split_whitespace().nth(1).expect("a number").parse().expect("a number");
    kibibytes << 10
}

/// How much more the process held than before, at the most
fn growth(name: &str, more: &str) -> u64 {
    let provider = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", provider.local_addr().expect("an address"));
    let file = ConfigFile::new(name, &format!("{more}\n[upstream.local]\nurl = \"{url}\"\n"));
    let serving = Serving::start(&["--config", file.path()]);
    let pattern = pattern();
    let kinds = [Large::Request, Large::Answer].into_iter();
    let kinds = kinds.flat_map(|large| [Framing::Length, Framing::Chunked].map(|framing| (large, framing)));
    for (large, framing) in kinds.clone() {
        call(&serving, &provider, &pattern, large, framing, 1 << 16);
    }
    let before = memory(&serving, "VmRSS:");
    for (large, framing) in kinds {
        call(&serving, &provider, &pattern, large, framing, framing.bytes());
    }
    let most = memory(&serving, "VmHWM:");
    assert_eq!(serving.stop().code, Some(0));
    println!("size: {name}: {} KiB more for bodies of 2 GiB", most.saturating_sub(before) >> 10);
    most.saturating_sub(before)
}

#[test]
fn a_large_upload_and_a_large_answer_pass_in_flat_memory() {
    let growth = growth("large", "");
    assert!(growth < MAX_GROWTH, "{growth}");
}

/// More than the sockets on the way hold, with the largest buffers that are common, and what is read and
/// dropped behind an answer of the relay's own
const MAX_TAKEN: u64 = 256 << 20;

/// Writes until that fails; how much was taken
fn write_until_it_fails(to: &mut TcpStream, pattern: &[u8]) -> u64 {
    let mut sent = 0;
    while let Ok(taken) = to.write(&pattern[..PATTERN_BYTES]) {
        sent += taken as u64;
        assert!(sent < MAX_TAKEN, "nobody holds it back");
    }
    sent
}

/// How much more the process held while so many calls stood still, of which the app stops reading a large
/// answer or the provider a large request
fn growth_of_calls_that_stand_still(large: Large, limit: &str) -> u64 {
    const CALLS: usize = 20;
    let provider = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", provider.local_addr().expect("an address"));
    let config = format!("[limits]\n{limit} = 1\n[upstream.local]\nurl = \"{url}\"\n");
    let file = ConfigFile::new(&format!("still-{large:?}"), &config);
    let serving = Serving::start(&["--config", file.path()]);
    let pattern = pattern();
    call(&serving, &provider, &pattern, large, Framing::Length, 1 << 16);
    let before = memory(&serving, "VmRSS:");
    let endless = format!("Content-Length: {}\r\n\r\n", u64::MAX);
    thread::scope(|scope| {
        let mut still = Vec::new();
        for _ in 0..CALLS {
            let mut app = TcpStream::connect(serving.address()).expect("it accepts");
            let (pattern, endless) = (&pattern, &endless);
            let line = "POST /local/v1/x HTTP/1.1\r\nHost: relay\r\n";
            match large {
                Large::Request => {
                    app.write_all(format!("{line}{endless}").as_bytes()).expect("it reads");
                    scope.spawn(move || write_until_it_fails(&mut app, pattern));
                    still.push(provider.accept().expect("the relay connects").0);
                }
                Large::Answer => {
                    app.write_all(format!("{line}\r\n").as_bytes()).expect("it reads");
                    still.push(app);
                    let mut peer = provider.accept().expect("the relay connects").0;
                    scope.spawn(move || {
                        read_message(&mut peer, pattern);
                        peer.write_all(format!("HTTP/1.1 200 OK\r\n{endless}").as_bytes()).expect("it reads");
                        write_until_it_fails(&mut peer, pattern)
                    });
                }
            }
        }
        still
    });
    let most = memory(&serving, "VmHWM:");
    assert_eq!(serving.stop().code, Some(0));
    println!("size: calls that stand still, {large:?}: {} KiB more", most.saturating_sub(before) >> 10);
    most.saturating_sub(before)
}

/// The provider is held back: it gets rid of what the sockets hold, and then silence ends the calls
#[test]
fn apps_that_stop_reading_cost_no_memory() {
    let growth = growth_of_calls_that_stand_still(Large::Answer, "silence");
    assert!(growth < MAX_GROWTH, "{growth}");
}

/// The app is held back likewise, until the answer is late
#[test]
fn providers_that_stop_reading_cost_no_memory() {
    let growth = growth_of_calls_that_stand_still(Large::Request, "first_byte");
    assert!(growth < MAX_GROWTH, "{growth}");
}

#[test]
fn so_they_do_where_they_are_recorded() {
    let database =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("large-{}.db", std::process::id()));
    let recording = format!("[recording]\ndatabase = {database:?}\nmax_queued_bytes = 4194304\n");
    let growth = growth("large-recorded", &recording);
    for end in ["", "-wal", "-shm"] {
        // The target directory may keep what cannot be removed.
        _ = std::fs::remove_file(format!("{}{end}", database.display()));
    }
    assert!(growth < MAX_GROWTH, "{growth}");
}
