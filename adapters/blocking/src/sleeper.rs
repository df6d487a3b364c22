//! The one wait of a call: for its socket, for another thread, or until a point in time.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mio::{Events, Poll, Registry, Token, Waker};
use steadfast::machine::{IoFailure, Stage, io_failure};

/// The token of every socket: whichever is ready, all are looked at
pub(crate) const SOCKET: Token = Token(0);
const BELL: Token = Token(1);

/// The longest single wait; pollers count in few bits, and whoever is woken looks again
const LONGEST: Duration = Duration::from_secs(3600);

/// Wakes a call from another thread
#[derive(Default)]
pub(crate) struct Bell {
    state: Mutex<State>,
    cancelled: Condvar,
}

#[derive(Default)]
struct State {
    is_cancelled: bool,
    /// Where the call waits while it has a connection
    waker: Option<Waker>,
}

impl Bell {
    /// Ends the call; it is woken
    pub(crate) fn cancel(&self) {
        self.state().is_cancelled = true;
        self.cancelled.notify_all();
        self.ring();
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.state().is_cancelled
    }

    /// Wakes the call where it waits for a connection
    pub(crate) fn ring(&self) {
        if let Some(waker) = &self.state().waker {
            // It fails only where the poller is broken, and the call then ends by its deadline.
            let _ = waker.wake();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where a call waits
///
/// It has a poller only as long as there is a connection: a pause between attempts holds no descriptor.
#[derive(Default)]
pub(crate) struct Sleeper {
    bell: Arc<Bell>,
    poll: Option<Poll>,
}

impl Sleeper {
    pub(crate) fn bell(&self) -> &Arc<Bell> {
        &self.bell
    }

    /// Begins to wait for sockets too; the registry is where to name them
    pub(crate) fn open(&mut self) -> Result<Registry, IoFailure> {
        let open = || {
            let poll = Poll::new()?;
            let waker = Waker::new(poll.registry(), BELL)?;
            let registry = poll.registry().try_clone()?;
            io::Result::Ok((poll, waker, registry))
        };
        let (poll, waker, registry) = open().map_err(|error| io_failure(Stage::Connect, &error))?;
        self.bell.state().waker = Some(waker);
        self.poll = Some(poll);
        Ok(registry)
    }

    /// Ends what [`Sleeper::open`] began
    pub(crate) fn close(&mut self) {
        self.bell.state().waker = None;
        self.poll = None;
    }

    /// Waits until something may have happened, but no longer than `most`
    pub(crate) fn sleep(&mut self, most: Option<Duration>) {
        let most = most.map_or(LONGEST, |most| most.min(LONGEST));
        let Some(poll) = &mut self.poll else {
            let waiting =
                self.bell.cancelled.wait_timeout_while(self.bell.state(), most, |state| !state.is_cancelled);
            drop(waiting.unwrap_or_else(PoisonError::into_inner));
            return;
        };
        match poll.poll(&mut Events::with_capacity(4), Some(most)) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                panic!("an open poller polls: {error}")
            }
            Ok(()) | Err(_) => {}
        }
    }
}
