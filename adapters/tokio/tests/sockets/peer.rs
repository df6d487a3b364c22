//! A server that does what the test says, when it says so.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use socket2::{Domain, Socket, Type};

/// No wait of these tests is meant to take so long
pub(crate) const CAP: Duration = Duration::from_secs(60);

/// A listening socket
pub(crate) struct Server(TcpListener);

/// One accepted connection
pub(crate) enum Peer {
    Plain(TcpStream),
    Secure(Box<StreamOwned<ServerConnection, TcpStream>>),
}

/// How a client left
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// A FIN; over TLS a `close_notify` before it
    Fin,
    /// A reset, or over TLS a FIN without `close_notify`
    Abruptly,
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::start_on(Ipv4Addr::LOCALHOST.into())
    }

    pub(crate) fn start_on(address: IpAddr) -> Self {
        Self(TcpListener::bind(SocketAddr::new(address, 0)).expect("a free port"))
    }

    pub(crate) fn port(&self) -> u16 {
        self.0.local_addr().expect("a bound address").port()
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.0.local_addr().expect("a bound address")
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port())
    }

    /// The next connection; blocks, so a client must have begun to connect
    pub(crate) fn accept(&self) -> Peer {
        let listener = self.0.try_clone().expect("a clone");
        let (sender, accepted) = mpsc::channel();
        thread::spawn(move || sender.send(listener.accept()));
        let (socket, _) = accepted.recv_timeout(CAP).expect("a client in time").expect("a connection");
        socket.set_read_timeout(Some(CAP)).expect("a timeout");
        socket.set_nodelay(true).expect("no delay");
        Peer::Plain(socket)
    }

    /// Whether a connection waits to be accepted
    pub(crate) fn has_another(&self) -> bool {
        self.0.set_nonblocking(true).expect("non-blocking");
        let accepted = self.0.accept();
        self.0.set_nonblocking(false).expect("blocking");
        match accepted {
            Ok(_) => true,
            Err(error) if error.kind() == ErrorKind::WouldBlock => false,
            Err(error) => panic!("{error}"),
        }
    }
}

/// A bound address where no connection comes about, for as long as it lives
pub(crate) struct BlackHole {
    socket: Socket,
    /// Fill the backlog
    _waiting: Vec<Socket>,
}

impl BlackHole {
    /// One that swallows packets: its backlog is full
    pub(crate) fn start_on(address: IpAddr) -> Self {
        let mut hole = Self::refusing(address);
        hole.socket.listen(0).expect("a listener");
        let waiting = || {
            let socket = Socket::new(Domain::for_address(hole.address()), Type::STREAM, None)?;
            let connected = socket.connect_timeout(&hole.address().into(), Duration::from_millis(100));
            connected.map(|()| socket)
        };
        hole._waiting = std::iter::from_fn(|| waiting().ok()).take(16).collect();
        assert!(hole._waiting.len() < 16, "it is still open");
        hole
    }

    /// One that refuses: nobody listens
    pub(crate) fn refusing(address: IpAddr) -> Self {
        let address = SocketAddr::new(address, 0);
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None).expect("a socket");
        socket.bind(&address.into()).expect("a free port");
        Self { socket, _waiting: Vec::new() }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.socket.local_addr().expect("a bound address").as_socket().expect("an IP address")
    }
}

impl Peer {
    /// Speaks TLS from now on
    pub(crate) fn secure(self, config: Arc<ServerConfig>) -> Self {
        let Self::Plain(socket) = self else { panic!("it speaks TLS already") };
        let connection = ServerConnection::new(config).expect("a server");
        Self::Secure(Box::new(StreamOwned::new(connection, socket)))
    }

    /// Reads one request with its body
    pub(crate) fn request(&mut self) -> Vec<u8> {
        self.try_request().expect("a head")
    }

    /// As [`Peer::request`]; `None` if the client leaves before the head is whole
    pub(crate) fn try_request(&mut self) -> Option<Vec<u8>> {
        let mut request = Vec::new();
        let mut byte = [0];
        while !request.ends_with(b"\r\n\r\n") {
            self.read_exact(&mut byte).ok()?;
            request.push(byte[0]);
        }
        let head = String::from_utf8(request.clone()).expect("text").to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
        let mut body = vec![0; length.parse().expect("a number")];
        self.read_exact(&mut body).expect("a body");
        request.extend(body);
        Some(request)
    }

    /// Writes to a client that may be gone
    pub(crate) fn try_write(&mut self, bytes: impl AsRef<[u8]>) -> std::io::Result<()> {
        match self {
            Self::Plain(socket) => socket.write_all(bytes.as_ref()),
            Self::Secure(stream) => stream.write_all(bytes.as_ref()),
        }
    }

    /// Writes; on loopback the bytes are in the client's socket when it returns
    pub(crate) fn write(&mut self, bytes: impl AsRef<[u8]>) {
        match self {
            Self::Plain(socket) => socket.write_all(bytes.as_ref()).expect("a client that reads"),
            Self::Secure(stream) => {
                stream.write_all(bytes.as_ref()).expect("a client that reads");
                stream.flush().expect("a client that reads");
            }
        }
    }

    /// Ends the connection: over TLS without `close_notify`
    pub(crate) fn cut(self) {
        drop(self);
    }

    /// Reads until the client has left
    pub(crate) fn left(mut self) -> Left {
        match std::io::copy(&mut self, &mut std::io::sink()) {
            Ok(_) => Left::Fin,
            Err(error) if [ErrorKind::ConnectionReset, ErrorKind::UnexpectedEof].contains(&error.kind()) => {
                Left::Abruptly
            }
            Err(error) => panic!("the client stays: {error}"),
        }
    }
}

impl Read for Peer {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(buffer),
            Self::Secure(stream) => stream.read(buffer),
        }
    }
}
