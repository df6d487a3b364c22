//! Bytes as they come to the parts of a response.

use std::fmt;
use std::ops::Range;

use http::{HeaderMap, Method, StatusCode};

use super::chunked::{Chunked, Found};
use super::forward::ForwardedBody;
use super::head::Framing;
use super::section::{MAX_TRAILER_BYTES, Names, Refused, Section, to_map, with_room};
use super::{Fields, Http1Error, Incomplete, ResponseHead};

/// The most interim (1xx) responses before the final one
///
/// A server that reports its progress by 102 every few seconds stays below it for ten minutes.
pub const MAX_INTERIM_RESPONSES: u8 = 128;

/// Decodes one response, in the pieces in which it arrives
///
/// Any split of the bytes gives the same parts, body ranges aside. Nothing of a body is copied; of
/// a head or a trailer section only what does not lie whole in one input is. After an error every
/// call gives that error again.
///
/// ```
/// use http::{Method, StatusCode};
/// use steadfast::http1::{Limits, Part, ResponseDecoder};
///
/// let input = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello, and more";
/// let mut decoder = ResponseDecoder::new(&Method::GET, Limits::default());
/// let mut unread = &input[..];
/// let mut body = Vec::new();
/// loop {
///     let (consumed, part) = decoder.next(unread)?;
///     match part {
///         Some(Part::Head(head)) => assert_eq!(head.status, StatusCode::OK),
///         Some(Part::Body(range)) => body.extend_from_slice(&unread[range]),
///         Some(Part::End(end)) => {
///             assert!(end.reusable);
///             break;
///         }
///         Some(Part::Interim(_)) => {}
///         None => panic!("here a driver would read more"),
///     }
///     unread = &unread[consumed..];
/// }
/// assert_eq!(body, b"hello");
/// assert_eq!(unread, b", and more");
/// # Ok::<(), steadfast::http1::Http1Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseDecoder {
    request: Request,
    limits: Limits,
    state: State,
    /// The head or trailer section that is being read
    section: Section,
    /// Interim responses so far
    interim: u8,
    /// Bytes of body so far
    got: u64,
    /// Whether the head lets the connection live on
    keeps_alive: bool,
    /// The fields of the section that came last, where they are kept
    fields: Option<Box<Fields>>,
}

/// The bounds on what a peer can make the decoder hold
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest head of one response, in bytes; interim responses count each for itself
    pub max_head_bytes: usize,
}

/// 64 KiB, as in the table of rule CFG
impl Default for Limits {
    fn default() -> Self {
        Self { max_head_bytes: 64 * 1024 }
    }
}

/// A part of a response
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// An interim response; its header fields are dropped, they say nothing about the final one
    Interim(StatusCode),
    /// The head of the final response
    Head(ResponseHead),
    /// A piece of the body, as a range of the input of this call; never empty
    Body(Range<usize>),
    /// The end of the response; comes once, and bytes after it are not its own
    End(End),
}

/// What is known at the end of a response
#[derive(Clone, Default, PartialEq, Eq)]
pub struct End {
    /// Whether the connection may carry another request (RFC 9112 9.3)
    ///
    /// Bytes that follow the response, and a `Connection: close` in the request, rule it out too;
    /// those are the caller's to see.
    pub reusable: bool,
    /// The trailer fields of a chunked body; never merged into the head's (RFC 9112 7.1.2)
    pub trailers: HeaderMap,
}

impl fmt::Debug for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("End");
        debug.field("reusable", &self.reusable).field("trailers", &Names(&self.trailers)).finish()
    }
}

/// What the request's method says about the response
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Request {
    Head,
    Connect,
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Head,
    Length {
        /// Bytes of body still to come
        left: u64,
    },
    Chunked(Chunked),
    Trailers,
    UntilEof,
    Ended,
    Failed(Http1Error),
}

impl ResponseDecoder {
    /// A decoder for the response to one request with this method
    pub fn new(method: &Method, limits: Limits) -> Self {
        let request = match *method {
            Method::HEAD => Request::Head,
            Method::CONNECT => Request::Connect,
            _ => Request::Other,
        };
        Self {
            request,
            limits,
            state: State::Head,
            section: Section::head(),
            interim: 0,
            got: 0,
            keeps_alive: false,
            fields: None,
        }
    }

