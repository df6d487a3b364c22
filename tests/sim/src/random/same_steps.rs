//! A call and its twin, which is told the same and takes the same steps (INV-9).

use std::time::Duration;

use steadfast::call::{Call, Env, Fact, Request};
use steadfast::machine::{Drain, Event, Misuse, Step, Supply};
use steadfast::time::Instant;
use steadfast::trace::StepLine;

use super::invariants::{Invariant, Violation};
use super::plan::Plan;
use super::watch::Watch;

/// A call, and a second one made of the same, which nothing but the comparison looks at
///
/// Each event is told to both with the same bytes, and each step that the first takes the second has to
/// take as well. Where the drain of either is dropped is nothing that they are told: the second's is
/// dropped at places of its own, see [`Twins::drops`].
pub(crate) struct Twins {
    pub(super) first: Call,
    pub(super) second: Call,
}

impl Twins {
    /// The call of that number in `plan`, and its twin
    pub(crate) fn new(plan: &Plan, number: usize, request: Request, began: Instant) -> Self {
        let env = Env {
            seed: plan.seed.wrapping_add(number as u64),
            unix_at_origin: Duration::from_secs(plan.unix_seconds),
        };
        let make = |request| {
            let mut call = Call::new(request, plan.config, env, began);
            if plan.budget.is_some() {
                call.ask_before_retries().expect("the call has not begun");
            }
            call
        };
        Self { first: make(request.clone()), second: make(request) }
    }

    /// At which places the second's drain is dropped and taken up again: a few of those at which the
    /// client does not drop the first's, bit by bit
    pub(crate) fn drops(plan: &Plan, client_drops: u32) -> u32 {
        const ONE_IN_EIGHT: u32 = 0x0101_0101;
        ONE_IN_EIGHT.rotate_left(plan.seed as u32) & !client_drops
    }
}

impl Watch {
    /// The second call lets itself be told what the first was told
    pub(super) fn is_told_as_well<'t>(
        &self,
        twin: Result<Drain<'t, Call>, Misuse>,
    ) -> Result<Drain<'t, Call>, Violation> {
        twin.map_err(|misuse| {
            self.violation(
                Invariant::SameSteps,
                format!("{:?} is refused by a second call: {misuse}", self.told),
            )
        })
    }

    /// The second call takes the step that the first took
    pub(super) fn takes_the_same(
        &self,
        step: &Step<'_, Call>,
        second: &mut Drain<'_, Call>,
    ) -> Result<(), Violation> {
        let other = second.next();
        self.ensure(are_same(step, &other), Invariant::SameSteps, || {
            let (step, other) = (StepLine::of(step), StepLine::of(&other));
            format!("after {:?} came {step}, and of a second call that is told the same {other}", self.told)
        })
    }
}

fn are_same(first: &Step<'_, Call>, second: &Step<'_, Call>) -> bool {
    match (first, second) {
        (Step::Wait(first), Step::Wait(second)) => {
            first.deadline == second.deadline && first.io == second.io && first.taken == second.taken
        }
        (Step::Deliver(first), Step::Deliver(second)) => first == second,
        (Step::Do(first), Step::Do(second)) => first == second,
        (Step::Done(first), Step::Done(second)) => first == second,
        (Step::Wait(_) | Step::Deliver(_) | Step::Do(_) | Step::Done(_), _) => false,
    }
}

/// The event once more, of the same bytes
#[inline]
pub(super) fn again<'e>(event: &Event<'e, Call>) -> Event<'e, Call> {
    match event {
        Event::Start => Event::Start,
        Event::Elapsed => Event::Elapsed,
        Event::Taken => Event::Taken,
        Event::Cancel => Event::Cancel,
        Event::Connected(id) => Event::Connected(*id),
        Event::Reused(id) => Event::Reused(*id),
        Event::Sent(id, bytes) => Event::Sent(*id, *bytes),
        Event::Supplied(id, Supply::Bytes(bytes)) => Event::Supplied(*id, Supply::Bytes(bytes)),
        Event::Supplied(id, Supply::End) => Event::Supplied(*id, Supply::End),
        Event::Supplied(id, Supply::Failed(message)) => Event::Supplied(*id, Supply::Failed(message.clone())),
        Event::Supplied(id, Supply::Head(fields)) => Event::Supplied(*id, Supply::Head(fields.clone())),
        Event::Received(id, bytes) => Event::Received(*id, bytes),
        Event::Eof(id, ended) => Event::Eof(*id, *ended),
        Event::Failed(id, failure) => Event::Failed(*id, failure.clone()),
        Event::Fact(Fact::Head(id, head)) => Event::Fact(Fact::Head(*id, head.clone())),
        Event::Fact(Fact::Body(id, bytes)) => Event::Fact(Fact::Body(*id, bytes)),
        Event::Fact(Fact::End(id)) => Event::Fact(Fact::End(*id)),
        Event::Fact(Fact::RetryRefused(id)) => Event::Fact(Fact::RetryRefused(*id)),
        Event::Fact(Fact::ConsumerFailed(message)) => Event::Fact(Fact::ConsumerFailed(message)),
    }
}
