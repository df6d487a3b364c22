//! Any sequence of operations, against a model that is slow and plain.

use std::num::NonZeroUsize;
use std::time::Duration;

use proptest::prelude::*;

use crate::pool::{Checkout, ConnectionId, Decision, Lease, Pool, Settings, Ticket, Want};
use crate::time::{Bound, Instant};

#[derive(Clone, Copy, Debug)]
enum Operation {
    Checkout(u8, bool),
    /// Of those that are handed out, the one at this place
    Keep(usize),
    Finish(usize, u64),
    /// Of all there are, the one at this place
    Closed(usize),
    Stale(usize),
    /// Of those that are finishing, the one at this place
    Ended(usize),
    /// Of those who wait, the one at this place
    GiveUp(usize),
    Later(u64),
    CloseIdle,
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        6 => (0..2_u8, prop::bool::weighted(0.2)).prop_map(|(key, new)| Operation::Checkout(key, new)),
        4 => any::<usize>().prop_map(Operation::Keep),
        2 => (any::<usize>(), 1..5_u64).prop_map(|(at, until)| Operation::Finish(at, until)),
        1 => any::<usize>().prop_map(Operation::Closed),
        1 => any::<usize>().prop_map(Operation::Stale),
        2 => any::<usize>().prop_map(Operation::Ended),
        1 => any::<usize>().prop_map(Operation::GiveUp),
        2 => (0..6_u64).prop_map(Operation::Later),
        1 => Just(Operation::CloseIdle),
    ]
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    InUse { reused: bool },
    Idle { since: u64 },
    Finishing { until: u64 },
}

/// Everything in one list each, in the order in which it came to be what it is
struct Model {
    idle_timeout: u64,
    max_idle: usize,
    cap: Option<usize>,
    connections: Vec<(ConnectionId, u8, Doing)>,
    waiting: Vec<(Ticket, u8, bool)>,
    /// Every name that was ever handed out to be opened
    seen: Vec<ConnectionId>,
    now: u64,
}

impl Model {
    fn of(&self, key: u8) -> Vec<(ConnectionId, Doing)> {
        self.connections.iter().filter(|(_, of, _)| *of == key).map(|(id, _, doing)| (*id, *doing)).collect()
    }

    fn idle(&self, key: u8) -> Vec<ConnectionId> {
        self.of(key)
            .iter()
            .filter(|(_, doing)| matches!(doing, Doing::Idle { .. }))
            .map(|(id, _)| *id)
            .collect()
    }

    fn pick(&self, at: usize, which: impl Fn(Doing) -> bool) -> Option<ConnectionId> {
        let of: Vec<_> = self.connections.iter().filter(|(_, _, doing)| which(*doing)).collect();
        (!of.is_empty()).then(|| of[at % of.len()].0)
    }

    fn remove(&mut self, id: ConnectionId) -> (u8, Doing) {
        let at = self.connections.iter().position(|(of, ..)| *of == id).expect("one that is there");
        let (_, key, doing) = self.connections.remove(at);
        (key, doing)
    }

    /// The connection comes to do something else, as the last of its kind
    fn set(&mut self, id: ConnectionId, doing: Doing) {
        let (key, _) = self.remove(id);
        self.connections.push((id, key, doing));
    }

    fn is_full(&self, key: u8) -> bool {
        self.cap.is_some_and(|cap| self.of(key).len() >= cap)
    }

    /// Checks that this lease is the right one, and takes it
    fn take(&mut self, key: u8, new: bool, lease: Lease) {
        match lease {
            Lease::Reuse(id) => {
                assert!(!new, "a new one was wanted");
                assert_eq!(self.idle(key).last(), Some(&id), "the one used last");
                self.set(id, Doing::InUse { reused: true });
            }
            Lease::Open(id) => {
                assert!(!self.seen.contains(&id), "{id:?} twice");
                assert!(new || self.idle(key).is_empty(), "one is idle");
                assert!(!self.is_full(key), "the cap");
                self.seen.push(id);
                self.connections.push((id, key, Doing::InUse { reused: false }));
            }
        }
    }

    /// Checks what the pool decided, and that nothing is left that it should have decided
    fn follow(&mut self, pool: &mut Pool<u8>) {
        while let Some(decision) = pool.next_decision() {
            match decision {
                Decision::Close(id) => {
                    assert!(!matches!(self.remove(id).1, Doing::InUse { .. }), "{id:?} is in use");
                }
                Decision::Grant(ticket, lease) => {
                    let key = self.waiting.iter().find(|(of, ..)| *of == ticket).expect("one who waits").1;
                    let first = self.waiting.iter().position(|(_, of, _)| *of == key).expect("someone");
                    let (of, _, new) = self.waiting.remove(first);
                    assert_eq!(of, ticket, "out of line");
                    self.take(key, new, lease);
                }
            }
        }
        for key in 0..2 {
            if let Some((_, _, new)) = self.waiting.iter().find(|(_, of, _)| *of == key) {
                assert!(self.is_full(key), "someone waits though there is room");
                assert!(self.idle(key).is_empty(), "someone waits (for a new one: {new}) though one is idle");
            }
            assert!(self.cap.is_none_or(|cap| self.of(key).len() <= cap));
            assert!(self.idle(key).len() <= self.max_idle);
        }
        let statistics = pool.statistics();
        let count = |which: fn(Doing) -> bool| self.connections.iter().filter(|(.., of)| which(*of)).count();
        assert_eq!(
            [statistics.in_use, statistics.idle, statistics.finishing, statistics.waiting],
            [
                count(|doing| matches!(doing, Doing::InUse { .. })),
                count(|doing| matches!(doing, Doing::Idle { .. })),
                count(|doing| matches!(doing, Doing::Finishing { .. })),
                self.waiting.len()
            ]
        );
        assert_eq!(statistics.opened, self.seen.len() as u64);
        let due = self.connections.iter().filter_map(|(_, _, doing)| self.due(*doing)).min();
        assert_eq!(pool.deadline(), due.map(Instant::from_nanos));
    }

