//! The connections of a client, between calls and while they wait to be had.
//!
//! What is decided is decided by [`steadfast::pool`]; here are the sockets. One lock holds both, and
//! nothing is awaited or closed under it.

use std::collections::BTreeMap;
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use steadfast::call::Origin;
use steadfast::http1::Tail;
use steadfast::machine::IoFailure;
use steadfast::pool::{self, Checkout, ConnectionId, Decision, Pool, Settings, Statistics, Ticket, Want};
use steadfast::time::Instant;

use crate::client::janitor::Janitor;
use crate::client::network::Network;
use crate::client::time::Clock;
use crate::connection::{Ask, Connection, Socket};
use crate::resting::{Found, Resting};
use crate::tunnel::{Through, Way};

/// How long a connection may rest before the reactor watches it for its end, and how long what it tells of
/// one may wait: 250 ms
///
/// A busy client takes its connections up again sooner, and looks at each before it does. So watching costs
/// it nothing per exchange.
pub(crate) const WATCH_EVERY: Duration = Duration::from_millis(250);

/// What a connection can be used for
type Key<N> = (Origin, <N as Network>::Reactor);

/// The connections of a client; clones share them
#[derive(Clone)]
pub(crate) struct Connections<N: Network>(Arc<Shared<N>>);

pub(crate) struct Shared<N: Network> {
    clock: Clock<N>,
    settings: Settings,
    state: Mutex<State<N>>,
}

struct State<N: Network> {
    pool: Pool<Key<N>>,
    /// Those that are idle or finishing
    resting: BTreeMap<ConnectionId, Resting<Leased<N>>>,
    waiting: BTreeMap<Ticket, Place<N>>,
    /// What is to be done once the lock is open, for it may come back here
    due: Vec<Due<N>>,
    /// A [`Janitor`] lives
    is_watched: bool,
    /// Wakes it where it does not look by itself within [`WATCH_EVERY`]
    janitor: Option<Waker>,
    /// When it last looked at all that rest
    looked: Option<Instant>,
}

enum Due<N: Network> {
    Close(Resting<Leased<N>>),
    Wake(Waker),
}

/// What came of a request for a connection
enum Granted<N: Network> {
    /// One that an earlier call left
    Reuse(Resting<Leased<N>>),
    /// One may be opened
    Open(Lease<N>),
}

enum Asked<N: Network> {
    Granted(Granted<N>),
    Wait(Ticket),
}

/// A place in the line
enum Place<N: Network> {
    Waiting(Option<Waker>),
    Granted(Granted<N>),
}

/// The right to one connection; reports its end when it is dropped
struct Lease<N: Network> {
    id: ConnectionId,
    shared: Weak<Shared<N>>,
}

/// A socket that its client's pool counts for as long as it lives
pub struct Leased<N: Network> {
    socket: Through<Way<N::Socket>>,
    lease: Lease<N>,
}

impl<N: Network> Connections<N> {
    pub(crate) fn new(clock: Clock<N>, settings: Settings) -> Self {
        let state = State {
            pool: Pool::new(settings),
            resting: BTreeMap::new(),
            waiting: BTreeMap::new(),
            due: Vec::new(),
            is_watched: false,
            janitor: None,
            looked: None,
        };
        Self(Arc::new(Shared { clock, settings, state: Mutex::new(state) }))
    }

    /// The same settings, and nothing shared: for a client whose connections are of another kind
    pub(crate) fn renewed(&self) -> Self {
        Self::new(self.0.clock, self.0.settings)
    }

    /// A connection to `origin`: one that is idle where `may_be_reused`, else one that `open` opens
    ///
    /// Waits in line where there is a cap. Dropping the future gives up, at any point.
    pub(crate) async fn get<F>(
        self,
        origin: Origin,
        may_be_reused: bool,
        open: F,
    ) -> Result<Connection<Leased<N>>, IoFailure>
    where
        F: Future<Output = Result<Connection<Through<Way<N::Socket>>>, IoFailure>>,
    {
        let reactor = N::reactor().expect("a call is polled within the runtime of its client");
        let key = (origin, reactor);
        let want = if may_be_reused { Want::Any } else { Want::New };
        loop {
            let granted = match self.0.with(|state, now| state.ask(now, &key, want, &self.0)) {
                Asked::Granted(granted) => granted,
                Asked::Wait(ticket) => Waiting { ticket, shared: &self.0 }.await,
            };
            match granted {
                Granted::Open(lease) => {
                    return Ok(open.await?.map_socket(|socket| Leased { socket, lease }));
                }
                Granted::Reuse(mut resting) => match look_now(&mut resting) {
                    Found::Ready => return Ok(resting.into_connection()),
                    Found::Finishing | Found::Dead => {
                        self.0.with(|state, _| state.pool.stale(id_of(&resting)));
                        resting.close();
                    }
                },
            }
        }
    }

