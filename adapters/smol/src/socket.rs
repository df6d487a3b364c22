//! A stream socket of smol: TCP, or on Unix a local one.

use std::future::poll_fn;
use std::io::{self, IoSlice, Read};
use std::net::{SocketAddr, TcpStream};
#[cfg(unix)]
use std::os::unix::net::UnixStream;
#[cfg(unix)]
use std::path::PathBuf;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use smol::Async;
use smol::io::{AsyncRead, AsyncWrite};
use socket2::{Domain, Protocol, SockRef, Type};
use steadfast::connect::TcpSettings;
use steadfast_driver::{Socket, set_up};

/// A stream socket of smol: TCP, or on Unix a local one
pub struct StreamSocket(Kind);

enum Kind {
    Tcp(Async<TcpStream>),
    #[cfg(unix)]
    Unix(Async<UnixStream>),
}

impl StreamSocket {
    /// Connects, and asks the operating system how that went each time it is polled
    ///
    /// smol's own way waits for what its reactor says, and on a busy machine that comes late.
    pub(crate) async fn connect(address: SocketAddr, settings: TcpSettings) -> io::Result<Self> {
        let socket = socket2::Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        set_up(SockRef::from(&socket), settings)?;
        match socket.connect(&address.into()) {
            Err(error) if !is_under_way(&error) => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let stream = Async::new_nonblocking(TcpStream::from(socket))?;
        poll_fn(|cx| poll_connected(&stream, cx)).await?;
        Ok(Self(Kind::Tcp(stream)))
    }

    #[cfg(unix)]
    pub(crate) async fn connect_unix(path: PathBuf) -> io::Result<Self> {
        Ok(Self(Kind::Unix(Async::<UnixStream>::connect(path).await?)))
    }
}

impl Socket for StreamSocket {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        match &mut self.0 {
            Kind::Tcp(stream) => Pin::new(stream).poll_read(cx, buffer),
            #[cfg(unix)]
            Kind::Unix(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }

    fn read_now(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &self.0 {
            Kind::Tcp(stream) => stream.get_ref().read(buffer),
            #[cfg(unix)]
            Kind::Unix(stream) => stream.get_ref().read(buffer),
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, parts: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        match &mut self.0 {
            Kind::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, parts),
            #[cfg(unix)]
            Kind::Unix(stream) => Pin::new(stream).poll_write_vectored(cx, parts),
        }
    }
}

fn poll_connected(stream: &Async<TcpStream>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
    loop {
        // A socket has a peer once it is connected, and an error once it cannot be.
        if stream.get_ref().peer_addr().is_ok() {
            return Poll::Ready(Ok(()));
        }
        if let Some(error) = stream.get_ref().take_error()? {
            return Poll::Ready(Err(error));
        }
        ready!(stream.poll_writable(cx))?;
    }
}

fn is_under_way(error: &io::Error) -> bool {
    #[cfg(unix)]
    let is_in_progress = error.raw_os_error() == Some(libc::EINPROGRESS);
    #[cfg(not(unix))]
    let is_in_progress = false;
    is_in_progress || error.kind() == io::ErrorKind::WouldBlock
}
