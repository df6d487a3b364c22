//! A tunnel through a proxy, from its first byte to the origin's.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use steadfast::connect::Tunnel;
use steadfast::machine::{FailureKind, IoFailure, Stage, io_failure};

use crate::connection::{Ask, Connection, Read, Socket};
use crate::driver::MAX_ROUNDS_PER_POLL;
use crate::scratch;

/// A socket that leads to the origin, by itself or through a proxy's tunnel
pub struct Through<S> {
    socket: S,
    /// What the origin had sent by the time the tunnel was open
    early: Vec<u8>,
    taken: usize,
}

impl<S> Through<S> {
    /// A socket without a tunnel
    pub fn direct(socket: S) -> Self {
        Self { socket, early: Vec::new(), taken: 0 }
    }

    /// The socket under it
    pub fn socket(&self) -> &S {
        &self.socket
    }

    /// Reads what came early; `None` where nothing is left of it
    fn read_early(&mut self, buffer: &mut [u8]) -> Option<usize> {
        if self.early.is_empty() {
            return None;
        }
        let left = &self.early[self.taken..];
        let read = left.len().min(buffer.len());
        buffer[..read].copy_from_slice(&left[..read]);
        self.taken += read;
        if self.taken == self.early.len() {
            self.early = Vec::new();
        }
        Some(read)
    }
}

impl<S: Socket> Socket for Through<S> {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        match self.read_early(buffer) {
            Some(read) => Poll::Ready(Ok(read)),
            None => self.socket.poll_read(cx, buffer),
        }
    }

    fn read_now(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.read_early(buffer).map_or_else(|| self.socket.read_now(buffer), Ok)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, parts: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        self.socket.poll_write(cx, parts)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket.poll_flush(cx)
    }
}

/// A socket to the first peer on the way to an origin: bare, or within TLS of its own
///
/// Within TLS only to a proxy whose URL says `https`.
pub enum Way<S> {
    /// Bare
    Bare(S),
    /// Within TLS
    Secure(Box<Connection<S>>),
}

/// The most reads of one poll that bring nothing but what TLS has to say for itself
const MAX_EMPTY_READS: usize = 16;

impl<S: Socket> Socket for Way<S> {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        match self {
            Self::Bare(socket) => socket.poll_read(cx, buffer),
            Self::Secure(connection) => poll_secure(connection, Ask::Reactor, cx, buffer),
        }
    }

    fn read_now(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Bare(socket) => socket.read_now(buffer),
            Self::Secure(connection) => {
                let mut cx = Context::from_waker(Waker::noop());
                match poll_secure(connection, Ask::System, &mut cx, buffer) {
                    Poll::Ready(read) => read,
                    Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
                }
            }
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, parts: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        match self {
            Self::Bare(socket) => socket.poll_write(cx, parts),
            Self::Secure(connection) => {
                let part = |at: usize| parts.get(at).map_or(&[][..], |part| &part[..]);
                connection.poll_write(cx, [part(0), part(1)]).map_err(io_error)
            }
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Bare(socket) => socket.poll_flush(cx),
            Self::Secure(connection) => connection.poll_flush(cx).map_err(io_error),
        }
    }
}

fn poll_secure<S: Socket>(
    connection: &mut Connection<S>,
    ask: Ask,
    cx: &mut Context<'_>,
    buffer: &mut [u8],
) -> Poll<io::Result<usize>> {
    for _ in 0..MAX_EMPTY_READS {
        match ready!(connection.poll_read(ask, cx, buffer)).map_err(io_error)? {
            Read::Bytes(0) => {}
            Read::Bytes(read) => return Poll::Ready(Ok(read)),
            // Whether that is the end of what the origin sends is told by the layer above.
            Read::Ended(_) => return Poll::Ready(Ok(0)),
        }
    }
    cx.waker().wake_by_ref();
    Poll::Pending
}

fn io_error(failure: IoFailure) -> io::Error {
    let kind = match failure.kind {
        FailureKind::Reset => io::ErrorKind::ConnectionReset,
        FailureKind::NotFound
        | FailureKind::Refused
        | FailureKind::Unreachable
        | FailureKind::Certificate(_)
        | FailureKind::ClientCertificate(_)
        | FailureKind::Tls
        | FailureKind::Proxy(_)
        | FailureKind::Other => io::ErrorKind::Other,
    };
    io::Error::new(kind, failure)
}

/// The set-up of a tunnel over a socket to a proxy, as a future of the socket [`Through`] it
///
/// It has no bound of its own: the machine's `connect_timeout` drops it.
#[must_use = "futures do nothing unless polled"]
pub struct Tunnelling<S> {
    socket: Option<S>,
    tunnel: Tunnel,
    /// What was read and is not the handshake's, or not yet
    unread: Vec<u8>,
}

impl<S: Socket> Tunnelling<S> {
    /// Sets up `tunnel` over a connection to its proxy
    pub fn new(socket: S, tunnel: Tunnel) -> Self {
        Self { socket: Some(socket), tunnel, unread: Vec::new() }
    }
}

