//! Fairness: the driver's own cap on rounds, and a runtime that makes what is ready look pending.

use std::task::Poll;

use steadfast::config::Overrides;
use steadfast_driver::{MAX_ROUNDS_PER_POLL, Output, Piece};

use crate::fake::{Open, World};
use crate::rig::{DONE, PING, Rig, STOP, millis, text};

/// Wherever the cap falls, what the last round brought is neither lost nor told twice
#[test]
fn nothing_is_lost_where_the_rounds_of_a_poll_end() {
    for pings in 0..2 * MAX_ROUNDS_PER_POLL + 8 {
        let mut rig = Rig::streaming(Overrides::new(), PING);
        rig.wire(|wire| {
            for _ in 0..pings {
                wire.push(PING);
            }
            wire.push(text("a") + &text("b"));
            wire.push(STOP);
            for _ in 0..pings {
                wire.push(PING);
            }
            wire.push(DONE);
        });
        assert_eq!([rig.text(), rig.text()], ["a", "b"], "after {pings} pings");
        assert!(matches!(rig.run(), Poll::Ready(Output::Item(Piece::Finished))));
        assert!(rig.outcome().result.is_ok());
        let polls_cut_short = rig.wakes();
        assert!(polls_cut_short <= 2 * (pings / MAX_ROUNDS_PER_POLL + 1), "{polls_cut_short} for {pings}");
    }
}

#[test]
fn a_poll_ends_though_the_server_never_does() {
    let mut rig = Rig::streaming(Overrides::new(), PING);
    rig.wire(|wire| wire.endless = Some(PING.into()));
    for polls in 1..=10 {
        assert!(rig.poll().is_pending());
        assert_eq!(rig.wakes(), polls);
    }
}

#[test]
fn an_exhausted_budget_is_no_silence() {
    let overrides = Overrides::new().stream_idle_timeout(0.15).max_attempts(1);
    let mut rig = Rig::streaming(overrides, &text("a"));
    assert_eq!(rig.text(), "a");
    rig.assert_pending();
    rig.wire(|wire| wire.push(text("b")));
    rig.world.lock().budget = Some(0);
    rig.world.advance(millis(300));
    assert_eq!(rig.text(), "b");
}

#[test]
fn an_exhausted_budget_does_not_hide_an_open_connection() {
    let world = World::default();
    let mut rig = Rig::new(&world, Overrides::new().connect_timeout(0.15).max_attempts(1));
    rig.assert_pending();
    rig.wire(|wire| wire.open = Open::Yes);
    world.lock().budget = Some(0);
    world.advance(millis(300));
    assert!(rig.poll().is_pending());
    assert!(rig.poll().is_pending());
    assert!(rig.wire(|wire| wire.outgoing.starts_with(b"POST ")));
}
