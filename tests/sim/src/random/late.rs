//! What is told too late: of a connection that is closed, and of a call that is over.

use steadfast::call::AttemptId;
use steadfast::machine::{Ended, Event, Stage};

use super::coverage::Fault;
use super::driver::{Driver, Stop};
use super::invariants::{Invariant, Violation};
use super::same_steps::Twins;
use super::server::reset;
use super::watch::Told;
use super::world::World;

impl World {
    /// Something of a connection that is closed, which changes nothing
    pub(super) fn tell_stale(
        &mut self,
        driver: &mut Driver<'_>,
        twins: &mut Twins,
        id: AttemptId,
    ) -> Result<Stop, Violation> {
        self.coverage.fault(Fault::StaleEvent);
        self.watch.stale += 1;
        let event = match driver.events % 4 {
            0 => Event::Received(id, b"data: too late\n\n"),
            1 => Event::Eof(id, Ended::Clean),
            2 => Event::Failed(id, reset(Stage::Read)),
            _ => Event::Sent(id, 1),
        };
        self.tell(driver, twins, Told::Nothing, event)
    }

    /// Whatever is still told, nothing comes of it
    pub(super) fn after_the_end(
        &mut self,
        driver: &mut Driver<'_>,
        twins: &mut Twins,
    ) -> Result<(), Violation> {
        let id = driver.closed.take();
        let event = match (driver.events % 4, id) {
            (0, Some(id)) => Event::Received(id, b"HTTP/1.1 200 So\r\n\r\n"),
            (1, Some(id)) => Event::Failed(id, reset(Stage::Write)),
            (2, _) => Event::Elapsed,
            (3, _) => Event::Taken,
            _ => Event::Cancel,
        };
        let stop = self.tell(driver, twins, Told::Nothing, event)?;
        let stop = if matches!(stop, Stop::Held) { self.resume(driver, twins)? } else { stop };
        self.watch.ensure(!matches!(stop, Stop::Done), Invariant::DoneOnce, || "done again".to_owned())
    }
}
