//! What happened when: every attempt, phase and pause of a call (rule END-1).

use std::fmt;
use std::time::Duration;

use serde::ser::{SerializeStruct, Serializer};
use serde::{Deserialize, Serialize};

use crate::machine::Stage;
use crate::time::Instant;

/// Every attempt, phase and pause of one call, in order
///
/// Prints as a waterfall. Its records are bounded: past [`Timeline::MAX_ATTEMPTS`] attempts the
/// older ones stay, and later ones are only counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Timeline {
    /// The seed of this call's random pauses
    pub seed: u64,
    /// When the call began
    #[serde(serialize_with = "as_seconds")]
    pub began: Instant,
    /// When it ended
    #[serde(serialize_with = "as_seconds")]
    pub ended: Instant,
    /// Phases and pauses in the order in which they began
    pub spans: Vec<Span>,
    /// What each attempt sent and received
    pub attempts: Vec<AttemptRecord>,
    /// Things worth knowing that changed nothing
    pub notes: Vec<Note>,
    /// Events that came for connections already closed, and were ignored
    pub stale_events: u32,
    /// Events whose time lay before that of an earlier one, and was read as the same
    pub clock_steps_back: u32,
    /// Attempts that were made but not recorded
    pub attempts_not_recorded: u32,
}

/// One phase or pause
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The attempt it belongs to, from 1; a pause belongs to the attempt before it
    pub attempt: u32,
    /// What was going on
    pub kind: SpanKind,
    /// When it began
    pub began: Instant,
    /// When it ended
    pub ended: Instant,
    /// Why it ended
    pub reason: Reason,
}

/// What goes on in a span
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpanKind {
    /// Opening a connection
    Connect,
    /// Sending the request and waiting for the head of the response
    Request,
    /// Reading the body of a unary answer, or of an answer with an error status
    Body,
    /// Reading the events of a stream
    Stream,
    /// Waiting for trailing usage or the sentinel, after the completion marker
    AfterMarker,
    /// Pausing before the next attempt
    Backoff,
}

impl SpanKind {
    /// The kind's name in snake case, as it appears in JSON
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Request => "request",
            Self::Body => "body",
            Self::Stream => "stream",
            Self::AfterMarker => "after_marker",
            Self::Backoff => "backoff",
        }
    }
}

/// Why a span ended
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The next phase began
    Done,
    /// The pause was slept
    Slept,
    /// The provider's sentinel came
    Sentinel,
    /// The provider's completion marker came
    Marker,
    /// The response ended
    EndOfBody,
    /// `after_marker` ran out
    AfterMarker,
    /// A bound was reached; the field of `RequestConfig` that sets it
    Bound(&'static str),
    /// The server answered with an error status
    Status(u16),
    /// The provider reported an error in its answer
    InBand,
    /// The provider refused the prompt
    Blocked,
    /// The connection failed
    Failed(Stage),
    /// The connection ended too early
    Ended,
    /// The response held no answer
    Empty,
    /// The peer broke a protocol
    Protocol,
    /// The retry budget was used up
    RetryBudget,
    /// The caller gave up
    Cancelled,
    /// The caller's callback failed
    Consumer,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => f.write_str("done"),
            Self::Slept => f.write_str("slept"),
            Self::Sentinel => f.write_str("sentinel"),
            Self::Marker => f.write_str("completion marker"),
            Self::EndOfBody => f.write_str("end of body"),
            Self::AfterMarker => f.write_str("after_marker ran out"),
            Self::Bound(setting) => write!(f, "{setting} reached"),
            Self::Status(status) => write!(f, "status {status}"),
            Self::InBand => f.write_str("in-band error"),
            Self::Blocked => f.write_str("prompt refused"),
            Self::Failed(stage) => write!(f, "failed at {}", stage.name()),
            Self::Ended => f.write_str("ended too early"),
            Self::Empty => f.write_str("no answer"),
            Self::Protocol => f.write_str("protocol broken"),
            Self::RetryBudget => f.write_str("retry budget used up"),
            Self::Cancelled => f.write_str("cancelled"),
            Self::Consumer => f.write_str("consumer failed"),
        }
    }
}

