//! What smol reads, as the body of a request.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use smol::io::AsyncRead;
use steadfast::body::{BodySource, Waker};

/// A reader of smol, as what a body is read from
///
/// ```no_run
/// use steadfast_smol::{Body, Request, reader};
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let file = smol::fs::File::open("batch.jsonl").await?;
/// let request = Request::post("https://example.com/v1/files").body(Body::once(reader(file))).build()?;
/// # drop(request);
/// # Ok(())
/// # }
/// ```
pub fn reader(reader: impl AsyncRead + Send + 'static) -> impl BodySource + 'static {
    Reading(Box::pin(reader))
}

struct Reading<R>(Pin<Box<R>>);

impl<R: AsyncRead + Send> BodySource for Reading<R> {
    fn read(&mut self, waker: &Waker, buffer: &mut [u8]) -> Option<io::Result<usize>> {
        match self.0.as_mut().poll_read(&mut Context::from_waker(waker), buffer) {
            Poll::Ready(read) => Some(read),
            Poll::Pending => None,
        }
    }
}
