//! The relay as a process, a provider that does what a test says, and an app that sees every byte.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdout, Command};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use serde_json::Value;

use crate::support::{CAP, await_text, end_of, signal, spawn, steadfast};

/// The hash of [`APP_KEY`]
pub(super) const APP_KEY_HASH: &str =
    "sha256:8c1c62823bf8dbe83ca157ee1a5882899da013f1911208e7a7c9ef03c551fd22";
/// A key of the relay's own
pub(super) const APP_KEY: &str = "app-key-0123456789abcdef";

/// A configuration in a file of its own
pub(super) struct ConfigFile(PathBuf);

impl ConfigFile {
    pub(super) fn new(name: &str, text: &str) -> Self {
        let name = format!("{name}-{}.toml", std::process::id());
        let file = Self(PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name));
        file.write(text);
        file
    }

    pub(super) fn write(&self, text: &str) {
        std::fs::write(&self.0, text).expect("a file");
    }

    pub(super) fn path(&self) -> &str {
        self.0.to_str().expect("a path in UTF-8")
    }
}

impl Drop for ConfigFile {
    fn drop(&mut self) {
        // The target directory may keep what cannot be removed.
        _ = std::fs::remove_file(&self.0);
    }
}

/// `steadfast serve`, listening
pub(super) struct Serving {
    pub(super) child: Child,
    stdout: BufReader<ChildStdout>,
    stderr: ChildStderr,
    /// What it said of itself
    pub(super) listening: Value,
}

/// How it ended: its exit code, and all that it printed behind the first line
pub(super) struct Ended {
    pub(super) code: Option<i32>,
    pub(super) said: String,
}

impl Ended {
    /// Whether it ended well, and said no more than that it waits for a connection that is about to close
    pub(super) fn is_quiet(&self) -> bool {
        let rest = self.said.strip_prefix("steadfast: draining: 1 connection open").unwrap_or(&self.said);
        self.code == Some(0) && rest.lines().count() <= usize::from(rest.len() < self.said.len())
    }
}

impl Serving {
    /// Starts it on a free port with these arguments
    pub(super) fn start(arguments: &[&str]) -> Self {
        Self::with(&mut steadfast(&["serve", "--json", "--listen", "127.0.0.1:0"]), arguments)
    }

    pub(super) fn with(command: &mut Command, arguments: &[&str]) -> Self {
        let mut child = spawn(command.args(arguments));
        let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut stderr = child.stderr.take().expect("a pipe");
        let mut line = String::new();
        stdout.read_line(&mut line).expect("a line");
        let listening = serde_json::from_str(&line).unwrap_or_else(|_| {
            let mut said = String::new();
            stderr.read_to_string(&mut said).expect("a pipe");
            panic!("{line:?}: {said}")
        });
        Self { child, stdout, stderr, listening }
    }

    pub(super) fn address(&self) -> &str {
        self.listening["listening"].as_str().expect("an address")
    }

    /// Sends a request, on a connection of its own
    pub(super) fn ask(&self, path: &str, fields: &str, body: &str) -> Peer {
        let mut app = Peer::new(TcpStream::connect(self.address()).expect("it accepts"));
        let length = body.len();
        app.send(&format!(
            "POST {path} HTTP/1.1\r\nHost: relay\r\n{fields}Content-Length: {length}\r\n\r\n{body}"
        ));
        app
    }

    /// The whole answer to a request, after which the connection is closed
    pub(super) fn answer(&self, path: &str, fields: &str, body: &str) -> String {
        self.ask(path, &format!("Connection: close\r\n{fields}"), body).rest()
    }

    /// Asks and answers once: `{}` for `{}`, over connections that are closed with it
    pub(super) fn pass(&self, provider: &Provider, path: &str) {
        let mut app = self.ask(path, "Connection: close\r\n", "{}");
        let (mut peer, _) = provider.accept();
        peer.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}");
        let answer = app.rest();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("{}"), "{answer}");
    }

    pub(super) fn signal(&self, name: &str) {
        signal(&self.child, name);
    }

    /// Waits until it says that on stderr
    pub(super) fn await_said(&mut self, text: &str) {
        await_text(&mut self.stderr, text);
    }

    /// Waits for its end
    pub(super) fn end(mut self) -> Ended {
        let code = end_of(&mut self.child, |_| {});
        let mut said = String::new();
        self.stdout.read_to_string(&mut said).expect("a pipe");
        self.stderr.read_to_string(&mut said).expect("a pipe");
        Ended { code, said }
    }

    /// Stops it, and waits for its end
    pub(super) fn stop(self) -> Ended {
        self.signal("TERM");
        self.end()
    }
}

/// A provider
pub(super) struct Provider {
    pub(super) url: String,
    accepted: Receiver<TcpStream>,
}

impl Provider {
    pub(super) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (sender, accepted) = channel();
        thread::spawn(move || while sender.send(listener.accept().expect("a connection").0).is_ok() {});
        Self { url, accepted }
    }

    /// The next connection, and the request on it up to its body `{}`
    pub(super) fn accept(&self) -> (Peer, String) {
        let mut peer = Peer::new(self.accepted.recv_timeout(CAP).expect("the relay connects"));
        let request = peer.until("\r\n\r\n{}");
        (peer, request)
    }

    /// Whether nobody has connected since
    pub(super) fn is_alone(&self) -> bool {
        self.accepted.try_recv().is_err()
    }
}

/// One end of a connection
pub(super) struct Peer(TcpStream);

impl Peer {
    fn new(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(CAP)).expect("a timeout");
        Self(stream)
    }

    pub(super) fn send(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).expect("it reads");
    }

    /// What comes, up to and with `end`
    pub(super) fn until(&mut self, end: &str) -> String {
        let mut got = Vec::new();
        while !got.ends_with(end.as_bytes()) {
            let mut byte = [0];
            let read = self.0.read(&mut byte).expect("in time");
            assert_ne!(read, 0, "it ended after {:?}", String::from_utf8_lossy(&got));
            got.push(byte[0]);
        }
        String::from_utf8(got).expect("text")
    }

    /// What comes, to the end of the connection, in order or by a reset
    pub(super) fn rest(&mut self) -> String {
        let mut got = Vec::new();
        if let Err(error) = self.0.read_to_end(&mut got) {
            assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        }
        String::from_utf8(got).expect("text")
    }
}
