//! Every way in which a call can fail (rules END-2 to END-5).

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::header::LOCATION;
use http::{HeaderMap, StatusCode};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::Turn;
use crate::call::without_secrets;
use crate::content::{ContentError, Unsupported};
use crate::framing::FramingError;
use crate::http1::Http1Error;
use crate::machine::{IoFailure, Stage};

/// A call that failed: how, what it may have cost, and what came of it
#[derive(Clone, Debug, PartialEq)]
pub struct CallError {
    /// How it failed
    pub kind: ErrorKind,
    /// What it may have cost
    pub billing: Billing,
    /// The answer as far as it came
    pub turn: Box<Turn>,
    /// How long the server asks us to wait before another attempt, where it does
    pub retry_after: Option<Duration>,
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)
    }
}

/// The source is that of the kind, whose own words are ours already
impl std::error::Error for CallError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.kind.source()
    }
}

/// The kinds of failure
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A wait reached its bound
    #[error(transparent)]
    Timeout(#[from] Timeout),
    /// The server answered with a status that is not a success
    #[error(transparent)]
    Status(Box<StatusError>),
    /// The provider reported an error inside a 200
    #[error("the provider reported an error inside its answer: {0}")]
    InBand(Box<ProviderError>),
    /// The answer ended before the provider said that it was whole
    #[error(transparent)]
    Truncated(#[from] Truncation),
    /// The answer ended, or was empty, before anything of it came
    #[error("the response held no answer at all")]
    Empty,
    /// The provider refused the prompt
    #[error("the provider refused the prompt: {reason}")]
    Blocked {
        /// The provider's word for why
        reason: String,
    },
    /// The connection could not be made, or broke
    #[error("the connection failed at stage {stage}: {0}", stage = .0.stage.name())]
    Transport(IoFailure),
    /// A proxy could not be reached, refused, or failed; the stage is always [`Stage::Proxy`]
    #[error("the way through the proxy failed: {0}")]
    Proxy(#[source] IoFailure),
    /// The peer broke HTTP, SSE or JSON, or went past a size cap
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    /// The caller gave up
    #[error("cancelled by the caller")]
    Cancelled,
    /// The caller's own callback failed
    #[error("the consumer failed: {0}")]
    Consumer(String),
}

impl ErrorKind {
    /// The kind's name in snake case, as it appears in JSON
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Timeout(_) => "timeout",
            Self::Status(_) => "status",
            Self::InBand(_) => "in_band",
            Self::Truncated(_) => "truncated",
            Self::Empty => "empty",
            Self::Blocked { .. } => "blocked",
            Self::Transport(_) => "transport",
            Self::Proxy(_) => "proxy",
            Self::Protocol(_) => "protocol",
            Self::Cancelled => "cancelled",
            Self::Consumer(_) => "consumer",
        }
    }
}

/// A connection's failure: the proxy's at its stage, the transport's at every other
impl From<IoFailure> for ErrorKind {
    fn from(failure: IoFailure) -> Self {
        match failure.stage {
            Stage::Proxy => Self::Proxy(failure),
            Stage::Resolve | Stage::Connect | Stage::Tls | Stage::Write | Stage::Read => {
                Self::Transport(failure)
            }
        }
    }
}

/// A wait that reached its bound
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, Serialize)]
#[error("{} for {elapsed:.3?}, past the limit of {limit:?}; raise `{setting}` to wait longer", .phase.silence())]
pub struct Timeout {
    /// Which wait it was
    pub phase: Phase,
    /// How long it really lasted
    #[serde(serialize_with = "as_seconds")]
    pub elapsed: Duration,
    /// How long it was allowed to last
    #[serde(serialize_with = "as_seconds")]
    pub limit: Duration,
    /// The field of `RequestConfig` that sets the limit
    pub setting: &'static str,
}

/// The waits that have a bound
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Phase {
    /// Opening a connection: name look-up, TCP, proxy, TLS
    Connect,
    /// One attempt: a whole unary exchange, or a stream until the head of its response
    Request,
    /// A gap between bytes of a stream
    StreamIdle,
    /// All attempts and pauses together
    Deadline,
    /// A gap between events that extend the answer
    ContentIdle,
    /// From the head of the response to the first event that extends the answer
    FirstContent,
}

impl Phase {
    /// The phase's name in snake case, as it appears in JSON
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Request => "request",
            Self::StreamIdle => "stream_idle",
            Self::Deadline => "deadline",
            Self::ContentIdle => "content_idle",
            Self::FirstContent => "first_content",
        }
    }

    const fn silence(self) -> &'static str {
        match self {
            Self::Connect => "no connection",
            Self::Request => "no answer to the request",
            Self::StreamIdle => "no byte of the stream",
            Self::Deadline => "no end of the call",
            Self::ContentIdle => "no more of the answer, though bytes came,",
            Self::FirstContent => "no beginning of the answer after the head of the response",
        }
    }
}

/// What a failed call may have cost (rule END-4)
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Billing {
    /// No byte of the request was sent in any attempt
    NotSent,
    /// The request was sent, at least in part: the provider may have run it
    MaybeBilled,
    /// Part of the answer reached the caller
    Delivered,
}

/// A response with a status that is not a success
///
/// Its debug form leaves the body out, and credentials that a server echoes are blanked in it, as
/// they are in the header fields of every response. Where a redirect points to is told without query and
/// fragment, where a server may put a token of its own.
#[derive(Clone, PartialEq, thiserror::Error)]
pub struct StatusError {
    /// The status
    pub status: StatusCode,
    /// The response's header fields
    pub headers: HeaderMap,
    /// The body as far as it came, up to `max_body_bytes`
    pub body: Bytes,
    /// Whether the body came whole
    pub whole: bool,
    /// What the provider says in the body, where it can be read
    pub provider: Option<ProviderError>,
}

