//! Heads passed on: a request to a server, its response to the app.
//!
//! End-to-end fields keep their order, their case and their bytes. Dropped are those that belong to one
//! connection (RFC 9110 7.6.1): `Connection` and what it names, `Keep-Alive`, `TE`, `Trailer`,
//! `Transfer-Encoding`, `Upgrade`, and all that begin with `Proxy-`. What `Connection` names is dropped
//! whatever it is, credentials too: the sender asked for it. It has no say in what is written here
//! afresh: `Host`, the framing, and the fields that the relay sets.

#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::io::Write as _;

use http::{HeaderName, HeaderValue, Method, StatusCode, Version};

use super::request::{RESERVED, is_host, is_target};
use super::{BodyLength, Fields, RequestError};

/// The head of a request that is passed on
///
/// ```
/// use http::{HeaderValue, Method, header};
/// use steadfast::http1::{ForwardedRequest, RequestDecoder, RequestLimits, RequestPart};
///
/// let input = b"POST /openai/v1/responses HTTP/1.1\r\nHost: localhost:8080\r\n\
///     authorization: Bearer local\r\nX-Stainless-Lang: python\r\nConnection: keep-alive\r\n\
///     Content-Length: 2\r\n\r\n{}";
/// let mut decoder = RequestDecoder::new(RequestLimits::default());
/// let (_, Some(RequestPart::Head(request))) = decoder.next(input)? else { panic!("it is whole") };
/// let mut head = Vec::new();
/// ForwardedRequest {
///     method: &request.method,
///     target: "/v1/responses",
///     host: "api.example.com",
///     fields: &request.fields,
///     replaced: &[(header::AUTHORIZATION, HeaderValue::from_static("Bearer key"))],
///     dropped: &[],
///     body: request.body,
/// }
/// .encode(&mut head)?;
/// assert_eq!(
///     head,
///     b"POST /v1/responses HTTP/1.1\r\nHost: api.example.com\r\nX-Stainless-Lang: python\r\n\
///       authorization: Bearer key\r\nContent-Length: 2\r\n\r\n"
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct ForwardedRequest<'a> {
    /// The method
    pub method: &'a Method,
    /// The path and the query to ask for
    pub target: &'a str,
    /// The server's name or address, and a port where it is not the scheme's own
    pub host: &'a str,
    /// The fields of the request that came
    pub fields: &'a Fields,
    /// Fields to send in the place of those of the same name, or where there are none; they come last
    pub replaced: &'a [(HeaderName, HeaderValue)],
    /// Names of fields that are not passed on, in any case
    pub dropped: &'a [&'a str],
    /// How the end of the body is found
    pub body: BodyLength,
}

impl ForwardedRequest<'_> {
    /// Appends the head to `out`, its empty line included
    ///
    /// `Expect` is dropped too: who passes a request on has its body in hand, or answers the app's
    /// `100-continue`. The bytes hold credentials: do not print them.
    ///
    /// Errors: a target, a host or a replaced field that cannot be sent; nothing is appended then.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), RequestError> {
        if !is_target(self.target) {
            return Err(RequestError::BadTarget);
        }
        if !is_host(self.host) {
            return Err(RequestError::BadHost);
        }
        if let Some((name, _)) = self.replaced.iter().find(|(name, _)| RESERVED.contains(name)) {
            return Err(RequestError::Reserved { name: name.clone() });
        }
        for part in [self.method.as_str(), " ", self.target, " HTTP/1.1\r\n"] {
            out.extend_from_slice(part.as_bytes());
        }
        field(out, "Host", self.host.as_bytes());
        let options = ConnectionOptions::of(self.fields);
        for (name, value) in self.fields.iter() {
            let is_set_here = ["host", "content-length", "expect"].iter().any(|set| is(name, set))
                || self.replaced.iter().any(|(replaced, _)| is(name, replaced.as_str()));
            let is_dropped = options.drop(name) || self.dropped.iter().any(|dropped| is(name, dropped));
            if !is_set_here && !is_dropped {
                field(out, name, value);
            }
        }
        for (name, value) in self.replaced {
            field(out, name.as_str(), value.as_bytes());
        }
        match self.body {
            BodyLength::None => {}
            BodyLength::Length(length) => content_length(out, "Content-Length", length),
            BodyLength::Chunked => field(out, "Transfer-Encoding", b"chunked"),
        }
        out.extend_from_slice(b"\r\n");
        Ok(())
    }
}

