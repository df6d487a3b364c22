//! A socket, plain or under TLS, as plain bytes in and out.

use std::io::{self, IoSlice};
use std::task::{Context, Poll, ready};

use steadfast::machine::{Ended, IoFailure, Stage};
use steadfast_tls::{PlainRead, TlsClient};

use crate::failure::io_failure;
use crate::scratch;

/// A non-blocking stream socket of some runtime
pub trait Socket: Unpin {
    /// Reads what is there, zero bytes at the end of the peer's side
    ///
    /// Errors: as the operating system's.
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>>;

    /// Writes as much of `parts` as there is room for
    ///
    /// Errors: as the operating system's.
    fn poll_write(&mut self, cx: &mut Context<'_>, parts: &[IoSlice<'_>]) -> Poll<io::Result<usize>>;
}

/// A connection: a socket, with TLS over it or without
pub struct Connection<S> {
    socket: S,
    tls: Option<Box<Tls>>,
}

struct Tls {
    client: TlsClient,
    /// Cipher bytes that the TLS layer has not taken yet, because plain ones wait to be read
    cipher: Vec<u8>,
    taken: usize,
    /// The socket has nothing more
    ended: bool,
}

/// What a read came to
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// So many bytes
    Bytes(usize),
    /// The peer sends no more
    Ended(Ended),
}

impl<S: Socket> Connection<S> {
    /// A connection without TLS
    pub fn plain(socket: S) -> Self {
        Self { socket, tls: None }
    }

    /// A connection whose first bytes are a TLS handshake; see [`crate::Handshake`]
    pub(crate) fn secure(socket: S, client: TlsClient) -> Self {
        let tls = Tls { client, cipher: Vec::new(), taken: 0, ended: false };
        Self { socket, tls: Some(Box::new(tls)) }
    }

    /// The socket under it
    pub fn socket(&self) -> &S {
        &self.socket
    }

    /// Reads plain bytes
    ///
    /// Errors: the connection broke, or the peer broke TLS.
    pub fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<Result<Read, IoFailure>> {
        let Some(tls) = &mut self.tls else {
            return Poll::Ready(match ready!(self.socket.poll_read(cx, buffer)) {
                Ok(0) => Ok(Read::Ended(Ended::Clean)),
                Ok(n) => Ok(Read::Bytes(n)),
                Err(error) => Err(io_failure(Stage::Read, &error)),
            });
        };
        loop {
            match tls.client.read(buffer)? {
                PlainRead::Bytes(n) => return Poll::Ready(Ok(Read::Bytes(n))),
                PlainRead::Ended(ended) => return Poll::Ready(Ok(Read::Ended(ended))),
                PlainRead::Pending => ready!(tls.poll_fill(&mut self.socket, cx))?,
            }
        }
    }

    /// Takes plain bytes to write, and writes what it holds; returns how many plain bytes it took
    ///
    /// Errors: the connection broke.
    pub fn poll_write(&mut self, cx: &mut Context<'_>, parts: [&[u8]; 2]) -> Poll<Result<usize, IoFailure>> {
        let Some(tls) = &mut self.tls else {
            let written = ready!(self.socket.poll_write(cx, &parts.map(IoSlice::new)));
            return Poll::Ready(written.map_err(|error| io_failure(Stage::Write, &error)));
        };
        loop {
            let mut taken = 0;
            for part in parts {
                let of_part = tls.client.write(part);
                taken += of_part;
                if of_part < part.len() {
                    break;
                }
            }
            let flushed = tls.poll_flush(&mut self.socket, cx)?;
            if taken > 0 {
                return Poll::Ready(Ok(taken));
            }
            ready!(flushed);
        }
    }

    /// Writes what is held back: the end of a TLS record, an alert, an answer to the peer's TLS
    ///
    /// Errors: the connection broke.
    pub fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), IoFailure>> {
        match &mut self.tls {
            None => Poll::Ready(Ok(())),
            Some(tls) => tls.poll_flush(&mut self.socket, cx)?.map(Ok),
        }
    }

    /// Ends our side as politely as can be done at once; the rest is the operating system's
    pub fn close(&mut self, cx: &mut Context<'_>) {
        if let Some(tls) = &mut self.tls {
            tls.client.close();
            let _ = tls.poll_flush(&mut self.socket, cx);
        }
    }

    /// Goes on with the handshake; ready when it is over and all of it is written
    pub(crate) fn poll_handshake(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), IoFailure>> {
        let Some(tls) = &mut self.tls else { return Poll::Ready(Ok(())) };
        loop {
            let flushed = tls.poll_flush(&mut self.socket, cx).map_err(at_tls)?;
            if !tls.client.is_handshaking() {
                return flushed.map(Ok);
            }
            ready!(tls.poll_fill(&mut self.socket, cx)).map_err(at_tls)?;
        }
    }
}

impl Tls {
    /// Feeds the TLS layer with what the socket has
    fn poll_fill<S: Socket>(&mut self, socket: &mut S, cx: &mut Context<'_>) -> Poll<Result<(), IoFailure>> {
        if self.taken < self.cipher.len() {
            self.taken += self.client.received(&self.cipher[self.taken..])?;
            if self.taken == self.cipher.len() {
                // An idle connection holds no buffer.
                self.cipher = Vec::new();
                self.taken = 0;
            }
            return Poll::Ready(Ok(()));
        }
        if self.ended {
            self.client.eof()?;
            return Poll::Ready(Ok(()));
        }
        let filled = scratch::with(|buffer| {
            let read =
                ready!(socket.poll_read(cx, buffer)).map_err(|error| io_failure(Stage::Read, &error))?;
            if read == 0 {
                self.ended = true;
                self.client.eof()?;
                return Poll::Ready(Ok(()));
            }
            let taken = self.client.received(&buffer[..read])?;
            self.cipher.extend_from_slice(&buffer[taken..read]);
            Poll::Ready(Ok(()))
        });
        // What the peer's bytes call for goes out with the next write, or now if there is room.
        if let Poll::Ready(Ok(())) = filled {
            let _ = self.poll_flush(socket, cx);
        }
        filled
    }

    fn poll_flush<S: Socket>(&mut self, socket: &mut S, cx: &mut Context<'_>) -> Result<Poll<()>, IoFailure> {
        while !self.client.outgoing().is_empty() {
            match socket.poll_write(cx, &[IoSlice::new(self.client.outgoing())]) {
                Poll::Pending => return Ok(Poll::Pending),
                Poll::Ready(Ok(written)) => self.client.sent(written),
                Poll::Ready(Err(error)) => return Err(io_failure(Stage::Write, &error)),
            }
        }
        Ok(Poll::Ready(()))
    }
}

/// A failure during the handshake is one of setting up TLS, whichever way the bytes were going
fn at_tls(failure: IoFailure) -> IoFailure {
    IoFailure { stage: Stage::Tls, ..failure }
}
