//! Faults that can be switched on, to see whether a test finds them.
//!
//! **Private: for the simulator's own tests; no stability.** Behind the feature `planted-faults`, which
//! no default and no other crate's tests turn on. A fault is one line at the place where a developer
//! would have made the mistake, `planted!(Variant)`; without the feature it is the constant `false`.
//!
//! ```
//! use steadfast::planted::{Fault, plant};
//!
//! let fault: Fault = "retry-after-delivery".parse()?;
//! plant(Some(fault)); // Every call of this process has it from here on,
//! plant(None); // and to here.
//! # Ok::<(), steadfast::planted::UnknownFault>(())
//! ```

use std::str::FromStr;
use std::sync::atomic::{AtomicU8, Ordering};

/// Makes from the one table all that lists the faults
macro_rules! faults {
    ($($(#[doc = $about:literal])+ $fault:ident $name:literal;)+) => {
        /// A mistake that a developer could have made in the call machine or the relay, and the rule that it breaks
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Fault {
            $($(#[doc = $about])+ $fault,)+
        }

        impl Fault {
            /// All faults, in the order of the table
            pub const ALL: &[Self] = &[$(Self::$fault),+];

            /// The fault's name, as it is parsed
            pub const fn name(self) -> &'static str {
                match self { $(Self::$fault => $name,)+ }
            }
        }
    };
}

faults! {
    /// A failure after the first delta is retried (rule RTY-2)
    RetryAfterDelivery "retry-after-delivery";
    /// `max_attempts` counts the retries, not the attempts (rule CFG)
    OneAttemptTooMany "one-attempt-too-many";
    /// An error for want of quota is retried like any other 429 (rule RTY-1)
    QuotaRetried "quota-retried";
    /// The server's `x-should-retry` is not read (rule RTY-1)
    ShouldRetryIgnored "should-retry-ignored";
    /// A connection that died after the request went out is replaced at no cost (rule RTY-6)
    ResendCostsNothing "resend-costs-nothing";
    /// The next attempt goes on with the turn of the failed one (rule STR-8)
    FailedTurnKept "failed-turn-kept";
    /// `Retry-After` caps the pause, and does not begin it (rule RTY-3)
    RetryAfterIsCeiling "retry-after-is-ceiling";
    /// The pause has doubled once before it should (rule RTY-3)
    BackoffOneStepAhead "backoff-one-step-ahead";
    /// A pause that does not fit what is left of the deadline is slept (rule RTY-4)
    PauseSleptPastDeadline "pause-slept-past-deadline";
    /// A driver that comes late from a pause starts an attempt past the deadline (rule RTY-4)
    AttemptStartedPastDeadline "attempt-started-past-deadline";
    /// An attempt runs to its own bound, though less is left of the deadline (rule RTY-4)
    AttemptOutlivesDeadline "attempt-outlives-deadline";
    /// The total deadline begins afresh with each attempt (rule CFG)
    DeadlineRestartedPerAttempt "deadline-restarted-per-attempt";
    /// `stream_deadline` counts from the head of the response, not from the call's start (rule CFG)
    StreamDeadlineFromHead "stream-deadline-from-head";
    /// Each byte of a head gives the attempt its whole time again (rule STR-1)
    TrickledHeadGainsTime "trickled-head-gains-time";
    /// Comments and pings do not reset the idle clock (rule STR-2)
    CommentsDoNotResetIdle "comments-do-not-reset-idle";
    /// A timeout says how long the attempt took, not how long the gap was (rule STR-2)
    ElapsedFromAttemptStart "elapsed-from-attempt-start";
    /// The reading clocks run while the consumer has an item (rule STR-3)
    IdleRunsUnderBackpressure "idle-runs-under-backpressure";
    /// The consumer's time counts as the server's silence once it is back (rule STR-3)
    IdleNotRestartedOnReturn "idle-not-restarted-on-return";
    /// Pings count as content for `content_idle_timeout` (rule CFG)
    PingsExtendContent "pings-extend-content";
    /// Comments extend `after_marker` (rule CFG)
    CommentsExtendAfterMarker "comments-extend-after-marker";
    /// A reset after the terminal state fails the call (rule STR-4)
    ResetForgetsTerminalState "reset-forgets-terminal-state";
    /// An in-band error after the completion marker is taken for noise (rule STR-7)
    ErrorAfterMarkerIgnored "error-after-marker-ignored";
    /// A stream that the provider cut at its length, or filtered, passes for a whole answer (rule END-6)
    IncompletePassesForCompleted "incomplete-passes-for-completed";
    /// A last event without its blank line is lost, even a sentinel before a proper end (rule STR-9)
    TailLost "tail-lost";
    /// Half an event is dispatched at the end of the body (rule STR-9)
    PartialEventDispatched "partial-event-dispatched";
    /// What an event still had to say is lost where a `Drain` is dropped (rule STR-8)
    DeltaLostOnDrop "delta-lost-on-drop";
    /// A timeout or reset in the body of an error answer replaces its status (rules END-3, STR-6)
    StatusLostWithItsBody "status-lost-with-its-body";
    /// A failed write ends the attempt, though the answer lies in the socket (rule STR-6)
    FailedWriteHidesAnswer "failed-write-hides-answer";
    /// `max_body_bytes` is not applied to a body in one piece (rule CFG)
    BodyNotCapped "body-not-capped";
    /// Reasoning does not count against `max_body_bytes` (rule CFG)
    ReasoningNotCounted "reasoning-not-counted";
    /// A request that went out is told as not sent (rule END-4)
    SentNotBilled "sent-not-billed";
    /// A cancel after the end ends the call again (invariant INV-2)
    SecondDone "second-done";
    /// A call that is cancelled while it connects leaves the connection open (invariant INV-10)
    LeakOnCancelInConnect "leak-on-cancel-in-connect";
    /// A connection is kept at the sentinel, before its message ended: the next call reads the rest
    /// (rule POOL-1)
    KeptUnfinished "kept-unfinished";
    /// A body that can be read once is asked for again by another attempt (rule RTY-9)
    OnceReadAgain "once-read-again";
    /// A body is read on however much of it is on its way (invariant INV-8)
    WindowWithoutEnd "window-without-end";
    /// A connection that a request did not go out on whole is kept (rule POOL-1)
    KeptHalfSent "kept-half-sent";
    /// A connection with bytes after the message is kept: the next call reads them (rule POOL-1)
    KeptWithSurplus "kept-with-surplus";
    /// A pause is drawn from an address in memory, not from the call's seed (invariant INV-9)
    PauseDrawnFromAddress "pause-drawn-from-address";
    /// An expiry that is reported at its very instant is taken for too early (the progress law)
    ExpiryOnlyAfterDeadline "expiry-only-after-deadline";
    /// A body handed out as it comes passes for whole though TLS was cut under it (rule STR-10)
    RawCutPasses "raw-cut-passes";
    /// The last gap of a stream is told as its largest (rule END-1)
    LastGapForLargest "last-gap-for-largest";
    /// What is told of a connection that was closed is refused as a driver's mistake (the contract)
    LateEventRefused "late-event-refused";
    /// A retry that the budget refused is made all the same (rule RTY-9)
    RefusedRetrySent "refused-retry-sent";
    /// A header field that was made for an attempt goes out with the later ones too (rule RTY-9)
    FieldsOfEarlierAttemptKept "fields-of-earlier-attempt-kept";
    /// A forwarding proxy that refuses is taken for the server (rule END-2)
    ProxyTakenForServer "proxy-taken-for-server";
    /// The relay sends again what began to go out and broke (rule RLY-2)
    RelayResendsBroken "relay-resends-broken";
    /// The relay asks an overloaded provider once too often (rule RLY-2)
    RelayOneSendTooMany "relay-one-send-too-many";
    /// The relay reads an answer on while the app takes nothing (rule RLY-5)
    RelayWindowIgnored "relay-window-ignored";
    /// What the app takes does not end the silence (rule RLY)
    RelaySilenceFromHead "relay-silence-from-head";
    /// The relay loses the last chunk of an answer that it frames itself (rule RLY-1)
    RelayLastChunkLost "relay-last-chunk-lost";
    /// The relay leaves a connection with bytes behind the answer to a later exchange (rule POOL-1)
    RelaySurplusReused "relay-surplus-reused";
    /// The relay tells the end of an exchange twice (the contract)
    RelayOverTwice "relay-over-twice";
    /// The relay leaves a connection open where the app leaves while it is opened (rule RLY-5)
    RelayLeakOnLeaving "relay-leak-on-leaving";
    /// The relay passes on what is in its input once more where a drain is dropped (rule RLY-1)
    RelayRestPassedTwice "relay-rest-passed-twice";
    /// An answer that only the end of the connection ends breaks off like one that is whole (rule RLY-1)
    RelayBreakUnseen "relay-break-unseen";
}

impl Fault {
    /// Those of the call machine
    pub fn of_calls() -> impl Iterator<Item = &'static Self> {
        Self::ALL.iter().filter(|fault| !fault.is_of_the_relay())
    }

    /// Those of the relay's exchange
    pub fn of_the_relay() -> impl Iterator<Item = &'static Self> {
        Self::ALL.iter().filter(|fault| fault.is_of_the_relay())
    }

    /// Whether it is one of the relay's exchange, not of a call
    pub fn is_of_the_relay(self) -> bool {
        self.name().starts_with("relay-")
    }
}

/// Switches one fault on and any other off, or all off, for every machine of this process
pub fn plant(fault: Option<Fault>) {
    planted(|planted| planted.store(fault.map_or(NONE, number), Ordering::Relaxed));
}

/// Whether any fault is on
#[cfg(test)]
pub(crate) fn is_any() -> bool {
    planted(|planted| planted.load(Ordering::Relaxed) != NONE)
}

/// Whether that fault is on
pub(crate) fn is(fault: Fault) -> bool {
    planted(|planted| planted.load(Ordering::Relaxed) == number(fault))
}

const NONE: u8 = 0;

const fn number(fault: Fault) -> u8 {
    fault as u8 + 1
}

#[cfg(not(test))]
fn planted<T>(with: impl FnOnce(&AtomicU8) -> T) -> T {
    static PLANTED: AtomicU8 = AtomicU8::new(NONE);
    with(&PLANTED)
}

/// The tests of this crate run side by side: a fault is on in its own one alone
#[cfg(test)]
fn planted<T>(with: impl FnOnce(&AtomicU8) -> T) -> T {
    thread_local!(static PLANTED: AtomicU8 = const { AtomicU8::new(NONE) });
    PLANTED.with(with)
}

/// By its name
impl FromStr for Fault {
    type Err = UnknownFault;

    fn from_str(name: &str) -> Result<Self, UnknownFault> {
        let fault = Self::ALL.iter().find(|fault| fault.name() == name);
        fault.copied().ok_or_else(|| UnknownFault { name: name.to_owned() })
    }
}

/// No fault has that name; the text lists those that there are
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no fault {name}; there are {}", names())]
pub struct UnknownFault {
    /// The name as it was given
    pub name: String,
}

fn names() -> String {
    Fault::ALL.iter().map(|fault| fault.name()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_planted_fault_is_on_alone_until_another_one_is() {
        for fault in Fault::ALL {
            plant(Some(*fault));
            let on: Vec<_> = Fault::ALL.iter().filter(|fault| is(**fault)).collect();
            assert_eq!(on, [fault]);
        }
        plant(None);
        assert!(!Fault::ALL.iter().any(|fault| is(*fault)));
    }

    #[test]
    fn planted_faults_are_known_by_name() {
        for fault in Fault::ALL {
            assert_eq!(fault.name().parse(), Ok(*fault));
        }
        let names: BTreeSet<_> = Fault::ALL.iter().map(|fault| fault.name()).collect();
        assert_eq!(names.len(), Fault::ALL.len());
        let error = Fault::from_str("retry").unwrap_err().to_string();
        assert!(error.starts_with("there is no fault retry; there are retry-after-delivery, "), "{error}");
    }
}
