//! The response as it comes: what each part of head and body means for the call.

use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode};

use super::assembly::Absorbed;
use super::attempt::{Attempt, AttemptPhase, PeerEnd, RawBody, Transport};
use super::clocks::stream_of;
use super::content::Content;
use super::event::{Command, Item};
use super::held::headers_bytes;
use super::observer::Observation;
use super::request::Shape;
use super::stream::{StreamBody, Tail, malformed, text_of};
use super::{Call, Inner};
use crate::content::{self, ContentError};
use crate::dialect::findings::Findings;
use crate::dialect::{Decode, Decoder, Dialect, Progress};
use crate::http1::{Part, ResponseHead};
use crate::machine::{Ended, FailureKind, IoFailure, Stage, Step};
use crate::outcome::{Billing, ErrorKind, Note, Outcome, ProtocolError, Reason, Span, Truncation};
use crate::time::Instant;

/// What one round of [`Call::advance`] came to
#[derive(Clone, Copy, Debug)]
pub(super) enum Delivery {
    /// Something happened; go round again
    Nothing,
    /// The input is used up
    Dry,
    /// A delta, by its place among the findings
    Delta(usize),
    /// Bytes of a body that is handed out as it comes, by their place in it
    Bytes { start: usize, len: usize },
    /// The present event, whose kind is not known
    Unknown,
    /// The turn, which is whole
    Finished,
}

/// A step that delivers nothing, in less room than a step takes
pub(super) enum Silent {
    Do(Command),
    Wait,
    Done(Box<Outcome>),
}

impl Call {
    /// Goes on with the present attempt: one finding, one event, or one part of the response
    pub(super) fn advance(&mut self, input: &[u8], used: &mut usize) -> Delivery {
        let Inner::Attempting(attempt) = &mut self.inner else { return Delivery::Nothing };
        if let Some(stream) = attempt.stream() {
            if let Some(index) = stream.next_finding() {
                return self.found(index, input);
            }
            if stream.close_event() {
                return self.event_over();
            }
            if stream.over {
                self.body_concluded();
                return Delivery::Nothing;
            }
        }
        if attempt.body_left > 0 || attempt.content.as_ref().is_some_and(|content| content.has_more()) {
            return self.read_body(input, used);
        }
        if let Transport::Http1(http) = &mut attempt.http {
            match http.next(&input[*used..]) {
                Ok((consumed, None)) => *used += consumed,
                Ok((consumed, Some(part))) => {
                    if let Part::Body(range) = &part {
                        *used += range.start;
                        attempt.body_left = range.len();
                    } else {
                        *used += consumed;
                    }
                    let surplus = *used < input.len();
                    self.part(part, surplus);
                    return Delivery::Nothing;
                }
                Err(error) => {
                    self.broken(error.into());
                    return Delivery::Nothing;
                }
            }
        }
        match attempt.peer_end.take() {
            Some(end) => {
                self.connection_ended(end);
                Delivery::Nothing
            }
            None => Delivery::Dry,
        }
    }

    /// Reads on in the body, to the end of an event, or of what there is
    fn read_body(&mut self, input: &[u8], used: &mut usize) -> Delivery {
        let max_body_bytes = self.config.max_body_bytes();
        let Inner::Attempting(attempt) = &mut self.inner else { return Delivery::Nothing };
        let Attempt { phase, content, body_left, record, .. } = &mut **attempt;
        let here = *used..*used + *body_left;
        if let Some(content) = content.as_mut().filter(|content| content.unread().1.is_empty()) {
            match content.decode(&input[here]) {
                Ok(taken) => {
                    *used += taken;
                    *body_left -= taken;
                }
                Err(error) => self.broken(error.into()),
            }
            return Delivery::Nothing;
        }
        let (body, range) = content.as_ref().map_or((input, here), |content| content.unread());
        let room = |held: usize| {
            if planted!(BodyNotCapped) { range.len() } else { (max_body_bytes - held).min(range.len()) }
        };
        let too_large = || Err(ProtocolError::BodyTooLarge { limit: max_body_bytes });
        let mut delivery = Delivery::Nothing;
        let (taken, result) = match phase {
            AttemptPhase::Raw(_) => {
                if !range.is_empty() {
                    delivery = Delivery::Bytes { start: range.start, len: range.len() };
                    record.deltas += 1;
                    if self.billing < Billing::Delivered {
                        self.observers.tell(self.now, Observation::FirstDelta { attempt: record.number });
                    }
                    self.billing = Billing::Delivered;
                }
                (range.len(), Ok(()))
            }
            AttemptPhase::Stream(stream) => {
                let (taken, event) = stream.take(body, range, max_body_bytes);
                let is_document = stream.is_whole();
                if is_document && matches!(event, Ok(true)) {
                    self.timeline.note(Note::UnaryAnswerToStream);
                }
                let event = match event {
                    // What a decoder has yet to hand over belongs to the answer.
                    Ok(true) if self.assembly.bytes() + stream.decoder_held() > max_body_bytes => too_large(),
                    event => event.map(|event| record.events += u64::from(event && !is_document)),
                };
                (taken, event)
            }
            AttemptPhase::Unary(held) | AttemptPhase::Refused(held) => {
                let taken = room(held.len());
                held.extend_from_slice(&body[range.start..range.start + taken]);
                (range.len(), if taken < range.len() { too_large() } else { Ok(()) })
            }
            AttemptPhase::Connecting | AttemptPhase::Waiting => (range.len(), Ok(())),
        };
        match content {
            Some(content) => content.read(taken),
            None => {
                *used += taken;
                *body_left -= taken;
            }
        }
        if let Err(error) = result {
            self.broken(error);
        }
        delivery
    }

