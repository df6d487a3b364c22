//! A stream socket of tokio: TCP, or on Unix a local one.

use std::io::{self, IoSlice, Read};
use std::net::SocketAddr;
#[cfg(unix)]
use std::path::PathBuf;
use std::pin::Pin;
use std::task::{Context, Poll};

use socket2::SockRef;
use steadfast::connect::TcpSettings;
use steadfast_driver::{Socket, set_up};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;

/// A stream socket of tokio: TCP, or on Unix a local one
pub struct StreamSocket(Kind);

enum Kind {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(UnixStream),
}

impl StreamSocket {
    pub(crate) async fn connect(address: SocketAddr, settings: TcpSettings) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        set_up(SockRef::from(&stream), settings)?;
        Ok(Self(Kind::Tcp(stream)))
    }

    #[cfg(unix)]
    pub(crate) async fn connect_unix(path: PathBuf) -> io::Result<Self> {
        Ok(Self(Kind::Unix(UnixStream::connect(path).await?)))
    }
}

impl Socket for StreamSocket {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(buffer);
        let read = match &mut self.0 {
            Kind::Tcp(stream) => Pin::new(stream).poll_read(cx, &mut buffer),
            #[cfg(unix)]
            Kind::Unix(stream) => Pin::new(stream).poll_read(cx, &mut buffer),
        };
        read.map_ok(|()| buffer.filled().len())
    }

    fn read_now(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &self.0 {
            Kind::Tcp(stream) => (&*SockRef::from(stream)).read(buffer),
            #[cfg(unix)]
            Kind::Unix(stream) => (&*SockRef::from(stream)).read(buffer),
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
