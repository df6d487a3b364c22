//! What a caller gets back: how the call ended, and how it came to that.
//!
//! | file | what is in it |
//! |---|---|
//! | `turn` | the answer, assembled, and the deltas it is made of |
//! | `error` | every way in which a call can fail, typed, with what it may have cost |
//! | `response` | what the server said of itself: header fields, its id of the request, its rate limits |
//! | `timeline` | every attempt, phase and pause, with its start, end and reason |

mod error;
mod response;
mod timeline;
mod turn;

use std::fmt;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use serde::Serialize;
use serde::ser::{SerializeStruct, Serializer};

pub use crate::retry::{RateLimit, RateLimits};
pub use error::{
    Billing, CallError, ErrorKind, Phase, ProtocolError, ProviderError, StatusError, Timeout, Truncation,
};
pub use response::Response;
pub use timeline::{AttemptRecord, Note, Reason, Span, SpanKind, Timeline};
pub use turn::{Choice, Delta, ReasoningMember, Signature, Signed, ToolCall, ToolKind, Turn, Usage};

/// How a call ended, and how it came to that (rule END-1)
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The answer, or the typed failure with whatever came of the answer
    pub result: Result<Completion, CallError>,
    /// Every attempt, phase and pause
    pub timeline: Timeline,
    /// The head of the last response that came, whatever became of it; `None` where none did
    ///
    /// An attempt that got no head leaves that of an earlier one, and [`Response::attempt`] says whose
    /// it is.
    pub response: Option<Box<Response>>,
}

impl Outcome {
    /// The answer as far as it came, whole or not
    pub fn turn(&self) -> &Turn {
        match &self.result {
            Ok(completion) => &completion.turn,
            Err(error) => &error.turn,
        }
    }

    /// The same, where the consumer failed after the call was over: it is no success then
    ///
    /// While a call goes on, [`Fact::ConsumerFailed`](crate::call::Fact::ConsumerFailed) tells it.
    #[must_use]
    pub fn consumer_failed(self, message: String) -> Self {
        let result = self.result.and_then(|completion| {
            Err(CallError {
                kind: ErrorKind::Consumer(message),
                billing: Billing::Delivered,
                turn: Box::new(completion.turn),
                retry_after: None,
            })
        });
        Self { result, ..self }
    }

    /// One word for the result: `completed`, `incomplete`, `blocked` or `error`
    pub fn word(&self) -> &'static str {
        match &self.result {
            Ok(Completion { ending: Ending::Completed, .. }) => "completed",
            Ok(Completion { ending: Ending::Incomplete(_), .. }) => "incomplete",
            Err(CallError { kind: ErrorKind::Blocked { .. }, .. }) => "blocked",
            Err(_) => "error",
        }
    }

    /// What the server said of its rate limits in the last response, in success as in failure
    ///
    /// `None` where no response came or it said nothing that could be read.
    pub fn rate_limits(&self) -> Option<&RateLimits> {
        self.response.as_ref().map(|response| &response.rate_limits).filter(|limits| !limits.is_empty())
    }

    /// The server's id of the request, for its support: of the last response, else the one that an
    /// error names
    pub fn request_id(&self) -> Option<&str> {
        let in_error = || {
            let kind = &self.result.as_ref().err()?.kind;
            let provider = if let ErrorKind::Status(error) = kind {
                error.provider.as_ref()
            } else if let ErrorKind::InBand(provider) = kind {
                Some(&**provider)
            } else {
                None
            };
            provider?.request_id.as_deref()
        };
        self.response.as_ref().and_then(|response| response.request_id()).or_else(in_error)
    }

    /// Whether a tool call of the turn came whole, so that it may be run (rule STR-11)
    ///
    /// One that was cut before its first argument looks like one without arguments, and free text that
    /// was cut like any other: unless the answer is completed, such calls are not whole.
    pub fn is_whole(&self, call: &ToolCall) -> bool {
        let is_completed = matches!(self.result, Ok(Completion { ending: Ending::Completed, .. }));
        let shows_its_end =
            call.kind != ToolKind::Custom && !matches!(call.arguments.trim_ascii(), "" | "{}");
        call.looks_whole() && (is_completed || shows_its_end)
    }
}

/// A body that was written away as it came, and how its call ended
#[derive(Clone, Debug)]
pub struct Download {
    /// How the call ended; a writer that failed is [`ErrorKind::Consumer`]
    pub outcome: Outcome,
    /// Bytes of the pieces that the writer took whole, whatever then became of the call
    pub written: u64,
}

/// An answer that ended as the provider meant it to
///
/// Its debug form leaves out the body and what the header fields say: cookies are secrets, and some
/// servers echo keys.
#[derive(Clone, PartialEq, Eq)]
pub struct Completion {
    /// Whether the answer is whole
    pub ending: Ending,
    /// The answer; empty for a call without a dialect
    pub turn: Turn,
    /// The response's status
    pub status: StatusCode,
    /// The response's header fields
    pub headers: HeaderMap,
    /// The body of a unary call as it came; empty for a stream, and where it was handed out raw
    pub body: Bytes,
}

impl fmt::Debug for Completion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Completion")
            .field("ending", &self.ending)
            .field("turn", &self.turn)
            .field("status", &self.status)
            .field("body_bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

/// How an answer ended (rules END-6 and STR-11)
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The answer is whole
    Completed,
    /// The provider stopped early, for the reason that its own word gives: a length, a filter, a pause
    Incomplete(String),
}

/// The outcome as one JSON object: `result`, `error` or null, the first choice's text and finish
/// reason, the whole turn, the server's id of the request and its rate limits, and the timeline
impl Serialize for Outcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let turn = self.turn();
        let mut out = serializer.serialize_struct("Outcome", 10)?;
        out.serialize_field("result", self.word())?;
        out.serialize_field("error", &self.result.as_ref().err())?;
        out.serialize_field(
            "status",
            &self.result.as_ref().ok().map(|completion| completion.status.as_u16()),
        )?;
        out.serialize_field("text", turn.text())?;
        out.serialize_field("finish_reason", &turn.finish_reason())?;
        out.serialize_field("usage", &turn.usage)?;
        out.serialize_field("turn", turn)?;
        out.serialize_field("request_id", &self.request_id())?;
        out.serialize_field("rate_limits", &self.rate_limits())?;
        out.serialize_field("timeline", &self.timeline)?;
        out.end()
    }
}