impl fmt::Display for StatusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the server answered {}", self.status)?;
        if let Some(provider) = &self.provider {
            write!(f, ": {provider}")?;
        }
        match self.headers.get(LOCATION).filter(|_| self.status.is_redirection()) {
            Some(location) => write!(
                f,
                "; redirects are not followed, so correct the URL: it points to {}",
                ProtocolError::snippet(
                    without_secrets(&String::from_utf8_lossy(location.as_bytes())).as_bytes()
                )
            ),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for StatusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StatusError")
            .field("status", &self.status)
            .field("body_bytes", &self.body.len())
            .field("whole", &self.whole)
            .field("provider", &self.provider)
            .finish_non_exhaustive()
    }
}

/// What a provider says went wrong
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ProviderError {
    /// The provider's type of the error, such as `overloaded_error`
    pub kind: Option<String>,
    /// The provider's code of the error, such as `insufficient_quota`; numbers as their digits
    pub code: Option<String>,
    /// The HTTP status that the error stands for, where a code says so
    pub status: Option<u16>,
    /// The provider's message; empty where it gives none
    pub message: String,
    /// The provider's id of the request
    pub request_id: Option<String>,
}

/// The message, with the type or the code in front of it
impl fmt::Display for ProviderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind.as_ref().or(self.code.as_ref()) {
            Some(kind) if self.message.is_empty() => f.write_str(kind),
            Some(kind) => write!(f, "{kind}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

/// An answer that ended before the provider said that it was whole
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum Truncation {
    /// The response ended properly, but its last event was not the provider's last word
    #[error("the response ended without the provider's completion marker")]
    NoTerminalState,
    /// The connection ended inside the response
    #[error("the connection ended inside the response: {reason}")]
    InResponse {
        /// What was still owed
        reason: String,
    },
    /// The provider ended the answer inside a tool call
    #[error("the answer ended inside a tool call")]
    InToolCall,
}

/// A peer that broke a protocol, or went past a size cap
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtocolError {
    /// HTTP/1.1 was broken
    #[error("the peer broke HTTP/1.1: {0}")]
    Http1(#[from] Http1Error),
    /// One event was larger than `max_event_bytes`
    #[error("an event is larger than max_event_bytes ({limit})")]
    EventTooLarge {
        /// The cap in bytes
        limit: usize,
    },
    /// The body cannot be cut into events
    #[error(transparent)]
    Framing(#[from] FramingError),
    /// A unary body, or the answer assembled from a stream, was larger than `max_body_bytes`
    #[error("the answer is larger than max_body_bytes ({limit})")]
    BodyTooLarge {
        /// The cap in bytes
        limit: usize,
    },
    /// The body is of a type that cannot hold an answer
    #[error("a response of type {content_type} cannot hold an answer: {snippet:?}")]
    ContentType {
        /// The type, as the server gave it
        content_type: String,
        /// The beginning of the body
        snippet: String,
    },
    /// The body is compressed, unasked, in a way that cannot be undone here
    #[error(transparent)]
    ContentEncoding(#[from] Unsupported),
    /// The body is not what its content coding says; damage counts behind the completion marker too (rule STR-4)
    #[error(transparent)]
    Content(#[from] ContentError),
    /// An event, or the body, is not what the dialect allows
    #[error("{reason}: {snippet:?}")]
    Malformed {
        /// What is wrong
        reason: String,
        /// The beginning of the data
        snippet: String,
    },
}

impl ProtocolError {
    /// The most that an error quotes of a body, in bytes
    pub const MAX_SNIPPET_BYTES: usize = 200;

    /// The beginning of `data`, as far as an error quotes it
    pub(crate) fn snippet(data: &[u8]) -> String {
        let mut end = data.len().min(Self::MAX_SNIPPET_BYTES);
        while end > 0 && end < data.len() && data[end] & 0xC0 == 0x80 {
            end -= 1;
        }
        String::from_utf8_lossy(&data[..end]).into_owned()
    }
}

/// One JSON object: `kind`, `message`, `billing`, `retry_after` in seconds, and the kind's own fields
impl Serialize for CallError {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_map(None)?;
        out.serialize_entry("kind", self.kind.name())?;
        out.serialize_entry("message", &self.to_string())?;
        out.serialize_entry("billing", &self.billing)?;
        out.serialize_entry("retry_after", &self.retry_after.map(|pause| pause.as_secs_f64()))?;
        match &self.kind {
            ErrorKind::Timeout(timeout) => {
                out.serialize_entry("phase", &timeout.phase)?;
                out.serialize_entry("elapsed", &timeout.elapsed.as_secs_f64())?;
                out.serialize_entry("limit", &timeout.limit.as_secs_f64())?;
                out.serialize_entry("setting", timeout.setting)?;
            }
            ErrorKind::Status(error) => {
                out.serialize_entry("status", &error.status.as_u16())?;
                out.serialize_entry("body", &String::from_utf8_lossy(&error.body))?;
                out.serialize_entry("whole", &error.whole)?;
                out.serialize_entry("provider", &error.provider)?;
            }
            ErrorKind::InBand(provider) => out.serialize_entry("provider", provider)?,
            ErrorKind::Truncated(truncation) => out.serialize_entry("truncation", truncation)?,
            ErrorKind::Blocked { reason } => out.serialize_entry("reason", reason)?,
            ErrorKind::Transport(failure) | ErrorKind::Proxy(failure) => {
                out.serialize_entry("failure", failure)?;
            }
            ErrorKind::Empty | ErrorKind::Protocol(_) | ErrorKind::Cancelled | ErrorKind::Consumer(_) => {}
        }
        out.end()
    }
}

fn as_seconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}