    fn part(&mut self, part: Part, surplus: bool) {
        match part {
            // The head of the response is still to come, and its clock runs on (rule STR-1).
            Part::Interim(_) | Part::Body(_) => {}
            Part::Head(head) => {
                if let Some(recorder) = &mut self.recorder {
                    recorder.head(self.input_of, &head);
                }
                self.head_arrived(head);
            }
            Part::End(end) => {
                if let Inner::Attempting(attempt) = &mut self.inner {
                    attempt.reusable = end.reusable && (!surplus || planted!(KeptWithSurplus));
                }
                self.body_ended(true);
            }
        }
    }

    /// The head of the final response is whole
    pub(super) fn head_arrived(&mut self, mut head: ResponseHead) {
        self.request.credentials.blank_headers(&mut head.headers);
        let (now, shape, dialect) = (self.now, self.request.shape, self.request.dialect);
        let Inner::Attempting(attempt) = &mut self.inner else { return };
        if !attempt.upload.is_whole(&self.request.body) && matches!(attempt.http, Transport::Http1(_)) {
            self.timeline.note(Note::ResponseBeforeRequestEnd);
        }
        let (number, status) = (attempt.record.number, head.status.as_u16());
        attempt.record.status = Some(status);
        self.observers.tell(now, Observation::Head { attempt: number, status });
        let content = content::Decoder::for_headers(&head.headers);
        let content_type = content_type(&head.headers);
        let is_foreign = dialect.is_some() && is_foreign(content_type.as_deref());
        let phase = match (shape, dialect) {
            _ if !is_answer(head.status, dialect) || is_foreign => AttemptPhase::Refused(Vec::new()),
            (Shape::Stream, Some(dialect)) => {
                if planted!(StreamDeadlineFromHead) {
                    self.began = now;
                }
                let framing = dialect.framing(content_type.as_deref());
                let max_event_bytes = self.config.max_event_bytes();
                AttemptPhase::Stream(Box::new(StreamBody::new(framing, dialect, max_event_bytes, now)))
            }
            (Shape::Raw, _) => AttemptPhase::Raw(RawBody { quiet_since: now }),
            (Shape::Unary | Shape::Stream, _) => AttemptPhase::Unary(Vec::new()),
        };
        let is_answer = !matches!(phase, AttemptPhase::Refused(_));
        attempt.head_bytes = headers_bytes(&head.headers);
        attempt.head = Some(head);
        attempt.head_at = now;
        let unsupported = match content {
            Ok(decoder) => {
                attempt.content = decoder.map(|decoder| Box::new(Content::new(decoder)));
                None
            }
            // The status of an error answer is news enough, whatever its body is packed in.
            Err(error) => is_answer.then_some(error),
        };
        self.enter(phase, now);
        if let Some(error) = unsupported {
            self.broken(error.into());
        }
    }

    /// The attempt's next phase begins
    pub(super) fn enter(&mut self, phase: AttemptPhase, now: Instant) {
        self.span(Reason::Done);
        if let Inner::Attempting(attempt) = &mut self.inner {
            attempt.phase = phase;
            attempt.phase_began = now;
        }
        self.phase_began();
    }

