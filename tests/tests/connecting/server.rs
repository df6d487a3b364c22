//! Servers that a test moves itself.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::clients::CAP;

/// The answer to a request, on a connection that stays open
pub(crate) const ANSWER: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nHi";

/// A server in a thread that accepts so many connections, and does the same with each
pub(crate) struct Server<T> {
    port: u16,
    thread: JoinHandle<Vec<T>>,
}

impl<T: Send + 'static> Server<T> {
    pub(crate) fn start(connections: usize, serve: impl Fn(TcpStream) -> T + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let thread = thread::spawn(move || {
            let serve = |_| {
                let (socket, _) = listener.accept().expect("a connection");
                socket.set_read_timeout(Some(CAP)).expect("a timeout");
                serve(socket)
            };
            (0..connections).map(serve).collect()
        });
        Self { port, thread }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// What came of each connection, once all are over
    pub(crate) fn join(self) -> Vec<T> {
        self.thread.join().expect("the server is well")
    }
}

/// An origin that answers every request, for as long as the process lives
#[derive(Clone)]
pub(crate) struct Origin {
    port: u16,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Origin {
    /// Plain, or under TLS
    pub(crate) fn start(tls: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let origin = Self { port, heads: Arc::default() };
        let serving = origin.clone();
        thread::spawn(move || {
            for socket in listener.incoming() {
                let (socket, serving, tls) = (socket.expect("a connection"), serving.clone(), tls.clone());
                thread::spawn(move || serving.serve_under(socket, tls));
            }
        });
        origin
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The heads of the requests that came so far
    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The same origin at a Unix socket as well, and how many connections were made to that
    #[cfg(unix)]
    pub(crate) fn listen_at(
        &self,
        path: &std::path::Path,
        tls: Option<Arc<ServerConfig>>,
    ) -> Arc<AtomicUsize> {
        let listener = std::os::unix::net::UnixListener::bind(path).expect("a path");
        let (serving, connections) = (self.clone(), Arc::new(AtomicUsize::new(0)));
        let count = Arc::clone(&connections);
        thread::spawn(move || {
            for socket in listener.incoming() {
                count.fetch_add(1, Ordering::Relaxed);
                let (socket, serving, tls) = (socket.expect("a connection"), serving.clone(), tls.clone());
                thread::spawn(move || serving.serve_under(socket, tls));
            }
        });
        connections
    }

    fn serve_under(&self, socket: impl Read + Write, tls: Option<Arc<ServerConfig>>) {
        match tls {
            None => self.serve(socket),
            Some(config) => {
                let connection = ServerConnection::new(config).expect("a server");
                self.serve(StreamOwned::new(connection, socket));
            }
        }
    }

    fn serve(&self, mut stream: impl Read + Write) {
        while let Some(head) = read_head(&mut stream) {
            let fields = head.to_ascii_lowercase();
            let is_last = fields.contains("\r\nconnection: close\r\n");
            let length = fields.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length: u64 = length.expect("a length").parse().expect("a number");
            self.heads.lock().unwrap_or_else(PoisonError::into_inner).push(head);
            let body = std::io::copy(&mut (&mut stream).take(length), &mut std::io::sink());
            if body.ok() != Some(length) || stream.write_all(ANSWER.as_bytes()).is_err() || is_last {
                return;
            }
        }
    }
}

/// Answers one request under TLS, if there comes one: whether there was
pub(crate) fn answer_secure(socket: TcpStream, config: Arc<ServerConfig>) -> bool {
    let connection = ServerConnection::new(config).expect("a server");
    let mut stream = StreamOwned::new(connection, socket);
    let is_answered = read_head(&mut stream).is_some() && stream.write_all(ANSWER.as_bytes()).is_ok();
    // What was not read would make the operating system reset the connection, and the alert be lost.
    let _ = stream.conn.write_tls(&mut stream.sock);
    let _ = stream.sock.shutdown(Shutdown::Write);
    let _ = std::io::copy(&mut stream.sock, &mut std::io::sink());
    is_answered
}

/// Reads to the end of a head, whose body is two bytes; `None` where the client leaves before
pub(crate) fn read_head(stream: &mut impl Read) -> Option<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    String::from_utf8(head).ok()
}
