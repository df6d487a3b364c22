//! The recorded bytes as what a server sends.

use std::num::NonZeroUsize;

use http::{HeaderValue, StatusCode};
use steadfast::call::AttemptId;
use steadfast::dialect::Dialect;
use steadfast::framing::Framing;
use steadfast::machine::Ended;
use steadfast_sim::{Arrival, Source};

use crate::args::{DecodeArgs, End};

/// A whole response to every attempt, in reads of a certain size
pub(super) struct Response {
    bytes: Vec<u8>,
    most: NonZeroUsize,
    end: Arrival<'static>,
    attempt: Option<AttemptId>,
    read: usize,
}

impl Response {
    /// The recorded bytes: a response, or the body of one
    pub(super) fn new(args: &DecodeArgs, dialect: Dialect, recorded: Vec<u8>) -> Self {
        let end = match args.end {
            End::Clean => Arrival::Eof(Ended::Clean),
            End::Cut => Arrival::Eof(Ended::WithoutCloseNotify),
            End::Reset => Arrival::Reset,
            End::Open => Arrival::Silence,
        };
        let bytes = if args.http { recorded } else { with_head(args, dialect, recorded) };
        Self { bytes, most: args.split.0, end, attempt: None, read: 0 }
    }
}

impl Source for Response {
    fn next(&mut self, attempt: AttemptId) -> Arrival<'_> {
        if self.attempt.replace(attempt) != Some(attempt) {
            self.read = 0;
        }
        let left = &self.bytes[self.read..];
        if left.is_empty() {
            return self.end;
        }
        let next = &left[..left.len().min(self.most.get())];
        self.read += next.len();
        Arrival::Bytes(next)
    }
}

/// A body behind a head, in one chunk, so that its end can be told from that of the connection
fn with_head(args: &DecodeArgs, dialect: Dialect, mut body: Vec<u8>) -> Vec<u8> {
    let status = StatusCode::from_u16(args.status).expect("checked when it was parsed");
    let reason = status.canonical_reason().unwrap_or_default();
    let usual = HeaderValue::from_static(usual_type(dialect, args.unary));
    let content_type = args.content_type.as_ref().unwrap_or(&usual);
    let mut head = format!("HTTP/1.1 {} {reason}\r\nContent-Type: ", status.as_str()).into_bytes();
    head.extend_from_slice(content_type.as_bytes());
    head.extend_from_slice(b"\r\nTransfer-Encoding: chunked\r\n\r\n");
    // A chunk of no bytes would be the last one.
    if !body.is_empty() {
        head.extend_from_slice(format!("{:x}\r\n", body.len()).as_bytes());
        body.extend_from_slice(b"\r\n");
    }
    if args.end == End::Clean {
        body.extend_from_slice(b"0\r\n\r\n");
    }
    body.splice(..0, head);
    body
}

/// The content type of the dialect's answers
fn usual_type(dialect: Dialect, unary: bool) -> &'static str {
    match dialect.framing(None).filter(|_| !unary) {
        Some(Framing::Sse) => "text/event-stream",
        Some(Framing::Ndjson) => "application/x-ndjson",
        Some(Framing::JsonArray) | None => "application/json",
    }
}