    /// Records the present phase, which ends now
    pub(super) fn span(&mut self, reason: Reason) {
        if let Inner::Attempting(attempt) = &mut self.inner {
            let span = Span {
                attempt: attempt.record.number,
                kind: attempt.span_kind(),
                began: attempt.phase_began,
                ended: self.now,
                reason,
            };
            attempt.phase_began = self.now;
            self.observers.tell(self.now, Observation::PhaseEnded(&span));
            self.timeline.span(span);
        }
    }

    /// The connection has ended, and everything before its end has been parsed
    fn connection_ended(&mut self, end: PeerEnd) {
        let Inner::Attempting(attempt) = &mut self.inner else { return };
        let Transport::Http1(http) = &mut attempt.http else {
            return match end {
                PeerEnd::EndOfBody => self.body_ended(true),
                PeerEnd::Eof(_) => {
                    self.truncated("the transport closed before the end of the body".to_owned())
                }
                PeerEnd::Failed(failure) => self.fail_by_connection(failure),
            };
        };
        let ended = match end {
            PeerEnd::Failed(failure) => return self.fail_by_connection(failure),
            PeerEnd::EndOfBody => Ended::Clean,
            PeerEnd::Eof(ended) => ended,
        };
        match http.eof() {
            Ok(_) => {
                let proper = ended == Ended::Clean;
                if !proper {
                    self.timeline.note(Note::NoCloseNotify);
                }
                self.body_ended(proper);
            }
            Err(incomplete) if attempt.head.is_some() => self.truncated(incomplete.to_string()),
            Err(incomplete) => self.fail_by_connection(IoFailure {
                stage: Stage::Read,
                kind: FailureKind::Reset,
                message: incomplete.to_string(),
            }),
        }
    }

    /// The connection failed; where writing failed before, that is the cause
    fn fail_by_connection(&mut self, failure: IoFailure) {
        if self.ended_by_cut() {
            return self.timeline.note(Note::UncleanEnd);
        }
        let Inner::Attempting(attempt) = &mut self.inner else { return };
        match (&attempt.phase, attempt.write_failed.take()) {
            (AttemptPhase::Waiting, Some(cause)) => self.fail(cause.into()),
            _ => self.cut(failure.into()),
        }
    }

    /// The connection or the body ended before its time: the last word is said, and the call fails
    fn cut(&mut self, kind: ErrorKind) {
        if self.end_pieces()
            && let Inner::Attempting(attempt) = &mut self.inner
            && let Some(stream) = attempt.stream()
        {
            stream.over = true;
            stream.cut = Some(Box::new(kind));
            return;
        }
        self.fail(kind);
    }

    /// Says half a character that was held back for its other half, as U+FFFD; returns whether there
    /// is one
    ///
    /// Not as the first word of an answer, which would be in the way of another attempt.
    fn end_pieces(&mut self) -> bool {
        let is_begun = self.billing == Billing::Delivered;
        let Inner::Attempting(attempt) = &mut self.inner else { return false };
        is_begun && attempt.stream().is_some_and(StreamBody::end_pieces)
    }

    fn truncated(&mut self, reason: String) {
        if self.ended_by_cut() {
            return self.timeline.note(Note::UncleanEnd);
        }
        self.cut(ErrorKind::Truncated(Truncation::InResponse { reason }));
    }

    /// Whether the last line of a stream that was cut ends the turn all the same; if so, it is taken
    fn ended_by_cut(&mut self) -> bool {
        let (Inner::Attempting(attempt), Some(dialect)) = (&mut self.inner, self.request.dialect) else {
            return false;
        };
        let Attempt { phase, record, .. } = &mut **attempt;
        let AttemptPhase::Stream(stream) = phase else { return false };
        let ended = !stream.over && stream.end_by_cut(dialect);
        if ended {
            record.events += 1;
            self.timeline.note(Note::TailTaken);
        }
        ended
    }

