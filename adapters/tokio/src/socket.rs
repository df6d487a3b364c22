//! A TCP connection of tokio.

use std::io::{self, IoSlice, Read};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use socket2::SockRef;
use steadfast_driver::Socket;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A TCP connection of tokio
pub struct TcpSocket(TcpStream);

impl TcpSocket {
    pub(crate) async fn connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        // Requests are written in as few pieces as can be, so waiting to join them only costs time.
        stream.set_nodelay(true)?;
        Ok(Self(stream))
    }
}

impl Socket for TcpSocket {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(buffer);
        Pin::new(&mut self.0).poll_read(cx, &mut buffer).map_ok(|()| buffer.filled().len())
    }

    fn read_now(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&*SockRef::from(&self.0)).read(buffer)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, parts: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, parts)
    }
}
