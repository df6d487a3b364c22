//! An observer that draws the timeline anew from what it is told, and the rules that hold for every call.

use std::sync::{Arc, Mutex};

use crate::call::{Observation, Observer};
use crate::outcome::{Billing, ErrorKind, SpanKind, Timeline, Timeout};
use crate::time::Instant;

/// What an observer was told
#[derive(Clone, Default)]
pub(super) struct Watch(Arc<Mutex<Told>>);

#[derive(Default)]
struct Told {
    at: Option<Instant>,
    open: Option<(u32, SpanKind)>,
    attempt: Option<u32>,
    drawn: Drawn,
    first_bytes: Vec<u32>,
    first_deltas: usize,
    is_whole: bool,
    breaches: Vec<Timeout>,
    over: Option<Timeline>,
}

/// The parts of a timeline that an observer can tell
#[derive(Debug, Default, PartialEq)]
struct Drawn {
    spans: Vec<crate::outcome::Span>,
    attempts: Vec<crate::outcome::AttemptRecord>,
}

impl Watch {
    /// Whether the call's observers were told that it is over
    pub(super) fn is_over(&self) -> bool {
        self.0.lock().unwrap().over.is_some()
    }

    /// The bounds that were reached
    pub(super) fn breaches(&self) -> Vec<Timeout> {
        self.0.lock().unwrap().breaches.clone()
    }
}

impl Observer for Watch {
    fn observe(&mut self, at: Instant, seen: &Observation<'_>) {
        let told = &mut *self.0.lock().unwrap();
        assert!(told.over.is_none(), "INV-2: something after the end: {seen:?}");
        assert!(told.at.is_none_or(|before| before <= at), "time goes on: {seen:?}");
        told.at = Some(at);
        match *seen {
            Observation::AttemptBegan { attempt } => {
                assert_eq!((told.attempt, told.open), (None, None), "one attempt at a time");
                assert!(told.drawn.attempts.len() < attempt as usize, "each attempt begins once");
                told.attempt = Some(attempt);
            }
            Observation::PhaseBegan { attempt, kind } => {
                assert_eq!((told.attempt, told.open), (Some(attempt), None), "{kind:?}");
                told.open = Some((attempt, kind));
            }
            Observation::Pausing { attempt, .. } => {
                assert_eq!((told.attempt, told.open), (None, None), "a pause is between attempts");
                told.open = Some((attempt, SpanKind::Backoff));
            }
            Observation::PhaseEnded(span) => {
                assert_eq!(told.open.take(), Some((span.attempt, span.kind)), "what ends has begun");
                told.drawn.spans.push(*span);
            }
            Observation::AttemptEnded(record) => {
                assert_eq!((told.attempt.take(), told.open), (Some(record.number), None));
                told.drawn.attempts.push(record.clone());
            }
            Observation::FirstByte { attempt } => {
                assert!(!told.first_bytes.contains(&attempt), "there is one first byte");
                told.first_bytes.push(attempt);
            }
            Observation::FirstDelta { .. } => told.first_deltas += 1,
            Observation::Breached(timeout) => told.breaches.push(*timeout),
            Observation::Head { .. } => assert!(told.attempt.is_some(), "{seen:?}"),
            Observation::Terminal { .. } => {
                assert!(told.attempt.is_some(), "{seen:?}");
                told.is_whole = true;
            }
            Observation::Over(outcome) => {
                assert_eq!((told.attempt, told.open), (None, None), "all has ended");
                let drawn = &mut told.drawn;
                drawn.attempts.truncate(Timeline::MAX_ATTEMPTS);
                let timeline = &outcome.timeline;
                assert_eq!(drawn.attempts, timeline.attempts);
                drawn.spans.truncate(timeline.spans.len());
                assert_eq!(drawn.spans, timeline.spans);
                let received = timeline.attempts.iter().filter(|attempt| attempt.bytes_received > 0);
                assert_eq!(told.first_bytes.len().min(Timeline::MAX_ATTEMPTS), received.count());
                let is_delivered = match &outcome.result {
                    Ok(_) => true,
                    Err(error) => error.billing == Billing::Delivered,
                };
                assert!(told.first_deltas == 0 || is_delivered && told.first_deltas == 1);
                let is_empty = matches!(&outcome.result, Err(error) if error.kind == ErrorKind::Empty);
                assert!(!(told.is_whole && is_empty), "what is whole is not empty");
                told.over = Some(timeline.clone());
            }
        }
    }
}
