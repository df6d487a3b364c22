//! Every deadline of a call, derived from its state, and what their expiry does.

use std::time::Duration;

use super::attempt::{Attempt, AttemptPhase};
use super::event::Timer;
use super::request::Shape;
use super::stream::StreamBody;
use super::{Call, Inner};
use crate::outcome::{ErrorKind, Reason, Timeout};
use crate::time::{Bound, Instant};

/// How long the body of an answer that is no success may take (rule STR-6)
pub(super) const ERROR_BODY_LIMIT: Duration = Duration::from_secs(5);

impl Call {
    /// The next deadline; at the same instant, the timer that is listed first
    pub(super) fn deadline(&self) -> Option<(Instant, Timer)> {
        let mut next: Option<(Instant, Timer)> = None;
        self.each_armed(|timer, at| {
            if next.is_none_or(|earliest| (at, timer) < earliest) {
                next = Some((at, timer));
            }
        });
        next
    }

    /// Calls `arm` with every timer that runs, and its deadline
    fn each_armed(&self, mut arm: impl FnMut(Timer, Instant)) {
        let mut bounded = |timer, from: Instant, bound: Bound| {
            if let Some(at) = from.after(bound) {
                arm(timer, at);
            }
        };
        let config = &self.config;
        match &self.inner {
            Inner::Idle | Inner::Ending(_) | Inner::Over => return,
            Inner::Pausing(pause) => return arm(Timer::Backoff, pause.until),
            Inner::Attempting(attempt) => {
                if attempt.quiet_since().is_none() {
                    if !planted!(AttemptOutlivesDeadline) {
                        bounded(Timer::Deadline, self.began, config.total_deadline());
                    }
                    bounded(Timer::Request, attempt.began, config.request_timeout());
                }
                match &attempt.phase {
                    AttemptPhase::Connecting => {
                        bounded(Timer::Connect, attempt.began, config.connect_timeout())
                    }
                    AttemptPhase::Waiting | AttemptPhase::Unary(_) => {}
                    AttemptPhase::Refused(_) => {
                        bounded(Timer::ErrorBody, attempt.phase_began, Bound::Limited(ERROR_BODY_LIMIT));
                    }
                    AttemptPhase::Stream(stream) => {
                        if !self.item_out || planted!(IdleRunsUnderBackpressure) {
                            self.reading_clocks(stream, &mut bounded);
                        }
                    }
                    AttemptPhase::Raw(body) => {
                        if !self.item_out {
                            bounded(Timer::StreamIdle, body.quiet_since, config.stream_idle_timeout());
                        }
                    }
                }
            }
        }
        if self.request.shape != Shape::Unary {
            bounded(Timer::StreamDeadline, self.began, config.stream_deadline());
        }
    }

    /// The clocks that watch the server, and so stand still while it is the consumer who is awaited
    fn reading_clocks(&self, stream: &StreamBody, bounded: &mut impl FnMut(Timer, Instant, Bound)) {
        let config = &self.config;
        if let Some(marked_at) = stream.marked_at {
            let marked_at = if planted!(CommentsExtendAfterMarker) { stream.quiet_since } else { marked_at };
            bounded(Timer::AfterMarker, marked_at, Bound::Limited(config.after_marker()));
        }
        let first_content = config.first_content_timeout();
        if !stream.had_content && first_content != Bound::Unbounded {
            bounded(Timer::FirstContent, stream.content_since, first_content);
            return;
        }
        let quiet_since =
            if planted!(CommentsDoNotResetIdle) { stream.content_since } else { stream.quiet_since };
        bounded(Timer::StreamIdle, quiet_since, config.stream_idle_timeout());
        bounded(Timer::ContentIdle, stream.content_since, config.content_idle_timeout());
    }

    /// The driver says that the deadline has come
    pub(super) fn elapsed(&mut self) {
        if let Some((at, timer)) = self.deadline()
            && at <= self.now
            && !(at == self.now && planted!(ExpiryOnlyAfterDeadline))
        {
            self.fire(timer);
        }
    }

    fn fire(&mut self, timer: Timer) {
        match timer {
            Timer::Backoff => self.end_pause(),
            Timer::ErrorBody => self.refused_body_ended(false),
            Timer::AfterMarker => self.complete(Reason::AfterMarker),
            Timer::Deadline
            | Timer::StreamDeadline
            | Timer::Connect
            | Timer::Request
            | Timer::FirstContent
            | Timer::ContentIdle
            | Timer::StreamIdle => {
                if let Some(timeout) = self.timeout(timer) {
                    self.fail(ErrorKind::Timeout(timeout));
                }
            }
        }
    }

    /// The breach of `timer`, as it stands now
    fn timeout(&self, timer: Timer) -> Option<Timeout> {
        let (phase, setting) = timer.breach()?;
        let attempt = match &self.inner {
            Inner::Attempting(attempt) => Some(attempt),
            Inner::Idle | Inner::Pausing(_) | Inner::Ending(_) | Inner::Over => None,
        };
        let stream = attempt.and_then(|attempt| stream_of(attempt));
        let config = &self.config;
        let (from, limit) = match timer {
            Timer::Deadline => (self.began, config.total_deadline()),
            Timer::StreamDeadline => (self.began, config.stream_deadline()),
            Timer::Connect => (attempt?.began, config.connect_timeout()),
            Timer::Request => (attempt?.began, config.request_timeout()),
            Timer::FirstContent => (stream?.content_since, config.first_content_timeout()),
            Timer::ContentIdle => (stream?.content_since, config.content_idle_timeout()),
            Timer::StreamIdle if planted!(ElapsedFromAttemptStart) => {
                (attempt?.began, config.stream_idle_timeout())
            }
            Timer::StreamIdle => (attempt?.quiet_since()?, config.stream_idle_timeout()),
            Timer::ErrorBody | Timer::AfterMarker | Timer::Backoff => return None,
        };
        Some(Timeout { phase, elapsed: self.now - from, limit: limit.limit()?, setting })
    }

    /// What is left of the deadlines that hold for the whole call; `None` where none does
    pub(super) fn left(&self) -> Option<Duration> {
        let deadlines = self.whole_call().iter().filter_map(|timer| self.timeout(*timer));
        deadlines.map(|timeout| timeout.limit.saturating_sub(timeout.elapsed)).min()
    }

    /// The breach of a deadline for the whole call that has passed
    pub(super) fn spent(&self) -> Option<Timeout> {
        let mut deadlines = self.whole_call().iter().filter_map(|timer| self.timeout(*timer));
        deadlines.find(|timeout| timeout.elapsed >= timeout.limit)
    }

    /// The timers of the deadlines that hold for the whole call
    fn whole_call(&self) -> &'static [Timer] {
        match self.request.shape {
            Shape::Unary => &[Timer::Deadline],
            Shape::Stream | Shape::Raw => &[Timer::Deadline, Timer::StreamDeadline],
        }
    }
}

/// The stream that an attempt reads, if it reads one
pub(super) fn stream_of(attempt: &Attempt) -> Option<&StreamBody> {
    match &attempt.phase {
        AttemptPhase::Stream(stream) => Some(stream),
        AttemptPhase::Connecting
        | AttemptPhase::Waiting
        | AttemptPhase::Unary(_)
        | AttemptPhase::Refused(_)
        | AttemptPhase::Raw(_) => None,
    }
}
