//! The checks of what a call holds (INV-8).

use steadfast::call::Held;
use steadfast::outcome::{CallError, ErrorKind, Outcome};

use super::coverage::{Coverage, Fault};
use super::invariants::{Invariant, Violation};
use super::watch::Watch;

/// Copies of an event: in the framer, where it outlives the driver's buffer, and without its escapes
const EVENT_COPIES: usize = 3;

/// More than the places of what is found in one event of a plan take
const EVENT_ROOM: usize = 2_048;

impl Watch {
    /// What the call holds after a step is within the caps, part by part, and no less than is known
    pub(crate) fn holds(&mut self, held: &Held, coverage: &mut Coverage) -> Result<(), Violation> {
        self.ensure(self.done || held.turn >= self.said, Invariant::Memory, || {
            format!("{held:?}, and {} bytes were delivered", self.said)
        })?;
        // No cap shrinks, so what was within them still is.
        if *held == self.held {
            return Ok(());
        }
        self.held = *held;
        let caps = self.caps();
        let is_within = held.unread <= caps.unread
            && held.head <= caps.head
            && held.event <= caps.event
            && held.body <= caps.body
            && held.turn <= caps.turn
            && held.failure <= caps.failure;
        self.ensure(is_within, Invariant::Memory, || format!("{held:?}, and at most {caps:?}"))?;
        let near = |part: usize, cap: usize| part >= cap - cap / 4;
        for (is_near, fault) in [
            (near(held.head, caps.head), Fault::HeadNearCap),
            (near(held.event, self.config.max_event_bytes()), Fault::EventNearCap),
            (near(held.body, caps.body), Fault::BodyNearCap),
            (near(held.turn, caps.turn), Fault::TurnNearCap),
        ] {
            if is_near {
                coverage.fault(fault);
            }
        }
        Ok(())
    }

    /// The most that a call may hold, part by part
    fn caps(&self) -> Held {
        let (event, body) = (self.config.max_event_bytes(), self.config.max_body_bytes());
        Held {
            unread: self.largest_read,
            head: self.config.max_head_bytes(),
            event: event.saturating_mul(EVENT_COPIES).saturating_add(EVENT_ROOM),
            body,
            turn: body,
            failure: event.max(body),
        }
    }

    /// What an outcome holds is within the caps
    pub(crate) fn outcome_holds(&self, outcome: &Outcome) -> Result<(), Violation> {
        let most = self.config.max_body_bytes();
        let body = match &outcome.result {
            Ok(completion) => completion.body.len(),
            Err(CallError { kind: ErrorKind::Status(error), .. }) => error.body.len(),
            Err(_) => 0,
        };
        let turn: usize = outcome
            .turn()
            .choices
            .iter()
            .map(|choice| {
                let calls = choice
                    .tool_calls
                    .iter()
                    .map(|call| call.id.len() + call.name.len() + call.arguments.len());
                choice.text.len() + choice.reasoning.len() + choice.refusal.len() + calls.sum::<usize>()
            })
            .sum();
        self.ensure(body <= most && turn <= most, Invariant::Memory, || {
            format!("a body of {body} bytes and a turn of {turn}, with max_body_bytes {most}")
        })
    }
}
