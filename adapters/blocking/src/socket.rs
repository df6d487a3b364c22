//! A socket: TCP, on Unix a local one, or one within TLS to a proxy.

use std::io::{self, IoSlice, Read, Write};
use std::sync::Arc;

use mio::net::TcpStream;
#[cfg(unix)]
use mio::net::UnixStream;
use socket2::{SockRef, TcpKeepalive};
use steadfast::connect::TcpSettings;
use steadfast::machine::{FailureKind, IoFailure};

use crate::connection::{Came, Connection};
use crate::sleeper::Bell;

/// The most reads in a row that bring nothing but what TLS has to say for itself
const MAX_EMPTY_READS: usize = 16;

/// A socket that does not wait
pub(crate) enum Socket {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(UnixStream),
    /// Within TLS to a proxy, and what wakes the call that it belongs to
    Secure(Box<Connection>, Arc<Bell>),
}

impl Socket {
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket) => socket.read(buffer),
            #[cfg(unix)]
            Self::Unix(socket) => socket.read(buffer),
            Self::Secure(connection, bell) => {
                for _ in 0..MAX_EMPTY_READS {
                    match connection.read(buffer) {
                        None => return Err(io::ErrorKind::WouldBlock.into()),
                        // What TLS has to say for itself.
                        Some(Ok(Came::Bytes(0))) => {}
                        Some(Ok(Came::Bytes(read))) => return Ok(read),
                        Some(Ok(Came::End(_))) => return Ok(0),
                        Some(Err(failure)) => return Err(io_error(failure)),
                    }
                }
                // More may be there, of which the operating system says nothing again.
                bell.ring();
                Err(io::ErrorKind::WouldBlock.into())
            }
        }
    }

    pub(crate) fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket) => socket.write_vectored(parts),
            #[cfg(unix)]
            Self::Unix(socket) => socket.write_vectored(parts),
            Self::Secure(connection, _) => {
                let part = |at: usize| parts.get(at).map_or(&[][..], |part| &part[..]);
                let written = connection.write([part(0), part(1)]);
                written.map_or_else(
                    || Err(io::ErrorKind::WouldBlock.into()),
                    |written| written.map_err(io_error),
                )
            }
        }
    }

    /// Writes what it holds back of what it took; whether that was all
    pub(crate) fn flush(&mut self) -> Result<bool, IoFailure> {
        match self {
            Self::Tcp(_) => Ok(true),
            #[cfg(unix)]
            Self::Unix(_) => Ok(true),
            Self::Secure(connection, _) => connection.flush(),
        }
    }
}

fn io_error(failure: IoFailure) -> io::Error {
    let is_reset = failure.kind == FailureKind::Reset;
    io::Error::new(if is_reset { io::ErrorKind::ConnectionReset } else { io::ErrorKind::Other }, failure)
}

/// Asks the operating system for these settings of a connection
///
/// Errors: as the operating system's.
pub(crate) fn set_up(socket: SockRef<'_>, settings: TcpSettings) -> io::Result<()> {
    // Requests are written in as few pieces as can be, so waiting to join them only costs time.
    socket.set_tcp_nodelay(true)?;
    if let Some(every) = settings.keep_alive_every() {
        let probes = TcpKeepalive::new().with_time(every);
        #[cfg(any(target_os = "linux", target_os = "android", target_os = "macos", target_os = "windows"))]
        let probes = probes.with_interval(every);
        socket.set_tcp_keepalive(&probes)?;
    }
    #[cfg(any(target_os = "linux", target_os = "android"))]
    if let Some(most) = settings.user_timeout_after() {
        socket.set_tcp_user_timeout(Some(most))?;
    }
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::net::TcpListener;
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_operating_system_is_asked_for_what_was_set() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let stream = std::net::TcpStream::connect(address).expect("a connection");
        let socket = SockRef::from(&stream);
        let off = TcpSettings::default().keep_alive(None);
        set_up(SockRef::from(&stream), off).expect("a set-up");
        assert_eq!((socket.tcp_nodelay().ok(), socket.keepalive().ok()), (Some(true), Some(false)));
        let [every, most] = [7, 9].map(Duration::from_secs);
        let on = TcpSettings::default().keep_alive(Some(every)).user_timeout(Some(most));
        set_up(SockRef::from(&stream), on).expect("a set-up");
        assert_eq!(socket.keepalive().ok(), Some(true));
        assert_eq!(socket.tcp_keepalive_time().ok(), Some(every));
        assert_eq!(socket.tcp_keepalive_interval().ok(), Some(every));
        assert_eq!(socket.tcp_user_timeout().ok(), Some(Some(most)));
    }
}
