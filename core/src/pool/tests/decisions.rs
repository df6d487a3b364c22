//! What is decided when.

use std::num::NonZeroUsize;
use std::time::Duration;

use crate::pool::{Checkout, ConnectionId, Decision, Lease, Pool, Settings, Statistics, Ticket, Want};
use crate::time::{Bound, Instant};

const A: &str = "https://a.example";
const B: &str = "https://b.example";

fn at(seconds: u64) -> Instant {
    Instant::from_nanos(seconds * 1_000_000_000)
}

fn pool() -> Pool<&'static str> {
    Pool::new(Settings::default())
}

fn capped(cap: usize) -> Pool<&'static str> {
    Pool::new(Settings { max_connections: NonZeroUsize::new(cap), ..Settings::default() })
}

fn open(pool: &mut Pool<&'static str>, key: &'static str) -> ConnectionId {
    match pool.checkout(at(0), &key, Want::Any) {
        Checkout::Now(Lease::Open(id)) => id,
        other @ (Checkout::Now(Lease::Reuse(_)) | Checkout::Wait(_)) => panic!("{other:?}"),
    }
}

fn wait(pool: &mut Pool<&'static str>, want: Want) -> Ticket {
    match pool.checkout(at(0), &A, want) {
        Checkout::Wait(ticket) => ticket,
        other @ Checkout::Now(_) => panic!("{other:?}"),
    }
}

fn reused(id: ConnectionId) -> Checkout {
    Checkout::Now(Lease::Reuse(id))
}

fn decisions(pool: &mut Pool<&'static str>) -> Vec<Decision> {
    std::iter::from_fn(|| pool.next_decision()).collect()
}

#[test]
fn the_one_used_last_is_used_next_and_only_for_its_origin() {
    let mut pool = pool();
    let [first, second, other] = [open(&mut pool, A), open(&mut pool, A), open(&mut pool, B)];
    assert!(pool.keep(at(1), second) && pool.keep(at(2), first) && pool.keep(at(3), other));
    assert_eq!(pool.checkout(at(4), &A, Want::Any), reused(first));
    assert_eq!(pool.checkout(at(4), &A, Want::Any), reused(second));
    assert!(matches!(pool.checkout(at(4), &A, Want::Any), Checkout::Now(Lease::Open(_))));
    assert_eq!(pool.checkout(at(4), &B, Want::Any), reused(other));
    assert_eq!(decisions(&mut pool), []);
    let statistics = pool.statistics();
    assert_eq!((statistics.opened, statistics.reused, statistics.in_use), (4, 3, 4));
}

#[test]
fn whoever_wants_a_new_one_gets_that() {
    let mut pool = pool();
    let id = open(&mut pool, A);
    assert!(pool.keep(at(0), id));
    assert!(matches!(pool.checkout(at(0), &A, Want::New), Checkout::Now(Lease::Open(_))));
    // At the cap an idle one makes room for it.
    let mut pool = capped(1);
    let id = open(&mut pool, A);
    assert!(pool.keep(at(0), id));
    assert!(matches!(pool.checkout(at(0), &A, Want::New), Checkout::Now(Lease::Open(_))));
    assert_eq!(decisions(&mut pool), [Decision::Close(id)]);
}

#[test]
fn an_idle_connection_is_closed_at_its_bound() {
    let mut pool = pool();
    let [first, second] = [open(&mut pool, A), open(&mut pool, A)];
    assert_eq!(pool.deadline(), None);
    assert!(pool.keep(at(1), first) && pool.keep(at(5), second));
    assert_eq!(pool.deadline(), Some(at(61)));
    pool.elapsed(at(60));
    assert_eq!(decisions(&mut pool), []);
    pool.elapsed(at(61));
    assert_eq!(decisions(&mut pool), [Decision::Close(first)]);
    assert_eq!(pool.deadline(), Some(at(65)));
    // Nobody reported that time: whoever asks does not get it all the same.
    assert!(matches!(pool.checkout(at(65), &A, Want::Any), Checkout::Now(Lease::Open(_))));
    assert_eq!(decisions(&mut pool), [Decision::Close(second)]);
    assert_eq!(pool.statistics().expired, 2);
    // It starts afresh with each use.
    let id = open(&mut pool, B);
    assert!(pool.keep(at(70), id));
    assert_eq!(pool.checkout(at(100), &B, Want::Any), reused(id));
    assert!(pool.keep(at(101), id));
    assert_eq!(pool.deadline(), Some(at(161)));
}

