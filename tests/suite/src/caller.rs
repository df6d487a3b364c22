//! The caller in a scenario, on a real clock: what it does with what it takes.

use std::time::{Duration, Instant};

use steadfast::call::Item;
use steadfast::outcome::Outcome;
use steadfast_scenario::{Call, Cancel};

use crate::driver::Ended;

/// The caller of one call, which begins when this is made
#[derive(Debug)]
pub struct Caller<'a> {
    script: &'a Call,
    began: Instant,
    gives_up_at: Option<Instant>,
    deltas: u32,
    turn_at: Option<Duration>,
}

/// What the caller does next
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// Takes the next item
    Take,
    /// Does something else for so long, and then takes the next item
    Pause(Duration),
    /// Cancels the call, and takes what is left
    Cancel,
}

impl<'a> Caller<'a> {
    /// A caller that does as `script` says
    pub fn new(script: &'a Call) -> Self {
        let began = Instant::now();
        let gives_up_at = match script.cancel {
            Some(Cancel::At(after)) => Some(began + after),
            Some(Cancel::AfterDeltas(_) | Cancel::AfterTurn) | None => None,
        };
        Self { script, began, gives_up_at, deltas: 0, turn_at: None }
    }

    /// When it cancels the call, whatever came by then; a call whose time has come is not even asked
    pub fn gives_up_at(&self) -> Option<Instant> {
        self.gives_up_at
    }

    /// It has given up, and takes what is left
    pub fn gives_up(&mut self) -> Then {
        self.gives_up_at = None;
        Then::Cancel
    }

    /// It takes an item
    pub fn takes(&mut self, item: &Item<'_>) -> Then {
        match item {
            Item::Delta(_) => {
                self.deltas += 1;
                let pause =
                    self.script.consumer.filter(|consumer| self.deltas.is_multiple_of(consumer.every));
                match pause {
                    _ if self.script.cancel == Some(Cancel::AfterDeltas(self.deltas)) => Then::Cancel,
                    Some(consumer) => Then::Pause(consumer.pause),
                    None => Then::Take,
                }
            }
            Item::Finished(_) => {
                self.turn_at.get_or_insert_with(|| self.began.elapsed());
                if self.script.cancel == Some(Cancel::AfterTurn) { Then::Cancel } else { Then::Take }
            }
            Item::Bytes(_) | Item::Unknown { .. } => Then::Take,
        }
    }

    /// How the call ended, whose last item was taken so long after its start
    ///
    /// See [`Caller::elapsed`]: it is asked before the outcome is.
    pub fn ended(self, outcome: Outcome, elapsed: Duration) -> Ended {
        // A turn that needs no marker is delivered with the outcome.
        let turn_at = self.turn_at.or(outcome.result.is_ok().then_some(elapsed));
        Ended { outcome, elapsed, turn_at }
    }

    /// The time since the call's start
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}
