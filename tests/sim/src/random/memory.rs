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
    /// What the call holds after an event is within the caps, part by part, and no less than is known
    pub(crate) fn holds(&self, held: &Held, coverage: &mut Coverage) -> Result<(), Violation> {
        let config = &self.config;
        let [head, event, body] =
            [config.max_head_bytes(), config.max_event_bytes(), config.max_body_bytes()];
        let events = event.saturating_mul(EVENT_COPIES).saturating_add(EVENT_ROOM);
        for (part, most) in [
            (held.unread, self.largest_read),
            (held.head, head),
            (held.event, events),
            (held.body, body),
            (held.turn, body),
            (held.failure, event.max(body)),
        ] {
            self.ensure(part <= most, Invariant::Memory, || {
                format!("{held:?}, and of one part {most} at most")
            })?;
        }
        self.ensure(self.done || held.turn >= self.said, Invariant::Memory, || {
            format!("{held:?}, and {} bytes were delivered", self.said)
        })?;
        for (part, cap, fault) in [
            (held.head, head, Fault::HeadNearCap),
            (held.event, event, Fault::EventNearCap),
            (held.body, body, Fault::BodyNearCap),
            (held.turn, body, Fault::TurnNearCap),
        ] {
            if part >= cap - cap / 4 {
                coverage.fault(fault);
            }
        }
        Ok(())
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
