//! How an attempt ends: with another one, or with the outcome of the call.

use std::time::Duration;

use http::{HeaderMap, StatusCode};

use super::attempt::{Attempt, AttemptPhase, Transport};
use super::clocks::stream_of;
use super::credentials::Credentials;
use super::event::{AttemptId, CloseMode};
use super::observer::Observation;
use super::request::Retries;
use super::{Call, Inner, Pause};
use crate::content::ContentError;
use crate::dialect::finish::{self, Ending as TurnEnding};
use crate::dialect::provider_error;
use crate::http1::{ResponseHead, Tail, TailState, keep_alive_timeout};
use crate::machine::{FailureKind, IoFailure, ProxyRefusal, Stage};
use crate::outcome::ProviderError;
use crate::outcome::{
    AttemptRecord, Billing, CallError, Completion, Ending, ErrorKind, Note, Outcome, Phase, ProtocolError,
    Reason, Response, Span, SpanKind, StatusError, Timeline, Truncation, Turn,
};
use crate::retry::class::{self, Class};
use crate::retry::retry_after;

impl Call {
    /// The attempt failed: retries it where the rules allow, or ends the call
    pub(super) fn fail(&mut self, kind: ErrorKind) {
        if let ErrorKind::Timeout(timeout) = &kind {
            self.observers.tell(self.now, Observation::Breached(timeout));
        }
        if self.has_terminal_state()
            && let Some(note) = teardown_noise(&kind)
        {
            self.timeline.note(note);
            return self.complete(reason_of(&kind));
        }
        let status_wins = self.is_refused() && !planted!(StatusLostWithItsBody);
        if status_wins && !matches!(kind, ErrorKind::Cancelled | ErrorKind::Consumer(_)) {
            return self.refused_body_ended(false);
        }
        self.end_attempt_with(kind);
    }

    /// As [`Call::fail`], where the failure is the last word on its attempt
    fn end_attempt_with(&mut self, mut kind: ErrorKind) {
        let stale = self.is_stale(&kind);
        if stale == Some(Stale::Untouched) && self.spent().is_none() {
            return self.replace_connection(reason_of(&kind));
        }
        let head = self.end_attempt(reason_of(&kind));
        self.blank_credentials(&mut kind);
        let retry_after = head.as_ref().and_then(|head| {
            retry_after::parse(&head.headers, self.unix_at_origin.saturating_add(self.now.since_origin()))
        });
        let headers = head.map(|head| head.headers).unwrap_or_default();
        let is_stale = stale.is_some() && self.may_retry(&kind, &headers) && self.spent().is_none();
        if is_stale && !self.asks_before_retries {
            return self.start_attempt();
        }
        // Of a retry budget the driver has to be asked, and what it answers ends a pause: one of no length.
        let pause = if is_stale { Some(Duration::ZERO) } else { self.pause(&kind, &headers, retry_after) };
        match pause {
            Some(pause) => {
                self.retry = self.asks_before_retries.then_some(self.last_id);
                let (attempt, failure) = (self.attempts_made, &kind);
                self.observers.tell(self.now, Observation::Pausing { attempt, pause, failure, retry_after });
                self.inner = Inner::Pausing(Pause {
                    began: self.now,
                    until: self.now + pause,
                    failure: Box::new(kind),
                    retry_after,
                });
            }
            None => self.finish_with(kind, retry_after),
        }
    }

    /// Whether the present attempt fails because its connection was dead before it began (rule RTY-6)
    fn is_stale(&self, kind: &ErrorKind) -> Option<Stale> {
        let Inner::Attempting(attempt) = &self.inner else { return None };
        let unanswered = matches!(attempt.phase, AttemptPhase::Waiting) && attempt.record.bytes_received == 0;
        if !(attempt.record.reused && unanswered && matches!(kind, ErrorKind::Transport(_))) {
            return None;
        }
        let is_untouched = !attempt.upload.is_begun() || planted!(ResendCostsNothing);
        Some(if is_untouched { Stale::Untouched } else { Stale::WrittenTo })
    }

