//! What all threads of a server share.

use std::collections::BTreeMap;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::record::{ConnectionRecord, Recorded, RequestRecord, Sighting};

/// Whoever is told what a server sees
pub(crate) type Watcher = Box<dyn Fn(Sighting) + Send + Sync>;

pub(crate) struct State {
    started: Instant,
    inner: Mutex<Inner>,
    changed: Condvar,
    watcher: Option<Watcher>,
}

#[derive(Default)]
struct Inner {
    recorded: Recorded,
    /// Sockets on which a thread may be blocked
    open: BTreeMap<u64, Arc<TcpStream>>,
    stopping: bool,
}

impl State {
    pub(crate) fn new(watcher: Option<Watcher>) -> Self {
        Self { started: Instant::now(), inner: Mutex::default(), changed: Condvar::new(), watcher }
    }

    /// Time since the server's start
    pub(crate) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Changes the record, and wakes whoever waits for it
    pub(crate) fn record<T>(&self, change: impl FnOnce(&mut Recorded) -> T) -> T {
        let result = change(&mut self.lock().recorded);
        self.changed.notify_all();
        result
    }

    pub(crate) fn recorded(&self) -> Recorded {
        self.lock().recorded.clone()
    }

    /// Waits until `holds`, for at most `cap`; the record at that moment
    pub(crate) fn wait_for(
        &self,
        cap: Duration,
        mut holds: impl FnMut(&Recorded) -> bool,
    ) -> Option<Recorded> {
        let until = Instant::now() + cap;
        let mut inner = self.lock();
        loop {
            if holds(&inner.recorded) {
                return Some(inner.recorded.clone());
            }
            let left = until.checked_duration_since(Instant::now())?;
            inner = self.changed.wait_timeout(inner, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Does nothing for that long, or for ever; whether the server is to go on
    pub(crate) fn pause(&self, pause: Option<Duration>) -> bool {
        let until = pause.map(|pause| Instant::now() + pause);
        let mut inner = self.lock();
        loop {
            if inner.stopping {
                return false;
            }
            inner = match until {
                None => self.changed.wait(inner).unwrap_or_else(PoisonError::into_inner),
                Some(until) => {
                    let Some(left) =
                        until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
                    else {
                        return true;
                    };
                    self.changed.wait_timeout(inner, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    pub(crate) fn stopping(&self) -> bool {
        self.lock().stopping
    }

    /// Notes an accepted connection and gives it its number; none if the server is stopping
    pub(crate) fn opened(&self, socket: &Arc<TcpStream>) -> Option<u64> {
        let at = self.now();
        let mut inner = self.lock();
        if inner.stopping {
            return None;
        }
        let connection = inner.recorded.connections.len() as u64;
        inner.recorded.connections.push(ConnectionRecord { connection, at, ..ConnectionRecord::default() });
        inner.open.insert(connection, Arc::clone(socket));
        drop(inner);
        self.changed.notify_all();
        self.tell(|_| Sighting::Opened { connection, at });
        Some(connection)
    }

    /// Tells the watcher of a request that is complete, or will never be
    ///
    /// What it was told is not kept: such a server may run for long.
    pub(crate) fn requested(&self, index: usize) {
        self.tell(|recorded| {
            let request = &mut recorded.requests[index];
            let headers = std::mem::take(&mut request.headers);
            let body = std::mem::take(&mut request.body);
            Sighting::Request(RequestRecord { headers, body, ..request.clone() })
        });
    }

    /// Tells the watcher how a connection ended
    pub(crate) fn closed(&self, connection: u64) {
        self.tell(|recorded| {
            let entry = entry(recorded, connection);
            let blocked = std::mem::take(&mut entry.blocked);
            Sighting::Closed(ConnectionRecord { blocked, ..entry.clone() })
        });
    }

    /// Without the lock, for a watcher may take its time
    fn tell(&self, sighting: impl FnOnce(&mut Recorded) -> Sighting) {
        if let Some(watcher) = &self.watcher {
            let sighting = sighting(&mut self.lock().recorded);
            watcher(sighting);
        }
    }

    /// Lets go of a connection's socket, so that its thread's is the last handle and closes it
    pub(crate) fn release(&self, connection: u64) {
        self.lock().open.remove(&connection);
    }

    /// Ends every wait of every thread
    pub(crate) fn stop(&self) {
        let mut inner = self.lock();
        inner.stopping = true;
        for socket in inner.open.values() {
            // One that the peer has reset already is as shut down as it can be.
            let _ = socket.shutdown(Shutdown::Both);
        }
        drop(inner);
        self.changed.notify_all();
    }

    /// A thread that panicked leaves a record that can still be read
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn entry(recorded: &mut Recorded, connection: u64) -> &mut ConnectionRecord {
    // Numbers are places in this list, which only grows.
    &mut recorded.connections[usize::try_from(connection).unwrap_or(usize::MAX)]
}
