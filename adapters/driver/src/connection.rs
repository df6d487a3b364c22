//! A socket, plain or under TLS, as plain bytes in and out.

use std::io::{self, IoSlice};
use std::task::{Context, Poll, ready};

use steadfast::machine::{Ended, IoFailure, Stage, io_failure};
use steadfast_tls::{PlainRead, TlsConnection};

use crate::driver::MAX_ROUNDS_PER_POLL;
use crate::scratch;

/// A non-blocking stream socket of some runtime
pub trait Socket: Unpin {
    /// Reads what is there, zero bytes at the end of the peer's side
    ///
    /// Errors: as the operating system's.
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>>;

    /// Reads what the operating system has, whatever the runtime's reactor last heard of it
    ///
    /// Errors: as the operating system's; `WouldBlock` where nothing is there.
    fn read_now(&mut self, buffer: &mut [u8]) -> io::Result<usize>;

    /// Writes as much of `parts` as there is room for
    ///
    /// Errors: as the operating system's.
    fn poll_write(&mut self, cx: &mut Context<'_>, parts: &[IoSlice<'_>]) -> Poll<io::Result<usize>>;

    /// Ready once the peer has ended its side or the connection, whether or not all it sent is read
    ///
    /// A socket that cannot tell is never ready.
    ///
    /// Errors: the connection broke.
    fn poll_hang_up(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }

    /// Ends our side behind what was written, as far as that can be done at once
    ///
    /// Errors: as the operating system's.
    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Writes what it holds back of what it took; one that holds nothing back is always ready
    ///
    /// Errors: as the operating system's.
    fn poll_flush(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Whom a read asks what has come
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// The runtime's reactor, which wakes the task when something comes later
    Reactor,
    /// The operating system itself: a reactor on a busy thread has old news
    System,
}

/// A connection: a socket, with TLS over it or without
pub struct Connection<S> {
    socket: S,
    tls: Option<Box<Tls>>,
    /// It has carried an exchange before this one
    is_reused: bool,
}

struct Tls {
    layer: TlsConnection,
    /// Cipher bytes that the TLS layer has not taken yet, because plain ones wait to be read
    cipher: Vec<u8>,
    taken: usize,
    /// The socket has nothing more
    ended: bool,
    /// Writing failed, which is still to be told
    write_failed: Option<IoFailure>,
    /// Our side of the socket is to end behind what is still held back
    is_finishing: bool,
}

/// What a read came to
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// So many plain bytes; over TLS there may be none
    Bytes(usize),
    /// The peer sends no more
    Ended(Ended),
}

impl<S: Socket> Connection<S> {
    /// A connection without TLS
    pub fn plain(socket: S) -> Self {
        Self { socket, tls: None, is_reused: false }
    }

    /// A connection whose first bytes are a TLS handshake; see [`crate::Handshake`]
    pub(crate) fn secure(socket: S, layer: TlsConnection) -> Self {
        let tls = Tls {
            layer,
            cipher: Vec::new(),
            taken: 0,
            ended: false,
            write_failed: None,
            is_finishing: false,
        };
        Self { socket, tls: Some(Box::new(tls)), is_reused: false }
    }

    /// The socket under it
    pub fn socket(&self) -> &S {
        &self.socket
    }

    /// The socket under it
    pub fn socket_mut(&mut self) -> &mut S {
        &mut self.socket
    }

    /// The same connection over another socket, made of the one under it
    pub fn map_socket<T>(self, map: impl FnOnce(S) -> T) -> Connection<T> {
        Connection { socket: map(self.socket), tls: self.tls, is_reused: self.is_reused }
    }

    /// Whether it has carried an exchange before
    pub fn is_reused(&self) -> bool {
        self.is_reused
    }

    /// Its exchange is over
    pub(crate) fn exchanged(mut self) -> Self {
        self.is_reused = true;
        self
    }

