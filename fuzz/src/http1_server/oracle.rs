//! What hyper's server makes of a connection.

use std::cell::RefCell;
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use http::Response;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::server::conn::http1;
use hyper::service::service_fn;

use super::{Request, sorted};

/// More rounds than any input takes
const MAX_ROUNDS: usize = 100_000;

/// As many as are taken here
const MAX_FIELDS: usize = 256;

/// The requests that come whole, if these bytes are all that comes
pub(super) fn hyper(bytes: &[u8]) -> Vec<Request> {
    let mut context = Context::from_waker(Waker::noop());
    let whole = Rc::new(RefCell::new(Vec::new()));
    let service = service_fn(|request: http::Request<Incoming>| {
        let whole = whole.clone();
        async move {
            if let Some(request) = read(request).await {
                whole.borrow_mut().push(request);
            }
            Ok::<_, Infallible>(Response::new(Nothing))
        }
    });
    let mut builder = http1::Builder::new();
    builder.half_close(true).max_headers(MAX_FIELDS);
    let wire = Wire { unread: bytes.to_vec(), read: 0 };
    let mut connection = pin!(builder.serve_connection(wire, service));
    let ended = (0..MAX_ROUNDS).any(|_| connection.as_mut().poll(&mut context).is_ready());
    assert!(ended, "hyper goes round in circles");
    whole.take()
}

/// The request with its body; none where that is cut, or cannot be read
async fn read(request: http::Request<Incoming>) -> Option<Request> {
    let (head, mut incoming) = request.into_parts();
    let mut body = Vec::new();
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut incoming).poll_frame(cx)).await {
        // Trailer fields are dropped here.
        if let Ok(data) = frame.ok()?.into_data() {
            body.extend_from_slice(&data);
        }
    }
    let fields = head.headers.iter().map(|(name, value)| (name.to_string(), value.as_bytes().to_vec()));
    Some(Request {
        method: head.method.to_string(),
        target: head.uri.to_string(),
        version: head.version,
        fields: sorted(fields),
        body,
    })
}

/// A connection whose other side sends all at once, ends its side, and takes what it gets
struct Wire {
    unread: Vec<u8>,
    read: usize,
}

impl Read for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let count = buffer.remaining().min(self.unread.len() - self.read);
        buffer.put_slice(&self.unread[self.read..self.read + count]);
        self.read += count;
        Poll::Ready(Ok(()))
    }
}

impl Write for Wire {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// The body of an answer without one
struct Nothing;

impl Body for Nothing {
    type Data = &'static [u8];
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<&'static [u8]>, Infallible>>> {
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        true
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(0)
    }
}
