//! The checks of an outcome.

use std::time::Duration;

use steadfast::call::{Shape, Timer};
use steadfast::outcome::{
    AttemptRecord, Billing, CallError, Completion, Ending, ErrorKind, Note, Outcome, Phase, StatusError,
    Timeout,
};

use super::invariants::{Invariant, Violation};
use super::plan::Framing;
use super::truth::Ends;
use super::watch::{Again, Told, Watch};
use super::wire::Wire;

impl Watch {
    /// The call is done: its outcome is what happened
    pub(crate) fn settled(&mut self, outcome: &Outcome, wire: &Wire) -> Result<(), Violation> {
        self.ensure(!self.done, Invariant::DoneOnce, || "a second outcome".to_owned())?;
        self.done = true;
        self.outcome_holds(outcome)?;
        self.ensure(self.live.is_none(), Invariant::Leak, || format!("{:?} was left open", self.live))?;
        let end = match &outcome.result {
            Ok(_) => Ends::WELL,
            Err(error) => Ends::of(&error.kind),
        };
        let paused = self.is_pausing();
        let right = match self.told {
            Told::Cancel if (paused && !self.is_blurred) || self.attempts == 0 => Ends::CANCELLED,
            Told::ConsumerFailed if (paused && !self.is_blurred) || self.attempts == 0 => Ends::CONSUMER,
            Told::Cancel if self.is_blurred => self.last_end.or(Ends::CANCELLED),
            Told::ConsumerFailed if self.is_blurred => self.last_end.or(Ends::CONSUMER),
            Told::Start
            | Told::Elapsed(_)
            | Told::Taken
            | Told::Cancel
            | Told::ConsumerFailed
            | Told::Link
            | Told::RetryRefused
            | Told::Nothing => self.last_end,
        };
        self.ensure(right.has(end), self.kind_of(end, right), || {
            let told = self.told;
            format!("the call ended by {}, where {} is right, after {told:?}", end.names(), right.names())
        })?;
        self.timeline(outcome)?;
        self.own_words(outcome)?;
        self.whole_turn(outcome, wire)?;
        match &outcome.result {
            Ok(completion) => self.completed(completion, wire),
            Err(error) => self.errored(error, wire, paused),
        }
    }

    /// Which invariant an outcome breaks that is not the right one
    fn kind_of(&self, end: Ends, right: Ends) -> Invariant {
        if right == Ends::WELL || end == Ends::WELL {
            Invariant::Terminal
        } else if right == Ends::STATUS || end == Ends::STATUS {
            Invariant::Response
        } else {
            Invariant::Cause
        }
    }

    /// What the server said about its answer is of the last attempt (INV-11)
    fn own_words(&self, outcome: &Outcome) -> Result<(), Violation> {
        let turn = outcome.turn();
        let names = turn.id.iter().chain(&turn.model);
        for name in names {
            let number = name.strip_prefix('i').and_then(|number| number.parse().ok());
            self.ensure(number == Some(self.instance), Invariant::Stranger, || {
                format!("the turn is that of {name:?}, and the last attempt was number {}", self.instance)
            })?;
        }
        Ok(())
    }

    /// The turn is what the server said, as far as the call was told (INV-5)
    fn whole_turn(&mut self, outcome: &Outcome, wire: &Wire) -> Result<(), Violation> {
        let said = match (self.shape, self.dialect, &outcome.result) {
            (Shape::Stream, Some(_), _) => self.truth.said,
            (Shape::Unary, Some(_), Ok(_)) => wire.speech.sayings.len(),
            _ => return Ok(()),
        };
        // How far it read is not known where it may have ended before that.
        if self.is_blurred || self.truth.may_break || self.truth.polluted || self.attempts == 0 {
            return Ok(());
        }
        self.answer.hear(&wire.speech, said);
        let turn = outcome.turn();
        let is_so = self.answer.is_said_in(turn) && self.answer.is_said_about(turn);
        self.ensure(is_so, Invariant::Terminal, || format!("{turn:?} came of {:?}", self.answer))
    }

