//! What the model holds of a call.

use std::time::Duration;

use steadfast::time::Instant;

use crate::terms::{BEGAN, Input, Outcome};

/// All that the rules need to know of a call
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub(crate) now: Instant,
    pub(crate) began: Instant,
    pub(crate) phase: Phase,
    pub(crate) attempts: u32,
    pub(crate) link: u32,
    pub(crate) attempt_began: Instant,
    pub(crate) reused: bool,
    pub(crate) answered: bool,
    /// How much is sent of what was there from the start
    pub(crate) sent: Sent,
    /// Bytes of the body that were read and not sent, what frames them included
    pub(crate) held: usize,
    pub(crate) supplied: usize,
    pub(crate) body_over: bool,
    /// Some of it was read, by whichever attempt
    pub(crate) body_read: bool,
    pub(crate) write_failed: bool,
    pub(crate) any_sent: bool,
    pub(crate) item_out: bool,
    pub(crate) any_item: bool,
    pub(crate) pieces: usize,
    pub(crate) thoughts: usize,
    pub(crate) largest_gap: Duration,
    pub(crate) has_reason: bool,
    /// The provider stopped early (END-6)
    pub(crate) is_incomplete: bool,
    pub(crate) has_usage: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    Idle,
    Connecting,
    Waiting { half_head: bool },
    Reading,
    Refused { since: Instant, answer: Input },
    Streaming(Stream),
    Pausing { until: Instant, failure: Outcome, retry_after: Option<Duration> },
    Over,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Stream {
    pub(crate) head: Instant,
    /// The last byte, or the consumer's return (STR-2, STR-3)
    pub(crate) quiet_since: Instant,
    /// The last event that extended the answer, or the consumer's return from it
    pub(crate) content: Option<Instant>,
    pub(crate) content_out: bool,
    /// The completion marker, or the last content behind it
    pub(crate) marked: Option<Instant>,
    /// One JSON answer in place of a stream
    pub(crate) is_unary: bool,
    pub(crate) begun: Option<Begun>,
}

/// A piece of the answer whose event has not ended
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Begun {
    Half,
    WithoutLineEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Sent {
    Nothing,
    Part,
    All,
}

impl State {
    /// The state with its instants counted from now: equal states have equal futures
    pub(crate) fn relative(&self) -> Self {
        let by = (self.now - BEGAN).as_nanos() as u64;
        let back = |at: &mut Instant| *at = Instant::from_nanos(at.as_nanos() - by);
        let mut state = self.clone();
        let Self { now, began, attempt_began, .. } = &mut state;
        [now, began, attempt_began].into_iter().for_each(back);
        match &mut state.phase {
            Phase::Refused { since, .. } => back(since),
            Phase::Pausing { until, .. } => back(until),
            Phase::Streaming(stream) => {
                [&mut stream.head, &mut stream.quiet_since].into_iter().for_each(back);
                [&mut stream.content, &mut stream.marked].into_iter().flatten().for_each(back);
            }
            Phase::Idle | Phase::Connecting | Phase::Waiting { .. } | Phase::Reading | Phase::Over => {}
        }
        state
    }
}

/// A call that has not begun
impl Default for State {
    fn default() -> Self {
        Self {
            now: BEGAN,
            began: BEGAN,
            phase: Phase::Idle,
            attempts: 0,
            link: 0,
            attempt_began: BEGAN,
            reused: false,
            answered: false,
            sent: Sent::Nothing,
            held: 0,
            supplied: 0,
            body_over: false,
            body_read: false,
            write_failed: false,
            any_sent: false,
            item_out: false,
            any_item: false,
            pieces: 0,
            thoughts: 0,
            largest_gap: Duration::ZERO,
            has_reason: false,
            is_incomplete: false,
            has_usage: false,
        }
    }
}
