//! The checks of what a call waits for.

use std::time::Duration;

use steadfast::call::Shape;
use steadfast::call::{AttemptId, Call, State, Timer};
use steadfast::machine::Wait;
use steadfast::time::{Bound, Instant};

use super::invariants::{Invariant, Violation};
use super::truth::{Ends, Place};
use super::watch::{Pause, Watch};
use super::wire::Wire;

/// How long the body of an answer that is no success may take (rule STR-6)
const ERROR_BODY: Duration = Duration::from_secs(5);

impl Watch {
    /// The call waits: for what can bring it on, and no longer and no shorter than the bounds say
    pub(crate) fn waits(&mut self, wait: &Wait<Call>, state: State, wire: &Wire) -> Result<(), Violation> {
        self.pending = false;
        if self.done {
            let is_quiet = wait.deadline.is_none() && wait.io.is_none() && !wait.taken;
            return self
                .ensure(is_quiet, Invariant::DoneOnce, || format!("after the end it waits for {wait:?}"));
        }
        self.ensure(wait.taken == self.item_out, Invariant::Ends, || {
            format!("an item is out: {}, and the wait says {}", self.item_out, wait.taken)
        })?;
        match self.live {
            Some(id) => {
                self.attempt_waits(wait, id, wire)?;
                self.clocks(wait)
            }
            None => self.pauses(wait, state),
        }
    }

    /// What is asked of a connection is what can bring the call on (INV-1)
    fn attempt_waits(&mut self, wait: &Wait<Call>, id: AttemptId, wire: &Wire) -> Result<(), Violation> {
        let truth = &self.truth;
        if let Some(fate) = truth.fate.filter(|_| !truth.polluted) {
            let invariant = if fate == Ends::STATUS { Invariant::Response } else { Invariant::Ends };
            return Err(self.violation(
                invariant,
                format!("the attempt is over ({}), and the call waits on: {wait:?}", fate.names()),
            ));
        }
        match wait.io {
            None => self.ensure(truth.place == Place::Connecting, Invariant::Ends, || {
                format!("nothing is asked of {id:?}")
            })?,
            Some(io) => {
                let reads = !self.item_out && !truth.peer_ended;
                let writes = truth.sent < truth.whole + truth.framed && !truth.write_failed;
                let supply = truth.asks();
                let is_right = io.link == id && io.read == reads && io.write == writes && io.supply == supply;
                let invariant = if io.read && !reads { Invariant::Memory } else { Invariant::Ends };
                self.ensure(is_right && truth.place != Place::Connecting, invariant, || {
                    format!("asked for {io:?}, where read is {reads}, write {writes} and supply {supply}")
                })?;
            }
        }
        let so_far = Some((self.delivered, truth.said));
        // Where neither has grown since they were the same they still are.
        if truth.place == Place::Stream && self.agreed != so_far {
            self.answer.hear(&wire.speech, truth.said);
            if !self.answer.is_said_in(&self.turn) {
                let what = format!("{:?} was delivered of {:?}", self.turn.choices, self.answer);
                return Err(self.violation(self.kind_of_words(wire), what));
            }
            self.agreed = so_far;
        }
        Ok(())
    }

    /// Which invariant is broken where other words are delivered than these
    fn kind_of_words(&self, wire: &Wire) -> Invariant {
        let (all, delivered) = (wire.speech.text(), self.turn.text());
        let is_ours = all.contains(delivered) || delivered.contains(self.answer.text());
        if is_ours { Invariant::Terminal } else { Invariant::Stranger }
    }

    /// The deadline is that of the bounds in force: no later (INV-1) and no earlier (INV-7)
    fn clocks(&self, wait: &Wait<Call>) -> Result<(), Violation> {
        let (truth, config) = (&self.truth, &self.config);
        let mut due: Option<Instant> = None;
        let mut arm = |from: Instant, bound: Bound| {
            if let Some(at) = from.after(bound) {
                due = Some(due.map_or(at, |earlier| earlier.min(at)));
            }
        };
        if self.shape != Shape::Unary {
            arm(self.began, config.stream_deadline());
        }
        if !truth.is_idle_watched() {
            arm(self.began, config.total_deadline());
            arm(truth.began, config.request_timeout());
        }
        match truth.place {
            Place::Connecting => arm(truth.began, config.connect_timeout()),
            Place::Refused => arm(truth.head_at, Bound::Limited(ERROR_BODY)),
            Place::Waiting | Place::Unary => {}
            // The consumer's own time is not the server's.
            Place::Stream | Place::Raw if self.item_out => {}
            Place::Raw => arm(truth.quiet_since, config.stream_idle_timeout()),
            Place::Stream => {
                if let Some(marked_at) = truth.marked_at {
                    arm(marked_at, Bound::Limited(config.after_marker()));
                }
                let first = config.first_content_timeout();
                if !truth.had_content && first != Bound::Unbounded {
                    arm(truth.content_since, first);
                } else {
                    arm(truth.quiet_since, config.stream_idle_timeout());
                    arm(truth.content_since, config.content_idle_timeout());
                }
            }
        }
        let told = wait.deadline.map(|(at, _)| at);
        if told == due {
            return Ok(());
        }
        let is_late = match (told, due) {
            (Some(told), Some(due)) => told > due,
            (None, _) => true,
            (Some(_), None) => false,
        };
        let invariant = if is_late { Invariant::Ends } else { Invariant::Patience };
        Err(self.violation(invariant, format!("waits until {:?}, and the bounds say {due:?}", wait.deadline)))
    }

    /// A pause before another attempt: one that the rules allow, and as long as they say
    fn pauses(&mut self, wait: &Wait<Call>, state: State) -> Result<(), Violation> {
        let Some((until, Timer::Backoff)) = wait.deadline.filter(|_| state == State::Pausing) else {
            let what = format!("no connection, and it waits for {wait:?} as {state:?}");
            return Err(self.violation(Invariant::Ends, what));
        };
        self.is_paid_for()?;
        if let Some(pause) = self.pause {
            return self.ensure(pause.until == until, Invariant::Pause, || {
                format!("a pause until {:?} goes on until {until:?}", pause.until)
            });
        }
        // What follows a pause is an attempt.
        let is_delivered = self.delivered > 0 || self.finished > 0;
        self.ensure(self.gates(), if is_delivered { Invariant::Gate } else { Invariant::Retry }, || {
            format!(
                "a pause after attempt {}, {} deltas and {} bytes, with retries {:?}",
                self.attempts, self.delivered, self.sent, self.retries
            )
        })?;
        self.ensure(self.again.may, Invariant::Retry, || {
            format!("a pause after {} by {:?}: {:?}", self.last_end.names(), self.told, self.truth.head)
        })?;
        let slept = until - self.told_at;
        let floor = self.floor.unwrap_or_default();
        let most = floor.saturating_add(self.ceiling());
        self.ensure(slept >= floor && slept <= most, Invariant::Pause, || {
            format!("a pause of {slept:?} where {floor:?} to {most:?} is right")
        })?;
        if let (Some(asked), Some(most)) = (self.floor, self.config.max_retry_after().limit()) {
            self.ensure(asked <= most, Invariant::Pause, || {
                format!("a pause of {asked:?}, and at most {most:?} may be asked for")
            })?;
        }
        if let Some(end) = self.whole_call() {
            self.ensure(until < end, Invariant::Attempts, || {
                format!("a pause until {until:?}, and the call has until {end:?}")
            })?;
        }
        self.pause = Some(Pause { until });
        Ok(())
    }
}