    /// The body has ended: by its framing, or by the end of a connection that delimits it
    fn body_ended(&mut self, proper: bool) {
        let Inner::Attempting(attempt) = &mut self.inner else { return };
        match attempt.content.as_ref().map_or(Ok(()), |content| content.finish()) {
            Ok(()) => {}
            Err(error @ ContentError::Incomplete { .. }) => return self.truncated(error.to_string()),
            Err(error @ ContentError::Corrupt(_)) => return self.broken(error.into()),
        }
        if !proper && self.ended_by_cut() {
            return;
        }
        let Inner::Attempting(attempt) = &mut self.inner else { return };
        match &mut attempt.phase {
            AttemptPhase::Connecting | AttemptPhase::Waiting => {}
            AttemptPhase::Refused(_) => self.refused_body_ended(true),
            AttemptPhase::Unary(body) => {
                let body = std::mem::take(body);
                self.unary_ended(body, proper);
            }
            // Nothing in it shows whether it is whole.
            AttemptPhase::Raw(_) if !proper && !planted!(RawCutPasses) => {
                self.truncated("no TLS close_notify".to_owned())
            }
            AttemptPhase::Raw(_) => self.complete_unary(Vec::new()),
            AttemptPhase::Stream(stream) => {
                let ended = stream.end(proper);
                if stream.is_whole() {
                    self.timeline.note(Note::UnaryAnswerToStream);
                }
                match ended {
                    Ok(Tail::Taken) => {
                        attempt.record.events += 1;
                        self.timeline.note(Note::TailTaken);
                    }
                    Ok(Tail::Dropped) if stream.marked_at.is_some() => self.timeline.note(Note::TailDropped),
                    Ok(Tail::Dropped | Tail::Nothing) => {}
                    Err(error) => self.unreadable(error, proper),
                }
            }
        }
    }

    /// The stream is over and all its findings are out
    fn body_concluded(&mut self) {
        let Inner::Attempting(attempt) = &mut self.inner else { return };
        let cut = attempt.stream().and_then(|stream| stream.cut.take());
        if let Some(kind) = cut {
            self.fail(*kind);
        } else if self.end_pieces() {
            // They are given out first.
        } else if self.has_terminal_state() {
            self.complete(Reason::EndOfBody);
        } else if self.assembly.turn.choices.is_empty() {
            self.fail(ErrorKind::Empty);
        } else {
            self.fail(ErrorKind::Truncated(Truncation::NoTerminalState));
        }
    }

    /// A body that has ended cannot be read; if it may have been cut, then that is the news
    fn unreadable(&mut self, error: ProtocolError, proper: bool) {
        if proper {
            self.broken(error);
        } else {
            self.truncated("no TLS close_notify".to_owned());
        }
    }

    fn unary_ended(&mut self, body: Vec<u8>, proper: bool) {
        let Some(dialect) = self.request.dialect else { return self.complete_unary(body) };
        let text = text_of(&body);
        if text.trim_ascii().is_empty() {
            return self.fail(ErrorKind::Empty);
        }
        let max_body_bytes = self.config.max_body_bytes();
        let mut findings = Findings::default();
        let mut decoder = Decoder::new(dialect);
        if let Err(error) = decoder.unary(&text, &mut findings) {
            return self.unreadable(malformed(&error, &text), proper);
        }
        findings.end();
        while let Some(index) = findings.take_index() {
            let finding = findings.get(index);
            if let Err(kind) = self.assembly.absorb(finding, &findings, text.as_bytes(), max_body_bytes) {
                return self.fail(kind);
            }
        }
        drop(text);
        self.complete_unary(body);
    }

    /// One finding of a stream
    fn found(&mut self, index: usize, input: &[u8]) -> Delivery {
        let max_body_bytes = self.config.max_body_bytes();
        let now = self.now;
        let Inner::Attempting(attempt) = &mut self.inner else { return Delivery::Nothing };
        let Attempt { phase, content, record, .. } = &mut **attempt;
        let AttemptPhase::Stream(stream) = phase else { return Delivery::Nothing };
        let body = content.as_ref().map_or(input, |content| content.buffer());
        let (finding, data) = stream.finding(index, body);
        match self.assembly.absorb(finding, &stream.findings, data, max_body_bytes) {
            Ok(Absorbed::Delta) => {
                stream.content_since = now;
                self.content_out = true;
                stream.had_content = true;
                stream.event_extends = true;
                record.deltas += 1;
                if self.billing < Billing::Delivered {
                    self.observers.tell(now, Observation::FirstDelta { attempt: record.number });
                }
                self.billing = Billing::Delivered;
                Delivery::Delta(index)
            }
            Ok(Absorbed::Unknown) => Delivery::Unknown,
            Ok(Absorbed::Silent) => Delivery::Nothing,
            Err(kind) => {
                self.fail(kind);
                Delivery::Nothing
            }
        }
    }

