//! What tokio reads, as the body of a request.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use steadfast::body::{BodySource, Waker};
use tokio::io::{AsyncRead, ReadBuf};

/// A reader of tokio, as what a body is read from
///
/// ```no_run
/// use steadfast_tokio::{Body, Request, reader};
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let (receiving, sending) = tokio::io::simplex(64 * 1024);
/// let request = Request::post("https://example.com/v1/files").body(Body::once(reader(receiving))).build()?;
/// # drop((request, sending));
/// # Ok(())
/// # }
/// ```
pub fn reader(reader: impl AsyncRead + Send + 'static) -> impl BodySource + 'static {
    Reading(Box::pin(reader))
}

struct Reading<R>(Pin<Box<R>>);

impl<R: AsyncRead + Send> BodySource for Reading<R> {
    fn read(&mut self, waker: &Waker, buffer: &mut [u8]) -> Option<io::Result<usize>> {
        let mut buffer = ReadBuf::new(buffer);
        match self.0.as_mut().poll_read(&mut Context::from_waker(waker), &mut buffer) {
            Poll::Ready(read) => Some(read.map(|()| buffer.filled().len())),
            Poll::Pending => None,
        }
    }
}
