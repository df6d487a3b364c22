//! What a call holds of what its peer sent (INV-8).

use http::HeaderMap;

use super::attempt::{AttemptPhase, Transport};
use super::{Call, Inner};
use crate::outcome::{Completion, ErrorKind};

/// What a call holds of what its peer sent, in bytes, part by part
///
/// Each part is bounded by the configuration, whatever the peer sends:
///
/// | part | at most |
/// |---|---|
/// | `unread` | the driver's last read |
/// | `head` | `max_head_bytes`, and [`MAX_TRAILER_BYTES`](crate::http1::MAX_TRAILER_BYTES) for trailers under way |
/// | `event` | some copies of `max_event_bytes`, see [`Held::event`] |
/// | `body` | `max_body_bytes` |
/// | `turn` | `max_body_bytes` |
/// | `failure` | what was `event` or `body` before |
///
/// Left out is what no peer can make grow: the call itself, its request, its timeline, of which each
/// attempt adds a little, the 44 KiB of windows under a compressed body, and what a decoder notes of open
/// choices, items and tool calls, of which there are at most a few thousand. A body or an event that is
/// no UTF-8 is counted as it was repaired: U+FFFD takes three bytes where one was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Bytes that came and are not parsed: what was left by a `Drain` that was dropped before its end
    pub unread: usize,
    /// The head of the response, whole or begun, or trailers that have begun
    pub head: usize,
    /// The event under way, or the one that is being delivered: what has come of it, its name, the last
    /// event id, a copy where it outlives the driver's buffer, strings without their escapes, and a place
    /// for each thing that was found in it
    pub event: usize,
    /// The body of a unary answer or of an error, or the one JSON document that came in place of a stream
    pub body: usize,
    /// The answer as far as it is put together: text, reasoning, refusals, tool calls with their
    /// arguments, the provider's own words, and arguments that a decoder has yet to hand over
    pub turn: usize,
    /// What a failure quotes, while there is a pause after it
    pub failure: usize,
}

impl Held {
    /// All of it
    pub fn total(&self) -> usize {
        let Self { unread, head, event, body, turn, failure } = *self;
        unread + head + event + body + turn + failure
    }
}

impl Call {
    /// What the call holds of what its peer sent: cheap enough to ask after every event
    pub fn held(&self) -> Held {
        let mut held = Held { unread: self.tail.held(), ..Held::default() };
        match &self.inner {
            Inner::Idle | Inner::Over => return held,
            Inner::Attempting(attempt) => {
                held.head = attempt.head_bytes;
                if let Transport::Http1(http) = &attempt.http {
                    held.head += http.held();
                }
                match &attempt.phase {
                    // A raw body is handed out as it comes, and none of it stays.
                    AttemptPhase::Connecting | AttemptPhase::Waiting | AttemptPhase::Raw(_) => {}
                    AttemptPhase::Unary(body) | AttemptPhase::Refused(body) => held.body = body.len(),
                    AttemptPhase::Stream(stream) => {
                        (held.event, held.body) = stream.held();
                        held.turn = stream.decoder_held();
                    }
                }
            }
            Inner::Pausing(pause) => held.failed(&pause.failure),
            Inner::Ending(outcome) => match &outcome.result {
                Ok(Completion { headers, body, .. }) => {
                    held.head = headers_bytes(headers);
                    held.body = body.len();
                }
                Err(error) => held.failed(&error.kind),
            },
        }
        held.turn += self.assembly.bytes();
        held
    }
}

impl Held {
    /// What is left of an attempt that failed so
    fn failed(&mut self, kind: &ErrorKind) {
        match kind {
            ErrorKind::Status(error) => {
                self.head = headers_bytes(&error.headers);
                self.body = error.body.len();
                self.failure = error.provider.as_ref().map_or(0, |provider| provider.message.len());
            }
            ErrorKind::InBand(provider) => self.failure = provider.message.len(),
            ErrorKind::Blocked { reason } => self.failure = reason.len(),
            ErrorKind::Transport(failure) | ErrorKind::Proxy(failure) => self.failure = failure.message.len(),
            // Their words are ours, or cut short.
            ErrorKind::Timeout(_)
            | ErrorKind::Truncated(_)
            | ErrorKind::Empty
            | ErrorKind::Protocol(_)
            | ErrorKind::Cancelled
            | ErrorKind::Consumer(_) => {}
        }
    }
}

/// The bytes of names and values
pub(super) fn headers_bytes(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum()
}
