//! Which connection carries the next request, and when one that carries none is closed.
//!
//! Decisions only: the adapter holds the sockets, looks at them, and does what it is told.
//!
//! ```text
//!              checkout: Open                        keep
//!   (nothing) ───────────────▶ handed out ──────────────────────────▶ idle
//!                               ▲    │                                 ▲ │
//!                               │    └─ finish ─▶ finishing ── ended ──┘ │
//!                               │                                        │
//!                               └───────────── checkout: Reuse ──────────┘
//! ```
//!
//! From everywhere [`Pool::closed`] leads out. What the pool closes itself, it says by
//! [`Decision::Close`]: an idle connection after [`Settings::idle_timeout`], or one too many, and a
//! finishing one when the time is over that it had to end its message.
//!
//! - Of several idle connections the one used last is used next, so that the others can grow old.
//! - There is no cap on connections unless [`Settings::max_connections`] sets one. At the cap those
//!   who ask wait in line, and whoever came first is served first.
//! - A connection that timed out, was cut or has unread bytes is never given back: the adapter closes
//!   it, and reports [`Pool::closed`] (rule POOL-1). It looks at an idle one again before it is used,
//!   for bytes and for a FIN, and reports [`Pool::stale`] (rule POOL-2).

mod settings;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::time::Instant;

pub use settings::{Settings, Statistics};

/// So long before the server would close an idle connection it is closed here, where the server said when
pub const CLOSE_BEFORE: Duration = Duration::from_secs(1);

/// Names one connection of a pool; never used twice
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(u64);

/// A place in the line of those who wait for a connection; never used twice
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(u64);

/// Whether a connection that an earlier exchange left will do
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// One that is idle, if there is one
    Any,
    /// A new one in any case
    New,
}

/// A connection that is handed out
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lease {
    /// An idle one
    Reuse(ConnectionId),
    /// One to open under this name
    Open(ConnectionId),
}

impl Lease {
    /// The connection's name
    pub fn id(self) -> ConnectionId {
        match self {
            Self::Reuse(id) | Self::Open(id) => id,
        }
    }
}

/// What a request for a connection came to
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checkout {
    /// Here it is
    Now(Lease),
    /// All are in use: a [`Decision::Grant`] comes
    Wait(Ticket),
}

/// What the adapter is to do
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Close this connection; the pool has forgotten it
    Close(ConnectionId),
    /// Hand this to the one who waits with that ticket
    Grant(Ticket, Lease),
}

/// The connections to any number of origins
///
/// `K` tells what a connection can be used for: the origin, and whatever else must be the same.
///
/// ```
/// use std::time::Duration;
/// use steadfast::pool::{Checkout, Lease, Pool, Settings, Want};
/// use steadfast::time::Instant;
///
/// let mut pool = Pool::new(Settings::default());
/// let now = Instant::ORIGIN;
/// let Checkout::Now(Lease::Open(id)) = pool.checkout(now, &"https://api.example", Want::Any) else {
///     panic!("nothing is idle, and there is no cap");
/// };
/// // Opened, used, and its message ended well:
/// assert!(pool.keep(now, id));
/// let later = now + Duration::from_secs(1);
/// assert_eq!(pool.checkout(later, &"https://api.example", Want::Any), Checkout::Now(Lease::Reuse(id)));
/// ```
#[derive(Debug)]
pub struct Pool<K> {
    settings: Settings,
    connections: BTreeMap<ConnectionId, Connection<K>>,
    origins: Vec<Origin<K>>,
    /// Nothing is due before that; `None` where nothing is due at all
    quiet_until: Option<Instant>,
    decisions: VecDeque<Decision>,
    last_id: u64,
    last_ticket: u64,
    statistics: Statistics,
}

#[derive(Debug)]
struct Connection<K> {
    key: K,
    state: State,
    /// How long the server keeps it when it is idle, where it said so
    kept_for: Option<Duration>,
}

#[derive(Clone, Copy, Debug)]
enum State {
    HandedOut,
    Idle { since: Instant },
    Finishing { until: Option<Instant> },
}

/// The connections that can be used for the same; there is none without a connection or a waiter
#[derive(Debug)]
struct Origin<K> {
    key: K,
    /// Connections in any state
    connections: usize,
    /// The one used last is the last
    idle: Vec<ConnectionId>,
    finishing: Vec<ConnectionId>,
    waiting: VecDeque<(Ticket, Want)>,
}