    /// Keeps the fields of each head and trailer section as they came, for
    /// [`ResponseDecoder::take_fields`]
    pub fn keep_fields(mut self) -> Self {
        self.fields = Some(Box::default());
        self
    }

    /// Takes out the fields of the part that came last, a head, interim or final, or the end with its
    /// trailers: in the order in which they came, repeated ones in their places
    ///
    /// A [`HeaderMap`] groups them by name. None without [`ResponseDecoder::keep_fields`].
    pub fn take_fields(&mut self) -> Fields {
        self.fields.as_deref_mut().map(std::mem::take).unwrap_or_default()
    }

    /// How the end of the body is found, once the head is whole
    pub(crate) fn body_of(&self, status: StatusCode) -> ForwardedBody {
        let has_none = matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        match self.state {
            State::Length { .. } if has_none || self.request == Request::Head => ForwardedBody::None,
            State::Length { left } => ForwardedBody::Length(left),
            State::Chunked(_) => ForwardedBody::Chunked,
            State::UntilEof => ForwardedBody::UntilClose,
            State::Head | State::Trailers | State::Ended | State::Failed(_) => ForwardedBody::None,
        }
    }

    /// Bytes of a head or a trailer section that is not whole
    pub(crate) fn held(&self) -> usize {
        self.section.len()
    }

    /// Takes in bytes: how many were consumed, and the part that they complete
    ///
    /// Call it again with the rest, an empty rest too, until it gives no part. Then all bytes are
    /// consumed and more are needed; after [`Part::End`] none are consumed any more.
    ///
    /// Errors: what the peer broke. [`Http1Error::Incomplete`] is not among them.
    pub fn next(&mut self, input: &[u8]) -> Result<(usize, Option<Part>), Http1Error> {
        // After every byte that was read comes a look for what it completes.
        if input.is_empty() && self.needs_bytes() {
            return Ok((0, None));
        }
        let advanced = self.advance(input);
        if let Err(error) = advanced {
            self.state = State::Failed(error);
        }
        advanced
    }

    /// Takes in the end of the connection, after all bytes were consumed
    ///
    /// Errors: [`Http1Error::Incomplete`] where the response has not ended.
    pub fn eof(&mut self) -> Result<End, Http1Error> {
        let got = self.got;
        let incomplete = match self.state {
            State::Length { left: 0 } | State::UntilEof | State::Ended => {
                self.state = State::Ended;
                self.keeps_alive = false;
                return Ok(End::default());
            }
            State::Head => Incomplete::Head { got: self.section.len() },
            State::Length { left } => Incomplete::Body { got, expected: got + left },
            State::Chunked(_) | State::Trailers => Incomplete::Chunked { got },
            State::Failed(error) => return Err(error),
        };
        self.state = State::Failed(incomplete.into());
        Err(incomplete.into())
    }

    /// Whether the connection may carry another request once the response has ended
    ///
    /// Not before its head is known, nor where only the end of the connection ends it.
    pub(crate) fn can_be_reused(&self) -> bool {
        self.keeps_alive
            && match self.state {
                State::Length { .. } | State::Chunked(_) | State::Trailers | State::Ended => true,
                State::Head | State::UntilEof | State::Failed(_) => false,
            }
    }

