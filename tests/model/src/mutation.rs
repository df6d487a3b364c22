//! Rules that the model can get wrong on purpose, to show that the check finds it.

/// One rule that the model gets wrong
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// `total_deadline` starts afresh with each attempt
    DeadlinePerAttempt,
    /// The clocks over a stream run while the consumer has an item
    IdleUnderBackpressure,
    /// A reset behind the completion marker fails the call
    ResetBeatsMarker,
    /// A cancel behind the completion marker fails the call
    CancelBeatsMarker,
    /// A stalled error body is a timeout
    TimeoutBeatsStatus,
    /// A pause that does not fit is slept
    SleepsPastDeadline,
    /// Another attempt follows what was delivered already
    RetriesAfterDelivery,
}
