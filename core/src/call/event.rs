//! What the call machine is told, asks for, and delivers.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::http1::{ResponseHead, Tail};
use crate::outcome::{Delta, Phase, Turn};

/// Names one connection that a call asked for, in order from 1
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AttemptId(u32);

impl AttemptId {
    pub(crate) const NONE: Self = Self(0);

    const FIRST: Self = Self(1);

    pub(crate) fn next(self) -> Self {
        Self(self.0 + 1)
    }

    /// Whether a connection that an earlier exchange left will do
    ///
    /// Only for the first one of a call. Where that fails, the next ones are new: connections go
    /// stale together, and a new one may come to another, healthier server.
    pub const fn may_be_reused(self) -> bool {
        self.0 == Self::FIRST.0
    }

    /// The number, from 1
    pub const fn number(self) -> u32 {
        self.0
    }
}

impl fmt::Debug for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// What the driver has to start; neither is awaited
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Get a connection to the request's origin, and report `Connected`, `Reused` or `Failed`
    ///
    /// [`AttemptId::may_be_reused`] says whether one will do that an earlier exchange left.
    Connect(AttemptId),
    /// Another attempt is planned, after a pause: take it from the retry budget, and report
    /// [`Fact::RetryRefused`] where that is used up (rule RTY-9)
    ///
    /// Only asked of a driver that said it has one, see [`Call::ask_before_retries`](super::Call::ask_before_retries).
    Retry(AttemptId),
    /// Close a connection, open or still opening; nothing more is reported of it
    Close(AttemptId, CloseMode),
}

/// What is to become of a connection
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CloseMode {
    /// Drop it: something is still under way on it, or it broke
    Abort,
    /// Its exchange ended properly, so another request may follow on it
    Keep,
    /// The same, and the server said by `Keep-Alive` for how long it keeps it
    KeepFor(Duration),
    /// The call is over, but not yet the message: once that has ended, another request may follow
    ///
    /// A driver without a pool may drop it.
    Finish(Box<Tail>),
}

