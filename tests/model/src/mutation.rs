//! Rules that the model can get wrong on purpose, to show that the check finds it.

/// Makes from one table the type and the list of it
macro_rules! mutations {
    ($(#[doc = $about:literal] $mutation:ident,)+) => {
        /// One rule that the model gets wrong
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Mutation {
            $(#[doc = $about] $mutation,)+
        }

        impl Mutation {
            /// All of them, in the order of the table
            pub const ALL: &[Self] = &[$(Self::$mutation),+];
        }
    };
}

mutations! {
    /// `total_deadline` starts afresh with each attempt (CFG)
    DeadlinePerAttempt,
    /// The clocks over a stream run while the consumer has an item (STR-3)
    IdleUnderBackpressure,
    /// Comments do not reset the idle clock (STR-2)
    CommentsAreSilence,
    /// Comments behind the marker extend `after_marker` (CFG)
    CommentsExtendMarker,
    /// A reset behind the completion marker fails the call (STR-4)
    ResetBeatsMarker,
    /// A cancel behind the completion marker fails the call (STR-4)
    CancelBeatsMarker,
    /// An error behind the completion marker is noise (STR-7)
    MarkerBeatsError,
    /// A stalled error body is a timeout (STR-6)
    TimeoutBeatsStatus,
    /// A pause that does not fit is slept (RTY-4)
    SleepsPastDeadline,
    /// `max_retry_after` has no effect (CFG)
    WaitsAsLongAsAsked,
    /// Another attempt follows what was delivered already (RTY-2)
    RetriesAfterDelivery,
    /// One attempt more than `max_attempts` (CFG)
    OneAttemptMore,
    /// A stale connection that nothing was written to costs an attempt (RTY-6)
    ReplacementCosts,
    /// A request that went out is told as not sent (END-4)
    SentIsFree,
    /// A connection is kept though the request did not go out whole (POOL-1)
    KeptUnsent,
    /// A body is read on however much of it is on its way (INV-8)
    WindowNeverFull,
    /// A body that can be read once is asked for again (RTY-9)
    OnceIsReplayed,
    /// A body handed out as it comes is whole though TLS was cut under it (STR-10)
    CutRawIsWhole,
    /// Reasoning does not count against `max_body_bytes` (CFG)
    ThoughtsAreFree,
    /// The last gap of a stream is told as its largest (END-1)
    LastGapIsLargest,
    /// The last event is lost where its line end is missing (STR-9)
    TailLost,
}