    /// Goes on with the present attempt on a new connection: not one byte was written to this one
    pub(super) fn replace_connection(&mut self, reason: Reason) {
        let Inner::Attempting(attempt) = &self.inner else { return };
        let began = attempt.began;
        self.close = Some((attempt.id, CloseMode::Abort));
        self.span(reason);
        self.timeline.note(Note::StaleConnection);
        self.begin_attempt(Some(began));
    }

    /// Whether the rules allow another attempt, its pause aside
    fn may_retry(&self, kind: &ErrorKind, headers: &HeaderMap) -> bool {
        let is_allowed = match self.request.retries {
            Retries::Allowed => self.billing < Billing::Delivered || planted!(RetryAfterDelivery),
            Retries::UnlessBilled => self.billing < Billing::MaybeBilled,
            Retries::Never => false,
        };
        let most = self.config.max_attempts().get().saturating_add(u32::from(planted!(OneAttemptTooMany)));
        // What was read of a body that can be read once does not come again (rule RTY-9).
        let is_there = !self.body_read || self.request.body.is_replayable() || planted!(OnceReadAgain);
        is_allowed && is_there && self.attempts_made < most && is_retryable(kind, headers)
    }

    /// How long to pause before another attempt; `None` where there is none
    fn pause(
        &mut self,
        kind: &ErrorKind,
        headers: &HeaderMap,
        retry_after: Option<Duration>,
    ) -> Option<Duration> {
        if !self.may_retry(kind, headers) {
            return None;
        }
        if let (Some(asked), Some(most)) = (retry_after, self.config.max_retry_after().limit())
            && asked > most
        {
            self.timeline.note(Note::RetryAfterTooLong);
            return None;
        }
        let left = self.left();
        let pause = self.backoff.pause(&mut self.rng, self.attempts_made, retry_after, left);
        if pause.is_none() {
            self.timeline.note(Note::PauseDidNotFit);
        }
        pause
    }

    /// The retry budget has nothing left for the retry that is planned after this attempt (rule RTY-9)
    pub(super) fn retry_refused(&mut self, id: AttemptId) {
        if !matches!(self.inner, Inner::Pausing(_)) || id != self.last_id {
            self.timeline.stale_events = self.timeline.stale_events.saturating_add(1);
            return;
        }
        if planted!(RefusedRetrySent) {
            return;
        }
        let Inner::Pausing(pause) = std::mem::replace(&mut self.inner, Inner::Idle) else { return };
        self.pause_span(&pause, Reason::RetryBudget);
        self.timeline.note(Note::RetryBudgetUsedUp);
        self.finish_with(*pause.failure, pause.retry_after);
    }

    /// The pause is over: the next attempt, unless a late driver has left no time for one
    pub(super) fn end_pause(&mut self) {
        let Inner::Pausing(pause) = std::mem::replace(&mut self.inner, Inner::Idle) else { return };
        self.pause_span(&pause, Reason::Slept);
        if self.left().is_some_and(|left| left.is_zero()) && !planted!(AttemptStartedPastDeadline) {
            self.timeline.note(Note::PauseDidNotFit);
            return self.finish_with(*pause.failure, pause.retry_after);
        }
        self.start_attempt();
    }

