//! Bytes as they come to the parts of a request.

#[cfg(test)]
mod smuggling;
#[cfg(test)]
mod tests;

use std::ops::Range;

use super::chunked::{Chunked, Found};
use super::lines::{Lines, NoLine, field_line, is_token_byte};
use super::section::MAX_TRAILER_BYTES;
use super::{BodyLength, IncomingRequest, RequestFault};

/// The most empty lines that are skipped before a request (RFC 9112 2.2)
pub const MAX_EMPTY_LINES: u8 = 4;

/// The first byte of a TLS handshake (RFC 8446 5.1)
const TLS_HANDSHAKE: u8 = 0x16;

/// Decodes the requests of one connection, in the pieces in which they arrive
///
/// Any split of the bytes gives the same parts, body ranges aside. Each byte is looked at once; nothing
/// of a body is copied, and of a head what [`IncomingRequest`] holds and one line. After a fault every
/// call gives it again.
///
/// ```
/// use http::Method;
/// use steadfast::http1::{BodyLength, RequestDecoder, RequestLimits, RequestPart};
///
/// let input = b"POST /v1/responses HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}GET / HTTP/1.1\r\n";
/// let mut decoder = RequestDecoder::new(RequestLimits::default());
/// let mut unread = &input[..];
/// let mut body = Vec::new();
/// loop {
///     let (consumed, part) = decoder.next(unread)?;
///     match part {
///         Some(RequestPart::Head(request)) => {
///             assert_eq!((request.method, request.body), (Method::POST, BodyLength::Length(2)));
///         }
///         Some(RequestPart::Body(range)) => body.extend_from_slice(&unread[range]),
///         Some(RequestPart::End) => break,
///         None => panic!("here a server would read more"),
///     }
///     unread = &unread[consumed..];
/// }
/// assert_eq!(body, b"{}");
/// assert_eq!(unread, b"GET / HTTP/1.1\r\n");
///
/// // Once the first request is answered:
/// decoder.again();
/// assert!(matches!(decoder.next(unread)?, (16, None)));
/// # Ok::<(), steadfast::http1::RequestFault>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestDecoder {
    limits: RequestLimits,
    state: State,
    /// The lines of the head or the trailer section that is being read
    lines: Lines,
    /// Bytes of body so far
    got: u64,
}

/// The bounds on what an app can make the decoder hold
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestLimits {
    /// The longest head of a request, in bytes, empty lines before it included
    pub max_head_bytes: usize,
    /// The most field lines of a head, and of a trailer section
    pub max_fields: usize,
    /// The longest request target, in bytes
    pub max_target_bytes: usize,
}

/// 64 KiB, 256 lines, 8 KiB
impl Default for RequestLimits {
    fn default() -> Self {
        Self { max_head_bytes: 64 * 1024, max_fields: 256, max_target_bytes: 8 * 1024 }
    }
}

/// A part of a request
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestPart {
    /// The head
    Head(IncomingRequest),
    /// A piece of the body, as a range of the input of this call; never empty
    Body(Range<usize>),
    /// The end of the request; comes once, and bytes after it are the next one's
    End,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    RequestLine {
        /// Empty lines so far
        empty: u8,
    },
    Fields(IncomingRequest),
    Length {
        /// Bytes of body still to come
        left: u64,
    },
    Chunked(Chunked),
    Trailers {
        /// Trailer lines so far
        fields: usize,
    },
    Ended,
    Failed(RequestFault),
}

impl RequestDecoder {
    /// A decoder in front of a connection's first request
    pub fn new(limits: RequestLimits) -> Self {
        let state = State::RequestLine { empty: 0 };
        Self { limits, state, lines: Lines::new(limits.max_head_bytes), got: 0 }
    }

    /// Makes ready for the next request of the connection
    ///
    /// Of no effect before [`RequestPart::End`], and after a fault.
    pub fn again(&mut self) {
        if self.state == State::Ended {
            *self = Self::new(self.limits);
        }
    }

    /// Bytes that are held of a head or a trailer section that is not whole
    pub fn held(&self) -> usize {
        let fields = match &self.state {
            State::Fields(request) => request.target.len() + request.fields.held(),
            State::RequestLine { .. }
            | State::Length { .. }
            | State::Chunked(_)
            | State::Trailers { .. }
            | State::Ended
            | State::Failed(_) => 0,
        };
        fields + self.lines.held()
    }

    /// Takes in bytes: how many were consumed, and the part that they complete
    ///
    /// Call it again with the rest, an empty rest too, until it gives no part. Then all bytes are
    /// consumed and more are needed; after [`RequestPart::End`] none are consumed any more.
    ///
    /// Errors: what is wrong with the request. [`RequestFault::CutHead`] and [`RequestFault::CutBody`]
    /// are not among them.
    pub fn next(&mut self, input: &[u8]) -> Result<(usize, Option<RequestPart>), RequestFault> {
        self.advance(input).inspect_err(|&fault| self.fail(fault))
    }

    /// Takes in the end of the connection, after all bytes were consumed
    ///
    /// Errors: [`RequestFault::CutHead`] or [`RequestFault::CutBody`] within a request.
    pub fn eof(&mut self) -> Result<(), RequestFault> {
        let fault = match &self.state {
            State::RequestLine { .. } if self.lines.is_fresh() => return Ok(()),
            State::Ended => return Ok(()),
            State::RequestLine { .. } | State::Fields(_) => {
                RequestFault::CutHead { got: self.limits.max_head_bytes - self.lines.room() }
            }
            State::Length { left: 0 } => return Ok(()),
            State::Length { .. } | State::Chunked(_) | State::Trailers { .. } => {
                RequestFault::CutBody { got: self.got }
            }
            State::Failed(fault) => return Err(*fault),
        };
        self.fail(fault);
        Err(fault)
    }