/// The head of a final response that is passed on
///
/// ```
/// use http::{Method, Version};
/// use steadfast::http1::{ForwardedBody, ForwardedResponse, Limits, Part, ResponseDecoder};
///
/// let input = b"HTTP/1.1 429 Slow Down\r\nretry-After: 2\r\nKeep-Alive: timeout=5\r\n\
///     Content-length: 2\r\n\r\n{}";
/// let mut decoder = ResponseDecoder::new(&Method::POST, Limits::default()).keep_fields();
/// let (_, Some(Part::Head(head))) = decoder.next(input)? else { panic!("it is whole") };
/// let mut out = Vec::new();
/// ForwardedResponse {
///     version: Version::HTTP_11,
///     status: head.status,
///     reason: &head.reason,
///     fields: &decoder.take_fields(),
///     body: ForwardedBody::Length(2),
///     keep_alive: true,
/// }
/// .encode(&mut out)?;
/// assert_eq!(out, b"HTTP/1.1 429 Slow Down\r\nretry-After: 2\r\nContent-length: 2\r\n\r\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct ForwardedResponse<'a> {
    /// The version that the app speaks; the response is one of HTTP/1.1 either way (RFC 9110 2.5)
    pub version: Version,
    /// The status
    pub status: StatusCode,
    /// The reason phrase, perhaps empty
    pub reason: &'a [u8],
    /// The fields of the response that came
    pub fields: &'a Fields,
    /// How the end of the body will be found
    pub body: ForwardedBody,
    /// Whether the connection to the app stays open
    pub keep_alive: bool,
}

/// How the end of a response's body is found by the app
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForwardedBody {
    /// There is none, whatever the fields say: an answer to HEAD, or a 204 or 304
    None,
    /// By its length in bytes
    Length(u64),
    /// By its last chunk
    Chunked,
    /// By the end of the connection
    UntilClose,
}

/// A response that cannot be passed on as it is
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ForwardError {
    /// Chunks to an app that speaks HTTP/1.0
    #[error("HTTP/1.0 has no chunks: end the body by its length or by closing the connection")]
    ChunksInHttp10,
    /// A reason phrase with a control byte
    #[error("bad reason phrase: it has a control byte")]
    BadReason,
}

impl ForwardedResponse<'_> {
    /// Appends the head to `out`, its empty line included
    ///
    /// The server's `Content-Length` stays in its place where there is one length, and where there is no
    /// body to have it but the answer may tell of one. `Connection: close` or `keep-alive` is added
    /// where the app's version needs it.
    ///
    /// Errors: [`ForwardError`]; nothing is appended then.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), ForwardError> {
        let is_old = self.version == Version::HTTP_10;
        if is_old && self.body == ForwardedBody::Chunked {
            return Err(ForwardError::ChunksInHttp10);
        }
        if self.reason.iter().any(|&byte| byte != b'\t' && byte.is_ascii_control()) {
            return Err(ForwardError::BadReason);
        }
        for part in [b"HTTP/1.1 ", self.status.as_str().as_bytes(), b" ", self.reason, b"\r\n"] {
            out.extend_from_slice(part);
        }
        let options = ConnectionOptions::of(self.fields);
        let mut length = self.length();
        for (name, value) in self.fields.iter() {
            if is(name, "content-length") {
                if let Some(length) = length.take() {
                    content_length(out, name, length);
                }
            } else if !options.drop(name) {
                field(out, name, value);
            }
        }
        if let Some(length) = length {
            content_length(out, "Content-Length", length);
        }
        if self.body == ForwardedBody::Chunked {
            field(out, "Transfer-Encoding", b"chunked");
        }
        if !self.keep_alive || self.body == ForwardedBody::UntilClose {
            field(out, "Connection", b"close");
        } else if is_old {
            field(out, "Connection", b"keep-alive");
        }
        out.extend_from_slice(b"\r\n");
        Ok(())
    }

    /// The length to tell: that of the body, or where there is none the one that the server told of
    fn length(&self) -> Option<u64> {
        match self.body {
            ForwardedBody::Length(length) => Some(length),
            // A 204 has no such field (RFC 9110 8.6).
            ForwardedBody::None if self.status != StatusCode::NO_CONTENT => {
                let told = self.fields.get("content-length")?;
                let is_number = told.iter().all(u8::is_ascii_digit);
                is_number.then(|| std::str::from_utf8(told).ok()?.parse().ok()).flatten()
            }
            ForwardedBody::None | ForwardedBody::Chunked | ForwardedBody::UntilClose => None,
        }
    }
}

/// What `Connection` names, in order, so that a long list costs no more than its sorting
struct ConnectionOptions<'a>(Vec<&'a [u8]>);

impl<'a> ConnectionOptions<'a> {
    fn of(fields: &'a Fields) -> Self {
        let mut options: Vec<&[u8]> = fields.members("connection").collect();
        options.sort_unstable_by(|one, other| in_any_case(one, other));
        Self(options)
    }

    /// Whether the field belongs to the connection on which it came
    fn drop(&self, name: &str) -> bool {
        const ALWAYS: [&str; 6] =
            ["connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"];
        ALWAYS.iter().any(|always| is(name, always))
            || name.get(..6).is_some_and(|prefix| is(prefix, "proxy-"))
            || self.0.binary_search_by(|option| in_any_case(option, name.as_bytes())).is_ok()
    }
}

fn in_any_case(one: &[u8], other: &[u8]) -> Ordering {
    one.iter().map(u8::to_ascii_lowercase).cmp(other.iter().map(u8::to_ascii_lowercase))
}

fn is(name: &str, other: &str) -> bool {
    name.eq_ignore_ascii_case(other)
}

fn field(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    for part in [name.as_bytes(), b": ", value, b"\r\n"] {
        out.extend_from_slice(part);
    }
}

fn content_length(out: &mut Vec<u8>, name: &str, length: u64) {
    write!(out, "{name}: {length}\r\n").expect("writing to a Vec cannot fail");
}