    /// The stream has ended in a way that keeps its terminal state (rule STR-4)
    pub(super) fn complete(&mut self, reason: Reason) {
        let ending = match finish::ending(&self.assembly.turn) {
            TurnEnding::Incomplete(_) if planted!(IncompletePassesForCompleted) => Ending::Completed,
            TurnEnding::Completed => Ending::Completed,
            TurnEnding::Incomplete(word) => Ending::Incomplete(word),
            TurnEnding::Truncated => {
                return self.end_attempt_with(ErrorKind::Truncated(Truncation::InToolCall));
            }
            TurnEnding::Empty => return self.end_attempt_with(ErrorKind::Empty),
        };
        if reason != Reason::Sentinel && self.expects_sentinel() {
            self.timeline.note(Note::MissingSentinel);
        }
        if !self.has_terminal_state() {
            let attempt = self.attempts_made;
            self.observers.tell(self.now, Observation::Terminal { attempt, reason });
        }
        let head = self.end_attempt(reason);
        self.finish_well(ending, head, Vec::new());
    }

    /// The unary answer is whole, and what it says is in the turn
    pub(super) fn complete_unary(&mut self, body: Vec<u8>) {
        let ending = match self.request.dialect.map(|_| finish::ending(&self.assembly.turn)) {
            None | Some(TurnEnding::Completed) => Ending::Completed,
            Some(TurnEnding::Incomplete(word)) => Ending::Incomplete(word),
            Some(TurnEnding::Truncated) => return self.fail(ErrorKind::Truncated(Truncation::InToolCall)),
            Some(TurnEnding::Empty) => return self.fail(ErrorKind::Empty),
        };
        let head = self.end_attempt(Reason::EndOfBody);
        self.finish_well(ending, head, body);
    }

    /// The body of an answer that is no success has ended, or is not awaited any longer
    pub(super) fn refused_body_ended(&mut self, whole: bool) {
        let Inner::Attempting(attempt) = &mut self.inner else { return };
        let AttemptPhase::Refused(body) = &mut attempt.phase else { return };
        let mut body = std::mem::take(body);
        let Some(head) = &attempt.head else { return };
        if !whole {
            self.timeline.note(Note::ErrorBodyCut);
        }
        if head.status.is_success() && head.status.as_u16() != 204 {
            let content_type = super::response::content_type(&head.headers).unwrap_or_default();
            let snippet = ProtocolError::snippet(&body);
            return self
                .end_attempt_with(ErrorKind::Protocol(ProtocolError::ContentType { content_type, snippet }));
        }
        let is_proxys = self.request.forwarded && !planted!(ProxyTakenForServer);
        if is_proxys && head.status == StatusCode::PROXY_AUTHENTICATION_REQUIRED {
            let message = format!("the proxy answered {}", head.status);
            let kind = FailureKind::Proxy(ProxyRefusal::AuthenticationRequired);
            return self.end_attempt_with(ErrorKind::Proxy(IoFailure { stage: Stage::Proxy, kind, message }));
        }
        self.request.credentials.blank_bytes(&mut body, !whole);
        let error = StatusError {
            status: head.status,
            headers: head.headers.clone(),
            provider: provider_error::from_body(&body),
            body: body.into(),
            whole,
        };
        self.end_attempt_with(ErrorKind::Status(Box::new(error)));
    }

    /// The peer broke a protocol
    pub(super) fn broken(&mut self, error: ProtocolError) {
        let is_malformed = matches!(error, ProtocolError::Malformed { .. });
        if let Inner::Attempting(attempt) = &mut self.inner {
            attempt.record.malformed += u64::from(is_malformed);
        }
        if self.has_terminal_state() && is_malformed {
            return self.timeline.note(Note::NoiseAfterEnd);
        }
        self.fail(ErrorKind::Protocol(error));
    }

    /// Whether the answer is known to be whole
    pub(super) fn has_terminal_state(&self) -> bool {
        match &self.inner {
            Inner::Attempting(attempt) => match &attempt.phase {
                AttemptPhase::Stream(stream) => stream.marked_at.is_some(),
                AttemptPhase::Connecting
                | AttemptPhase::Waiting
                | AttemptPhase::Unary(_)
                | AttemptPhase::Refused(_)
                | AttemptPhase::Raw(_) => false,
            },
            Inner::Idle | Inner::Pausing(_) | Inner::Ending(_) | Inner::Over => false,
        }
    }

