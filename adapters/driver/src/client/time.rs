//! A runtime's clock and timers, as the machines tell the time.

use std::marker::PhantomData;
use std::task::{Context, Poll};
use std::time::{Duration, Instant as SystemInstant, SystemTime, UNIX_EPOCH};

use steadfast::time::Instant;

use crate::client::network::{Network, Timer, Turn};

/// A runtime's clock, counted from the client's start
#[derive(Debug)]
pub(crate) struct Clock<N> {
    origin: SystemInstant,
    network: PhantomData<N>,
}

impl<N: Network> Clock<N> {
    pub(crate) fn start() -> Self {
        Self { origin: N::now(), network: PhantomData }
    }

    pub(crate) fn now(self) -> Instant {
        Instant::ORIGIN + self.elapsed()
    }

    /// The wall-clock time at our origin
    pub(crate) fn unix_at_origin(self) -> Duration {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        since_epoch.saturating_sub(self.elapsed())
    }

    fn elapsed(self) -> Duration {
        N::now().saturating_duration_since(self.origin)
    }

    fn to_system(self, at: Instant) -> SystemInstant {
        // Past what the system can count to, a year is as good as never: whoever waits looks again then.
        const FAR: Duration = Duration::from_secs(365 * 24 * 3600);
        self.origin.checked_add(at.since_origin()).unwrap_or_else(|| N::now() + FAR)
    }
}

impl<N> Clone for Clock<N> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<N> Copy for Clock<N> {}

/// A clock, a timer, and turns of the reactor: what a [`Runtime`](crate::Runtime) needs beside its sockets
pub struct Timekeeper<N: Network> {
    clock: Clock<N>,
    alarm: Alarm<N>,
    turn: Option<Turn>,
}

impl<N: Network> Timekeeper<N> {
    pub(crate) fn new(clock: Clock<N>) -> Self {
        Self { clock, alarm: Alarm::new(), turn: None }
    }

    /// The time, since the client's start
    pub fn now(&self) -> Instant {
        self.clock.now()
    }

    /// As [`Runtime::poll_until`](crate::Runtime::poll_until) asks for it; may be ready early
    pub fn poll_until(&mut self, at: Instant, cx: &mut Context<'_>) -> Poll<()> {
        self.alarm.poll_until(self.clock, at, cx)
    }

    /// As [`Runtime::poll_turn`](crate::Runtime::poll_turn) asks for it
    pub fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.turn.is_none() {
            self.turn = N::turn();
        }
        let turned = self.turn.as_mut().map_or(Poll::Ready(()), |turn| turn.as_mut().poll(cx));
        if turned.is_ready() {
            self.turn = None;
        }
        turned
    }
}

/// A timer that is made when it is first needed
pub(crate) struct Alarm<N: Network> {
    timer: Option<N::Timer>,
    /// When it fires, if it has not
    armed: Option<Instant>,
}

impl<N: Network> Alarm<N> {
    pub(crate) fn new() -> Self {
        Self { timer: None, armed: None }
    }

    /// Wakes the task no later than `at`, and may do so earlier
    ///
    /// An idle bound moves with every byte. The timer is left where it is when it only has to fire
    /// later: it then fires early, and whoever waits arms it afresh.
    pub(crate) fn poll_until(&mut self, clock: Clock<N>, at: Instant, cx: &mut Context<'_>) -> Poll<()> {
        let timer = self.timer.get_or_insert_with(|| {
            self.armed = Some(at);
            N::Timer::at(clock.to_system(at))
        });
        if self.armed.is_none_or(|armed| at < armed) {
            timer.reset(clock.to_system(at));
            self.armed = Some(at);
        }
        let fired = timer.poll_fire(cx);
        if fired.is_ready() {
            self.armed = None;
        }
        fired
    }
}
