//! The same events to a second call, which takes the same steps (INV-9).

use std::ops::Range;

use steadfast::call::{AttemptId, Call, Fact};
use steadfast::http::HeaderMap;
use steadfast::http1::ResponseHead;
use steadfast::machine::{Ended, Event, IoFailure, Machine, Step, Supply};
use steadfast::time::Instant;
use steadfast::trace::StepLine;

use super::driver::Driver;
use super::invariants::{Invariant, Violation};
use super::world::World;

impl World {
    /// A second call, told the same, takes the same steps (INV-9)
    pub(super) fn same_steps(&mut self, driver: &mut Driver<'_>) -> Result<(), Violation> {
        let Some(witness) = driver.witness.take() else { return Ok(()) };
        self.replayed += 1;
        witness.replay().map_err(|what| self.watch.violation(Invariant::SameSteps, what))
    }
}

/// What a call was told and what it did, beside a second call that has yet to be told
pub(crate) struct Witness {
    /// Equal to the call that is watched, as that was made
    second: Call,
    told: Vec<Kept>,
    /// The bytes of events, one after the other
    bytes: Vec<u8>,
    /// The line of each step, one after the other, and where each ends
    lines: Vec<u8>,
    ends: Vec<usize>,
}

/// An event, and how many steps were taken before it
struct Kept {
    at: Instant,
    event: KeptEvent,
    steps_before: usize,
}

/// An event that owns what it says, but for its bytes
enum KeptEvent {
    Start,
    Elapsed,
    Taken,
    Cancel,
    Connected(AttemptId),
    Reused(AttemptId),
    Sent(AttemptId, usize),
    Supplied(AttemptId, Range<usize>),
    SupplyEnded(AttemptId),
    SupplyFailed(AttemptId, String),
    HeadSupplied(AttemptId, HeaderMap),
    Received(AttemptId, Range<usize>),
    Eof(AttemptId, Ended),
    Failed(AttemptId, IoFailure),
    Head(AttemptId, ResponseHead),
    Body(AttemptId, Range<usize>),
    End(AttemptId),
    RetryRefused(AttemptId),
    ConsumerFailed(String),
}

impl Witness {
    /// `second` is made as the call was that is watched
    pub(crate) fn new(second: Call) -> Self {
        Self { second, told: Vec::new(), bytes: Vec::new(), lines: Vec::new(), ends: Vec::new() }
    }

    /// The call is told this
    pub(crate) fn told(&mut self, at: Instant, event: &Event<'_, Call>) {
        let mut keep = |bytes: &[u8]| {
            let from = self.bytes.len();
            self.bytes.extend_from_slice(bytes);
            from..self.bytes.len()
        };
        let event = match event {
            Event::Start => KeptEvent::Start,
            Event::Elapsed => KeptEvent::Elapsed,
            Event::Taken => KeptEvent::Taken,
            Event::Cancel => KeptEvent::Cancel,
            Event::Connected(id) => KeptEvent::Connected(*id),
            Event::Reused(id) => KeptEvent::Reused(*id),
            Event::Sent(id, bytes) => KeptEvent::Sent(*id, *bytes),
            Event::Supplied(id, supply) => match supply {
                Supply::Bytes(bytes) => KeptEvent::Supplied(*id, keep(bytes)),
                Supply::End => KeptEvent::SupplyEnded(*id),
                Supply::Failed(message) => KeptEvent::SupplyFailed(*id, message.clone()),
                Supply::Head(fields) => KeptEvent::HeadSupplied(*id, fields.clone()),
            },
            Event::Received(id, bytes) => KeptEvent::Received(*id, keep(bytes)),
            Event::Eof(id, ended) => KeptEvent::Eof(*id, *ended),
            Event::Failed(id, failure) => KeptEvent::Failed(*id, failure.clone()),
            Event::Fact(Fact::Head(id, head)) => KeptEvent::Head(*id, head.clone()),
            Event::Fact(Fact::Body(id, bytes)) => KeptEvent::Body(*id, keep(bytes)),
            Event::Fact(Fact::End(id)) => KeptEvent::End(*id),
            Event::Fact(Fact::RetryRefused(id)) => KeptEvent::RetryRefused(*id),
            Event::Fact(Fact::ConsumerFailed(message)) => KeptEvent::ConsumerFailed((*message).to_owned()),
        };
        self.told.push(Kept { at, event, steps_before: self.ends.len() });
    }

    /// The call takes this step
    pub(crate) fn takes(&mut self, step: &Step<'_, Call>) {
        write(step, &mut self.lines);
        self.ends.push(self.lines.len());
    }

    /// Tells the second call the same, to the end of the first
    ///
    /// Where the steps after an event were taken in several goes, the second takes them in one: only what
    /// a call was told, and when, may matter to it. Errors: what it did otherwise.
    pub(crate) fn replay(mut self) -> Result<(), String> {
        let mut line = Vec::new();
        for (number, kept) in self.told.iter().enumerate() {
            let steps_before_next =
                self.told.get(number + 1).map_or(self.ends.len(), |next| next.steps_before);
            let event = kept.event.again(&self.bytes);
            let named = format_args!("event {} at {:?}", number + 1, kept.at);
            let mut drain = self
                .second
                .handle(kept.at, event)
                .map_err(|misuse| format!("{named} is refused the second time: {misuse}"))?;
            for step in kept.steps_before..steps_before_next {
                line.clear();
                write(&drain.next(), &mut line);
                let from = step.checked_sub(1).map_or(0, |before| self.ends[before]);
                let first = &self.lines[from..self.ends[step]];
                if line != first {
                    let [first, second] = [first, &line].map(String::from_utf8_lossy);
                    return Err(format!("after {named} came {first}, and told the same again: {second}"));
                }
            }
        }
        Ok(())
    }
}

fn write(step: &Step<'_, Call>, line: &mut Vec<u8>) {
    serde_json::to_writer(line, &StepLine::of(step)).expect("a vector takes all, and keys are names");
}

impl KeptEvent {
    fn again<'k>(&'k self, bytes: &'k [u8]) -> Event<'k, Call> {
        match self {
            Self::Start => Event::Start,
            Self::Elapsed => Event::Elapsed,
            Self::Taken => Event::Taken,
            Self::Cancel => Event::Cancel,
            Self::Connected(id) => Event::Connected(*id),
            Self::Reused(id) => Event::Reused(*id),
            Self::Sent(id, sent) => Event::Sent(*id, *sent),
            Self::Supplied(id, range) => Event::Supplied(*id, Supply::Bytes(&bytes[range.clone()])),
            Self::SupplyEnded(id) => Event::Supplied(*id, Supply::End),
            Self::SupplyFailed(id, message) => Event::Supplied(*id, Supply::Failed(message.clone())),
            Self::HeadSupplied(id, fields) => Event::Supplied(*id, Supply::Head(fields.clone())),
            Self::Received(id, range) => Event::Received(*id, &bytes[range.clone()]),
            Self::Eof(id, ended) => Event::Eof(*id, *ended),
            Self::Failed(id, failure) => Event::Failed(*id, failure.clone()),
            Self::Head(id, head) => Event::Fact(Fact::Head(*id, head.clone())),
            Self::Body(id, range) => Event::Fact(Fact::Body(*id, &bytes[range.clone()])),
            Self::End(id) => Event::Fact(Fact::End(*id)),
            Self::RetryRefused(id) => Event::Fact(Fact::RetryRefused(*id)),
            Self::ConsumerFailed(message) => Event::Fact(Fact::ConsumerFailed(message)),
        }
    }
}