    /// Reads plain bytes: all that one read of the socket brings, as far as `buffer` has room
    ///
    /// Zero bytes are what TLS had to say for itself. Asked of the system, a read that is pending
    /// wakes nobody.
    ///
    /// Errors: the connection broke, or the peer broke TLS.
    pub fn poll_read(
        &mut self,
        ask: Ask,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<Result<Read, IoFailure>> {
        let socket = &mut self.socket;
        match &mut self.tls {
            Some(tls) => tls.poll_read(socket, ask, cx, buffer),
            None => match ready!(poll_socket(socket, ask, cx, buffer)) {
                Ok(0) => Poll::Ready(Ok(Read::Ended(Ended::Clean))),
                Ok(n) => Poll::Ready(Ok(Read::Bytes(n))),
                Err(error) => Poll::Ready(Err(io_failure(Stage::Read, &error))),
            },
        }
    }

    /// Takes plain bytes to write, at least one of them, and writes what it holds; returns how many
    /// it took
    ///
    /// Errors: the connection broke, or takes no more.
    pub fn poll_write(&mut self, cx: &mut Context<'_>, parts: [&[u8]; 2]) -> Poll<Result<usize, IoFailure>> {
        let Some(tls) = &mut self.tls else {
            return Poll::Ready(match ready!(self.socket.poll_write(cx, &parts.map(IoSlice::new))) {
                Ok(0) => Err(takes_no_more()),
                Ok(written) => Ok(written),
                Err(error) => Err(io_failure(Stage::Write, &error)),
            });
        };
        let flushed = tls.poll_flush(&mut self.socket, cx)?;
        let taken = tls.take(parts);
        if taken == 0 {
            ready!(flushed);
            // There is room, so a layer that takes nothing never will.
            return Poll::Ready(Err(takes_no_more()));
        }
        // A failure comes up at the next flush: part of what was taken may have gone out.
        tls.write_failed = tls.poll_flush(&mut self.socket, cx).err();
        Poll::Ready(Ok(taken))
    }

    /// Writes what is held back: the end of a TLS record, an alert, an answer to the peer's TLS
    ///
    /// Errors: the connection broke.
    pub fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), IoFailure>> {
        if let Some(tls) = &mut self.tls {
            ready!(tls.poll_flush(&mut self.socket, cx)?);
            if std::mem::take(&mut tls.is_finishing) {
                self.socket.finish().map_err(|error| io_failure(Stage::Write, &error))?;
            }
        }
        self.socket.poll_flush(cx).map_err(|error| io_failure(Stage::Write, &error))
    }