/// `Keep-Alive: timeout=5` says when the server closes it, and a request must not meet that on its way
#[test]
fn what_the_server_keeps_for_less_is_closed_before() {
    let mut pool = pool();
    let secs = |seconds| Some(Duration::from_secs(seconds));
    let id = open(&mut pool, A);
    pool.kept_for(id, secs(5));
    assert!(pool.keep(at(10), id));
    assert_eq!(pool.deadline(), Some(at(14)));
    assert_eq!(pool.checkout(at(13), &A, Want::Any), reused(id));
    // The next response says nothing, and then so long that the pool's own bound is shorter.
    for says in [None, secs(600)] {
        pool.kept_for(id, says);
        assert!(pool.keep(at(20), id));
        assert_eq!(pool.deadline(), Some(at(80)));
        // It is too late for one that is idle.
        pool.kept_for(id, secs(5));
        assert_eq!(pool.deadline(), Some(at(80)));
        assert_eq!(pool.checkout(at(21), &A, Want::Any), reused(id));
    }
    // So soon that it is of no use.
    pool.kept_for(id, secs(1));
    assert!(pool.keep(at(30), id));
    assert!(matches!(pool.checkout(at(30), &A, Want::Any), Checkout::Now(Lease::Open(_))));
    assert_eq!(decisions(&mut pool), [Decision::Close(id)]);
    // Without a bound of the pool's, the server's holds; a message that has yet to end keeps it.
    let mut unbounded = Pool::new(Settings { idle_timeout: Bound::Unbounded, ..Settings::default() });
    let id = open(&mut unbounded, A);
    unbounded.kept_for(id, secs(5));
    assert!(unbounded.finish(id, None) && unbounded.ended(at(50), id));
    assert_eq!(unbounded.deadline(), Some(at(54)));
}

#[test]
fn without_a_bound_nothing_grows_too_old() {
    let mut pool = Pool::new(Settings { idle_timeout: Bound::Unbounded, ..Settings::default() });
    let id = open(&mut pool, A);
    assert!(pool.keep(at(1), id));
    assert_eq!(pool.deadline(), None);
    assert_eq!(pool.checkout(at(1_000_000), &A, Want::Any), reused(id));
}

#[test]
fn the_oldest_is_closed_where_there_are_too_many() {
    let mut pool = Pool::new(Settings { max_idle: 2, ..Settings::default() });
    let ids = [open(&mut pool, A), open(&mut pool, A), open(&mut pool, A), open(&mut pool, B)];
    for id in ids {
        assert!(pool.keep(at(1), id));
    }
    assert_eq!(decisions(&mut pool), [Decision::Close(ids[0])]);
    assert_eq!(pool.statistics().idle, 3);
}

#[test]
fn a_finishing_connection_is_used_once_its_message_has_ended() {
    let mut pool = pool();
    let [ends, does_not, breaks] = [open(&mut pool, A), open(&mut pool, A), open(&mut pool, A)];
    for id in [ends, does_not, breaks] {
        assert!(pool.finish(id, Some(at(2))));
    }
    assert_eq!(pool.finishing(&A).collect::<Vec<_>>(), [ends, does_not, breaks]);
    let another = open(&mut pool, A);
    pool.closed(another);
    assert!(pool.ended(at(1), ends));
    pool.closed(breaks);
    assert_eq!(pool.deadline(), Some(at(2)));
    pool.elapsed(at(2));
    assert_eq!(decisions(&mut pool), [Decision::Close(does_not)]);
    assert_eq!((pool.statistics().unfinished, pool.statistics().idle), (2, 1));
    assert_eq!(pool.checkout(at(2), &A, Want::Any), reused(ends));
    // After that nothing is known of it, and what is late changes nothing.
    assert!(!pool.ended(at(3), does_not) && !pool.keep(at(3), does_not) && !pool.finish(does_not, None));
    pool.closed(does_not);
    assert_eq!(pool.statistics().in_use, 1);
}