    /// Takes back a connection whose exchange is over, with what its message still owes, and for how
    /// long the server keeps it, where it said so
    pub(crate) fn put(
        &self,
        connection: Connection<Leased<N>>,
        tail: Option<Box<Tail>>,
        keep_for: Option<Duration>,
    ) {
        let resting = Resting::new(connection, tail);
        if N::reactor().is_none() {
            return resting.close();
        }
        let is_to_be_watched = self.0.with(|state, now| {
            state.pool.kept_for(id_of(&resting), keep_for);
            state.put(now, resting);
            state.due.extend(state.janitor.take().map(Due::Wake));
            !state.resting.is_empty() && !std::mem::replace(&mut state.is_watched, true)
        });
        if is_to_be_watched {
            N::spawn(Janitor::<N>::new(Arc::downgrade(&self.0), self.0.clock));
        }
    }

    /// Closes every connection that no call uses
    pub(crate) fn close_idle(&self) {
        self.0.with(|state, _| state.pool.close_idle());
        self.0.wake_janitor();
    }

    pub(crate) fn statistics(&self) -> Statistics {
        self.0.with(|state, _| state.pool.statistics())
    }
}

impl<N: Network> Shared<N> {
    /// Calls `act` under the lock, then does what the pool decided
    fn with<T>(self: &Arc<Self>, act: impl FnOnce(&mut State<N>, Instant) -> T) -> T {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let result = act(&mut state, self.clock.now());
        state.follow(self);
        let due = std::mem::take(&mut state.due);
        drop(state);
        for due in due {
            match due {
                Due::Close(resting) => resting.close(),
                Due::Wake(waiting) => waiting.wake(),
            }
        }
        result
    }

    /// Looks at what rests, closes what is due, and returns when to do that again; `None` where
    /// nothing rests, and so nobody needs to watch
    ///
    /// Asked again within [`WATCH_EVERY`], it only says when that is over.
    pub(crate) fn watch(self: &Arc<Self>, cx: &mut Context<'_>) -> Option<Option<Instant>> {
        let next = self.with(|state, now| {
            let next = state.looked.map(|looked| looked + WATCH_EVERY).filter(|next| now < *next);
            if next.is_some() {
                return next;
            }
            state.looked = Some(now);
            let resting: Vec<ConnectionId> = state.resting.keys().copied().collect();
            for id in resting {
                state.look(now, id, Ask::Reactor, cx);
            }
            // Arrived beats expired: what has come in time was read first.
            state.pool.elapsed(now);
            None
        });
        self.with(|state, _| {
            if state.resting.is_empty() {
                (state.is_watched, state.janitor) = (false, None);
                return None;
            }
            if next.is_none() {
                state.janitor = Some(cx.waker().clone());
            }
            Some(next.or_else(|| state.pool.deadline()))
        })
    }

    /// The janitor is gone before its time: its runtime was shut down
    pub(crate) fn not_watched(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        (state.is_watched, state.janitor) = (false, None);
    }

    fn wake_janitor(&self) {
        let janitor = self.state.lock().unwrap_or_else(PoisonError::into_inner).janitor.take();
        if let Some(janitor) = janitor {
            janitor.wake();
        }
    }
}

/// The last client and the last call are gone, and with them what rests here; the janitor follows
impl<N: Network> Drop for Shared<N> {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut state.resting).into_values().for_each(Resting::close);
        self.wake_janitor();
    }
}

impl<N: Network> State<N> {
    fn ask(&mut self, now: Instant, key: &Key<N>, want: Want, shared: &Arc<Shared<N>>) -> Asked<N> {
        let finishing: Vec<ConnectionId> = self.pool.finishing(key).collect();
        for id in finishing {
            self.look(now, id, Ask::System, &mut Context::from_waker(Waker::noop()));
        }
        match self.pool.checkout(now, key, want) {
            Checkout::Now(lease) => Asked::Granted(self.grant(lease, shared)),
            Checkout::Wait(ticket) => {
                self.waiting.insert(ticket, Place::Waiting(None));
                Asked::Wait(ticket)
            }
        }
    }