    fn expects_sentinel(&self) -> bool {
        let in_events = match &self.inner {
            Inner::Attempting(attempt) => stream_of(attempt).is_some_and(|stream| !stream.is_whole()),
            Inner::Idle | Inner::Pausing(_) | Inner::Ending(_) | Inner::Over => false,
        };
        in_events && self.request.dialect.is_some_and(|dialect| dialect.has_sentinel())
    }

    fn is_refused(&self) -> bool {
        matches!(&self.inner, Inner::Attempting(attempt) if matches!(attempt.phase, AttemptPhase::Refused(_)))
    }

    /// Closes the attempt or pause, if there is one, and returns the head of its response
    fn end_attempt(&mut self, reason: Reason) -> Option<ResponseHead> {
        // A connection that was not asked for yet need not be closed.
        let was_asked_for = self.connect.take().is_none();
        let was_made = matches!(&self.inner, Inner::Attempting(attempt) if attempt.is_replacement);
        if !was_asked_for && !was_made {
            self.attempts_made -= 1;
            self.inner = Inner::Idle;
            return None;
        }
        self.span(reason);
        match std::mem::replace(&mut self.inner, Inner::Idle) {
            Inner::Attempting(attempt) => {
                let is_whole = attempt.upload.is_whole(&self.request.body)
                    && attempt.write_failed.is_none()
                    && !attempt.peer_gone;
                let is_leaked =
                    planted!(LeakOnCancelInConnect) && reason == Reason::Cancelled && !attempt.is_connected();
                let Attempt { id, head, head_at, record, http, body_left, reusable, .. } = *attempt;
                let keep_for = head.as_ref().and_then(|head| keep_alive_timeout(&head.headers));
                let mode = match (reason, http) {
                    _ if !is_whole => CloseMode::Abort,
                    _ if reusable => kept(keep_for),
                    (Reason::Sentinel, _) if planted!(KeptUnfinished) => CloseMode::Keep,
                    // The call ends before its message.
                    (Reason::Sentinel | Reason::EndOfBody, Transport::Http1(http)) => {
                        let until = self.now.after(self.config.after_sentinel());
                        let tail = Tail::new(http, body_left, until, keep_for);
                        tail.map_or(CloseMode::Abort, |tail| CloseMode::Finish(Box::new(tail)))
                    }
                    _ => CloseMode::Abort,
                };
                if was_asked_for && !is_leaked {
                    self.close = Some((id, mode));
                }
                if let Some(head) = &head {
                    let unix_now = self.unix_at_origin.saturating_add(head_at.since_origin());
                    self.response = Some(Box::new(Response::new(record.number, head_at, head, unix_now)));
                }
                let record = AttemptRecord { ended: self.now, reason, ..record };
                self.observers.tell(self.now, Observation::AttemptEnded(&record));
                self.timeline.attempt(record);
                head
            }
            Inner::Pausing(pause) => {
                self.pause_span(&pause, reason);
                None
            }
            Inner::Idle | Inner::Ending(_) | Inner::Over => None,
        }
    }

    fn pause_span(&mut self, pause: &Pause, reason: Reason) {
        let span = Span {
            attempt: self.attempts_made,
            kind: SpanKind::Backoff,
            began: pause.began,
            ended: self.now,
            reason,
        };
        self.observers.tell(self.now, Observation::PhaseEnded(&span));
        self.timeline.span(span);
    }

    fn finish_well(&mut self, ending: Ending, head: Option<ResponseHead>, body: Vec<u8>) {
        let (status, headers) = head.map_or_else(Default::default, |head| (head.status, head.headers));
        let turn = std::mem::take(&mut self.assembly.turn);
        self.finish(Ok(Completion { ending, turn, status, headers, body: body.into() }));
    }