impl<S: Socket> Future for Tunnelling<S> {
    type Output = Result<Through<S>, IoFailure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { socket, tunnel, unread } = &mut *self;
        let open = socket.as_mut().expect("a future is not polled after it was ready");
        ready!(poll_open(open, tunnel, unread, cx))?;
        let socket = socket.take().expect("taken once, here");
        Poll::Ready(Ok(Through { socket, early: std::mem::take(unread), taken: 0 }))
    }
}

/// Goes on with the handshake; ready when it is over, with what came behind it in `unread`
fn poll_open<S: Socket>(
    socket: &mut S,
    tunnel: &mut Tunnel,
    unread: &mut Vec<u8>,
    cx: &mut Context<'_>,
) -> Poll<Result<(), IoFailure>> {
    let at_proxy = |error: io::Error| io_failure(Stage::Proxy, &error);
    for _ in 0..MAX_ROUNDS_PER_POLL {
        while !tunnel.outgoing().is_empty() {
            match ready!(socket.poll_write(cx, &[IoSlice::new(tunnel.outgoing())])).map_err(at_proxy)? {
                0 => return Poll::Ready(Err(at_proxy(io::ErrorKind::WriteZero.into()))),
                sent => tunnel.sent(sent),
            }
        }
        let flushed = socket.poll_flush(cx).map_err(at_proxy)?;
        if tunnel.is_open() {
            return flushed.map(Ok);
        }
        let used = tunnel.received(unread)?;
        unread.drain(..used);
        if used == 0 {
            let read = scratch::with(|buffer| {
                let read = ready!(socket.poll_read(cx, buffer))?;
                unread.extend_from_slice(&buffer[..read]);
                Poll::Ready(Ok(read))
            });
            if ready!(read).map_err(at_proxy)? == 0 {
                return Poll::Ready(Err(tunnel.eof()));
            }
        }
    }
    // A proxy may be about to answer without end; the clock is read in between.
    cx.waker().wake_by_ref();
    Poll::Pending
}

#[cfg(test)]
mod tests {
    use steadfast::call::Request;
    use steadfast::connect::Proxy;

    use super::*;

    /// A socket to a scripted proxy that moves `step` bytes at a time, and is pending in between
    struct Scripted {
        incoming: &'static [u8],
        outgoing: Vec<u8>,
        step: usize,
        ready: bool,
    }

    impl Scripted {
        fn turn(&mut self) -> bool {
            self.ready = !self.ready;
            !self.ready
        }
    }

    impl Socket for Scripted {
        fn poll_read(&mut self, _: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
            if self.turn() {
                return Poll::Pending;
            }
            Poll::Ready(self.read_now(buffer))
        }

        fn read_now(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let read = self.step.min(self.incoming.len()).min(buffer.len());
            let (now, later) = self.incoming.split_at(read);
            buffer[..read].copy_from_slice(now);
            self.incoming = later;
            Ok(read)
        }

        fn poll_write(&mut self, _: &mut Context<'_>, parts: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
            if self.turn() {
                return Poll::Pending;
            }
            let written = self.step.min(parts[0].len());
            self.outgoing.extend_from_slice(&parts[0][..written]);
            Poll::Ready(Ok(written))
        }
    }

    fn run(incoming: &'static [u8], step: usize) -> (Result<Through<Scripted>, IoFailure>, usize) {
        let request = Request::post("https://a.test").build().expect("a request");
        let proxy = Proxy::new("socks5://p").expect("a proxy");
        let tunnel = Tunnel::new(&proxy, request.origin()).expect("a tunnel");
        let socket = Scripted { incoming, outgoing: Vec::new(), step, ready: false };
        let mut tunnelling = Tunnelling::new(socket, tunnel);
        let mut cx = Context::from_waker(Waker::noop());
        for polls in 1..1000 {
            if let Poll::Ready(result) = Pin::new(&mut tunnelling).poll(&mut cx) {
                return (result, polls);
            }
        }
        panic!("it does not end")
    }

    const REPLIES: &[u8] = b"\x05\x00\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00hello";

    #[test]
    fn a_handshake_by_any_number_of_bytes() {
        for step in 1..=REPLIES.len() {
            let mut through = run(REPLIES, step).0.expect("an open tunnel");
            assert_eq!(through.socket().outgoing, b"\x05\x01\x00\x05\x01\x00\x03\x06a.test\x01\xbb");
            // What came with the reply is read first, in pieces too, and then the socket.
            let mut read = Vec::new();
            let mut buffer = [0; 2];
            while let Ok(n @ 1..) = through.read_now(&mut buffer) {
                read.extend_from_slice(&buffer[..n]);
            }
            assert_eq!(read, b"hello", "{step} at a time");
        }
    }

    #[test]
    fn the_end_before_the_reply_and_a_socket_that_takes_nothing_are_the_proxy_s_failures() {
        for (incoming, step, kind) in
            [(&REPLIES[..5], 1, FailureKind::Reset), (REPLIES, 0, FailureKind::Other)]
        {
            let failure = run(incoming, step).0.map(|_| ()).expect_err("no tunnel");
            assert_eq!((failure.stage, failure.kind), (Stage::Proxy, kind));
        }
    }
}