    /// Keeps the fault, and nothing of the request
    fn fail(&mut self, fault: RequestFault) {
        self.state = State::Failed(fault);
        self.lines = Lines::new(0);
    }

    fn advance(&mut self, input: &[u8]) -> Result<(usize, Option<RequestPart>), RequestFault> {
        match &mut self.state {
            State::RequestLine { .. } | State::Fields(_) => self.head(input),
            State::Length { left: 0 } => {
                self.state = State::Ended;
                Ok((0, Some(RequestPart::End)))
            }
            State::Length { left } => {
                let length = usize::try_from(*left).unwrap_or(usize::MAX).min(input.len());
                *left -= length as u64;
                Ok((length, self.body(0..length)))
            }
            State::Chunked(chunked) => match chunked.next(input)? {
                (consumed, Some(Found::Data(range))) => Ok((consumed, self.body(range))),
                (consumed, None) => Ok((consumed, None)),
                (consumed, Some(Found::Last)) => {
                    self.state = State::Trailers { fields: 0 };
                    self.lines = Lines::new(MAX_TRAILER_BYTES);
                    let (more, part) = self.trailers(&input[consumed..])?;
                    Ok((consumed + more, part))
                }
            },
            State::Trailers { .. } => self.trailers(input),
            State::Ended => Ok((0, None)),
            State::Failed(fault) => Err(*fault),
        }
    }

    fn head(&mut self, input: &[u8]) -> Result<(usize, Option<RequestPart>), RequestFault> {
        let RequestLimits { max_head_bytes, max_fields, max_target_bytes } = self.limits;
        let mut at = 0;
        loop {
            let rest = &input[at..];
            if let State::RequestLine { .. } = self.state
                && self.lines.is_fresh()
                && let Some(&first) = rest.first()
                && !is_token_byte(first)
                && !matches!(first, b'\r' | b'\n')
            {
                let is_tls = first == TLS_HANDSHAKE;
                return Err(if is_tls { RequestFault::TlsHandshake } else { RequestFault::BadRequestLine });
            }
            let (used, line) = self.lines.take(rest).map_err(|no_line| match (no_line, &self.state) {
                (NoLine::TooLong, State::RequestLine { .. }) => {
                    RequestFault::TargetTooLong { limit: max_target_bytes }
                }
                (NoLine::TooLong, _) => RequestFault::HeadTooLarge { limit: max_head_bytes },
                (NoLine::BareCarriageReturn | NoLine::BareLineFeed, _) => fault(no_line),
            })?;
            at += used;
            let Some(line) = line else { return Ok((at, None)) };
            match (&mut self.state, line) {
                (State::Fields(request), []) => {
                    request.interpret()?;
                    let request = std::mem::replace(request, IncomingRequest::empty());
                    self.state = match request.body {
                        BodyLength::None => State::Length { left: 0 },
                        BodyLength::Length(left) => State::Length { left },
                        BodyLength::Chunked => State::Chunked(Chunked::request()),
                    };
                    self.lines = Lines::new(0);
                    return Ok((at, Some(RequestPart::Head(request))));
                }
                (State::Fields(request), line) => {
                    if request.fields.len() == max_fields {
                        return Err(RequestFault::TooManyFields { limit: max_fields });
                    }
                    let (name, value) = field_line(line)?;
                    request.fields.push(name, value);
                }
                (State::RequestLine { empty: MAX_EMPTY_LINES }, []) => {
                    return Err(RequestFault::TooManyEmptyLines);
                }
                (State::RequestLine { empty }, []) => *empty += 1,
                (_, line) => self.state = State::Fields(IncomingRequest::parse_line(line, max_target_bytes)?),
            }
        }
    }

    /// Reads trailer lines to the empty one; nothing is kept of them
    fn trailers(&mut self, input: &[u8]) -> Result<(usize, Option<RequestPart>), RequestFault> {
        let limit = self.limits.max_fields;
        let mut at = 0;
        loop {
            let (used, line) = self.lines.take(&input[at..]).map_err(fault)?;
            at += used;
            let Some(line) = line else { return Ok((at, None)) };
            if line.is_empty() {
                self.state = State::Ended;
                self.lines = Lines::new(0);
                return Ok((at, Some(RequestPart::End)));
            }
            if let State::Trailers { fields } = &mut self.state {
                if *fields == limit {
                    return Err(RequestFault::TooManyFields { limit });
                }
                *fields += 1;
            }
            field_line(line)?;
        }
    }

    fn body(&mut self, range: Range<usize>) -> Option<RequestPart> {
        self.got += range.len() as u64;
        (!range.is_empty()).then_some(RequestPart::Body(range))
    }
}

/// What lines of a trailer section are refused for; those of a head too, but for their length
fn fault(no_line: NoLine) -> RequestFault {
    match no_line {
        NoLine::BareCarriageReturn => RequestFault::BareCarriageReturn,
        NoLine::BareLineFeed => RequestFault::BareLineFeed,
        NoLine::TooLong => RequestFault::TrailersTooLarge,
    }
}
