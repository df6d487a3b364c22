//! A server that does what the test says, when it says so, and what is asked of it.

use std::future::{Future, poll_fn};
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::pin::Pin;
use std::sync::mpsc;
use std::task::Poll;
use std::thread;
use std::time::Duration;

use serde_json::json;
use smol::Timer;
use smol::stream::Stream;
use socket2::{Domain, Type};
use steadfast_smol::{CallStream, Dialect, Overrides, Piece, Request};

/// No wait of these tests is meant to take so long
pub(crate) const CAP: Duration = Duration::from_secs(60);

pub(crate) const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
pub(crate) const STOP: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
pub(crate) const DONE: &str = "data: [DONE]\n\n";

/// A listening socket
pub(crate) struct Server(TcpListener);

/// One accepted connection
pub(crate) struct Peer(TcpStream);

impl Server {
    pub(crate) fn start() -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").expect("a free port"))
    }

    pub(crate) fn on(listener: TcpListener) -> Self {
        Self(listener)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.0.local_addr().expect("a bound address")
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address())
    }

    /// The next connection; blocks, so a client must have begun to connect
    pub(crate) fn accept(&self) -> Peer {
        let listener = self.0.try_clone().expect("a clone");
        let (sender, accepted) = mpsc::channel();
        thread::spawn(move || sender.send(listener.accept()));
        let (socket, _) = accepted.recv_timeout(CAP).expect("a client in time").expect("a connection");
        socket.set_read_timeout(Some(CAP)).expect("a timeout");
        socket.set_nodelay(true).expect("no delay");
        Peer(socket)
    }
}

/// A bound address that swallows what is sent to it, for as long as it lives: its backlog is full
pub(crate) struct BlackHole {
    socket: socket2::Socket,
    _waiting: Vec<socket2::Socket>,
}

impl BlackHole {
    pub(crate) fn start_on(address: IpAddr) -> Self {
        let address = SocketAddr::new(address, 0);
        let new = || socket2::Socket::new(Domain::for_address(address), Type::STREAM, None);
        let socket = new().expect("a socket");
        socket.bind(&address.into()).expect("a free port");
        socket.listen(0).expect("a listener");
        let mut hole = Self { socket, _waiting: Vec::new() };
        let waiting = || {
            let socket = new()?;
            let connected = socket.connect_timeout(&hole.address().into(), Duration::from_millis(100));
            connected.map(|()| socket)
        };
        hole._waiting = std::iter::from_fn(|| waiting().ok()).take(16).collect();
        assert!(hole._waiting.len() < 16, "it is still open");
        hole
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.socket.local_addr().expect("a bound address").as_socket().expect("an IP address")
    }
}

impl Peer {
    /// Reads one request with its body
    pub(crate) fn request(&mut self) -> String {
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            request.extend(self.bytes::<1>());
        }
        let head = String::from_utf8(request).expect("text");
        let lower = head.to_ascii_lowercase();
        let length = lower.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
        let mut body = vec![0; length.parse().expect("a number")];
        self.0.read_exact(&mut body).expect("a body");
        head
    }

    pub(crate) fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.0.read_exact(&mut bytes).expect("so many bytes");
        bytes
    }

    /// Writes; on loopback the bytes are in the client's socket when it returns
    pub(crate) fn write(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).expect("a client that reads");
    }

    /// Reads until the client has left by a FIN
    pub(crate) fn left(mut self) {
        std::io::copy(&mut self.0, &mut std::io::sink()).expect("a FIN");
    }
}

/// An event that brings this text
pub(crate) fn text(text: &str) -> String {
    let chunk = json!({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": null}]});
    format!("data: {chunk}\n\n")
}

/// A unary answer, after which the connection may be used again
pub(crate) fn answer(said: &str) -> String {
    let body = json!({"choices": [{"index": 0, "message": {"role": "assistant", "content": said}, "finish_reason": "stop"}]});
    let body = body.to_string();
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// A stream of OpenAI Chat
pub(crate) fn stream_from(url: &str, overrides: Overrides) -> Request {
    let request = Request::post(&format!("{url}/v1/chat/completions")).json(&json!({"stream": true}));
    request.dialect(Dialect::OpenAiChat).overrides(overrides).stream().build().expect("a valid request")
}

pub(crate) fn unary_from(url: &str, overrides: Overrides) -> Request {
    let request = Request::post(&format!("{url}/v1/chat/completions")).json(&json!({}));
    request.dialect(Dialect::OpenAiChat).overrides(overrides).build().expect("a valid request")
}

pub(crate) fn once() -> Overrides {
    Overrides::new().max_attempts(1)
}

/// One poll for the next piece, whose future is dropped then
pub(crate) async fn poll_once(stream: &mut CallStream) -> Poll<Option<Piece>> {
    poll_fn(|cx| Poll::Ready(Pin::new(&mut *stream).poll_next(cx))).await
}

/// Waits for `future` on this thread, but not for ever
pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    smol::block_on(smol::future::or(future, async {
        Timer::after(CAP).await;
        panic!("no end in time")
    }))
}

/// Waits for what the client's tasks do, without a word from outside
pub(crate) async fn until(mut holds: impl FnMut() -> bool) {
    while !holds() {
        Timer::after(Duration::from_millis(1)).await;
    }
}
