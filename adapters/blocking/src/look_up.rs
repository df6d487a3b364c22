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
pub(crate) struct Resolver {
    queue: Mutex<Queue>,
    find: Find,
}

/// How the addresses of a host are found, on a thread that may wait
type Find = fn(&str, u16) -> io::Result<Vec<SocketAddr>>;

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

impl Default for Resolver {
    fn default() -> Self {
        Self::new(|host, port| (host, port).to_socket_addrs().map(Iterator::collect))
    }
}

impl Resolver {
    pub(crate) fn new(find: Find) -> Self {
        Self { queue: Mutex::default(), find }
    }

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
                let addresses = (self.find)(&host, port);
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
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
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

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::{Condvar, Mutex};
    use std::time::Duration;

    use std::time::Instant;

    use steadfast::call::Request;
    use steadfast::config::Overrides;
    use steadfast::connect::Proxies;
    use steadfast::outcome::{ErrorKind, Phase};

    use super::*;
    use crate::Client;

    /// No wait of these tests is meant to take so long
    const CAP: Duration = Duration::from_secs(60);

    /// Where look-ups wait for their turn to end, which they do in the order in which they began
    struct Gate {
        state: Mutex<State>,
        changed: Condvar,
    }

    struct State {
        began: Vec<String>,
        may_end: usize,
    }

    static GATE: Gate =
        Gate { state: Mutex::new(State { began: Vec::new(), may_end: 0 }), changed: Condvar::new() };

    impl Gate {
        fn look_up(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
            let mut state = GATE.state.lock().expect("no panic");
            state.began.push(host.to_owned());
            let number = state.began.len();
            GATE.changed.notify_all();
            let waited = GATE.changed.wait_timeout_while(state, CAP, |state| state.may_end < number);
            assert!(!waited.expect("no panic").1.timed_out(), "{host} waits for ever");
            Ok(vec![SocketAddr::from((Ipv4Addr::LOCALHOST, port))])
        }

        fn began(&self) -> Vec<String> {
            self.state.lock().expect("no panic").began.clone()
        }

        /// Waits until so many have begun
        fn wait_for(&self, count: usize) {
            let state = self.state.lock().expect("no panic");
            let waited = self.changed.wait_timeout_while(state, CAP, |state| state.began.len() < count);
            assert!(!waited.expect("no panic").1.timed_out(), "{count} look-ups have begun");
        }

        fn let_end(&self, count: usize) {
            self.state.lock().expect("no panic").may_end = count;
            self.changed.notify_all();
        }
    }

    #[test]
    fn more_look_ups_than_may_be_under_way_wait_in_order_and_none_is_left_over() {
        let resolver = Arc::new(Resolver::new(Gate::look_up));
        let bell = Arc::new(Bell::default());
        let look_up = |kind: &str, number: usize| resolver.look_up(&format!("{kind}-{number}"), 80, &bell);
        let under_way: Vec<LookUp> = (0..MAX_LOOK_UPS).map(|number| look_up("first", number)).collect();
        GATE.wait_for(MAX_LOOK_UPS);
        let waiting: Vec<LookUp> = (0..3).map(|number| look_up("then", number)).collect();

        // A call that has to wait does so within its bound, and leaves its place.
        let client = Client::new().with_proxies(Proxies::none()).with_resolver(Arc::clone(&resolver));
        let overrides = Overrides::new().connect_timeout(0.05).max_attempts(1);
        let request = Request::post("http://in-vain.test").overrides(overrides).build();
        let error = client.send(request.expect("a request")).result.expect_err("a breach");
        let ErrorKind::Timeout(timeout) = error.kind else { panic!("{error}") };
        assert_eq!(timeout.phase, Phase::Connect);
        assert_eq!(GATE.began().len(), MAX_LOOK_UPS);

        for number in 0..waiting.len() {
            GATE.let_end(number + 1);
            GATE.wait_for(MAX_LOOK_UPS + number + 1);
            assert_eq!(GATE.began()[MAX_LOOK_UPS + number], format!("then-{number}"));
        }
        GATE.let_end(usize::MAX);
        let began = Instant::now();
        for look_up in under_way.iter().chain(&waiting) {
            while look_up.take().is_none() {
                assert!(began.elapsed() < CAP, "it has an end");
                thread::yield_now();
            }
        }
        // A thread is over a moment after its last look-up is.
        while resolver.queue().threads > 0 {
            assert!(began.elapsed() < CAP, "no thread is left");
            thread::yield_now();
        }
        assert!(resolver.queue().asked.is_empty());
        assert!(!GATE.began().contains(&"in-vain.test".to_owned()));
    }
}