    /// Ready once the peer has gone, whether or not all it sent is read; never where nobody can tell
    ///
    /// Over TLS of a client that we accepted, its `close_notify` is an end, too: it may be waiting for ours.
    /// What comes is taken up to the next plain bytes, at most one record of them and what one read of the
    /// socket brings behind it.
    ///
    /// Errors: the connection broke, or the peer broke TLS.
    pub fn poll_hang_up(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), IoFailure>> {
        if let Some(tls) = &mut self.tls
            && tls.layer.is_server()
        {
            for _ in 0..MAX_ROUNDS_PER_POLL {
                if tls.layer.has_ended() {
                    return Poll::Ready(Ok(()));
                }
                if tls.layer.has_plain() {
                    break;
                }
                ready!(tls.poll_fill(&mut self.socket, Ask::Reactor, cx))?;
            }
            if !tls.layer.has_plain() {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
        self.socket.poll_hang_up(cx).map_err(|error| io_failure(Stage::Read, &error))
    }

    /// Ends our side behind what is held back, and can still be read
    ///
    /// What cannot be written at once, [`Connection::poll_flush`] writes.
    ///
    /// Errors: as the operating system's.
    pub fn finish(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        self.close(cx);
        if let Some(tls) = &mut self.tls
            && !tls.layer.outgoing().is_empty()
        {
            tls.is_finishing = true;
            return Ok(());
        }
        self.socket.finish()
    }

    /// Ends our side as politely as can be done at once; the rest is the operating system's
    pub fn close(&mut self, cx: &mut Context<'_>) {
        if let Some(tls) = &mut self.tls {
            tls.layer.close();
            let _ = tls.poll_flush(&mut self.socket, cx);
        }
    }

    /// Goes on with the handshake; ready when it is over and all of it is written
    pub(crate) fn poll_handshake(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), IoFailure>> {
        let Some(tls) = &mut self.tls else { return Poll::Ready(Ok(())) };
        for _ in 0..MAX_ROUNDS_PER_POLL {
            let flushed = tls.poll_flush(&mut self.socket, cx).map_err(at_tls)?;
            let below =
                self.socket.poll_flush(cx).map_err(|error| at_tls(io_failure(Stage::Write, &error)))?;
            if !tls.layer.is_handshaking() {
                ready!(flushed);
                return below.map(Ok);
            }
            if let Err(failure) = ready!(tls.poll_fill(&mut self.socket, Ask::Reactor, cx)) {
                // The alert that tells the peer why; if there is no room for it, it has to guess.
                let _ = tls.poll_flush(&mut self.socket, cx);
                return Poll::Ready(Err(at_tls(failure)));
            }
        }
        // A peer that always has more to say must not keep the clock from being read.
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Tls {
    fn poll_read<S: Socket>(
        &mut self,
        socket: &mut S,
        ask: Ask,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<Result<Read, IoFailure>> {
        let (mut filled, mut asked) = (0, false);
        while filled < buffer.len() {
            let waiting = self.taken < self.cipher.len();
            match self.layer.read(&mut buffer[filled..]) {
                Ok(PlainRead::Bytes(n)) => filled += n,
                Ok(PlainRead::Ended(ended)) if filled == 0 => return Poll::Ready(Ok(Read::Ended(ended))),
                Err(error) if filled == 0 => return Poll::Ready(Err(error.into())),
                Ok(PlainRead::Pending) if waiting || (filled == 0 && !asked) => {
                    asked |= !waiting;
                    let fed = ready!(self.poll_fill(socket, ask, cx));
                    if filled == 0 {
                        fed?;
                    }
                    // Else it comes up again in the next read, behind the bytes before it.
                }
                // A peer that sends nothing but TLS of its own must not keep the clock from being read.
                Ok(PlainRead::Pending | PlainRead::Ended(_)) | Err(_) => break,
            }
        }
        Poll::Ready(Ok(Read::Bytes(filled)))
    }

    /// Hands plain bytes to the TLS layer; how many it took
    fn take(&mut self, parts: [&[u8]; 2]) -> usize {
        let mut taken = 0;
        for part in parts {
            let of_part = self.layer.write(part);
            taken += of_part;
            if of_part < part.len() {
                break;
            }
        }
        taken
    }

    /// Feeds the TLS layer with cipher bytes: those it did not take before, else what the socket has
    fn poll_fill<S: Socket>(
        &mut self,
        socket: &mut S,
        ask: Ask,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), IoFailure>> {
        if self.taken < self.cipher.len() {
            self.taken += self.layer.received(&self.cipher[self.taken..])?;
            if self.taken == self.cipher.len() {
                // An idle connection holds no buffer.
                self.cipher = Vec::new();
                self.taken = 0;
            }
            return Poll::Ready(Ok(()));
        }
        if self.ended {
            self.layer.eof()?;
            return Poll::Ready(Ok(()));
        }
        scratch::with(|buffer| {
            let read = ready!(poll_socket(socket, ask, cx, buffer))
                .map_err(|error| io_failure(Stage::Read, &error))?;
            if read == 0 {
                self.ended = true;
                self.layer.eof()?;
                return Poll::Ready(Ok(()));
            }
            let taken = self.layer.received(&buffer[..read])?;
            self.cipher.extend_from_slice(&buffer[taken..read]);
            Poll::Ready(Ok(()))
        })
    }

    /// Writes what the TLS layer has for the peer
    ///
    /// What a broken socket does not take is dropped, so that its failure is told once.
    fn poll_flush<S: Socket>(&mut self, socket: &mut S, cx: &mut Context<'_>) -> Result<Poll<()>, IoFailure> {
        if let Some(failure) = self.write_failed.take() {
            return Err(failure);
        }
        while !self.layer.outgoing().is_empty() {
            match socket.poll_write(cx, &[IoSlice::new(self.layer.outgoing())]) {
                Poll::Pending => return Ok(Poll::Pending),
                Poll::Ready(Ok(written)) if written > 0 => self.layer.sent(written),
                Poll::Ready(written) => {
                    self.layer.sent(self.layer.outgoing().len());
                    return Err(
                        written.map_or_else(|error| io_failure(Stage::Write, &error), |_| takes_no_more())
                    );
                }
            }
        }
        Ok(Poll::Ready(()))
    }
}

fn poll_socket<S: Socket>(
    socket: &mut S,
    ask: Ask,
    cx: &mut Context<'_>,
    buffer: &mut [u8],
) -> Poll<io::Result<usize>> {
    match ask {
        Ask::Reactor => socket.poll_read(cx, buffer),
        Ask::System => match socket.read_now(buffer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
            read => Poll::Ready(read),
        },
    }
}

fn takes_no_more() -> IoFailure {
    io_failure(Stage::Write, &io::ErrorKind::WriteZero.into())
}

/// A failure during the handshake is one of setting up TLS, whichever way the bytes were going
fn at_tls(failure: IoFailure) -> IoFailure {
    IoFailure { stage: Stage::Tls, ..failure }
}