/// What one attempt sent and received
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AttemptRecord {
    /// The attempt, from 1
    pub number: u32,
    /// When it began
    #[serde(serialize_with = "as_seconds")]
    pub began: Instant,
    /// When it ended
    #[serde(serialize_with = "as_seconds")]
    pub ended: Instant,
    /// Whether it went out on a connection that an earlier call had left
    pub reused: bool,
    /// The status of the response, where its head came
    pub status: Option<u16>,
    /// Bytes of the request that the connection took
    pub bytes_sent: u64,
    /// Bytes that came
    pub bytes_received: u64,
    /// Events of the stream that could be read
    pub events: u64,
    /// Events, or whole answers, that could not be read as what the dialect allows
    pub malformed: u64,
    /// Deltas that reached the consumer
    pub deltas: u64,
    /// The longest gap between bytes of a stream, without the consumer's own time; in a relay, the longest
    /// time in which no part of the answer reached the app
    #[serde(serialize_with = "duration_as_seconds")]
    pub largest_gap: Duration,
    /// Why it ended
    pub reason: Reason,
}

/// Something worth knowing that changed nothing about the result
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Note {
    /// The provider never sent its sentinel
    MissingSentinel,
    /// After the terminal state the connection was reset, cut, or ended without `close_notify`
    UncleanEnd,
    /// After the terminal state nothing came until a bound fired
    HeldOpen,
    /// After the terminal state the caller cancelled
    CancelledAfterEnd,
    /// After the terminal state data came that could not be read
    NoiseAfterEnd,
    /// The last event had no blank line after it, and was whole
    TailTaken,
    /// A payload was a comment in the guise of data, `null`, plain text of a keep-alive event, or the
    /// sentinel of another dialect
    PayloadSkipped,
    /// After the terminal state the body ended within an event, which is lost
    TailDropped,
    /// The body of an error answer did not come whole
    ErrorBodyCut,
    /// The response came before the request was wholly sent
    ResponseBeforeRequestEnd,
    /// A stream was asked for, and one whole JSON answer came
    UnaryAnswerToStream,
    /// A whole JSON body ended with a FIN but no TLS `close_notify`
    NoCloseNotify,
    /// The next attempt was not made because its pause did not fit the total deadline
    PauseDidNotFit,
    /// The next attempt was not made because the retry budget of the client was used up
    RetryBudgetUsedUp,
    /// The next attempt was not made because the server asked for more than `max_retry_after`
    RetryAfterTooLong,
    /// A connection that an earlier call had left was dead, and replaced at no cost: nothing was sent on it
    StaleConnection,
}

impl Timeline {
    /// The most attempts that are recorded
    pub const MAX_ATTEMPTS: usize = 128;

    pub(crate) fn new(seed: u64, began: Instant) -> Self {
        Self {
            seed,
            began,
            ended: began,
            spans: Vec::new(),
            attempts: Vec::new(),
            notes: Vec::new(),
            stale_events: 0,
            clock_steps_back: 0,
            attempts_not_recorded: 0,
        }
    }

    /// How long the call took
    pub fn elapsed(&self) -> Duration {
        self.ended - self.began
    }

    /// How many attempts were made
    pub fn attempt_count(&self) -> u32 {
        self.attempts.len() as u32 + self.attempts_not_recorded
    }

    pub(crate) fn note(&mut self, note: Note) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    pub(crate) fn span(&mut self, span: Span) {
        // At most four spans an attempt: connect, request, stream or body, and the pause after it. The
        // first one may have two more, of a connection that was replaced.
        if self.spans.len() < 5 * Self::MAX_ATTEMPTS {
            self.spans.push(span);
        }
    }

    pub(crate) fn attempt(&mut self, attempt: AttemptRecord) {
        if self.attempts.len() < Self::MAX_ATTEMPTS {
            self.attempts.push(attempt);
        } else {
            self.attempts_not_recorded += 1;
        }
    }
}

