//! Calls that overlap, over one pool of connections.

use std::ops::Range;

use steadfast::time::Instant;

use super::coverage::Fault;
use super::driver::Driver;
use super::invariants::Violation;
use super::plan::Plan;
use super::same_steps::Twins;
use super::server::Link;
use super::watch::Watch;
use super::wire::Wire;
use super::world::World;

/// A call under way, with what the world holds of it while another one has its turn
struct Lane<'p> {
    driver: Driver<'p>,
    twins: Twins,
    parked: Parked,
}

/// What the world holds of one call
struct Parked {
    watch: Watch,
    wire: Wire,
    link: Option<Link>,
}

impl Parked {
    fn swap(&mut self, world: &mut World) {
        std::mem::swap(&mut self.watch, &mut world.watch);
        std::mem::swap(&mut self.wire, &mut world.server.wire);
        std::mem::swap(&mut self.link, &mut world.server.link);
    }
}

impl World {
    /// Plays calls each of which begins while those before it may be under way; returns when all are over
    ///
    /// Whoever is earliest has its turn, until it would be later than another: so what they leave each
    /// other is left in the order of time.
    pub(super) fn together(
        &mut self,
        plan: &Plan,
        mut waiting: Range<usize>,
        began: Instant,
    ) -> Result<Instant, Violation> {
        let mut lanes: Vec<Lane<'_>> = Vec::new();
        let (mut begins, mut over) = (began, began);
        loop {
            let first = lanes.iter().map(|lane| lane.driver.now).enumerate().min_by_key(|(_, now)| *now);
            let is_due = !waiting.is_empty() && first.is_none_or(|(_, now)| begins <= now);
            if is_due && let Some(number) = waiting.next() {
                if !lanes.is_empty() {
                    self.coverage.fault(Fault::Together);
                }
                let mut parked = Parked { watch: Watch::new(), wire: Wire::default(), link: None };
                parked.swap(self);
                let (driver, twins) = self.begin(plan, number, begins);
                parked.swap(self);
                lanes.push(Lane { driver, twins, parked });
                begins = plan.calls.get(number + 1).map_or(begins, |call| begins + call.idle);
                continue;
            }
            let Some((at, _)) = first else { return Ok(over) };
            let others = lanes.iter().enumerate().filter(|(other, _)| *other != at);
            let others = others.map(|(_, lane)| lane.driver.now);
            let until = others.chain((!waiting.is_empty()).then_some(begins)).min();
            let Lane { driver, twins, parked } = &mut lanes[at];
            parked.swap(self);
            let is_over = self.drive(driver, twins, until)?;
            parked.swap(self);
            if is_over {
                if at > 0 {
                    self.coverage.fault(Fault::Reordered);
                }
                over = over.max(driver.now);
                lanes.remove(at);
            }
        }
    }
}