    fn finish_with(&mut self, kind: ErrorKind, retry_after: Option<Duration>) {
        let turn = std::mem::take(&mut self.assembly.turn);
        self.finish(Err(CallError { kind, billing: self.billing, turn: Box::new(turn), retry_after }));
    }

    fn finish(&mut self, mut result: Result<Completion, CallError>) {
        let credentials = &self.request.credentials;
        match &mut result {
            Ok(Completion { ending: Ending::Incomplete(word), turn, .. }) => {
                credentials.blank(word);
                blank_words(turn, credentials);
            }
            Ok(completion) => blank_words(&mut completion.turn, credentials),
            Err(error) => blank_words(&mut error.turn, credentials),
        }
        let mut timeline = std::mem::replace(&mut self.timeline, Timeline::new(0, self.now));
        timeline.ended = self.now;
        self.retry = None;
        self.item_out = false;
        let outcome = Box::new(Outcome { result, timeline, response: self.response.take() });
        self.observers.tell(self.now, Observation::Over(&outcome));
        self.inner = Inner::Ending(outcome);
    }

    /// Blanks the call's credentials wherever the peer's words are quoted (rule END-5)
    fn blank_credentials(&self, kind: &mut ErrorKind) {
        let blank = |text: &mut String| self.request.credentials.blank(text);
        let blank_snippet = |text: &mut String| self.request.credentials.blank_cut(text);
        let blank_provider = |provider: &mut ProviderError| {
            blank(&mut provider.message);
            let words = [&mut provider.kind, &mut provider.code, &mut provider.request_id];
            words.into_iter().flatten().for_each(blank);
        };
        match kind {
            ErrorKind::Status(error) => error.provider.iter_mut().for_each(blank_provider),
            ErrorKind::InBand(provider) => blank_provider(provider),
            ErrorKind::Blocked { reason } => blank(reason),
            ErrorKind::Protocol(ProtocolError::ContentType { content_type, snippet }) => {
                blank(content_type);
                blank_snippet(snippet);
            }
            ErrorKind::Protocol(ProtocolError::Malformed { reason, snippet }) => {
                blank(reason);
                blank_snippet(snippet);
            }
            ErrorKind::Protocol(ProtocolError::ContentEncoding(unsupported)) => {
                let mut encoding = String::from(std::mem::take(&mut unsupported.encoding));
                blank(&mut encoding);
                unsupported.encoding = encoding.into();
            }
            ErrorKind::Transport(failure) | ErrorKind::Proxy(failure) => blank(&mut failure.message),
            ErrorKind::Timeout(_)
            | ErrorKind::Truncated(_)
            | ErrorKind::Empty
            | ErrorKind::Protocol(_)
            | ErrorKind::Cancelled
            | ErrorKind::Consumer(_) => {}
        }
    }
}

/// What becomes of a connection whose message has ended
fn kept(keep_for: Option<Duration>) -> CloseMode {
    keep_for.map_or(CloseMode::Keep, CloseMode::KeepFor)
}

/// What becomes of a connection whose message goes on with these bytes
pub(super) fn settle(mut tail: Box<Tail>, bytes: &[u8]) -> CloseMode {
    match tail.receive(bytes) {
        TailState::Open => CloseMode::Finish(tail),
        TailState::Ended => kept(tail.keep_for()),
        TailState::Broken => CloseMode::Abort,
    }
}

/// Blanks credentials in what the provider says about an answer; the answer itself is the model's
fn blank_words(turn: &mut Turn, credentials: &Credentials) {
    let reasons = turn.choices.iter_mut().filter_map(|choice| choice.finish_reason.as_mut());
    let usage = turn.usage.as_mut().map(|usage| &mut usage.raw);
    for word in [&mut turn.id, &mut turn.model].into_iter().flatten().chain(reasons).chain(usage) {
        credentials.blank(word);
    }
}

/// How far a request had come on a connection that was dead before it
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stale {
    /// Not one byte was written
    Untouched,
    /// It went out, at least in part
    WrittenTo,
}

