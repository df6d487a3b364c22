//! A call, as its consumer sees it.

use std::fmt;
use std::sync::Arc;

use http::{HeaderMap, StatusCode};
use steadfast::call::{Fact, Item, Piece, Progress};
use steadfast::outcome::{Outcome, Turn};
use steadfast::time::Instant;
use steadfast::trace::Recording;

use crate::driver::{Driver, Output};
use crate::sleeper::Bell;

/// A call under way: an [`Iterator`] of pieces, and an [`Outcome`] at the end
///
/// Nothing happens unless something is asked of it, and a consumer that takes its time slows the
/// server down, never the other way round: while it is away no clock over the stream runs. Dropping it
/// cancels: the connection is closed and nothing is sent again.
#[must_use = "a call does nothing unless something is asked of it"]
pub struct Stream {
    driver: Driver,
    outcome: Option<Box<Outcome>>,
}

/// Ends a call from another thread
///
/// A call that waits is woken at once, whatever it waits for. Once it is over, nothing happens.
#[derive(Clone)]
pub struct Canceller(Arc<Bell>);

impl Stream {
    pub(crate) fn new(driver: Driver) -> Self {
        Self { driver, outcome: None }
    }

    /// The next item, lent to `take`, which may look at it without copying; `None` once the call is over
    pub fn next_with<T>(&mut self, mut take: impl FnMut(Item<'_>) -> T) -> Option<T> {
        if self.outcome.is_some() {
            return None;
        }
        match self.driver.next(&mut take) {
            Output::Item(item) => Some(item),
            Output::Done(outcome) => {
                self.outcome = Some(outcome);
                None
            }
        }
    }

    /// The end of the call; pieces that were not taken are in its turn, but for the bytes of a raw call, which
    /// are lost
    pub fn outcome(mut self) -> Outcome {
        while self.next_with(|_| ()).is_some() {}
        *self.outcome.expect("a call that is over has an outcome")
    }

    /// The outcome, once the call is over
    pub(crate) fn ended(&self) -> Option<&Outcome> {
        self.outcome.as_deref()
    }

    /// A handle by which another thread can give the call up
    pub fn canceller(&self) -> Canceller {
        Canceller(Arc::clone(self.driver.bell()))
    }

    /// Gives up: the outcome is there when something is next asked, and says so
    pub fn cancel(&mut self) {
        self.driver.bell().cancel();
    }

    /// The consumer failed, with these words: the call ends with them, unless it is over
    ///
    /// As [`ErrorKind::Consumer`](steadfast::outcome::ErrorKind::Consumer): not tried again, and no success
    /// either where the answer was whole already (rule STR-4).
    pub fn consumer_failed(&mut self, message: &str) {
        if self.outcome.is_none() {
            self.driver.tell_fact(Fact::ConsumerFailed(message));
        }
    }

    /// Status and header fields of the response that is being read, once its head is whole
    ///
    /// Of a call that is over, its outcome has them.
    pub fn response(&self) -> Option<(StatusCode, &HeaderMap)> {
        self.driver.call().response()
    }

    /// The answer as far as it came
    pub fn turn(&self) -> &Turn {
        match &self.outcome {
            Some(outcome) => outcome.turn(),
            None => self.driver.call().turn(),
        }
    }

    /// Where the call is, for a live display
    pub fn progress(&self) -> Progress {
        self.driver.call().progress()
    }

    /// How the recording of the call goes; `None` where it is not recorded
    ///
    /// It is over once the call is.
    pub fn recording(&self) -> Option<&Recording> {
        self.driver.call().recording()
    }

    /// The clock's time, as [`Stream::progress`] tells it
    pub fn now(&self) -> Instant {
        self.driver.now()
    }
}

impl Iterator for Stream {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        self.next_with(|item| Piece::from(item))
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.driver.call().fmt(f)
    }
}

impl Canceller {
    /// Gives the call up
    pub fn cancel(&self) {
        self.0.cancel();
    }
}

impl fmt::Debug for Canceller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Canceller").field("cancelled", &self.0.is_cancelled()).finish()
    }
}