    /// All findings of an event are out: what it means for the turn's end
    fn event_over(&mut self) -> Delivery {
        let now = self.now;
        let Inner::Attempting(attempt) = &mut self.inner else { return Delivery::Nothing };
        let number = attempt.record.number;
        let Some(stream) = attempt.stream() else { return Delivery::Nothing };
        let extended = std::mem::take(&mut stream.event_extends);
        if planted!(PingsExtendContent) {
            stream.content_since = now;
        }
        if std::mem::take(&mut stream.findings.skipped) > 0 {
            self.timeline.note(Note::PayloadSkipped);
        }
        match (stream.progress(), stream.marked_at) {
            (Progress::Ended, _) => {
                let reason = if stream.is_whole() { Reason::EndOfBody } else { Reason::Sentinel };
                if !self.end_pieces() {
                    self.complete(reason);
                }
                Delivery::Nothing
            }
            (Progress::Marked, Some(_)) if !extended => Delivery::Nothing,
            (Progress::Marked, marked_at) => {
                if marked_at.is_none() {
                    self.span(Reason::Marker);
                }
                self.mark(Some(now));
                let reason = Reason::Marker;
                self.observers.tell(now, Observation::Terminal { attempt: number, reason });
                if marked_at.is_none() {
                    self.phase_began();
                }
                // The consumer gets the turn, empty or not: no other attempt may follow (RTY-2).
                self.billing = Billing::Delivered;
                Delivery::Finished
            }
            // A choice that was not known before goes on: the mark is taken back.
            (Progress::Open, Some(_)) => {
                self.span(Reason::Done);
                self.mark(None);
                self.phase_began();
                Delivery::Nothing
            }
            (Progress::Open, None) => Delivery::Nothing,
        }
    }

    fn mark(&mut self, marked_at: Option<Instant>) {
        if let Inner::Attempting(attempt) = &mut self.inner
            && let Some(stream) = attempt.stream()
        {
            stream.marked_at = marked_at;
        }
    }

    /// Hands out what [`Call::advance`] came to; the consumer has it from now on
    pub(super) fn deliver<'s>(&'s mut self, delivery: Delivery, input: &'s [u8]) -> Step<'s, Self> {
        self.item_out = true;
        let Self { inner, assembly, recorder, .. } = self;
        let item = match (delivery, &*inner) {
            (Delivery::Delta(index), Inner::Attempting(attempt)) => stream_of(attempt).and_then(|stream| {
                let (finding, data) = stream.finding(index, attempt.body(input));
                finding.delta(&stream.findings, data).map(Item::Delta)
            }),
            (Delivery::Bytes { start, len }, Inner::Attempting(attempt)) => {
                Some(Item::Bytes(&attempt.body(input)[start..start + len]))
            }
            (Delivery::Unknown, Inner::Attempting(attempt)) => stream_of(attempt).map(|stream| {
                let (name, data) = stream.raw_event(attempt.body(input));
                Item::Unknown { name, data }
            }),
            _ => None,
        };
        let step = Step::Deliver(item.unwrap_or(Item::Finished(&assembly.turn)));
        if let Some(recorder) = recorder {
            recorder.step(&step);
        }
        step
    }

    /// A step is large, so it is made where it goes
    #[inline]
    pub(super) fn silent_step<'s>(&self, silent: Silent) -> Step<'s, Self> {
        match silent {
            Silent::Do(command) => Step::Do(command),
            Silent::Wait => Step::Wait(self.wait()),
            Silent::Done(outcome) => Step::Done(*outcome),
        }
    }
}

/// Whether a response of that status can hold an answer
///
/// 204 has no body, so it is none where a dialect says what the body means (rule STR-10).
fn is_answer(status: StatusCode, dialect: Option<Dialect>) -> bool {
    status.is_success() && (dialect.is_none() || status != StatusCode::NO_CONTENT)
}

/// Whether a body of that type cannot hold an answer, such as a login page
///
/// Servers mislabel event streams as `text/plain` and worse: for those the framing tells.
fn is_foreign(content_type: Option<&str>) -> bool {
    let essence = content_type.and_then(|value| value.split(';').next()).unwrap_or_default();
    let essence = essence.trim_ascii().to_ascii_lowercase();
    let documents =
        ["text/html", "application/xhtml+xml", "application/xml", "text/xml", "text/css", "text/javascript"];
    documents.contains(&essence.as_str())
        || ["image/", "audio/", "video/", "font/"].iter().any(|kind| essence.starts_with(kind))
}

/// The content type as the server gave it
pub(super) fn content_type(headers: &HeaderMap) -> Option<String> {
    headers.get(CONTENT_TYPE).map(|value| String::from_utf8_lossy(value.as_bytes()).trim().to_owned())
}
