//! An app's socket, which tells when the app has gone.

use std::io::{self, IoSlice, Read};
use std::net::Shutdown;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::SockRef;
use steadfast_driver::Socket;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;

/// The connection of an app
///
/// Its end is told while bytes of it wait unread: an app that has sent its next request already and leaves
/// is an app that has left.
pub(crate) struct AppSocket {
    stream: TcpStream,
    /// The reactor was told to forget that bytes are there, so the system has to be asked first
    has_more: bool,
}

impl AppSocket {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self { stream, has_more: false }
    }

    /// What is still unsent is lost, and the app sees a reset
    pub(crate) fn reset(&self) {
        // A socket that does not take the option is closed in order: there is nothing better.
        _ = SockRef::from(&self.stream).set_linger(Some(std::time::Duration::ZERO));
    }

    /// Whether the app has ended its side or the connection, by the system's word
    fn has_hung_up(&self) -> io::Result<bool> {
        let ended = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
        let mut asked = [PollFd::new(&self.stream, ended)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut asked, Some(&at_once))?;
        Ok(asked[0].revents().intersects(ended))
    }
}

impl Socket for AppSocket {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        if std::mem::take(&mut self.has_more) {
            match self.read_now(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => {
                    // There may be still more that the reactor does not know of.
                    self.has_more = matches!(read, Ok(bytes) if bytes > 0);
                    return Poll::Ready(read);
                }
            }
        }
        let mut buffer = ReadBuf::new(buffer);
        Pin::new(&mut self.stream).poll_read(cx, &mut buffer).map_ok(|()| buffer.filled().len())
    }

    fn read_now(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&*SockRef::from(&self.stream)).read(buffer)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, parts: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, parts)
    }

    fn poll_hang_up(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            ready!(self.stream.poll_read_ready(cx))?;
            if self.has_hung_up()? {
                return Poll::Ready(Ok(()));
            }
            // Bytes of the next request. The reactor is to wake the task at the next news, not for these.
            self.has_more = true;
            let forgets = self
                .stream
                .try_io(Interest::READABLE, || -> io::Result<()> { Err(io::ErrorKind::WouldBlock.into()) });
            debug_assert!(forgets.is_err());
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        SockRef::from(&self.stream).shutdown(Shutdown::Write)
    }
}
