//! What is seen of a call as it happens: the steps of its timeline, told one by one.

use std::fmt;
use std::time::Duration;

use super::{Call, Inner};
use crate::machine::Misuse;
use crate::outcome::{AttemptRecord, ErrorKind, Outcome, Reason, Span, SpanKind, Timeout};
use crate::time::Instant;

/// Is told each step of a call's timeline as it happens (rule END-1)
///
/// It sees and does not decide: whatever it does, the call goes on as without it. It is called within
/// the driver's poll, so it must not block, and a panic of it is the driver's. A call that is not
/// observed pays nothing for it. Closures are observers:
///
/// ```
/// use std::sync::mpsc;
/// use steadfast::call::{Call, Env, Observation, Request};
/// use steadfast::config::RequestConfig;
/// use steadfast::time::Instant;
///
/// let request = Request::post("http://localhost/v1/models").build()?;
/// let env = Env { seed: 1, unix_at_origin: std::time::Duration::ZERO };
/// let mut call = Call::new(request, RequestConfig::default(), env, Instant::ORIGIN);
/// let (seen, _told) = mpsc::channel();
/// call.observe(move |at: Instant, observation: &Observation<'_>| {
///     let _ = seen.send(format!("{at:?} {observation:?}"));
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Observer: Send + Sync {
    /// Takes note of a step that happened at `at`
    fn observe(&mut self, at: Instant, seen: &Observation<'_>);
}

impl<F: FnMut(Instant, &Observation<'_>) + Send + Sync> Observer for F {
    fn observe(&mut self, at: Instant, seen: &Observation<'_>) {
        self(at, seen);
    }
}

/// A step of a call's timeline
///
/// No variant holds a credential: what the peer said is blanked as in the [`Outcome`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Observation<'a> {
    /// An attempt began; its first phase follows
    AttemptBegan {
        /// The attempt, from 1
        attempt: u32,
    },
    /// A phase of an attempt began
    PhaseBegan {
        /// The attempt, from 1
        attempt: u32,
        /// Which phase; never [`SpanKind::Backoff`], which is [`Observation::Pausing`]
        kind: SpanKind,
    },
    /// The first byte of a response came
    FirstByte {
        /// The attempt, from 1
        attempt: u32,
    },
    /// The head of the final response came
    Head {
        /// The attempt, from 1
        attempt: u32,
        /// The status
        status: u16,
    },
    /// The first piece of the answer goes to the consumer: no other attempt may follow (rule RTY-2)
    FirstDelta {
        /// The attempt, from 1
        attempt: u32,
    },
    /// The terminal state of a stream is known: the answer is whole (rule STR-4)
    ///
    /// Comes again where a provider goes on after its completion marker.
    Terminal {
        /// The attempt, from 1
        attempt: u32,
        /// [`Reason::Marker`], [`Reason::Sentinel`] or [`Reason::EndOfBody`]
        reason: Reason,
    },
    /// A wait reached its bound
    Breached(&'a Timeout),
    /// A phase ended, or a pause
    PhaseEnded(&'a Span),
    /// An attempt ended; its last phase ended before that
    AttemptEnded(&'a AttemptRecord),
    /// A pause before another attempt began
    Pausing {
        /// The attempt before it, from 1
        attempt: u32,
        /// How long it lasts, if nothing ends it
        pause: Duration,
        /// Why another attempt is wanted
        failure: &'a ErrorKind,
        /// What the server asked for, where it did
        retry_after: Option<Duration>,
    },
    /// The call is over
    Over(&'a Outcome),
}

impl Call {
    /// Tells `observer` each step of the call, from its start; a call may have several observers
    ///
    /// Errors: the call has begun.
    pub fn observe(&mut self, observer: impl Observer + 'static) -> Result<(), Misuse> {
        self.observe_boxed(Box::new(observer))
    }

    /// As [`Call::observe`], for an observer of a kind that is not known
    ///
    /// Errors: the call has begun.
    pub fn observe_boxed(&mut self, observer: Box<dyn Observer>) -> Result<(), Misuse> {
        if !matches!(self.inner, Inner::Idle) {
            return Err(Misuse::OutOfOrder(
                "a call is observed from its start: observe it before Event::Start",
            ));
        }
        let mut all = std::mem::take(&mut self.observers.0).into_vec();
        all.push(observer);
        self.observers.0 = all.into_boxed_slice();
        Ok(())
    }
}

/// Who is told
///
/// Few calls have any and they never change, so what all calls carry is no larger than need be.
#[derive(Default)]
pub(super) struct Observers(Box<[Box<dyn Observer>]>);

impl Observers {
    /// Tells all of them
    pub(super) fn tell(&mut self, at: Instant, seen: Observation<'_>) {
        for observer in &mut self.0 {
            observer.observe(at, &seen);
        }
    }
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} observers", self.0.len())
    }
}
