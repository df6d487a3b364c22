//! Names to addresses, on a bounded number of threads.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;

use steadfast::machine::{IoFailure, Stage, io_failure};

use crate::sleeper::Bell;

/// The most look-ups that one client has under way with the system's resolver
///
/// A look-up that nobody waits for any more still counts until the system gives it up.
pub const MAX_LOOK_UPS: usize = 64;

/// The system's resolver; each thread of it ends when nothing is left to look up
#[derive(Default)]
pub(crate) struct Resolver(Mutex<Queue>);

#[derive(Default)]
struct Queue {
    asked: VecDeque<Asked>,
    threads: usize,
}

struct Asked {
    host: String,
    port: u16,
    /// Gone where nobody waits for it any more
    answer: Weak<Answer>,
}

struct Answer {
    addresses: Mutex<Option<io::Result<Vec<SocketAddr>>>>,
    bell: Arc<Bell>,
}

/// A look-up under way; nobody is asked, or heard, once it is dropped
pub(crate) struct LookUp {
    host: String,
    answer: Arc<Answer>,
}

impl Resolver {
    /// Looks up `host`, and rings `bell` when that is done
    pub(crate) fn look_up(self: &Arc<Self>, host: &str, port: u16, bell: &Arc<Bell>) -> LookUp {
        let answer = Arc::new(Answer { addresses: Mutex::default(), bell: Arc::clone(bell) });
        let mut queue = self.queue();
        queue.asked.retain(|asked| asked.answer.strong_count() > 0);
        queue.asked.push_back(Asked { host: host.to_owned(), port, answer: Arc::downgrade(&answer) });
        if queue.threads < MAX_LOOK_UPS {
            let resolver = Arc::clone(self);
            let spawned = thread::Builder::new().name("look-up".to_owned()).spawn(move || resolver.work());
            match spawned {
                Ok(_) => queue.threads += 1,
                // Those that run will come to it.
                Err(_) if queue.threads > 0 => {}
                Err(error) => {
                    // With no thread at all, this is the only one in the queue.
                    queue.asked.clear();
                    answer.tell(Err(error));
                }
            }
        }
        LookUp { host: host.to_owned(), answer }
    }

    fn work(&self) {
        while let Some(Asked { host, port, answer }) = self.next() {
            if answer.strong_count() > 0 {
                let addresses = (host.as_str(), port).to_socket_addrs().map(Iterator::collect);
                if let Some(answer) = answer.upgrade() {
                    answer.tell(addresses);
                }
            }
        }
    }

    /// The next one asked for; where there is none, this thread is over
    fn next(&self) -> Option<Asked> {
        let mut queue = self.queue();
        let next = queue.asked.pop_front();
        if next.is_none() {
            queue.threads -= 1;
        }
        next
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Answer {
    fn tell(&self, addresses: io::Result<Vec<SocketAddr>>) {
        *self.addresses.lock().unwrap_or_else(PoisonError::into_inner) = Some(addresses);
        self.bell.ring();
    }
}

impl LookUp {
    /// The addresses, once they are known
    pub(crate) fn take(&self) -> Option<Result<Vec<SocketAddr>, IoFailure>> {
        let found = self.answer.addresses.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        Some(found.map_err(|error| failure(&self.host, &error)))
    }
}

fn failure(host: &str, error: &io::Error) -> IoFailure {
    let failure = io_failure(Stage::Resolve, error);
    IoFailure { message: format!("{host}: {}", failure.message), ..failure }
}
