//! Where `call` and `gaps` connect, and how.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{CAP, finish, run, spawn, steadfast};

const STREAM: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hello\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

/// Reads a request; returns its head
fn request(peer: &mut impl Read) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        peer.read_exact(&mut byte).expect("a head");
        head.extend(byte);
    }
    let head = String::from_utf8(head).expect("text");
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
    let mut body = vec![0; length.parse().expect("a number")];
    peer.read_exact(&mut body).expect("a body");
    head
}

fn answer(peer: &mut impl Write) {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    peer.write_all(format!("{head}{STREAM}").as_bytes()).expect("a client that reads");
}

/// A model server on a Unix socket that answers one request, and tells its head
fn socket(name: &str) -> (PathBuf, JoinHandle<String>) {
    let path = std::env::temp_dir().join(format!("steadfast-{}-{name}.sock", std::process::id()));
    _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).expect("a socket");
    let serving = thread::spawn(move || {
        let (mut peer, _) = listener.accept().expect("a client");
        let head = request(&mut peer);
        answer(&mut peer);
        head
    });
    (path, serving)
}

#[test]
fn a_unix_socket_is_asked_whatever_host_the_base_url_names() {
    for (name, more, line, host) in [
        ("plain", &[][..], "POST /v1/chat/completions HTTP/1.1", "localhost"),
        ("anthropic", &["--provider", "anthropic"], "POST /v1/messages HTTP/1.1", "localhost"),
        ("url", &["--base-url", "http://model.test/x"], "POST /x/chat/completions HTTP/1.1", "model.test"),
    ] {
        let (path, serving) = socket(name);
        let path = path.to_str().expect("text");
        // A key that is set chooses no provider, and no proxy is asked.
        let mut call = steadfast(&["call", "--unix-socket", path, "Hi."]);
        let ran = run(call.args(more).env("ANTHROPIC_API_KEY", "k").env("ALL_PROXY", "http://127.0.0.1:1"));
        let head = serving.join().expect("the server is well");
        std::fs::remove_file(path).expect("it is there");
        assert!(head.starts_with(&format!("{line}\r\nhost: {host}\r\n")), "{name}: {head}");
        if name != "anthropic" {
            assert_eq!((ran.code, &*ran.stdout, &*ran.stderr), (Some(0), "Hello\n", ""), "{name}");
        }
    }
}

#[test]
fn a_unix_socket_is_measured() {
    let (path, serving) = socket("gaps");
    let ran = run(&mut steadfast(&["gaps", "--json", "--unix-socket", path.to_str().expect("text")]));
    serving.join().expect("the server is well");
    std::fs::remove_file(path).expect("it is there");
    let report: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let run = &report["runs"][0];
    assert_eq!((&run["outcome"], &run["error"]), (&json!("completed"), &Value::Null), "{ran:?}");
}

#[test]
fn a_unix_socket_where_nobody_listens_is_a_failure_to_connect() {
    let path = std::env::temp_dir().join(format!("steadfast-{}-nobody.sock", std::process::id()));
    let ran = run(&mut steadfast(&["call", "--unix-socket", path.to_str().expect("text"), "Hi."]));
    assert_eq!(ran.code, Some(13), "{ran:?}");
    assert!(ran.stderr.contains("transport: the connection failed at stage connect"), "{ran:?}");
}

#[test]
fn a_time_that_is_none_is_a_usage_error() {
    for flag in ["--tcp-keep-alive", "--tcp-user-timeout"] {
        let ran = run(&mut steadfast(&["call", flag, "soon", "Hi."]));
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains("takes a number of seconds above 0, or off"), "{ran:?}");
    }
}

/// The timer that runs for the client's end of a connection: 02 is that of probes, 00 is none
///
/// Linux alone tells, in the sixth column of its table.
#[cfg(target_os = "linux")]
fn timer(client: u16) -> Option<String> {
    let table = std::fs::read_to_string("/proc/net/tcp").expect("a table");
    table.lines().skip(1).find_map(|line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let port = u16::from_str_radix(columns[1].split_once(':')?.1, 16).ok()?;
        (port == client && columns[3] == "01").then(|| columns[5][..2].to_owned())
    })
}

#[cfg(target_os = "linux")]
#[test]
fn probes_are_sent_unless_they_are_switched_off() {
    for (more, expected) in [(&[][..], "02"), (&["--tcp-keep-alive", "off"], "00")] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let child = spawn(steadfast(&["call", "--base-url", &url, "Hi."]).args(more));
        let (mut peer, client) = listener.accept().expect("a client");
        request(&mut peer);
        // Until what was sent is acknowledged, that has a timer of its own.
        let until = Instant::now() + CAP;
        while timer(client.port()).as_deref() != Some(expected) {
            assert!(Instant::now() < until, "{more:?}: {:?}", timer(client.port()));
            thread::sleep(Duration::from_millis(5));
        }
        answer(&mut peer);
        drop(peer);
        assert_eq!(finish(child).code, Some(0), "{more:?}");
    }
}