    fn due(&self, doing: Doing) -> Option<u64> {
        match doing {
            Doing::InUse { .. } => None,
            Doing::Idle { since } => Some(since + self.idle_timeout),
            Doing::Finishing { until } => Some(until),
        }
    }

    fn assert_nothing_is_overdue(&self) {
        for (id, _, doing) in &self.connections {
            assert!(self.due(*doing).is_none_or(|due| due > self.now), "{id:?} {doing:?} at {}", self.now);
        }
    }

    fn play(&mut self, pool: &mut Pool<u8>, operation: Operation) {
        let now = Instant::from_nanos(self.now);
        match operation {
            Operation::Checkout(key, new) => {
                let checkout = pool.checkout(now, &key, if new { Want::New } else { Want::Any });
                match checkout {
                    Checkout::Now(lease) => {
                        assert!(!self.waiting.iter().any(|(_, of, _)| *of == key), "someone was overtaken");
                        // What makes room for a new one is closed before it is opened.
                        if let Some(Decision::Close(id)) = pool.next_decision() {
                            assert_eq!((new, self.idle(key).first()), (true, Some(&id)));
                            self.remove(id);
                        }
                        self.take(key, new, lease);
                    }
                    Checkout::Wait(ticket) => self.waiting.push((ticket, key, new)),
                }
            }
            Operation::Keep(at) => {
                let Some(id) = self.pick(at, |doing| matches!(doing, Doing::InUse { .. })) else { return };
                assert!(pool.keep(now, id));
                self.set(id, Doing::Idle { since: self.now });
            }
            Operation::Finish(at, within) => {
                let Some(id) = self.pick(at, |doing| matches!(doing, Doing::InUse { .. })) else { return };
                let until = self.now + within;
                assert!(pool.finish(id, Some(Instant::from_nanos(until))));
                self.set(id, Doing::Finishing { until });
                assert!(!pool.keep(now, id), "{id:?} is not in use");
            }
            Operation::Closed(at) => {
                let Some(id) = self.pick(at, |_| true) else { return };
                pool.closed(id);
                self.remove(id);
                assert!(!pool.keep(now, id) && !pool.finish(id, None) && !pool.ended(now, id));
            }
            Operation::Stale(at) => {
                let Some(id) = self.pick(at, |doing| doing == Doing::InUse { reused: true }) else { return };
                pool.stale(id);
                self.remove(id);
            }
            Operation::Ended(at) => {
                let Some(id) = self.pick(at, |doing| matches!(doing, Doing::Finishing { .. })) else {
                    return;
                };
                assert!(pool.ended(now, id));
                self.set(id, Doing::Idle { since: self.now });
            }
            Operation::GiveUp(at) => {
                if self.waiting.is_empty() {
                    return;
                }
                let (ticket, ..) = self.waiting.remove(at % self.waiting.len());
                pool.give_up(ticket);
            }
            Operation::Later(by) => {
                self.now += by;
                pool.elapsed(Instant::from_nanos(self.now));
            }
            Operation::CloseIdle => pool.close_idle(),
        }
        self.follow(pool);
        if let Operation::Later(_) = operation {
            self.assert_nothing_is_overdue();
        }
        if let Operation::CloseIdle = operation {
            assert!(self.connections.iter().all(|(_, _, doing)| matches!(doing, Doing::InUse { .. })));
        }
    }
}

proptest! {
    #[test]
    fn no_sequence_hands_one_out_twice_leaks_one_or_serves_out_of_line(
        operations in prop::collection::vec(operation(), 0..120),
        cap in prop::option::of(1..4_usize),
        max_idle in 1..4_usize,
        idle_timeout in 1..9_u64,
    ) {
        let mut pool = Pool::new(Settings {
            idle_timeout: Bound::Limited(Duration::from_nanos(idle_timeout)),
            max_idle,
            max_connections: cap.and_then(NonZeroUsize::new),
        });
        let (connections, waiting, seen) = (Vec::new(), Vec::new(), Vec::new());
        let mut model = Model { idle_timeout, max_idle, cap, connections, waiting, seen, now: 0 };
        for operation in operations {
            model.play(&mut pool, operation);
        }
        // In the end all goes, and nothing is left of it.
        while !model.waiting.is_empty() {
            model.play(&mut pool, Operation::GiveUp(0));
        }
        while !model.connections.is_empty() {
            model.play(&mut pool, Operation::Closed(0));
        }
        prop_assert!(pool.connections.is_empty() && pool.origins.is_empty());
        prop_assert_eq!(pool.deadline(), None);
    }
}
