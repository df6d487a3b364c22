//! One attempt: a connection, a request going out on it, and the response coming in.

use std::time::Duration;

use super::content::Content;
use super::event::AttemptId;
use super::stream::StreamBody;
use super::upload::Upload;
use crate::http1::{ResponseDecoder, ResponseHead};
use crate::machine::{Ended, IoFailure};
use crate::outcome::{AttemptRecord, Reason, SpanKind};
use crate::time::Instant;

/// One attempt and what is known of its response
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) id: AttemptId,
    pub(super) began: Instant,
    /// Its first connection was dead before anything was written to it (rule RTY-6)
    pub(super) is_replacement: bool,
    pub(super) phase: AttemptPhase,
    /// When the phase began
    pub(super) phase_began: Instant,
    /// The request on its way out
    pub(super) upload: Upload,
    /// Writing failed: nothing more is written, but an answer may still lie in the socket
    pub(super) write_failed: Option<IoFailure>,
    pub(super) http: Transport,
    pub(super) head: Option<ResponseHead>,
    /// The bytes of its fields
    pub(super) head_bytes: usize,
    /// When it came
    pub(super) head_at: Instant,
    /// How the peer's side ended, to be acted on once everything before it is parsed
    pub(super) peer_end: Option<PeerEnd>,
    /// It has ended, acted on or not: the connection can carry nothing more
    pub(super) peer_gone: bool,
    /// Bytes of the body at the front of the input, already out of their transfer coding
    pub(super) body_left: usize,
    /// What undoes the body's content coding, where it has one
    pub(super) content: Option<Box<Content>>,
    /// The response ended properly, with nothing after it, on a connection that may live on
    pub(super) reusable: bool,
    pub(super) record: AttemptRecord,
}

/// What an attempt is doing
#[derive(Debug)]
pub(super) enum AttemptPhase {
    /// Opening the connection
    Connecting,
    /// Sending the request, waiting for the head of the response
    Waiting,
    /// Reading a whole body: of a unary answer
    Unary(Vec<u8>),
    /// Reading a whole body: of an answer that is no success
    Refused(Vec<u8>),
    /// Reading a stream
    Stream(Box<StreamBody>),
    /// Handing out a body as it comes
    Raw(RawBody),
}

/// The clock over a body that is handed out as it comes
#[derive(Clone, Copy, Debug)]
pub(super) struct RawBody {
    /// The last byte, or the consumer's return
    pub(super) quiet_since: Instant,
}

/// Where the facts about the response come from
#[derive(Debug)]
pub(super) enum Transport {
    /// Bytes of HTTP/1.1, parsed here
    Http1(ResponseDecoder),
    /// [`super::Fact`]s, parsed elsewhere
    Facts,
}

/// How the peer's side ended
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PeerEnd {
    /// The connection ended
    Eof(Ended),
    /// Reading failed
    Failed(IoFailure),
    /// The response ended properly, says another transport
    EndOfBody,
}

impl Attempt {
    pub(super) fn new(
        id: AttemptId,
        number: u32,
        now: Instant,
        http: ResponseDecoder,
        upload: Upload,
    ) -> Self {
        Self {
            id,
            began: now,
            is_replacement: false,
            phase: AttemptPhase::Connecting,
            phase_began: now,
            upload,
            write_failed: None,
            http: Transport::Http1(http),
            head: None,
            head_bytes: 0,
            head_at: now,
            peer_end: None,
            peer_gone: false,
            body_left: 0,
            content: None,
            reusable: false,
            record: AttemptRecord {
                number,
                began: now,
                ended: now,
                reused: false,
                status: None,
                bytes_sent: 0,
                bytes_received: 0,
                events: 0,
                malformed: 0,
                deltas: 0,
                largest_gap: Duration::ZERO,
                reason: Reason::Done,
            },
        }
    }

    /// What the present phase is called in the timeline
    pub(super) fn span_kind(&self) -> SpanKind {
        match &self.phase {
            AttemptPhase::Connecting => SpanKind::Connect,
            AttemptPhase::Waiting => SpanKind::Request,
            AttemptPhase::Unary(_) | AttemptPhase::Refused(_) => SpanKind::Body,
            AttemptPhase::Stream(stream) if stream.marked_at.is_some() => SpanKind::AfterMarker,
            AttemptPhase::Stream(_) | AttemptPhase::Raw(_) => SpanKind::Stream,
        }
    }

    /// Since when a body whose arrivals are watched has been quiet: the last byte, or the consumer's return
    pub(super) fn quiet_since(&self) -> Option<Instant> {
        match &self.phase {
            AttemptPhase::Stream(stream) => Some(stream.quiet_since),
            AttemptPhase::Raw(body) => Some(body.quiet_since),
            AttemptPhase::Connecting
            | AttemptPhase::Waiting
            | AttemptPhase::Unary(_)
            | AttemptPhase::Refused(_) => None,
        }
    }

    /// The idle clock starts afresh
    pub(super) fn restart_idle(&mut self, now: Instant) {
        match &mut self.phase {
            AttemptPhase::Stream(stream) => stream.quiet_since = now,
            AttemptPhase::Raw(body) => body.quiet_since = now,
            AttemptPhase::Connecting
            | AttemptPhase::Waiting
            | AttemptPhase::Unary(_)
            | AttemptPhase::Refused(_) => {}
        }
    }

    /// Whether the connection is open
    pub(super) fn is_connected(&self) -> bool {
        !matches!(self.phase, AttemptPhase::Connecting)
    }

    /// How many more bytes of the request's body are wanted
    ///
    /// None once there is an answer that does not depend on them.
    pub(super) fn wants(&self) -> usize {
        let is_answered = match &self.phase {
            AttemptPhase::Connecting | AttemptPhase::Refused(_) => true,
            AttemptPhase::Waiting | AttemptPhase::Unary(_) | AttemptPhase::Raw(_) => false,
            AttemptPhase::Stream(stream) => stream.marked_at.is_some(),
        };
        if is_answered || self.write_failed.is_some() || self.peer_gone || self.peer_end.is_some() {
            return 0;
        }
        self.upload.wants()
    }

    /// Where the bytes of the body are read: the input, or what was decoded of it
    pub(super) fn body<'a>(&'a self, input: &'a [u8]) -> &'a [u8] {
        self.content.as_ref().map_or(input, |content| content.buffer())
    }

    pub(super) fn stream(&mut self) -> Option<&mut StreamBody> {
        match &mut self.phase {
            AttemptPhase::Stream(stream) => Some(stream),
            AttemptPhase::Connecting
            | AttemptPhase::Waiting
            | AttemptPhase::Unary(_)
            | AttemptPhase::Refused(_)
            | AttemptPhase::Raw(_) => None,
        }
    }
}
