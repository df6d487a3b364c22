//! Arrived beats expired; one look, then the clock.

use std::task::Poll;

use steadfast::config::Overrides;
use steadfast::machine::{FailureKind, IoFailure, Stage};
use steadfast::outcome::{ErrorKind, Note, Phase, Timeout};
use steadfast_driver::{Output, Piece};

use crate::fake::{Open, World};
use crate::rig::{DONE, PING, Rig, STOP, millis, text};

fn idle(millis: f64) -> Overrides {
    Overrides::new().stream_idle_timeout(millis / 1000.0).max_attempts(1)
}

#[test]
fn bytes_that_the_reactor_has_not_heard_of_are_not_late() {
    for turns_are_blind in [false, true] {
        let mut rig = Rig::streaming(idle(150.0), &text("a"));
        assert_eq!(rig.text(), "a");
        rig.assert_pending();
        rig.world.lock().turns_are_blind = turns_are_blind;
        rig.wire(|wire| {
            wire.push(text("b"));
            wire.unseen = true;
        });
        rig.world.advance(millis(300));

        // The reactor gets its turn first, which is another poll.
        assert!(rig.poll().is_pending());
        assert_eq!((rig.wakes(), rig.wire(|wire| wire.looks)), (1, 0));
        assert_eq!(rig.text(), "b");
        assert_eq!((rig.turns(), rig.wire(|wire| wire.looks)), (1, 1));
    }
}

#[test]
fn silence_is_a_breach_at_the_bound_and_after_one_look() {
    let mut rig = Rig::streaming(idle(150.0), &text("a"));
    assert_eq!(rig.text(), "a");
    rig.assert_pending();
    rig.world.advance(millis(149));
    rig.assert_pending();
    assert_eq!(rig.wire(|wire| wire.looks), 0);

    rig.world.advance(millis(1));
    let limit = millis(150);
    let breach = Timeout { phase: Phase::StreamIdle, elapsed: limit, limit, setting: "stream_idle_timeout" };
    assert_eq!(rig.failure(), ErrorKind::Timeout(breach));
    assert_eq!((rig.turns(), rig.wire(|wire| wire.looks)), (1, 1));
}

#[test]
fn each_deadline_is_looked_at_for_itself() {
    let mut rig = Rig::streaming(idle(100.0), &text("a"));
    assert_eq!(rig.text(), "a");
    for letter in ["b", "c", "d"] {
        rig.assert_pending();
        rig.wire(|wire| {
            wire.push(text(letter));
            wire.unseen = true;
        });
        rig.world.lock().turns_are_blind = true;
        rig.world.advance(millis(200));
        assert_eq!(rig.text(), letter);
    }
    rig.assert_pending();
    assert_eq!(rig.wire(|wire| wire.looks), 3);
}

#[test]
fn a_connection_that_the_reactor_has_not_heard_of_is_not_late() {
    let world = World::default();
    let mut rig = Rig::new(&world, Overrides::new().connect_timeout(0.15).max_attempts(1));
    rig.assert_pending();
    rig.wire(|wire| wire.open = Open::Unseen);
    world.advance(millis(300));
    rig.assert_pending();
    assert!(rig.wire(|wire| wire.outgoing.starts_with(b"POST ")));
}

#[test]
fn a_connection_that_never_opens_is_late_at_the_bound() {
    let world = World::default();
    let mut rig = Rig::new(&world, Overrides::new().connect_timeout(0.15).max_attempts(1));
    rig.assert_pending();
    world.advance(millis(150));
    let ErrorKind::Timeout(timeout) = rig.failure() else { panic!("no timeout") };
    assert_eq!((timeout.phase, timeout.elapsed), (Phase::Connect, millis(150)));
    assert!(rig.wire(|wire| wire.dropped || wire.outgoing.is_empty()));
}

#[test]
fn a_connection_that_failed_unheard_of_is_no_timeout() {
    let world = World::default();
    let mut rig = Rig::new(&world, Overrides::new().connect_timeout(0.15).max_attempts(1));
    rig.assert_pending();
    let failure =
        IoFailure { stage: Stage::Connect, kind: FailureKind::Refused, message: "refused".to_owned() };
    rig.wire(|wire| wire.open = Open::Failed(failure.clone()));
    world.advance(millis(300));
    assert_eq!(rig.failure(), ErrorKind::Transport(failure));
}

#[test]
fn endless_pings_do_not_outlive_after_marker() {
    let mut rig = Rig::streaming(Overrides::new().after_marker(0.2), &(text("a") + STOP));
    assert_eq!(rig.text(), "a");
    assert!(matches!(rig.run(), Poll::Ready(Output::Item(Piece::Finished))));
    rig.assert_pending();
    rig.wire(|wire| wire.endless = Some(PING.into()));
    rig.world.advance(millis(200));
    let outcome = rig.outcome();
    assert!(outcome.result.is_ok());
    assert_eq!(outcome.timeline.elapsed(), millis(200));
    assert_eq!(rig.wire(|wire| wire.looks), 1);
}