    /// Whether the response has ended
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.state, State::Ended)
    }

    /// Whether there is nothing to say before more bytes come
    fn needs_bytes(&self) -> bool {
        match self.state {
            State::Length { left } => left > 0,
            State::Head | State::Chunked(_) | State::Trailers | State::UntilEof | State::Ended => true,
            State::Failed(_) => false,
        }
    }

    fn advance(&mut self, input: &[u8]) -> Result<(usize, Option<Part>), Http1Error> {
        match &mut self.state {
            State::Head => self.head(input),
            State::Length { left: 0 } => {
                emptied(&mut self.fields);
                Ok((0, Some(self.end(HeaderMap::new()))))
            }
            State::Length { left } => {
                let length = usize::try_from(*left).unwrap_or(usize::MAX).min(input.len());
                *left -= length as u64;
                Ok((length, self.body(0..length)))
            }
            State::UntilEof => Ok((input.len(), self.body(0..input.len()))),
            State::Chunked(chunked) => match chunked.next(input)? {
                (consumed, Some(Found::Data(range))) => Ok((consumed, self.body(range))),
                (consumed, None) => Ok((consumed, None)),
                (consumed, Some(Found::Last)) => {
                    self.state = State::Trailers;
                    self.section = Section::trailers();
                    let (more, part) = self.trailers(&input[consumed..])?;
                    Ok((consumed + more, part))
                }
            },
            State::Trailers => self.trailers(input),
            State::Ended => Ok((0, None)),
            State::Failed(error) => Err(*error),
        }
    }

    fn head(&mut self, input: &[u8]) -> Result<(usize, Option<Part>), Http1Error> {
        let limit = self.limits.max_head_bytes;
        let (consumed, whole) = self.section.take(input, limit).map_err(|refused| match refused {
            Refused::Prefix => Http1Error::BadStatusLine,
            Refused::TooLong => Http1Error::HeadTooLarge { limit },
        })?;
        let Some(bytes) = whole else { return Ok((consumed, None)) };
        let head = ResponseHead::parse(bytes, emptied(&mut self.fields))?;
        self.section = Section::head();
        if head.status == StatusCode::SWITCHING_PROTOCOLS {
            return Err(Http1Error::UnaskedUpgrade);
        }
        if head.status.is_informational() {
            if self.interim == MAX_INTERIM_RESPONSES {
                return Err(Http1Error::TooManyInterimResponses);
            }
            self.interim += 1;
            return Ok((consumed, Some(Part::Interim(head.status))));
        }
        let tunnel = self.request == Request::Connect && head.status.is_success();
        let framing = match self.request {
            Request::Head => Framing::Length(0),
            Request::Connect if tunnel => Framing::Length(0),
            Request::Connect | Request::Other => head.framing()?,
        };
        // What follows a tunnel's head belongs to the tunnel: there is no second request.
        self.keeps_alive = head.keeps_alive() && !tunnel;
        self.state = match framing {
            Framing::Length(left) => State::Length { left },
            Framing::Chunked => State::Chunked(Chunked::response()),
            Framing::UntilEof => State::UntilEof,
        };
        Ok((consumed, Some(Part::Head(head))))
    }

    fn trailers(&mut self, input: &[u8]) -> Result<(usize, Option<Part>), Http1Error> {
        let taken = self.section.take(input, MAX_TRAILER_BYTES);
        let (consumed, whole) = taken.map_err(|_| Http1Error::TrailersTooLarge)?;
        let Some(bytes) = whole else { return Ok((consumed, None)) };
        let trailers = parse_trailers(bytes, emptied(&mut self.fields))?;
        self.section = Section::trailers();
        Ok((consumed, Some(self.end(trailers))))
    }

    fn body(&mut self, range: Range<usize>) -> Option<Part> {
        self.got += range.len() as u64;
        (!range.is_empty()).then_some(Part::Body(range))
    }

    fn end(&mut self, trailers: HeaderMap) -> Part {
        self.state = State::Ended;
        Part::End(End { reusable: self.keeps_alive, trailers })
    }
}

/// The fields that are kept, without those of the section before
fn emptied(fields: &mut Option<Box<Fields>>) -> Option<&mut Fields> {
    let fields = fields.as_deref_mut()?;
    *fields = Fields::default();
    Some(fields)
}

/// Reads a whole trailer section, its empty line included, and its fields into `kept`
fn parse_trailers(bytes: &[u8], mut kept: Option<&mut Fields>) -> Result<HeaderMap, Http1Error> {
    if memchr::memchr_iter(b'\n', bytes).any(|at| at == 0 || bytes[at - 1] != b'\r') {
        return Err(Http1Error::BadTrailer);
    }
    let parsed = with_room(|room| match httparse::parse_headers(bytes, room)? {
        httparse::Status::Complete((_, fields)) => Ok(to_map(fields, kept.as_deref_mut())),
        httparse::Status::Partial => Ok(None),
    });
    match parsed {
        Ok(trailers) => trailers.ok_or(Http1Error::BadTrailer),
        Err(httparse::Error::TooManyHeaders) => Err(Http1Error::TooManyFields),
        Err(_) => Err(Http1Error::BadTrailer),
    }
}
