//! A call of a client, as the driver's loop wants it.

use std::task::{Context, Poll};
use std::time::Duration;

use steadfast::body::Feed;
use steadfast::call::{AttemptId, Call, CloseMode, Command, Fact, Origin};
use steadfast::http1::Tail;
use steadfast::machine::Supply;
use steadfast::time::Instant;

use crate::client::budget::Budget;
use crate::client::connect::Connector;
use crate::client::network::Network;
use crate::client::pool::{Connections, Leased};
use crate::client::time::Timekeeper;
use crate::driver::{Action, Runtime};

/// What one call needs of its client and of the runtime
pub struct Calls<N: Network> {
    connector: Connector<N>,
    connections: Connections<N>,
    budget: Option<Budget>,
    origin: Origin,
    time: Timekeeper<N>,
    feed: Feed,
}

impl<N: Network> Calls<N> {
    pub(crate) fn new(
        connector: Connector<N>,
        connections: Connections<N>,
        budget: Option<Budget>,
        origin: Origin,
    ) -> Self {
        let time = Timekeeper::new(connector.clock);
        Self { connector, connections, budget, origin, time, feed: Feed::default() }
    }

    /// Leaves a connection to a later call
    fn put(
        &self,
        id: AttemptId,
        tail: Option<Box<Tail>>,
        keep_for: Option<Duration>,
    ) -> Action<Call, Leased<N>> {
        let connections = self.connections.clone();
        Action::Release(id, Box::new(move |connection| connections.put(connection, tail, keep_for)))
    }
}

impl<N: Network> Runtime<Call> for Calls<N> {
    type Socket = Leased<N>;

    fn now(&self) -> Instant {
        self.time.now()
    }

    fn poll_until(&mut self, at: Instant, cx: &mut Context<'_>) -> Poll<()> {
        self.time.poll_until(at, cx)
    }

    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.time.poll_turn(cx)
    }

    fn unbudgeted(&self, cx: &mut Context<'_>, poll: impl FnOnce(&mut Context<'_>)) {
        N::unbudgeted(cx, poll);
    }

    fn poll_supply<'b>(
        &mut self,
        call: &Call,
        id: AttemptId,
        cx: &mut Context<'_>,
        buffer: &'b mut [u8],
    ) -> Poll<Supply<'b>> {
        match self.feed.supply(call.request(), id, cx.waker(), buffer) {
            Some(supply) => Poll::Ready(supply),
            None => Poll::Pending,
        }
    }

    fn act(&mut self, command: Command) -> Action<Call, Leased<N>> {
        match command {
            Command::Connect(id) => {
                let open = self.connector.clone().connect(self.origin.clone());
                let connections = self.connections.clone();
                Action::Open(id, Box::pin(connections.get(self.origin.clone(), id.may_be_reused(), open)))
            }
            Command::Retry(id) => match &self.budget {
                Some(budget) if !budget.with(|budget| budget.withdraw(self.now())) => {
                    Action::Tell(Fact::RetryRefused(id))
                }
                Some(_) | None => Action::Nothing,
            },
            Command::Close(id, CloseMode::Abort) => Action::Close(id),
            Command::Close(id, CloseMode::Keep) => self.put(id, None, None),
            Command::Close(id, CloseMode::KeepFor(keep_for)) => self.put(id, None, Some(keep_for)),
            Command::Close(id, CloseMode::Finish(tail)) => {
                let keep_for = tail.keep_for();
                self.put(id, Some(tail), keep_for)
            }
        }
    }
}