/// Events of an unknown kind are delivered, so that the consumer comes back between look and clock
#[test]
fn endless_unknown_events_do_not_outlive_after_marker() {
    let mut rig = Rig::streaming(Overrides::new().after_marker(0.2), &(text("a") + STOP));
    assert_eq!(rig.text(), "a");
    assert!(matches!(rig.run(), Poll::Ready(Output::Item(Piece::Finished))));
    rig.assert_pending();
    rig.wire(|wire| wire.endless = Some("event: heartbeat\ndata: {\"beat\":1}\n\n".into()));
    rig.world.advance(millis(200));
    let mut unknown = 0;
    let outcome = loop {
        match rig.run() {
            Poll::Ready(Output::Item(Piece::Unknown { .. })) if unknown < 1000 => unknown += 1,
            Poll::Ready(Output::Done(outcome)) => break outcome,
            other => panic!("after {unknown} unknown events: {other:?}"),
        }
    };
    assert!(outcome.result.is_ok());
    assert_eq!((unknown, rig.wire(|wire| wire.looks)), (1, 1));
}

/// The consumer comes and goes between look and clock, and is given no content
#[test]
fn endless_unknown_events_do_not_outlive_content_idle() {
    let overrides = Overrides::new().content_idle_timeout(0.2).max_attempts(1);
    let mut rig = Rig::streaming(overrides, &text("a"));
    assert_eq!(rig.text(), "a");
    rig.assert_pending();
    rig.world.advance(millis(200));
    rig.wire(|wire| wire.endless = Some("event: heartbeat\ndata: {\"beat\":1}\n\n".into()));
    let mut unknown = 0;
    let kind = loop {
        match rig.run() {
            Poll::Ready(Output::Item(Piece::Unknown { .. })) if unknown < 1000 => unknown += 1,
            Poll::Ready(Output::Done(outcome)) => break outcome.result.expect_err("a breach").kind,
            other => panic!("after {unknown} unknown events: {other:?}"),
        }
        rig.world.advance(millis(7));
    };
    let (elapsed, limit) = (millis(207), millis(200));
    let breach = Timeout { phase: Phase::ContentIdle, elapsed, limit, setting: "content_idle_timeout" };
    assert_eq!(kind, ErrorKind::Timeout(breach));
    assert_eq!((unknown, rig.wire(|wire| wire.looks)), (1, 1));
}

#[test]
fn endless_content_does_not_outlive_stream_deadline() {
    let mut rig = Rig::streaming(Overrides::new().stream_deadline(1.0).max_attempts(1), &text("a"));
    assert_eq!(rig.text(), "a");
    rig.wire(|wire| wire.endless = Some(text("b").into()));
    for _ in 0..1000 {
        assert_eq!(rig.text(), "b");
    }
    rig.world.advance(millis(1000));
    assert_eq!(rig.text(), "b");
    let outcome = rig.outcome();
    let error = outcome.result.expect_err("a breach");
    let limit = millis(1000);
    let breach = Timeout { phase: Phase::Deadline, elapsed: limit, limit, setting: "stream_deadline" };
    assert_eq!(error.kind, ErrorKind::Timeout(breach));
    assert_eq!(error.turn.text(), format!("a{}", "b".repeat(1001)));
}

#[test]
fn what_came_while_the_consumer_was_away_is_taken_after_the_bound() {
    let usage = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2}}\n\n";
    let mut rig = Rig::streaming(Overrides::new().after_marker(0.2), &(text("a") + STOP));
    assert_eq!(rig.text(), "a");
    assert!(matches!(rig.run(), Poll::Ready(Output::Item(Piece::Finished))));
    rig.wire(|wire| wire.push(usage.to_owned() + DONE));
    rig.world.advance(millis(10_000));
    let completion = rig.outcome().result.expect("a success");
    assert_eq!(completion.turn.usage.and_then(|usage| usage.output_tokens), Some(2));
}

#[test]
fn a_held_open_stream_is_noted() {
    let mut rig = Rig::streaming(Overrides::new().after_marker(0.2), &(text("a") + STOP));
    assert_eq!(rig.text(), "a");
    assert!(matches!(rig.run(), Poll::Ready(Output::Item(Piece::Finished))));
    rig.assert_pending();
    rig.world.advance(millis(200));
    let outcome = rig.outcome();
    assert!(outcome.result.is_ok());
    assert_eq!(outcome.timeline.notes, [Note::MissingSentinel]);
}
