//! When a connection goes away.

use steadfast::config::Overrides;
use steadfast::outcome::ErrorKind;

use crate::fake::{Open, Wire, World};
use crate::rig::{DONE, PING, Rig, STOP, millis, text};

fn dropped(world: &World) -> Vec<bool> {
    world.lock().wires.iter().map(|wire| wire.dropped).collect()
}

#[test]
fn the_end_of_the_call_closes() {
    let mut rig = Rig::streaming(Overrides::new(), &(text("a") + STOP + DONE));
    let world = rig.world.clone();
    assert_eq!(rig.text(), "a");
    assert!(rig.run().is_ready());
    assert_eq!(dropped(&world), [false]);
    assert!(rig.outcome().result.is_ok());
    assert_eq!(dropped(&world), [true]);
}

#[test]
fn cancelling_closes_in_every_phase() {
    let sending = || {
        let world = World::default();
        world.lock().wires.push(Wire { open: Open::Yes, room: Some(10), ..Wire::default() });
        Rig::new(&world, Overrides::new())
    };
    let phases: [fn() -> Rig; 4] = [
        || Rig::new(&World::default(), Overrides::new()),
        sending,
        || Rig::waiting(Overrides::new()),
        || Rig::streaming(Overrides::new(), PING),
    ];
    for phase in phases {
        let mut rig = phase();
        let world = rig.world.clone();
        rig.assert_pending();
        assert_eq!(dropped(&world), [false]);
        rig.driver.cancel();
        assert_eq!(rig.failure(), ErrorKind::Cancelled);
        assert_eq!(dropped(&world), [true]);
        world.advance(millis(3_600_000));
        rig.driver.cancel();
        assert!(rig.poll().is_pending());
        assert_eq!(dropped(&world).len(), 1);
    }
}

#[test]
fn dropping_the_driver_closes() {
    let opening = Rig::new(&World::default(), Overrides::new());
    for mut rig in [opening, Rig::streaming(Overrides::new(), PING)] {
        rig.assert_pending();
        let world = rig.world.clone();
        drop(rig);
        assert_eq!(dropped(&world), [true]);
    }
}

#[test]
fn an_attempt_that_is_retried_closes_its_own_connection() {
    let mut rig = Rig::waiting(Overrides::new().request_timeout(1.0).max_attempts(2));
    let world = rig.world.clone();
    world.advance(millis(1000));
    rig.assert_pending();
    assert_eq!(dropped(&world), [true]);
    world.advance(millis(1000));
    rig.assert_pending();
    assert_eq!(dropped(&world), [true, false]);
}