impl<K: Clone + Eq> Pool<K> {
    /// An empty pool
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            connections: BTreeMap::new(),
            origins: Vec::new(),
            quiet_until: None,
            decisions: VecDeque::new(),
            last_id: 0,
            last_ticket: 0,
            statistics: Statistics::default(),
        }
    }

    /// Asks for a connection
    ///
    /// One that is granted belongs to whoever asked, until [`Pool::keep`], [`Pool::finish`] or
    /// [`Pool::closed`].
    pub fn checkout(&mut self, now: Instant, key: &K, want: Want) -> Checkout {
        self.elapsed(now);
        let at = self.origins.iter().position(|origin| origin.key == *key).unwrap_or_else(|| {
            self.origins.push(Origin {
                key: key.clone(),
                connections: 0,
                idle: Vec::new(),
                finishing: Vec::new(),
                waiting: VecDeque::new(),
            });
            self.origins.len() - 1
        });
        // Nobody is overtaken: whoever could be served is served before others can ask.
        if self.origins[at].waiting.is_empty()
            && let Some(lease) = self.lease(at, want)
        {
            return Checkout::Now(lease);
        }
        self.last_ticket += 1;
        let ticket = Ticket(self.last_ticket);
        self.origins[at].waiting.push_back((ticket, want));
        self.statistics.waited += 1;
        Checkout::Wait(ticket)
    }

    /// Whoever had that ticket does not wait any longer; without effect once it was granted
    pub fn give_up(&mut self, ticket: Ticket) {
        let at = self.origins.iter().position(|origin| origin.waiting.iter().any(|(of, _)| *of == ticket));
        if let Some(at) = at {
            self.origins[at].waiting.retain(|(of, _)| *of != ticket);
            self.serve(at);
        }
    }

    /// A connection that was handed out is idle: its message ended, and nothing came after it
    ///
    /// `false` where it is not one that is handed out; then close it.
    #[must_use]
    pub fn keep(&mut self, now: Instant, id: ConnectionId) -> bool {
        self.rest(now, id, |state| matches!(state, State::HandedOut))
    }

    /// The server of a connection that was handed out said for how long it keeps it when it is idle
    ///
    /// It is closed here [`CLOSE_BEFORE`] that, if the pool's own bound is not shorter: a request must not
    /// meet the server's close on its way. Without effect for one that is not handed out.
    pub fn kept_for(&mut self, id: ConnectionId, kept_for: Option<Duration>) {
        if let Some(connection @ Connection { state: State::HandedOut, .. }) = self.connections.get_mut(&id) {
            connection.kept_for = kept_for;
        }
    }

    /// A connection that was handed out is done with, but its message has yet to end
    ///
    /// `false` where it is not one that is handed out; then close it.
    #[must_use]
    pub fn finish(&mut self, id: ConnectionId, until: Option<Instant>) -> bool {
        match self.connections.get_mut(&id) {
            Some(Connection { state: state @ State::HandedOut, .. }) => {
                *state = State::Finishing { until };
                let at = self.origin_of(id);
                self.origins[at].finishing.push(id);
                self.is_due(until);
                true
            }
            Some(_) | None => false,
        }
    }

    /// A finishing connection has ended its message, and nothing came after it
    ///
    /// `false` where it is not one that is finishing; then close it.
    #[must_use]
    pub fn ended(&mut self, now: Instant, id: ConnectionId) -> bool {
        self.rest(now, id, |state| matches!(state, State::Finishing { .. }))
    }

    /// A connection is gone, whatever it was doing; without effect for one that the pool closed
    pub fn closed(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get(&id) else { return };
        match connection.state {
            State::Idle { .. } => self.statistics.lost += 1,
            State::Finishing { .. } => self.statistics.unfinished += 1,
            State::HandedOut => {}
        }
        self.remove(id, None);
    }

    /// A connection that was handed out for reuse had ended meanwhile; it is gone, and was not used
    pub fn stale(&mut self, id: ConnectionId) {
        if self.connections.contains_key(&id) {
            self.statistics.reused -= 1;
            self.statistics.lost += 1;
            self.remove(id, None);
        }
    }

    /// Closes what has been idle or finishing for too long
    pub fn elapsed(&mut self, now: Instant) {
        if self.quiet_until.is_none_or(|until| now < until) {
            return;
        }
        let due: Vec<ConnectionId> =
            self.deadlines().filter(|(_, at)| *at <= now).map(|(id, _)| id).collect();
        for id in due {
            match self.connections[&id].state {
                State::Finishing { .. } => self.statistics.unfinished += 1,
                State::Idle { .. } | State::HandedOut => self.statistics.expired += 1,
            }
            self.remove(id, Some(Decision::Close(id)));
        }
        self.quiet_until = self.deadline();
    }

    /// Closes every connection that is not in use
    pub fn close_idle(&mut self) {
        let unused = |connection: &Connection<K>| !matches!(connection.state, State::HandedOut);
        let unused: Vec<ConnectionId> =
            self.connections.iter().filter(|(_, of)| unused(of)).map(|(id, _)| *id).collect();
        for id in unused {
            self.remove(id, Some(Decision::Close(id)));
        }
    }

    /// When [`Pool::elapsed`] has something to do
    pub fn deadline(&self) -> Option<Instant> {
        self.deadlines().map(|(_, at)| at).min()
    }

    /// The next thing to do; to be asked for after every other method, until there is none
    pub fn next_decision(&mut self) -> Option<Decision> {
        self.decisions.pop_front()
    }

    /// The connections for `key` that have yet to end their message
    pub fn finishing<'a>(&'a self, key: &'a K) -> impl Iterator<Item = ConnectionId> + 'a {
        let origin = self.origins.iter().find(move |origin| origin.key == *key);
        origin.into_iter().flat_map(|origin| origin.finishing.iter().copied())
    }

    /// What is there now, and what has been done
    pub fn statistics(&self) -> Statistics {
        let mut statistics = self.statistics;
        for connection in self.connections.values() {
            match connection.state {
                State::HandedOut => statistics.in_use += 1,
                State::Idle { .. } => statistics.idle += 1,
                State::Finishing { .. } => statistics.finishing += 1,
            }
        }
        statistics.waiting = self.origins.iter().map(|origin| origin.waiting.len()).sum();
        statistics
    }

    /// A connection for whoever is first in line; `None` where there can be none yet
    fn lease(&mut self, at: usize, want: Want) -> Option<Lease> {
        let origin = &mut self.origins[at];
        if want == Want::Any
            && let Some(id) = origin.idle.pop()
        {
            self.set(id, State::HandedOut);
            self.statistics.reused += 1;
            return Some(Lease::Reuse(id));
        }
        if self.settings.max_connections.is_some_and(|cap| origin.connections >= cap.get()) {
            let oldest = *origin.idle.first()?;
            origin.idle.remove(0);
            origin.connections -= 1;
            self.connections.remove(&oldest);
            self.decisions.push_back(Decision::Close(oldest));
        }
        let origin = &mut self.origins[at];
        origin.connections += 1;
        self.last_id += 1;
        let id = ConnectionId(self.last_id);
        let key = origin.key.clone();
        self.connections.insert(id, Connection { key, state: State::HandedOut, kept_for: None });
        self.statistics.opened += 1;
        Some(Lease::Open(id))
    }

    /// Grants what can be granted to those who wait; drops the origin if nothing is left of it
    fn serve(&mut self, at: usize) {
        while let Some((ticket, want)) = self.origins[at].waiting.front().copied() {
            let Some(lease) = self.lease(at, want) else { return };
            self.origins[at].waiting.pop_front();
            self.decisions.push_back(Decision::Grant(ticket, lease));
        }
        if self.origins[at].connections == 0 {
            self.origins.swap_remove(at);
        }
    }

    /// Makes a connection idle, if its state is one that this may follow on
    fn rest(&mut self, now: Instant, id: ConnectionId, may: impl FnOnce(State) -> bool) -> bool {
        let Some(connection) = self.connections.get_mut(&id).filter(|of| may(of.state)) else { return false };
        connection.state = State::Idle { since: now };
        let due = connection.due(&self.settings);
        self.is_due(due);
        let at = self.origin_of(id);
        self.origins[at].finishing.retain(|finishing| *finishing != id);
        self.origins[at].idle.push(id);
        self.serve(at);
        if let Some(origin) = self.origins.get(at)
            && origin.idle.len() > self.settings.max_idle
        {
            let oldest = origin.idle[0];
            self.statistics.expired += 1;
            self.remove(oldest, Some(Decision::Close(oldest)));
        }
        true
    }

    /// Forgets a connection; what it makes room for comes behind `decision`
    fn remove(&mut self, id: ConnectionId, decision: Option<Decision>) {
        let at = self.origin_of(id);
        self.connections.remove(&id);
        let origin = &mut self.origins[at];
        origin.connections -= 1;
        origin.idle.retain(|idle| *idle != id);
        origin.finishing.retain(|finishing| *finishing != id);
        self.decisions.extend(decision);
        self.serve(at);
    }

    fn set(&mut self, id: ConnectionId, state: State) {
        self.connections.get_mut(&id).expect("a connection of this pool").state = state;
    }

    fn origin_of(&self, id: ConnectionId) -> usize {
        let key = &self.connections[&id].key;
        self.origins.iter().position(|origin| origin.key == *key).expect("a connection has its origin")
    }

    fn is_due(&mut self, at: Option<Instant>) {
        self.quiet_until = [self.quiet_until, at].into_iter().flatten().min();
    }

    fn deadlines(&self) -> impl Iterator<Item = (ConnectionId, Instant)> + '_ {
        self.connections.iter().filter_map(|(id, connection)| Some((*id, connection.due(&self.settings)?)))
    }
}

impl<K> Connection<K> {
    /// When it has been idle or finishing for too long
    fn due(&self, settings: &Settings) -> Option<Instant> {
        match self.state {
            State::HandedOut => None,
            State::Idle { since } => {
                let kept_for = self.kept_for.map(|kept_for| kept_for.saturating_sub(CLOSE_BEFORE));
                let bounds = [settings.idle_timeout.limit(), kept_for];
                bounds.into_iter().flatten().min().map(|bound| since + bound)
            }
            State::Finishing { until } => until,
        }
    }
}