/// The waterfall: a line for each span, its bar drawn to scale
impl fmt::Display for Timeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const WIDTH: u128 = 40;
        let total = self.elapsed().as_nanos().max(1);
        let column = |at: Instant| ((at - self.began).as_nanos() * WIDTH / total).min(WIDTH) as usize;
        for span in &self.spans {
            let from = column(span.began).min(WIDTH as usize - 1);
            let to = column(span.ended).max(from + 1);
            let mut bar = " ".repeat(from);
            let fill = if span.kind == SpanKind::Backoff { "·" } else { "█" };
            bar.push_str(&fill.repeat(to - from));
            bar.push_str(&" ".repeat(WIDTH as usize - to));
            writeln!(
                f,
                "{:>3} {:<12} {:>9} +{:<9} |{bar}| {}",
                span.attempt,
                span.kind.name(),
                seconds(span.began - self.began),
                seconds(span.ended - span.began),
                span.reason
            )?;
        }
        let received: u64 = self.attempts.iter().map(|attempt| attempt.bytes_received).sum();
        let events: u64 = self.attempts.iter().map(|attempt| attempt.events).sum();
        write!(
            f,
            "    total {} · attempts {} · received {received} B · events {events} · seed {}",
            seconds(self.elapsed()),
            self.attempt_count(),
            self.seed
        )
    }
}

fn seconds(duration: Duration) -> String {
    format!("{:.3}s", duration.as_secs_f64())
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Span", 5)?;
        out.serialize_field("attempt", &self.attempt)?;
        out.serialize_field("kind", self.kind.name())?;
        out.serialize_field("began", &self.began.since_origin().as_secs_f64())?;
        out.serialize_field("ended", &self.ended.since_origin().as_secs_f64())?;
        out.serialize_field("reason", &self.reason)?;
        out.end()
    }
}

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

fn as_seconds<S: Serializer>(instant: &Instant, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(instant.since_origin().as_secs_f64())
}

fn duration_as_seconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_waterfall_is_drawn_to_scale() {
        let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
        let mut timeline = Timeline::new(7, at(1_000));
        let span = |attempt, kind, began, ended, reason| Span {
            attempt,
            kind,
            began: at(began),
            ended: at(ended),
            reason,
        };
        timeline.span(span(1, SpanKind::Connect, 1_000, 1_250, Reason::Done));
        timeline.span(span(1, SpanKind::Request, 1_250, 1_500, Reason::Status(503)));
        timeline.span(span(1, SpanKind::Backoff, 1_500, 2_000, Reason::Slept));
        timeline.ended = at(2_000);
        let drawn = timeline.to_string();
        let lines: Vec<&str> = drawn.lines().collect();
        assert_eq!(
            lines[0],
            "  1 connect         0.000s +0.250s    |██████████                              | done"
        );
        assert_eq!(
            lines[1],
            "  1 request         0.250s +0.250s    |          ██████████                    | status 503"
        );
        assert_eq!(
            lines[2],
            "  1 backoff         0.500s +0.500s    |                    ····················| slept"
        );
        assert_eq!(lines[3], "    total 1.000s · attempts 0 · received 0 B · events 0 · seed 7");
    }

    #[test]
    fn records_are_bounded() {
        let mut timeline = Timeline::new(0, Instant::ORIGIN);
        let record = AttemptRecord {
            number: 1,
            began: Instant::ORIGIN,
            ended: Instant::ORIGIN,
            reused: false,
            status: None,
            bytes_sent: 0,
            bytes_received: 0,
            events: 0,
            malformed: 0,
            deltas: 0,
            largest_gap: Duration::ZERO,
            reason: Reason::Empty,
        };
        for _ in 0..Timeline::MAX_ATTEMPTS + 3 {
            timeline.attempt(record.clone());
        }
        assert_eq!(timeline.attempts.len(), Timeline::MAX_ATTEMPTS);
        assert_eq!(timeline.attempt_count() as usize, Timeline::MAX_ATTEMPTS + 3);
    }
}
