//! A socket, plain or under TLS, as plain bytes in and out; nothing here waits.
//!
//! `None` and `false` mean: not now, the operating system says so.

use std::io::{self, IoSlice};
use std::mem;

use steadfast::machine::{Ended, IoFailure, Stage, io_failure};
use steadfast_tls::{PlainRead, TlsConfig, TlsConnection};

use crate::sleeper::Bell;
use crate::socket::Socket;

/// The size of one read, in bytes
pub(crate) const READ_BYTES: usize = 16 * 1024;

/// How often a handshake goes round before the clock is read: its peer may always have more to say
pub(crate) const MAX_ROUNDS: usize = 128;

/// A connection: a socket, with TLS over it or without
pub(crate) struct Connection {
    socket: Socket,
    /// What came behind a proxy's handshake, and was not read yet
    early: Vec<u8>,
    tls: Option<Box<Tls>>,
}

struct Tls {
    client: TlsConnection,
    /// Cipher bytes that were read; those of `waiting` the TLS layer has not taken yet
    cipher: [u8; READ_BYTES],
    waiting: std::ops::Range<usize>,
    /// Writing failed, which is still to be told
    write_failed: Option<IoFailure>,
}

/// What a read came to
pub(crate) enum Came {
    /// So many plain bytes; over TLS there may be none
    Bytes(usize),
    /// The peer sends no more
    End(Ended),
}

impl Connection {
    pub(crate) fn new(socket: Socket) -> Self {
        Self { socket, early: Vec::new(), tls: None }
    }

    /// The same connection, of which `early` is read first
    pub(crate) fn with_early(self, early: Vec<u8>) -> Self {
        Self { early, ..self }
    }

    /// The same connection, to be [shaken hands](Connection::shake_hands) over
    pub(crate) fn secured(self, config: &TlsConfig, host: &str) -> Result<Self, IoFailure> {
        let client = TlsConnection::client(config, host)?;
        let tls = Tls { client, cipher: [0; READ_BYTES], waiting: 0..0, write_failed: None };
        Ok(Self { tls: Some(Box::new(tls)), ..self })
    }

    /// Goes on with the handshake; whether it is over, and all of it is written
    ///
    /// Rings `bell` where it is to go on at once.
    pub(crate) fn shake_hands(&mut self, bell: &Bell) -> Result<bool, IoFailure> {
        let Self { socket, early, tls: Some(tls) } = self else { return Ok(true) };
        for _ in 0..MAX_ROUNDS {
            let is_flushed = tls.flush(socket)? & socket.flush()?;
            if !tls.client.is_handshaking() {
                return Ok(is_flushed);
            }
            match tls.fill(socket, early) {
                None => return Ok(false),
                Some(Ok(())) => {}
                Some(Err(failure)) => {
                    // The alert that tells the peer why; if there is no room for it, it has to guess.
                    let _ = tls.flush(socket);
                    return Err(failure);
                }
            }
        }
        bell.ring();
        Ok(false)
    }

    /// Reads plain bytes: all that one read of the socket brings, as far as `buffer` has room
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Option<Result<Came, IoFailure>> {
        let Self { socket, early, tls } = self;
        match tls {
            Some(tls) => tls.read(socket, early, buffer),
            None => Some(match read_socket(socket, early, buffer)? {
                Ok(0) => Ok(Came::End(Ended::Clean)),
                Ok(read) => Ok(Came::Bytes(read)),
                Err(failure) => Err(failure),
            }),
        }
    }

    /// Takes plain bytes to write, at least one of them, and writes what it holds; how many it took
    pub(crate) fn write(&mut self, parts: [&[u8]; 2]) -> Option<Result<usize, IoFailure>> {
        let Self { socket, tls, .. } = self;
        let Some(tls) = tls else { return write_socket(socket, parts) };
        let is_flushed = match tls.flush(socket) {
            Ok(is_flushed) => is_flushed,
            Err(failure) => return Some(Err(failure)),
        };
        let mut taken = 0;
        for part in parts {
            let of_part = tls.client.write(part);
            taken += of_part;
            if of_part < part.len() {
                break;
            }
        }
        if taken == 0 {
            // There is room, so a layer that takes nothing never will.
            return is_flushed.then(|| Err(takes_no_more()));
        }
        // A failure comes up at the next flush: part of what was taken may have gone out.
        tls.write_failed = tls.flush(socket).err();
        Some(Ok(taken))
    }

