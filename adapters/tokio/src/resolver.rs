//! The system's resolver, on tokio's threads.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use steadfast_driver::{MAX_LOOK_UPS, Resolve, Resolving, look_up};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// How the addresses of a host are found, on a thread that may wait
type LookUp = fn(&str, u16) -> io::Result<Vec<SocketAddr>>;

/// The system's own resolver
#[derive(Clone)]
pub(crate) struct System {
    permits: Arc<Semaphore>,
    look_up: LookUp,
}

impl System {
    fn new(look_up: LookUp) -> Self {
        Self { permits: Arc::new(Semaphore::new(MAX_LOOK_UPS)), look_up }
    }
}

impl Default for System {
    fn default() -> Self {
        Self::new(look_up)
    }
}

impl Resolve for System {
    fn resolve(&self, host: &str, port: u16) -> Resolving {
        let (host, permits, look_up) = (host.to_owned(), self.permits.clone(), self.look_up);
        Box::pin(async move {
            let permit = permits.acquire_owned().await.expect("the semaphore is never closed");
            let found = spawn_blocking(move || {
                let addresses = look_up(&host, port);
                drop(permit);
                addresses
            });
            found.await.unwrap_or_else(|error| Err(io::Error::other(error)))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::{Condvar, Mutex};
    use std::time::{Duration, Instant};

    use std::future::poll_fn;
    use std::task::Poll;

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

    /// One poll of each, none of which is to be ready
    async fn poll_all(look_ups: &mut [Resolving]) {
        poll_fn(|cx| {
            assert!(look_ups.iter_mut().all(|look_up| look_up.as_mut().poll(cx).is_pending()));
            Poll::Ready(())
        })
        .await;
    }

    #[test]
    fn more_look_ups_than_may_be_under_way_wait_in_order_and_none_is_left_over() {
        let system = System::new(Gate::look_up);
        let client = Client::new().with_proxies(Proxies::none()).with_resolver(system.clone());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let look_up = |kind: &str, number: usize| system.resolve(&format!("{kind}-{number}"), 80);
            let mut under_way: Vec<Resolving> =
                (0..MAX_LOOK_UPS).map(|number| look_up("first", number)).collect();
            poll_all(&mut under_way).await;
            GATE.wait_for(MAX_LOOK_UPS);
            let mut waiting: Vec<Resolving> = (0..3).map(|number| look_up("then", number)).collect();
            poll_all(&mut waiting).await;

            // A call that has to wait does so within its bound, and leaves its place.
            let overrides = Overrides::new().connect_timeout(0.05).max_attempts(1);
            let request = Request::post("http://in-vain.test").overrides(overrides).build();
            let outcome = client.send(request.expect("a request")).await;
            let error = outcome.result.expect_err("a breach");
            let ErrorKind::Timeout(timeout) = error.kind else { panic!("{error}") };
            assert_eq!(timeout.phase, Phase::Connect);
            assert_eq!(GATE.began().len(), MAX_LOOK_UPS);

            let started = Instant::now();
            for number in 0..waiting.len() {
                GATE.let_end(number + 1);
                while GATE.began().len() <= MAX_LOOK_UPS + number {
                    assert!(started.elapsed() < CAP, "a place is free");
                    poll_all(&mut waiting).await;
                    std::thread::yield_now();
                }
                assert_eq!(GATE.began()[MAX_LOOK_UPS + number], format!("then-{number}"));
            }
            assert_eq!(GATE.began().len(), MAX_LOOK_UPS + 3);
            GATE.let_end(usize::MAX);
            for look_up in under_way.into_iter().chain(waiting) {
                assert!(look_up.await.is_ok());
            }
            let free: Vec<_> =
                (0..=MAX_LOOK_UPS).map_while(|_| system.permits.clone().try_acquire_owned().ok()).collect();
            assert_eq!(free.len(), MAX_LOOK_UPS);
            assert!(!GATE.began().contains(&"in-vain.test".to_owned()));
        });
    }
}
