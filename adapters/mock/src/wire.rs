//! A socket, plain or under TLS.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::{ServerConfig, ServerConnection};
use socket2::SockRef;

use crate::record::{Blocked, Close};
use crate::state::{State, entry};

/// So much is read or encrypted at a time, in bytes
const PIECE: usize = 16 * 1024;
/// So many times of being held up are recorded for one connection
const MOST_BLOCKED: usize = 1_000;

pub(crate) struct Wire {
    connection: u64,
    socket: Arc<TcpStream>,
    tls: Option<ServerConnection>,
    state: Arc<State>,
    /// Bytes that the socket has taken
    taken: u64,
}

/// Why a connection cannot go on
pub(crate) enum Broken {
    /// The peer has closed
    Closed(Close),
    /// Something else, in words
    Failed(String),
}

impl Wire {
    pub(crate) fn new(
        connection: u64,
        socket: Arc<TcpStream>,
        tls: Option<&Arc<ServerConfig>>,
        state: Arc<State>,
    ) -> Result<Self, Broken> {
        let tls = tls.map(|config| ServerConnection::new(Arc::clone(config))).transpose();
        let tls = tls.map_err(|error| Broken::Failed(error.to_string()))?;
        Ok(Self { connection, socket, tls, state, taken: 0 })
    }

    /// Reads some bytes, at most as many as asked for
    pub(crate) fn read(&mut self, most: u64) -> Result<Vec<u8>, Broken> {
        self.handshake()?;
        let mut bytes = vec![0; usize::try_from(most).unwrap_or(PIECE).min(PIECE)];
        let read = loop {
            let Some(tls) = &mut self.tls else {
                break (&*self.socket).read(&mut bytes).map_err(broken)?;
            };
            match tls.reader().read(&mut bytes) {
                Ok(read) => break read,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    tls.read_tls(&mut &*self.socket).map_err(broken)?;
                    tls.process_new_packets().map_err(|error| Broken::Failed(error.to_string()))?;
                    self.flush()?;
                }
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    return Err(Broken::Closed(Close::FinWithoutCloseNotify));
                }
                Err(error) => return Err(broken(error)),
            }
        };
        if read == 0 {
            return Err(Broken::Closed(Close::Fin));
        }
        bytes.truncate(read);
        let connection = self.connection;
        self.state.record(|recorded| entry(recorded, connection).received += read as u64);
        Ok(bytes)
    }

    /// Sends all of it, however long the peer takes
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        self.handshake()?;
        let connection = self.connection;
        for piece in bytes.chunks(PIECE) {
            match &mut self.tls {
                None => self.write(piece)?,
                Some(tls) => {
                    tls.writer().write_all(piece).map_err(broken)?;
                    self.flush()?;
                }
            }
            self.state.record(|recorded| entry(recorded, connection).sent += piece.len() as u64);
        }
        Ok(())
    }

    /// Says over TLS that nothing more will come
    pub(crate) fn close_notify(&mut self) -> Result<(), Broken> {
        self.handshake()?;
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
        }
        self.flush()
    }

    /// Ends the sending side
    pub(crate) fn fin(&mut self) -> Result<(), Broken> {
        self.socket.shutdown(Shutdown::Write).map_err(broken)
    }

    /// Closes the socket
    pub(crate) fn close(self) {
        self.state.release(self.connection);
    }

    /// Closes the socket with a reset
    pub(crate) fn reset(self) -> Result<(), Broken> {
        SockRef::from(&*self.socket).set_linger(Some(Duration::ZERO)).map_err(broken)?;
        self.close();
        Ok(())
    }

    fn handshake(&mut self) -> Result<(), Broken> {
        while self.tls.as_ref().is_some_and(|tls| tls.is_handshaking()) {
            let Some(tls) = &mut self.tls else { break };
            if tls.wants_write() {
                self.flush()?;
                continue;
            }
            if tls.read_tls(&mut &*self.socket).map_err(broken)? == 0 {
                return Err(Broken::Closed(Close::FinWithoutCloseNotify));
            }
            let processed = tls.process_new_packets();
            // The alert that says what was wrong goes out before the connection ends.
            self.flush()?;
            processed.map_err(|error| Broken::Failed(error.to_string()))?;
        }
        self.flush()
    }

    /// Writes what TLS has ready
    fn flush(&mut self) -> Result<(), Broken> {
        let Some(tls) = &mut self.tls else { return Ok(()) };
        let mut cipher = Vec::new();
        while tls.wants_write() {
            tls.write_tls(&mut cipher).map_err(broken)?;
        }
        self.write(&cipher)
    }

    /// Writes to the socket, and records when it takes no more
    ///
    /// A try that does not block comes first: only so does it show that the next one would.
    fn write(&mut self, mut bytes: &[u8]) -> Result<(), Broken> {
        while !bytes.is_empty() {
            self.socket.set_nonblocking(true).map_err(broken)?;
            let tried = (&*self.socket).write(bytes);
            self.socket.set_nonblocking(false).map_err(broken)?;
            let written = match tried {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.write_blocked(bytes)?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                tried => tried.map_err(broken)?,
            };
            self.taken += written as u64;
            bytes = &bytes[written..];
        }
        Ok(())
    }

    fn write_blocked(&mut self, bytes: &[u8]) -> Result<usize, Broken> {
        let (connection, taken, at) = (self.connection, self.taken, self.state.now());
        let noted = self.state.record(|recorded| {
            let blocked = &mut entry(recorded, connection).blocked;
            if blocked.len() < MOST_BLOCKED {
                blocked.push(Blocked { taken, at, resumed: None });
                return Some(blocked.len() - 1);
            }
            None
        });
        let written = (&*self.socket).write(bytes);
        let resumed = self.state.now();
        self.state.record(|recorded| {
            let entry = entry(recorded, connection);
            entry.blocked_for += resumed - at;
            if let Some(noted) = noted {
                entry.blocked[noted].resumed = Some(resumed);
            }
        });
        written.map_err(broken)
    }
}

fn broken(error: io::Error) -> Broken {
    let reset = [io::ErrorKind::ConnectionReset, io::ErrorKind::ConnectionAborted, io::ErrorKind::BrokenPipe]
        .contains(&error.kind());
    if reset { Broken::Closed(Close::Reset) } else { Broken::Failed(error.to_string()) }
}