/// Whether another attempt may mend this (rule RTY-1); the gates before it are in [`Call::may_retry`]
///
/// `headers` are those of the response, if one came. What it says about retries holds for whatever
/// then became of it, but for a hard quota and for what no attempt can mend.
fn is_retryable(kind: &ErrorKind, headers: &HeaderMap) -> bool {
    let class = match kind {
        ErrorKind::Status(error) => match error.provider.as_ref().map(class::error_class) {
            Some(Class::Quota) => Class::Quota,
            Some(Class::Retry | Class::Never) | None => class::status_class(error.status),
        },
        ErrorKind::InBand(provider) => class::error_class(provider),
        ErrorKind::Timeout(timeout) if matches!(timeout.phase, Phase::Connect | Phase::Request) => {
            Class::Retry
        }
        ErrorKind::Transport(failure) if is_about_certificates(failure.kind) => return false,
        ErrorKind::Transport(_) | ErrorKind::Empty | ErrorKind::Truncated(_) => Class::Retry,
        ErrorKind::Proxy(failure) => return class::proxy_class(failure.kind) == Class::Retry,
        ErrorKind::Timeout(_)
        | ErrorKind::Blocked { .. }
        | ErrorKind::Protocol(_)
        | ErrorKind::Cancelled
        | ErrorKind::Consumer(_) => return false,
    };
    match class {
        Class::Quota => planted!(QuotaRetried),
        Class::Retry | Class::Never if planted!(ShouldRetryIgnored) => class == Class::Retry,
        Class::Retry | Class::Never => class::x_should_retry(headers).unwrap_or(class == Class::Retry),
    }
}

/// Whether the failure is one of certificates: the same ones would come again
fn is_about_certificates(kind: FailureKind) -> bool {
    matches!(kind, FailureKind::Certificate(_) | FailureKind::ClientCertificate(_))
}

/// The note for a failure that a terminal state turns into noise; `None` for one that still counts
fn teardown_noise(kind: &ErrorKind) -> Option<Note> {
    match kind {
        ErrorKind::InBand(_) if planted!(ErrorAfterMarkerIgnored) => Some(Note::NoiseAfterEnd),
        ErrorKind::Transport(_) if planted!(ResetForgetsTerminalState) => None,
        ErrorKind::Timeout(_) => Some(Note::HeldOpen),
        ErrorKind::Transport(_) | ErrorKind::Proxy(_) | ErrorKind::Truncated(_) | ErrorKind::Empty => {
            Some(Note::UncleanEnd)
        }
        // What was read before damage may be damaged too: a checksum comes last.
        ErrorKind::Protocol(ProtocolError::Content(ContentError::Corrupt(_))) => None,
        ErrorKind::Protocol(_) => Some(Note::NoiseAfterEnd),
        ErrorKind::Cancelled => Some(Note::CancelledAfterEnd),
        ErrorKind::Status(_) | ErrorKind::InBand(_) | ErrorKind::Blocked { .. } | ErrorKind::Consumer(_) => {
            None
        }
    }
}

fn reason_of(kind: &ErrorKind) -> Reason {
    match kind {
        ErrorKind::Timeout(timeout) => Reason::Bound(timeout.setting),
        ErrorKind::Status(error) => Reason::Status(error.status.as_u16()),
        ErrorKind::InBand(_) => Reason::InBand,
        ErrorKind::Truncated(_) => Reason::Ended,
        ErrorKind::Empty => Reason::Empty,
        ErrorKind::Blocked { .. } => Reason::Blocked,
        ErrorKind::Transport(failure) | ErrorKind::Proxy(failure) => Reason::Failed(failure.stage),
        ErrorKind::Protocol(_) => Reason::Protocol,
        ErrorKind::Cancelled => Reason::Cancelled,
        ErrorKind::Consumer(_) => Reason::Consumer,
    }
}
