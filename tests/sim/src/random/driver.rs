//! Where the driver of a call, and its consumer, are.

use steadfast::call::{AttemptId, Call, Item, State, Timer};
use steadfast::machine::Wait;
use steadfast::time::Instant;

use super::plan::{Cancel, Client, MadeFields, Plan, Streamed};
use super::wire::Asked;

/// Where the steps of a call came to a stop
pub(crate) enum Stop {
    /// The call has not begun
    Before,
    /// The drain was dropped before its end
    Held,
    Wait(Wait<Call>),
    Done,
}

/// The driver of one call
pub(crate) struct Driver<'p> {
    pub(crate) plan: &'p Plan,
    pub(crate) number: usize,
    pub(crate) client: &'p Client,
    pub(crate) now: Instant,
    pub(crate) began: Instant,
    pub(crate) state: State,
    pub(crate) events: u32,
    pub(crate) jumps: u32,
    pub(crate) items: u32,
    /// Places at which a drain could be dropped, so far
    pub(crate) points: u32,
    /// At which of them the twin's is dropped and taken up again: bit by bit, and round again
    pub(crate) twin_drops: u32,
    pub(crate) away_until: Option<Instant>,
    pub(crate) cancelled: bool,
    pub(crate) failed: bool,
    /// A connection that was closed, to be spoken of once more
    pub(crate) closed: Option<AttemptId>,
    /// The retry after this attempt is refused, and the call has yet to be told
    pub(crate) refused: Option<AttemptId>,
    pub(crate) stop: Stop,
    /// The timer for whose sake the connection was looked at once more
    pub(crate) looked: Option<Timer>,
}

impl Driver<'_> {
    pub(crate) fn cancel_at(&self) -> Option<Instant> {
        match self.client.cancel {
            Cancel::After(after) if !self.cancelled => Some(self.began + after),
            Cancel::After(_) | Cancel::AtEvent(_) | Cancel::Never => None,
        }
    }

    pub(crate) fn cancel_due(&self) -> bool {
        !self.cancelled
            && match self.client.cancel {
                Cancel::Never => false,
                Cancel::After(after) => self.began + after <= self.now,
                Cancel::AtEvent(event) => self.events >= event,
            }
    }

    /// Whether the drain is dropped at this place
    pub(crate) fn drops(&mut self) -> bool {
        self.points = (self.points + 1) % u32::BITS;
        self.client.drops & (1 << self.points) != 0
    }

    /// Whether the twin's is, there
    pub(crate) fn drops_twin(&self) -> bool {
        self.twin_drops & (1 << self.points) != 0
    }

    /// The consumer takes an item, and may be away after it
    pub(crate) fn took(&mut self, _: &Item<'_>) {
        self.items += 1;
        if let Some((every, pause)) = self.client.away
            && self.items.is_multiple_of(every.max(1))
            && !pause.is_zero()
        {
            self.away_until = Some(self.now + pause);
        }
    }

    /// How the body is read, where it is read as it goes out
    pub(crate) fn streamed(&self) -> Option<Streamed> {
        self.plan.calls[self.number].streamed
    }

    /// How header fields are made for each attempt, where they are
    pub(crate) fn made(&self) -> Option<MadeFields> {
        self.plan.calls[self.number].made
    }

    pub(crate) fn body_bytes(&self) -> u32 {
        self.plan.calls[self.number].body_bytes
    }

    pub(crate) fn asked(&self) -> Asked<'_> {
        let call = &self.plan.calls[self.number];
        Asked {
            dialect: call.dialect,
            shape: call.shape,
            config: &self.plan.config,
            unix_seconds: self.plan.unix_seconds,
            instance: 0,
            facts: true,
        }
    }
}