    /// Writes what is held back: the end of a TLS record, an alert, an answer to the peer's TLS; whether
    /// that was all
    pub(crate) fn flush(&mut self) -> Result<bool, IoFailure> {
        let is_flushed = self.tls.as_mut().map_or(Ok(true), |tls| tls.flush(&mut self.socket))?;
        Ok(self.socket.flush()? & is_flushed)
    }

    /// Ends our side as politely as can be done at once; the rest is the operating system's
    pub(crate) fn close(mut self) {
        if let Some(tls) = &mut self.tls {
            tls.client.close();
            let _ = tls.flush(&mut self.socket);
        }
    }
}

impl Tls {
    fn read(
        &mut self,
        socket: &mut Socket,
        early: &mut Vec<u8>,
        buffer: &mut [u8],
    ) -> Option<Result<Came, IoFailure>> {
        let (mut filled, mut has_asked) = (0, false);
        while filled < buffer.len() {
            let has_cipher = !self.waiting.is_empty();
            match self.client.read(&mut buffer[filled..]) {
                Ok(PlainRead::Bytes(read)) => filled += read,
                Ok(PlainRead::Ended(ended)) if filled == 0 => return Some(Ok(Came::End(ended))),
                Err(error) if filled == 0 => return Some(Err(error.into())),
                Ok(PlainRead::Pending) if has_cipher || (filled == 0 && !has_asked) => {
                    has_asked |= !has_cipher;
                    match self.fill(socket, early)? {
                        Err(failure) if filled == 0 => return Some(Err(failure)),
                        // A failure comes up again in the next read, behind the bytes before it.
                        Ok(()) | Err(_) => {}
                    }
                }
                // A peer that sends nothing but TLS of its own must not keep the clock from being read.
                Ok(PlainRead::Pending | PlainRead::Ended(_)) | Err(_) => break,
            }
        }
        Some(Ok(Came::Bytes(filled)))
    }

    /// Feeds the TLS layer with cipher bytes: those it did not take before, else what the socket has
    fn fill(&mut self, socket: &mut Socket, early: &mut Vec<u8>) -> Option<Result<(), IoFailure>> {
        if self.waiting.is_empty() {
            match read_socket(socket, early, &mut self.cipher)? {
                Ok(0) => return Some(self.client.eof().map_err(IoFailure::from)),
                Ok(read) => self.waiting = 0..read,
                Err(failure) => return Some(Err(failure)),
            }
        }
        Some(match self.client.received(&self.cipher[self.waiting.clone()]) {
            Ok(taken) => {
                self.waiting.start += taken;
                Ok(())
            }
            Err(error) => Err(error.into()),
        })
    }

    /// Writes what the TLS layer has for the peer; whether that was all
    ///
    /// What a broken socket does not take is dropped, so that its failure is told once.
    fn flush(&mut self, socket: &mut Socket) -> Result<bool, IoFailure> {
        if let Some(failure) = self.write_failed.take() {
            return Err(failure);
        }
        while !self.client.outgoing().is_empty() {
            match write_socket(socket, [self.client.outgoing(), &[]]) {
                None => return Ok(false),
                Some(Ok(written)) => self.client.sent(written),
                Some(Err(failure)) => {
                    self.client.sent(self.client.outgoing().len());
                    return Err(failure);
                }
            }
        }
        Ok(true)
    }
}

/// Reads what came early, and then what the operating system has; zero bytes at the peer's end
fn read_socket(
    socket: &mut Socket,
    early: &mut Vec<u8>,
    buffer: &mut [u8],
) -> Option<Result<usize, IoFailure>> {
    if early.is_empty() {
        return now(Stage::Read, || socket.read(buffer));
    }
    let read = early.len().min(buffer.len());
    let rest = early.split_off(read);
    buffer[..read].copy_from_slice(&mem::replace(early, rest));
    Some(Ok(read))
}

/// Writes as much as there is room for, at least one byte
fn write_socket(socket: &mut Socket, parts: [&[u8]; 2]) -> Option<Result<usize, IoFailure>> {
    let written = now(Stage::Write, || socket.write_vectored(&parts.map(IoSlice::new)))?;
    Some(written.and_then(|written| if written == 0 { Err(takes_no_more()) } else { Ok(written) }))
}

/// What a call of the operating system comes to without waiting
fn now<T>(stage: Stage, mut call: impl FnMut() -> io::Result<T>) -> Option<Result<T, IoFailure>> {
    loop {
        return match call() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            result => Some(result.map_err(|error| io_failure(stage, &error))),
        };
    }
}

fn takes_no_more() -> IoFailure {
    io_failure(Stage::Write, &io::ErrorKind::WriteZero.into())
}