#[test]
fn without_a_bound_a_message_may_take_its_time() {
    let mut pool = pool();
    let id = open(&mut pool, A);
    assert!(pool.finish(id, None));
    assert_eq!(pool.deadline(), None);
    pool.elapsed(at(1_000_000));
    assert!(pool.ended(at(1_000_000), id));
}

#[test]
fn at_the_cap_whoever_came_first_is_served_first() {
    let mut pool = capped(2);
    let [first, second] = [open(&mut pool, A), open(&mut pool, A)];
    // Another origin has a cap of its own.
    open(&mut pool, B);
    let tickets = [Want::Any, Want::Any, Want::New, Want::Any].map(|want| wait(&mut pool, want));
    assert_eq!((pool.statistics().waiting, pool.statistics().waited), (4, 4));
    pool.give_up(tickets[1]);
    assert_eq!(decisions(&mut pool), []);
    assert!(pool.keep(at(1), second));
    assert_eq!(decisions(&mut pool), [Decision::Grant(tickets[0], Lease::Reuse(second))]);
    // The next in line wants a new one, so the one that comes back makes room for it.
    assert!(pool.keep(at(2), first));
    let closed_and_opened = decisions(&mut pool);
    let [Decision::Close(closed), Decision::Grant(to, Lease::Open(opened))] = closed_and_opened[..] else {
        panic!("{closed_and_opened:?}");
    };
    assert_eq!((closed, to), (first, tickets[2]));
    // One that breaks makes room as well.
    pool.closed(opened);
    assert!(matches!(decisions(&mut pool)[..], [Decision::Grant(to, Lease::Open(_))] if to == tickets[3]));
    assert_eq!(pool.statistics().waiting, 0);
    // Giving up what was granted changes nothing.
    pool.give_up(tickets[0]);
    assert_eq!(pool.statistics().in_use, 3);
}

#[test]
fn a_finishing_connection_counts_until_it_ends() {
    for ends in [true, false] {
        let mut pool = capped(1);
        let id = open(&mut pool, A);
        assert!(pool.finish(id, Some(at(1))));
        let ticket = wait(&mut pool, Want::Any);
        if ends {
            assert!(pool.ended(at(1), id));
            assert_eq!(decisions(&mut pool), [Decision::Grant(ticket, Lease::Reuse(id))]);
        } else {
            pool.elapsed(at(1));
            let decisions = decisions(&mut pool);
            assert_eq!(decisions.len(), 2, "{decisions:?}");
            assert!(decisions.contains(&Decision::Close(id)));
            assert!(
                decisions.iter().any(|of| matches!(of, Decision::Grant(to, Lease::Open(_)) if *to == ticket))
            );
        }
    }
}

#[test]
fn a_stale_one_was_not_reused() {
    let mut pool = capped(1);
    let id = open(&mut pool, A);
    assert!(pool.keep(at(0), id));
    assert_eq!(pool.checkout(at(1), &A, Want::Any), reused(id));
    pool.stale(id);
    assert!(matches!(pool.checkout(at(1), &A, Want::Any), Checkout::Now(Lease::Open(_))));
    let statistics = pool.statistics();
    assert_eq!((statistics.opened, statistics.reused, statistics.lost), (2, 0, 1));
}

#[test]
fn what_is_not_in_use_can_be_closed() {
    let mut pool = capped(3);
    let [idle, finishing, in_use] = [open(&mut pool, A), open(&mut pool, A), open(&mut pool, A)];
    assert!(pool.keep(at(0), idle) && pool.finish(finishing, None));
    pool.close_idle();
    assert_eq!(decisions(&mut pool), [Decision::Close(idle), Decision::Close(finishing)]);
    assert_eq!((pool.statistics().in_use, pool.statistics().idle, pool.statistics().finishing), (1, 0, 0));
    assert!(pool.keep(at(0), in_use));
    pool.closed(in_use);
    let nothing_left = Statistics { opened: 3, lost: 1, ..Statistics::default() };
    assert_eq!(pool.statistics(), nothing_left);
    assert!(pool.origins.is_empty() && pool.connections.is_empty());
}
