//! The retry budget that the calls of a run share, and what goes out of each request (rule RTY-9).

use steadfast::call::{AttemptId, Fact};
use steadfast::machine::Event;
use steadfast::time::Instant;

use super::coverage::Fault;
use super::driver::{Driver, Stop};
use super::invariants::{Invariant, Violation};
use super::same_steps::Twins;
use super::watch::{Told, Watch};
use super::world::World;

impl World {
    /// A call begins
    pub(super) fn pay_in(&mut self, now: Instant) {
        if let Some(budget) = &mut self.budget {
            budget.deposit(now);
        }
    }

    /// Tells of a retry that there is nothing left for
    pub(super) fn refuse_retry(
        &mut self,
        driver: &mut Driver<'_>,
        twins: &mut Twins,
        id: AttemptId,
    ) -> Result<Stop, Violation> {
        self.coverage.fault(Fault::RetryRefused);
        self.watch.refused = true;
        self.tell(driver, twins, Told::RetryRefused, Event::Fact(Fact::RetryRefused(id)))
    }
}

impl Watch {
    /// Another attempt is announced: once for each, after the one that failed
    pub(crate) fn announces(&mut self, id: AttemptId) -> Result<(), Violation> {
        let is_right = self.has_budget && self.live.is_none() && self.is_last(id) && !self.announced;
        self.announced = true;
        self.ensure(is_right, Invariant::Retry, || {
            format!("a retry is announced after {id:?}, with a budget: {}", self.has_budget)
        })
    }

    /// A retry is under way, or about to be: announced where there is a budget, and not refused
    pub(crate) fn is_paid_for(&self) -> Result<(), Violation> {
        self.ensure(self.announced == self.has_budget && !self.refused, Invariant::Retry, || {
            format!("a retry that was announced: {}, and refused: {}", self.announced, self.refused)
        })
    }
}