    fn put(&mut self, now: Instant, mut resting: Resting<Leased<N>>) {
        let id = id_of(&resting);
        // One that owes nothing is looked at before it is used.
        let found = if resting.tail().is_none() { Found::Ready } else { look_now(&mut resting) };
        let is_taken = match found {
            Found::Ready => self.pool.keep(now, id),
            Found::Finishing => self.pool.finish(id, resting.tail().and_then(Tail::until)),
            Found::Dead => false,
        };
        if is_taken {
            self.resting.insert(id, resting);
        } else {
            self.due.push(Due::Close(resting));
        }
    }

    /// Looks at one that rests: it may have ended its message, or be dead
    fn look(&mut self, now: Instant, id: ConnectionId, ask: Ask, cx: &mut Context<'_>) {
        let Some(resting) = self.resting.get_mut(&id) else { return };
        let was_finishing = resting.tail().is_some();
        let is_of_use = match resting.look(ask, cx) {
            Found::Ready => !was_finishing || self.pool.ended(now, id),
            Found::Finishing => true,
            Found::Dead => false,
        };
        if !is_of_use {
            self.pool.closed(id);
            let resting = self.take(id);
            self.due.push(Due::Close(resting));
        }
    }

    /// Does what the pool decided
    fn follow(&mut self, shared: &Arc<Shared<N>>) {
        while let Some(decision) = self.pool.next_decision() {
            match decision {
                Decision::Close(id) => {
                    let resting = self.take(id);
                    self.due.push(Due::Close(resting));
                }
                Decision::Grant(ticket, lease) => {
                    let granted = self.grant(lease, shared);
                    let place = self.waiting.insert(ticket, Place::Granted(granted));
                    let Some(Place::Waiting(waker)) = place else {
                        unreachable!("whoever is granted something waits");
                    };
                    self.due.extend(waker.map(Due::Wake));
                }
            }
        }
    }

    fn grant(&mut self, lease: pool::Lease, shared: &Arc<Shared<N>>) -> Granted<N> {
        match lease {
            pool::Lease::Reuse(id) => Granted::Reuse(self.take(id)),
            pool::Lease::Open(id) => Granted::Open(Lease::new(id, shared)),
        }
    }

    fn take(&mut self, id: ConnectionId) -> Resting<Leased<N>> {
        self.resting.remove(&id).expect("what the pool takes for idle or finishing rests here")
    }
}

/// A wait for what is granted; the place in the line is given up when it is dropped
struct Waiting<'a, N: Network> {
    ticket: Ticket,
    shared: &'a Arc<Shared<N>>,
}

impl<N: Network> Future for Waiting<'_, N> {
    type Output = Granted<N>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Granted<N>> {
        let mut state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        match state.waiting.remove(&self.ticket) {
            Some(Place::Granted(granted)) => Poll::Ready(granted),
            Some(Place::Waiting(_)) | None => {
                state.waiting.insert(self.ticket, Place::Waiting(Some(cx.waker().clone())));
                Poll::Pending
            }
        }
    }
}

impl<N: Network> Drop for Waiting<'_, N> {
    fn drop(&mut self) {
        // What was granted and never taken is dropped once the lock is open.
        drop(self.shared.with(|state, _| {
            state.pool.give_up(self.ticket);
            state.waiting.remove(&self.ticket)
        }));
    }
}

impl<N: Network> Lease<N> {
    fn new(id: ConnectionId, shared: &Arc<Shared<N>>) -> Self {
        Self { id, shared: Arc::downgrade(shared) }
    }
}

impl<N: Network> Drop for Lease<N> {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.upgrade() {
            shared.with(|state, _| state.pool.closed(self.id));
        }
    }
}

impl<N: Network> Socket for Leased<N> {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        self.socket.poll_read(cx, buffer)
    }

    fn read_now(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.socket.read_now(buffer)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, parts: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        self.socket.poll_write(cx, parts)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket.poll_flush(cx)
    }
}

fn id_of<N: Network>(resting: &Resting<Leased<N>>) -> ConnectionId {
    resting.connection().socket().lease.id
}

/// What the operating system has on it now
fn look_now<N: Network>(resting: &mut Resting<Leased<N>>) -> Found {
    resting.look(Ask::System, &mut Context::from_waker(Waker::noop()))
}
