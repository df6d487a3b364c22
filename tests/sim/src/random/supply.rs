//! Bodies that are read as they go out.

use std::time::Duration;

use steadfast::call::{AttemptId, Call};
use steadfast::machine::{Event, Machine, Supply, Wait};
use steadfast::time::Instant;

use super::coverage::Fault;
use super::driver::{Driver, Stop};
use super::invariants::Violation;
use super::plan::{MadeFields, Streamed};
use super::requests::{made_fields, with_fields};
use super::same_steps::Twins;
use super::server::Outgoing;
use super::watch::Told;
use super::world::World;

/// What is read of a body next
#[derive(Clone, Copy)]
pub(super) struct Next {
    link: AttemptId,
    /// At most so many bytes
    wanted: u32,
}

/// What stands for the bytes of every body
static BODY: [u8; 64 * 1024] = [b' '; 64 * 1024];

impl World {
    /// What the call has to write
    pub(super) fn outgoing(&self, call: &Call, wait: &Wait<Call>) -> Outgoing {
        let bytes = match wait.io {
            Some(io) if io.write => call.outgoing(io.link).iter().map(|part| part.len() as u32).sum(),
            _ => 0,
        };
        Outgoing { bytes, is_last: self.watch.truth.body_ended }
    }

    /// What is to be read of the body by now, where the call asks for it
    pub(super) fn supply_due(&mut self, driver: &Driver<'_>, wait: &Wait<Call>) -> Option<Next> {
        let io = wait.io.filter(|io| io.supply > 0);
        let truth = &mut self.watch.truth;
        let Some(io) = io else {
            truth.asked_since = None;
            return None;
        };
        truth.asked_since.get_or_insert(driver.now);
        let is_due = self.supply_at(driver).is_some_and(|at| at <= driver.now);
        is_due.then_some(Next { link: io.link, wanted: io.supply as u32 })
    }

    /// When something comes next by itself, from the server or of the body
    pub(super) fn next_at(&self, driver: &Driver<'_>, reads: bool) -> Option<Instant> {
        [self.server.next_at(reads), self.supply_at(driver)].into_iter().flatten().min()
    }

    /// When the body has more, or header fields are made, if they are asked for
    fn supply_at(&self, driver: &Driver<'_>) -> Option<Instant> {
        let truth = &self.watch.truth;
        let pause = match truth.outgoing {
            None => driver.made()?.pause,
            Some(_) => driver.streamed()?.pause,
        };
        truth.asked_since.map(|since| since + pause)
    }

    pub(super) fn supply(
        &mut self,
        driver: &mut Driver<'_>,
        twins: &mut Twins,
        Next { link, wanted }: Next,
    ) -> Result<Stop, Violation> {
        if self.watch.truth.outgoing.is_none() {
            return self.make_fields(driver, twins, link);
        }
        let Some(Streamed { of_known_length, pause, read_bytes, fails_at, .. }) = driver.streamed() else {
            return Ok(Stop::Held);
        };
        self.coverage.fault(Fault::StreamedBody);
        if pause > Duration::ZERO {
            self.coverage.fault(Fault::BodyWaits);
        }
        self.watch.body_read = true;
        let truth = &mut self.watch.truth;
        truth.asked_since = None;
        if fails_at.is_some_and(|at| at <= truth.supplied) {
            self.coverage.fault(Fault::BodyFails);
            driver.failed = true;
            let event = Event::Supplied(link, Supply::Failed("no".to_owned()));
            return self.tell(driver, twins, Told::ConsumerFailed, event);
        }
        let left = driver.body_bytes() - truth.supplied;
        let until_failure = fails_at.map_or(u32::MAX, |at| at - truth.supplied);
        let limit = if read_bytes == 0 { u32::MAX } else { read_bytes };
        let bytes = left.min(wanted).min(limit).min(until_failure).min(BODY.len() as u32);
        truth.supplied += bytes;
        let frame = match (of_known_length, bytes) {
            (true, _) => 0,
            (false, 0) => "0\r\n\r\n".len(),
            (false, bytes) => format!("{bytes:x}\r\n\r\n").len(),
        };
        truth.framed += u64::from(bytes) + frame as u64;
        truth.body_ended = bytes == 0;
        if truth.is_request_whole()
            && let Some(server) = &mut self.server.link
        {
            server.request_ended(driver.now);
        }
        let supply = if bytes == 0 { Supply::End } else { Supply::Bytes(&BODY[..bytes as usize]) };
        self.tell(driver, twins, Told::Nothing, Event::Supplied(link, supply))
    }

    /// Makes the header fields of the attempt
    fn make_fields(
        &mut self,
        driver: &mut Driver<'_>,
        twins: &mut Twins,
        link: AttemptId,
    ) -> Result<Stop, Violation> {
        let Some(MadeFields { pause, fails_at }) = driver.made() else { return Ok(Stop::Held) };
        self.coverage.fault(Fault::MadeFields);
        if pause > Duration::ZERO {
            self.coverage.fault(Fault::MadeFieldsWait);
        }
        self.watch.truth.asked_since = None;
        if fails_at == Some(link.number()) {
            self.coverage.fault(Fault::MadeFieldsFail);
            driver.failed = true;
            let event = Event::Supplied(link, Supply::Failed("no".to_owned()));
            return self.tell(driver, twins, Told::ConsumerFailed, event);
        }
        let fields = made_fields(self.watch.instance);
        let outgoing = with_fields(&self.watch.outgoing, &fields);
        self.watch.truth.goes_out(outgoing);
        self.tell(driver, twins, Told::Nothing, Event::Supplied(link, Supply::Head(fields)))
    }
}