/// What the call delivers to its consumer
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// A piece of the answer; the first one closes the gate for retries (rule RTY-2)
    Delta(Delta<'a>),
    /// Bytes of a body that was asked for as it comes, never empty; the first ones close the gate too
    ///
    /// In the pieces in which they were read: their borders mean nothing.
    Bytes(&'a [u8]),
    /// An event of a kind that the dialect does not know, as it came; not part of the answer
    Unknown {
        /// The event's SSE name, `message` where it has none
        name: &'a str,
        /// The event's data
        data: &'a str,
    },
    /// The answer is whole (rule STR-4), though the call goes on: trailing usage or the sentinel
    /// may follow, for at most `after_marker`
    ///
    /// Comes at a completion marker. Where a provider goes on after one, it comes again. Of what can
    /// still go wrong, an error in the stream, damage of a compressed body and a failing consumer count.
    Finished(&'a Turn),
}

/// The same facts as in HTTP/1.1 bytes, from a transport that has parsed them: HTTP/2, or `fetch`
#[derive(Debug)]
pub enum Fact<'e> {
    /// The head of the final response came
    Head(AttemptId, ResponseHead),
    /// Bytes of the body came
    Body(AttemptId, &'e [u8]),
    /// The body ended properly
    End(AttemptId),
    /// The retry budget has nothing left for the attempt that [`Command::Retry`] announced
    RetryRefused(AttemptId),
    /// The caller's own callback failed, with these words
    ConsumerFailed(&'e str),
}

/// Why a call has a deadline; at the same instant the earlier one in this list wins
///
/// From `FirstContent` to `AfterMarker` they watch the server, and so none of them runs while an
/// item is with the consumer: nothing is read then. What has passed its time meanwhile is due when
/// the consumer is back, and the driver looks at the socket once more before it says so.
///
/// | timer | kind | from | ends with |
/// |---|---|---|---|
/// | `Deadline` | absolute | the call's start | the call |
/// | `StreamDeadline` | absolute | the call's start | the call |
/// | `Connect` | absolute | the attempt's start | the attempt |
/// | `Request` | absolute | the attempt's start | the attempt |
/// | `ErrorBody` | absolute | the head of an answer that is no success | the body |
/// | `FirstContent` | absolute | the head | the call |
/// | `ContentIdle` | rolling | the last event that extends the answer; the consumer's return from it | the call |
/// | `StreamIdle` | rolling | the last byte of any kind; the consumer's return | the call |
/// | `AfterMarker` | absolute | the completion marker; afresh with content after it | the call, in success |
/// | `Backoff` | absolute | the failure before | the pause |
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Timer {
    /// `total_deadline`: all attempts and pauses together; for a stream, until its head
    Deadline,
    /// `stream_deadline`: a stream from its start to its last byte, all attempts together
    StreamDeadline,
    /// `connect_timeout`
    Connect,
    /// `request_timeout`: a unary exchange; a stream until its head
    Request,
    /// The five seconds that the body of an error answer may take (rule STR-6)
    ErrorBody,
    /// `first_content_timeout`
    FirstContent,
    /// `content_idle_timeout`
    ContentIdle,
    /// `stream_idle_timeout`
    StreamIdle,
    /// `after_marker`
    AfterMarker,
    /// The pause before another attempt
    Backoff,
}

impl Timer {
    /// The phase that a timeout by this timer reports, and the field that sets its limit
    ///
    /// `None` for the timers whose expiry is no failure of its own.
    pub const fn breach(self) -> Option<(Phase, &'static str)> {
        Some(match self {
            Self::Deadline => (Phase::Deadline, "total_deadline"),
            Self::StreamDeadline => (Phase::Deadline, "stream_deadline"),
            Self::Connect => (Phase::Connect, "connect_timeout"),
            Self::Request => (Phase::Request, "request_timeout"),
            Self::FirstContent => (Phase::FirstContent, "first_content_timeout"),
            Self::ContentIdle => (Phase::ContentIdle, "content_idle_timeout"),
            Self::StreamIdle => (Phase::StreamIdle, "stream_idle_timeout"),
            Self::ErrorBody | Self::AfterMarker | Self::Backoff => return None,
        })
    }
}

/// Where a call is; the transitions are in the table of [`super`]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Not begun
    Idle,
    /// Opening a connection
    Connecting,
    /// Sending the request and waiting for the head of the response
    Waiting,
    /// Reading the body of a unary answer
    Reading,
    /// Reading the body of an answer that is no success
    Refused,
    /// Reading the events of a stream
    Streaming,
    /// The answer is whole; waiting for trailing usage or the sentinel
    Finished,
    /// Pausing before another attempt
    Pausing,
    /// Over
    Over,
}

impl State {
    /// Every transition, in the order of the table of [`super`]
    pub const TRANSITIONS: [(Self, Self); 22] = [
        (Self::Idle, Self::Connecting),
        (Self::Idle, Self::Over),
        (Self::Connecting, Self::Waiting),
        (Self::Connecting, Self::Pausing),
        (Self::Connecting, Self::Over),
        (Self::Waiting, Self::Reading),
        (Self::Waiting, Self::Streaming),
        (Self::Waiting, Self::Refused),
        (Self::Waiting, Self::Connecting),
        (Self::Waiting, Self::Pausing),
        (Self::Waiting, Self::Over),
        (Self::Reading, Self::Pausing),
        (Self::Reading, Self::Over),
        (Self::Refused, Self::Pausing),
        (Self::Refused, Self::Over),
        (Self::Streaming, Self::Finished),
        (Self::Streaming, Self::Pausing),
        (Self::Streaming, Self::Over),
        (Self::Finished, Self::Streaming),
        (Self::Finished, Self::Over),
        (Self::Pausing, Self::Connecting),
        (Self::Pausing, Self::Over),
    ];
}