    fn completed(&self, completion: &Completion, wire: &Wire) -> Result<(), Violation> {
        let is_early = matches!(completion.ending, Ending::Incomplete(_));
        // How far it read is not known where it may have ended before that.
        self.ensure(is_early == self.truth.stopped_early || self.is_blurred, Invariant::Terminal, || {
            format!("{:?}, and stopped early: {}", completion.ending, self.truth.stopped_early)
        })?;
        self.ensure(completion.status.as_u16() == self.truth.head.status, Invariant::Response, || {
            format!("status {}, and the server sent {}", completion.status, self.truth.head.status)
        })?;
        match (self.shape, self.dialect) {
            (Shape::Stream, _) => self.same_turn(&completion.turn),
            (Shape::Raw, _) => {
                self.handed_out(wire)?;
                let is_so = completion.body.is_empty() && (!wire.is_whole || self.raw == wire.said());
                self.ensure(is_so, Invariant::Response, || {
                    format!("{} bytes were handed out of {}", self.raw.len(), wire.said().len())
                })
            }
            (Shape::Unary, Some(_)) => {
                let text = completion.turn.text();
                let invariant = if text.starts_with('<') { Invariant::Stranger } else { Invariant::Terminal };
                let said = wire.speech.text();
                self.ensure(text == said, invariant, || format!("{text:?} came of {said:?}"))
            }
            (Shape::Unary, None) => {
                let sent = wire.said();
                let is_so = sent.starts_with(&completion.body)
                    && (!wire.is_whole || sent.len() == completion.body.len());
                self.ensure(is_so, Invariant::Response, || {
                    format!("a body of {} bytes, and the server sent {}", completion.body.len(), sent.len())
                })
            }
        }
    }

    /// What was handed out as it came is what the server sent (INV-6)
    fn handed_out(&self, wire: &Wire) -> Result<(), Violation> {
        // Before any of an answer there is another attempt, or none.
        let is_so = self.raw.is_empty() || wire.said().starts_with(&self.raw);
        self.ensure(is_so, Invariant::Response, || {
            format!("{} bytes were handed out, other than the {} sent", self.raw.len(), wire.said().len())
        })
    }

    fn errored(&self, error: &CallError, wire: &Wire, paused: bool) -> Result<(), Violation> {
        match self.shape {
            Shape::Stream => self.same_turn(&error.turn)?,
            Shape::Raw => self.handed_out(wire)?,
            Shape::Unary => {}
        }
        let billing = if self.delivered > 0 || self.finished > 0 {
            Billing::Delivered
        } else if self.sent > 0 || self.heard {
            Billing::MaybeBilled
        } else {
            Billing::NotSent
        };
        self.ensure(error.billing == billing, Invariant::Billing, || {
            format!("{:?}, after {} bytes sent and {} deltas", error.billing, self.sent, self.delivered)
        })?;
        if let ErrorKind::Timeout(timeout) = &error.kind {
            self.timed_out(timeout)?;
        } else if let ErrorKind::Status(status) = &error.kind {
            self.refused(status, wire)?;
        }
        if matches!(error.kind, ErrorKind::Cancelled | ErrorKind::Consumer(_)) {
            return Ok(());
        }
        self.ensure(error.retry_after == self.floor, Invariant::Pause, || {
            format!("the error says to wait {:?}, and the server {:?}", error.retry_after, self.floor)
        })?;
        self.ensure(paused || !self.had_to_retry(), Invariant::Retry, || {
            format!("no attempt after {}, number {}", self.last_end.names(), self.attempts)
        })
    }

    /// Whether another attempt was due: allowed, and its pause fits whatever number is drawn
    fn had_to_retry(&self) -> bool {
        let Again { must, .. } = self.again;
        let floor = self.floor.unwrap_or_default();
        let is_asked_too_much = self.config.max_retry_after().limit().is_some_and(|most| floor > most);
        let left = self.whole_call().map(|end| end - self.told_at);
        let fits = left.is_none_or(|left| floor.saturating_add(self.ceiling()) < left);
        // A connection that was left is replaced only within the deadline; its failure is no other.
        must && self.gates() && !is_asked_too_much && floor < Duration::MAX && fits
    }

