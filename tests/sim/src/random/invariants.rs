//! What holds of every call, whatever happens, each under its name.

use std::fmt;

use steadfast::time::Instant;

/// Something that holds of every call
///
/// The first ten are the invariants of the design, INV-1 to INV-10, the eleventh is INV-11 as it
/// holds for calls over HTTP; each of the others is a rule or a promise of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Invariant {
    /// INV-1: every wait ends, and no later than the bounds in force say
    Ends,
    /// INV-2: exactly one `Done`, and nothing after it
    DoneOnce,
    /// INV-3: no attempt after the first delivered delta, nor after a terminal state
    Gate,
    /// INV-4: attempts within `max_attempts`, and none past the deadline; no pause past it
    Attempts,
    /// INV-5: a terminal state ends in success, and the deltas make the turn
    Terminal,
    /// INV-6: what the server sent is the outcome, and nothing made up in its place
    Response,
    /// INV-7: no wait ends before its bound
    Patience,
    /// INV-8: memory stays within the configured caps
    Memory,
    /// INV-9: the same inputs give the same steps
    SameSteps,
    /// INV-10: every connection asked for is closed, once
    Leak,
    /// INV-11: what was said to one call never reaches another, and no connection is used again
    /// while anything of the exchange before may come on it
    Stranger,
    /// After `Elapsed` the next deadline is later, or the state has changed
    Progress,
    /// RTY-1, RTY-2 and RTY-6: a failure is tried again where the rules say so, and nowhere else
    Retry,
    /// RTY-9: what goes out is the request, with the header fields that were made for that attempt
    Request,
    /// RTY-3 and RTY-4: a pause is as long as the server asks and the backoff allows
    Pause,
    /// END-2: the failure that is told is the one that happened
    Cause,
    /// END-1: the timeline says what happened
    Timeline,
    /// END-4: the cost is what the wire has seen
    Billing,
    /// The machine takes what a driver may tell it, and never panics
    Contract,
}

impl Invariant {
    /// All of them
    pub const ALL: [Self; 19] = [
        Self::Ends,
        Self::DoneOnce,
        Self::Gate,
        Self::Attempts,
        Self::Terminal,
        Self::Response,
        Self::Patience,
        Self::Memory,
        Self::SameSteps,
        Self::Leak,
        Self::Stranger,
        Self::Progress,
        Self::Retry,
        Self::Request,
        Self::Pause,
        Self::Cause,
        Self::Timeline,
        Self::Billing,
        Self::Contract,
    ];

    /// Its name in the design or in the rules
    pub const fn id(self) -> &'static str {
        match self {
            Self::Ends => "INV-1",
            Self::DoneOnce => "INV-2",
            Self::Gate => "INV-3",
            Self::Attempts => "INV-4",
            Self::Terminal => "INV-5",
            Self::Response => "INV-6",
            Self::Patience => "INV-7",
            Self::Memory => "INV-8",
            Self::SameSteps => "INV-9",
            Self::Leak => "INV-10",
            Self::Stranger => "INV-11",
            Self::Progress => "progress law",
            Self::Retry => "RTY-1",
            Self::Request => "RTY-9",
            Self::Pause => "RTY-3",
            Self::Cause => "END-2",
            Self::Timeline => "END-1",
            Self::Billing => "END-4",
            Self::Contract => "contract",
        }
    }
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

/// An invariant that did not hold
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{invariant} at {at:?} in call {call}: {what}")]
pub struct Violation {
    /// Which one
    pub invariant: Invariant,
    /// What was seen instead
    pub what: String,
    /// The call, from 1
    pub call: usize,
    /// When
    pub at: Instant,
}
