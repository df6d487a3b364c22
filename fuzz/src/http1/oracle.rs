//! What hyper makes of a connection.

use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use http::{HeaderMap, Method, Request, StatusCode};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::rt::{Read, ReadBufCursor, Write};

/// More rounds than any input takes
const MAX_ROUNDS: usize = 100_000;

/// How a response came out
#[derive(Debug)]
pub(super) enum Answer {
    /// All of it came
    Whole {
        /// The final response's status
        status: StatusCode,
        /// Its body
        body: Vec<u8>,
        /// Its trailer fields
        trailers: HeaderMap,
    },
    /// The connection ended within the body
    Cut,
    /// It is no response that hyper takes, or not all of a head
    Refused,
}

/// The answer to one request with this method, if these bytes are all that comes
pub(super) fn hyper(method: &Method, bytes: &[u8]) -> Answer {
    let mut context = Context::from_waker(Waker::noop());
    let wire = Wire { unread: bytes.to_vec(), read: 0, asked: false };
    let mut builder = http1::Builder::new();
    builder.http09_responses(false).allow_obsolete_multiline_headers_in_responses(true);
    let handshake = pin!(builder.handshake(wire));
    let Poll::Ready(Ok((mut sender, connection))) = handshake.poll(&mut context) else {
        panic!("a handshake of HTTP/1 sends nothing");
    };
    let request = Request::builder().method(method).uri("/").header("host", "a.test");
    let mut response = pin!(sender.send_request(request.body(Nothing).expect("it is a request")));
    let mut connection = pin!(connection);
    let mut running = true;
    let mut answer: Option<(StatusCode, Incoming)> = None;
    let (mut body, mut trailers) = (Vec::new(), HeaderMap::new());
    for _ in 0..MAX_ROUNDS {
        if running {
            running = connection.as_mut().poll(&mut context).is_pending();
        }
        let Some((status, incoming)) = &mut answer else {
            match response.as_mut().poll(&mut context) {
                Poll::Ready(Ok(head)) => answer = Some((head.status(), head.into_body())),
                Poll::Ready(Err(_)) => return Answer::Refused,
                Poll::Pending => {}
            }
            continue;
        };
        match Pin::new(incoming).poll_frame(&mut context) {
            Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                Ok(data) => body.extend_from_slice(&data),
                Err(frame) => trailers = frame.into_trailers().unwrap_or_default(),
            },
            Poll::Ready(None) => return Answer::Whole { status: *status, body, trailers },
            Poll::Ready(Some(Err(error))) if is_cut(&error) => return Answer::Cut,
            Poll::Ready(Some(Err(_))) => return Answer::Refused,
            Poll::Pending => {}
        }
    }
    panic!("hyper goes round in circles");
}

/// Whether the body ended too early, rather than badly
fn is_cut(error: &hyper::Error) -> bool {
    let source = std::error::Error::source(error).and_then(|source| source.downcast_ref::<io::Error>());
    error.is_incomplete_message() || source.is_some_and(|io| io.kind() == io::ErrorKind::UnexpectedEof)
}

/// A connection whose other side answers once it was asked, all at once, and ends
struct Wire {
    unread: Vec<u8>,
    read: usize,
    asked: bool,
}

impl Read for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.asked {
            return Poll::Pending;
        }
        let count = buffer.remaining().min(self.unread.len() - self.read);
        buffer.put_slice(&self.unread[self.read..self.read + count]);
        self.read += count;
        Poll::Ready(Ok(()))
    }
}

impl Write for Wire {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.asked = true;
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// The body of a request without one
struct Nothing;

impl Body for Nothing {
    type Data = &'static [u8];
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<&'static [u8]>, std::convert::Infallible>>> {
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        true
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(0)
    }
}
