//! A tunnel through a proxy, from its first byte to the origin's.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use steadfast::connect::Tunnel;
use steadfast::machine::{IoFailure, Stage};

use crate::connection::Socket;
use crate::failure::io_failure;
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
}

/// The set-up of a tunnel over a socket to a proxy, as a future of the socket [`Through`] it
///
/// It has no bound of its own: the machine's `connect_timeout` drops it.
#[must_use = "futures do nothing unless polled"]
pub struct Tunnelling<S> {
    socket: Option<S>,
    tunnel: Tunnel,
}

impl<S: Socket> Tunnelling<S> {
    /// Sets up `tunnel` over a connection to its proxy
    pub fn new(socket: S, tunnel: Tunnel) -> Self {
        Self { socket: Some(socket), tunnel }
    }
}

impl<S: Socket> Future for Tunnelling<S> {
    type Output = Result<Through<S>, IoFailure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { socket, tunnel } = &mut *self;
        let open = socket.as_mut().expect("a future is not polled after it was ready");
        let early = ready!(poll_open(open, tunnel, cx))?;
        let socket = socket.take().expect("taken once, here");
        Poll::Ready(Ok(Through { socket, early, taken: 0 }))
    }
}

/// Goes on with the handshake; ready with what came behind it
fn poll_open<S: Socket>(
    socket: &mut S,
    tunnel: &mut Tunnel,
    cx: &mut Context<'_>,
) -> Poll<Result<Vec<u8>, IoFailure>> {
    let at_proxy = |error: io::Error| io_failure(Stage::Proxy, &error);
    loop {
        while !tunnel.outgoing().is_empty() {
            match ready!(socket.poll_write(cx, &[IoSlice::new(tunnel.outgoing())])).map_err(at_proxy)? {
                0 => return Poll::Ready(Err(at_proxy(io::ErrorKind::WriteZero.into()))),
                sent => tunnel.sent(sent),
            }
        }
        let early = scratch::with(|buffer| match ready!(socket.poll_read(cx, buffer)).map_err(at_proxy)? {
            0 => Poll::Ready(Err(tunnel.eof())),
            read => {
                let used = tunnel.received(&buffer[..read])?;
                Poll::Ready(Ok(buffer[used..read].to_vec()))
            }
        });
        let early = ready!(early)?;
        if tunnel.is_open() {
            return Poll::Ready(Ok(early));
        }
    }
}
