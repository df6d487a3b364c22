//! A pending poll leaves a waker wherever the machine waits; [`Rig::poll`] checks that each time, and
//! this walks through every phase.

use steadfast::call::State;
use steadfast::config::Overrides;

use crate::fake::{Incoming, Open, World};
use crate::rig::{DONE, HEAD, Rig, STOP, millis, text};

#[test]
fn every_phase() {
    let world = World::default();
    let mut rig = Rig::with_body(&world, Overrides::new().max_attempts(2), 1000);
    let state = |rig: &Rig| rig.driver.machine().state();

    rig.assert_pending();
    assert_eq!(state(&rig), State::Connecting);
    rig.wire(|wire| {
        wire.open = Open::Yes;
        wire.room = Some(7);
    });
    rig.assert_pending();
    assert_eq!(state(&rig), State::Waiting);
    assert!(rig.wire(|wire| wire.read_waker.is_some() && wire.write_waker.is_some()));
    rig.wire(|wire| wire.room = None);
    rig.assert_pending();
    assert!(rig.wire(|wire| wire.read_waker.is_some() && wire.write_waker.is_none()));

    rig.wire(|wire| wire.incoming.push_back(Incoming::Eof));
    rig.assert_pending();
    assert_eq!(state(&rig), State::Pausing);
    world.advance(millis(1000));
    rig.assert_pending();
    assert_eq!(state(&rig), State::Connecting);
    rig.wire(|wire| wire.open = Open::Yes);
    rig.assert_pending();
    rig.wire(|wire| wire.push(&HEAD[..20]));
    rig.assert_pending();
    assert_eq!(state(&rig), State::Waiting);
    rig.wire(|wire| wire.push(&HEAD[20..]));
    rig.assert_pending();
    assert_eq!(state(&rig), State::Streaming);
    rig.wire(|wire| wire.push(text("a")));
    assert_eq!(rig.text(), "a");
    rig.assert_pending();
    rig.wire(|wire| wire.push(STOP));
    assert!(rig.run().is_ready());
    rig.assert_pending();
    assert_eq!(state(&rig), State::Finished);
    rig.wire(|wire| wire.push(DONE));
    assert!(rig.outcome().result.is_ok());
    assert_eq!(state(&rig), State::Over);
}

/// A timer that an idle bound has moved on from may still go off; that is no expiry
#[test]
fn unbounded_waits_have_no_timer() {
    let overrides = Overrides::new().stream_idle_timeout(f64::INFINITY);
    let mut rig = Rig::streaming(overrides, &text("a"));
    assert_eq!(rig.text(), "a");
    rig.assert_pending();
    assert_eq!(rig.world.lock().timer, None);
    rig.world.advance(millis(1_000_000_000));
    rig.assert_pending();
}
