//! `steadfast mock`: the server as a plain client meets it, and the lines it prints.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, ChildStdout};

use serde_json::{Value, json};

use crate::support::{CAP, finish, run, signal, spawn, steadfast};

/// A script in a file of its own
struct ScriptFile(PathBuf);

impl ScriptFile {
    fn new(name: &str, text: &str) -> Self {
        let path =
            PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}.toml", std::process::id()));
        std::fs::write(&path, text).expect("a file");
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("a path in UTF-8")
    }
}

impl Drop for ScriptFile {
    fn drop(&mut self) {
        // The target directory may keep what cannot be removed.
        _ = std::fs::remove_file(&self.0);
    }
}

/// The program, serving, and the lines it prints
struct Serving {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Serving {
    fn start(arguments: &[&str]) -> (Self, Value) {
        let mut child = spawn(&mut steadfast(arguments));
        let lines = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut serving = Self { child, lines };
        let listening = serving.line();
        (serving, listening)
    }

    fn line(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("a line");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"))
    }
}

fn connect(listening: &Value) -> TcpStream {
    let address = listening["listening"].as_str().expect("an address");
    let socket = TcpStream::connect(address).expect("it accepts");
    socket.set_read_timeout(Some(CAP)).expect("a timeout");
    socket
}

const REQUEST: &[u8] = b"POST /v1/x HTTP/1.1\r\nAuthorization: Bearer s3cret\r\ncontent-length: 2\r\n\r\nhi";

const ANSWERS: &str = r#"
name = "answers"
about = "answers once, then resets"

[[connection]]
steps = [{ read = "request" }, { answer = { head = ["200 OK"], body = "hello" } }, "await-close"]

[[connection]]
steps = [{ read = 3 }, "rst"]
"#;

#[cfg(unix)]
#[test]
fn what_the_server_sees_is_told_line_by_line() {
    let file = ScriptFile::new("answers", ANSWERS);
    for stop in ["INT", "TERM"] {
        let (mut serving, listening) = Serving::start(&["mock", "--script", file.path()]);
        let address = listening["listening"].as_str().expect("an address").to_owned();
        assert_eq!(listening, json!({"listening": address, "base_url": format!("http://{address}")}));

        let mut socket = connect(&listening);
        let opened = serving.line();
        assert_eq!((&opened["event"], &opened["connection"]), (&json!("opened"), &json!(0)));
        socket.write_all(REQUEST).expect("it reads");
        let request = serving.line();
        assert_eq!(
            (&request["event"], &request["method"], &request["target"]),
            (&json!("request"), &json!("POST"), &json!("/v1/x"))
        );
        assert_eq!(request["headers"], json!([["authorization", "[redacted]"], ["content-length", "2"]]));
        assert_eq!((&request["body"], &request["complete"]), (&json!("hi"), &json!(true)));
        let mut answer = [0; "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello".len()];
        socket.read_exact(&mut answer).expect("the answer");
        assert!(answer.ends_with(b"\r\n\r\nhello"));
        drop(socket);
        let closed = serving.line();
        assert_eq!((&closed["event"], &closed["connection"]), (&json!("closed"), &json!(0)));
        assert_eq!(closed["closed_by_peer"]["how"], "fin");

        let mut socket = connect(&listening);
        assert_eq!(serving.line()["connection"], 1);
        socket.write_all(b"abc").expect("it reads");
        assert!(socket.read(&mut [0]).is_err(), "a reset");
        let closed = serving.line();
        assert_eq!((&closed["received"], &closed["closed_by_peer"]), (&json!(3), &Value::Null));

        signal(&serving.child, stop);
        let summary = serving.line();
        assert_eq!(
            summary,
            json!({"event": "summary", "connections": 2, "requests": 1, "received": REQUEST.len() + 3, "blocked_for": 0.0, "closed_by_peer": 1})
        );
        let Serving { child, mut lines } = serving;
        let mut rest = String::new();
        lines.read_to_string(&mut rest).expect("the end");
        let ran = finish(child);
        assert_eq!((ran.code, rest.as_str(), ran.stderr.as_str()), (Some(0), "", ""), "{stop}");
    }
}

#[cfg(unix)]
#[test]
fn a_server_with_tls_says_whom_to_trust_and_one_that_is_busy_ends_too() {
    let text = "name = \"x\"\nabout = \"holds\"\n[server]\ntls = true\n[[connection]]\nsteps = [\"hold\"]\n";
    let file = ScriptFile::new("tls", text);
    let (mut serving, listening) = Serving::start(&["mock", "--script", file.path()]);
    assert!(listening["base_url"].as_str().is_some_and(|url| url.starts_with("https://127.0.0.1:")));
    assert!(listening["ca_pem"].as_str().is_some_and(|pem| pem.starts_with("-----BEGIN CERTIFICATE-----")));
    let _socket = connect(&listening);
    assert_eq!(serving.line()["event"], "opened");
    signal(&serving.child, "TERM");
    assert_eq!(serving.line()["event"], "closed");
    assert_eq!(serving.line()["event"], "summary");
    assert_eq!(finish(serving.child).code, Some(0));
}

#[test]
fn a_bad_file_is_refused_with_the_field() {
    let cases = [
        ("name = 3", "scenario ?: name: must be a string"),
        (
            "name = \"x\"\nabout = \"y\"\n[[connection]]\nsteps = [\"clsoe\"]",
            "scenario x: connection[0].steps[0]: `clsoe` is no step; did you mean `close`?",
        ),
        ("name = ", "file: not TOML"),
    ];
    for (text, said) in cases {
        let file = ScriptFile::new("bad", text);
        let ran = run(&mut steadfast(&["mock", "--script", file.path()]));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{}", ran.stderr);
        assert!(ran.stderr.contains(said) && ran.stderr.contains(file.path()), "{said:?}: {}", ran.stderr);
    }
}

#[test]
fn a_port_that_is_taken_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port().to_string();
    let file = ScriptFile::new("taken", ANSWERS);
    let ran = run(&mut steadfast(&["mock", "--script", file.path(), "--port", &port]));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    let said = format!("steadfast: cannot listen on 127.0.0.1:{port}: ");
    assert!(ran.stderr.starts_with(&said) && ran.stderr.lines().count() == 1, "{}", ran.stderr);
}