    /// A wait that was too long was so indeed (INV-7), and its length is told (STR-2)
    fn timed_out(&self, timeout: &Timeout) -> Result<(), Violation> {
        // The caller may have given up after that, and before it was seen.
        if self.is_blurred {
            return Ok(());
        }
        let Told::Elapsed(Some(timer)) = self.ended_by else {
            return Err(self.violation(Invariant::Cause, format!("{timeout:?} after {:?}", self.ended_by)));
        };
        let (config, truth, now) = (&self.config, &self.truth, self.ended_at);
        let (phase, bound, from) = match timer {
            Timer::Deadline => (Phase::Deadline, config.total_deadline(), self.began),
            Timer::StreamDeadline => (Phase::Deadline, config.stream_deadline(), self.began),
            Timer::Connect => (Phase::Connect, config.connect_timeout(), truth.began),
            Timer::Request => (Phase::Request, config.request_timeout(), truth.began),
            Timer::FirstContent => (Phase::FirstContent, config.first_content_timeout(), truth.content_since),
            Timer::ContentIdle => (Phase::ContentIdle, config.content_idle_timeout(), truth.content_since),
            Timer::StreamIdle => (Phase::StreamIdle, config.stream_idle_timeout(), truth.quiet_since),
            Timer::ErrorBody | Timer::AfterMarker | Timer::Backoff => {
                return Err(self.violation(Invariant::Cause, format!("{timeout:?} by {timer:?}")));
            }
        };
        let is_so = timeout.phase == phase
            && Some(timeout.limit) == bound.limit()
            && timeout.elapsed == now - from
            && timeout.elapsed >= timeout.limit;
        self.ensure(is_so, Invariant::Patience, || {
            format!("{timeout:?}, and it was {:?} by {timer:?} with {bound:?}", now - from)
        })
    }

    /// An answer that is no success is the one that the server gave (INV-6)
    fn refused(&self, error: &StatusError, wire: &Wire) -> Result<(), Violation> {
        let sent = wire.said();
        let is_so = error.status.as_u16() == self.truth.head.status
            && sent.starts_with(&error.body)
            && (!error.whole || self.truth.head.framing == Framing::Eof || error.body.len() == sent.len());
        self.ensure(is_so, Invariant::Response, || {
            format!("{error:?}, and the server sent {} with {} bytes", self.truth.head.status, sent.len())
        })
    }

    fn timeline(&self, outcome: &Outcome) -> Result<(), Violation> {
        let timeline = &outcome.timeline;
        let is_so = timeline.began == self.began
            && (timeline.ended == self.told_at || self.is_blurred)
            && timeline.attempt_count() == self.attempts
            && timeline.stale_events == self.stale
            && timeline.clock_steps_back == 0;
        self.ensure(is_so, Invariant::Timeline, || {
            format!(
                "{} attempts from {:?} to {:?} with {} stale events; seen: {} from {:?} to {:?} with {}",
                timeline.attempt_count(),
                timeline.began,
                timeline.ended,
                timeline.stale_events,
                self.attempts,
                self.began,
                self.told_at,
                self.stale
            )
        })?;
        for (number, (record, seen)) in timeline.attempts.iter().zip(&self.seen).enumerate() {
            let AttemptRecord { began, ended, reused, status, bytes_sent, bytes_received, .. } = *record;
            let is_so = record.number as usize == number + 1
                && began == seen.began
                && (self.is_blurred
                    || (seen.ended.is_none_or(|at| at == ended)
                        && reused == seen.reused
                        && status == seen.status
                        && (bytes_sent, bytes_received) == (seen.sent, seen.received)
                        && record.largest_gap == seen.largest_gap));
            self.ensure(is_so, Invariant::Timeline, || format!("{record:?}, and seen was {seen:?}"))?;
        }
        let deltas: u64 = timeline.attempts.iter().map(|attempt| attempt.deltas).sum();
        self.ensure(deltas == u64::from(self.delivered), Invariant::Timeline, || {
            format!("{deltas} deltas, and {} were delivered", self.delivered)
        })?;
        let is_noted = timeline.notes.contains(&Note::RetryBudgetUsedUp);
        self.ensure(is_noted == self.refused, Invariant::Timeline, || {
            format!("a retry was refused: {}, and noted: {is_noted}", self.refused)
        })?;
        let mut last = timeline.began;
        for span in &timeline.spans {
            let is_in_order = span.began >= last && span.ended >= span.began;
            let is_inside = span.began >= timeline.began && span.ended <= timeline.ended;
            self.ensure(is_in_order && is_inside, Invariant::Timeline, || {
                format!("{span:?} after {last:?}")
            })?;
            last = span.ended;
        }
        Ok(())
    }
}
