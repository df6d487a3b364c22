//! A call, as its consumer sees it.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
#[cfg(feature = "tower")]
use std::task::Waker;
use std::task::{Context, Poll};

use futures_core::Stream;
use http::{HeaderMap, StatusCode};
use steadfast::call::{Call, Fact, Item, Piece, Progress};
use steadfast::outcome::{Outcome, Turn};
use steadfast::time::Instant;
use steadfast::trace::Recording;

use crate::canceller::Canceller;
#[cfg(feature = "tower")]
use crate::client::{Calls, Network};
use crate::driver::{Driver, Output, Runtime};

/// A call under way: a [`Stream`] of pieces, and an [`Outcome`] at the end
///
/// Nothing happens unless it is polled, and a consumer that takes its time slows the server down,
/// never the other way round: while it is away no clock over the stream runs. Dropping it cancels:
/// the connection is closed and nothing is sent again. A future of one of its methods can be
/// dropped at any point without losing a byte.
#[must_use = "a call does nothing unless it is polled"]
pub struct CallStream<R: Runtime<Call>> {
    driver: Driver<Call, R>,
    outcome: Option<Outcome>,
    /// None until somebody asks for one, and once it was obeyed
    canceller: Option<Canceller>,
}

impl<R: Runtime<Call>> CallStream<R> {
    /// A call that has begun
    pub fn new(call: Call, runtime: R) -> Self {
        Self { driver: Driver::new(call, runtime), outcome: None, canceller: None }
    }

    /// The next piece; `None` once the call is over
    pub async fn next(&mut self) -> Option<Piece> {
        self.next_with(|item| Piece::from(item)).await
    }

    /// The next item, lent to `take`, which may look at it without copying; `None` once the call is over
    pub async fn next_with<T>(&mut self, mut take: impl FnMut(Item<'_>) -> T) -> Option<T> {
        poll_fn(|cx| self.poll_with(cx, &mut take)).await
    }

    /// The end of the call; pieces that were not taken are in its turn, but for the bytes of a raw call, which
    /// are lost
    pub async fn outcome(mut self) -> Outcome {
        while self.next_with(|_| ()).await.is_some() {}
        self.outcome.expect("a call that is over has an outcome")
    }

    /// A handle by which another task or thread can give the call up
    pub fn canceller(&mut self) -> Canceller {
        self.canceller.get_or_insert_default().clone()
    }

    /// Gives up: the outcome is there at the next poll, and says so
    pub fn cancel(&mut self) {
        if self.outcome.is_none() {
            self.driver.cancel();
        }
    }

    /// The consumer failed, with these words: the call ends with them at the next poll, unless it is over
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
        self.driver.machine().response()
    }

    /// The answer as far as it came
    pub fn turn(&self) -> &Turn {
        match &self.outcome {
            Some(outcome) => outcome.turn(),
            None => self.driver.machine().turn(),
        }
    }

    /// Where the call is, for a live display
    pub fn progress(&self) -> Progress {
        self.driver.machine().progress()
    }

    /// How the recording of the call goes; `None` where it is not recorded
    ///
    /// It is over once the call is, which [`CallStream::next`] tells by `None`.
    pub fn recording(&self) -> Option<&Recording> {
        self.driver.machine().recording()
    }

    /// The runtime's time, as [`CallStream::progress`] tells it
    pub fn now(&self) -> Instant {
        self.driver.runtime().now()
    }

    /// The outcome, once the call is over
    pub(crate) fn ended(&self) -> Option<&Outcome> {
        self.outcome.as_ref()
    }

    /// As [`CallStream::ended`], and takes it: nothing may be asked of the call any more
    pub(crate) fn take_ended(&mut self) -> Option<Outcome> {
        self.outcome.take()
    }

    pub(crate) fn poll_with<T>(
        &mut self,
        cx: &mut Context<'_>,
        take: &mut impl FnMut(Item<'_>) -> T,
    ) -> Poll<Option<T>> {
        if self.outcome.is_some() {
            return Poll::Ready(None);
        }
        if self.canceller.as_ref().is_some_and(|canceller| canceller.poll(cx)) {
            self.canceller = None;
            self.driver.cancel();
        }
        let output = self.driver.poll(cx, take);
        output.map(|output| self.took(output))
    }

    fn took<T>(&mut self, output: Output<T, Outcome>) -> Option<T> {
        match output {
            Output::Item(item) => Some(item),
            Output::Done(outcome) => {
                self.outcome = Some(outcome);
                None
            }
        }
    }
}

#[cfg(feature = "tower")]
impl<N: Network> CallStream<Calls<N>> {
    /// Ends here and now, on whatever thread: as the end says that is there to be read, or else cancelled
    pub(crate) fn leave(mut self) -> Option<Outcome> {
        N::unbudgeted(&mut Context::from_waker(Waker::noop()), |cx| {
            if !self.poll_last(cx) {
                self.driver.cancel();
                self.poll_last(cx);
            }
        });
        self.outcome
    }

    /// Takes what is there, and no more; whether that was the end
    fn poll_last(&mut self, cx: &mut Context<'_>) -> bool {
        if self.outcome.is_none()
            && let Poll::Ready(output) = self.driver.poll_last(cx, |_| ())
        {
            self.took(output);
        }
        self.outcome.is_some()
    }
}

impl<R: Runtime<Call> + Unpin> Stream for CallStream<R> {
    type Item = Piece;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Piece>> {
        self.poll_with(cx, &mut |item: Item<'_>| Piece::from(item))
    }
}

impl<R: Runtime<Call>> fmt::Debug for CallStream<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.driver.machine().fmt(f)
    }
}
