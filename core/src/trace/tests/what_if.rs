//! The same arrivals under another configuration.

use super::{Drive, HI, STOP, STREAM_HEAD, answered, at, read, stream};
use crate::config::{Overrides, RequestConfig};
use crate::machine::{Ended, Event};
use crate::outcome::{ErrorKind, Outcome, Phase};
use crate::time::Instant;
use crate::trace::{Alternative, Memory, Recorder, WhatIf};

fn what_if(memory: &Memory, overrides: Overrides) -> WhatIf {
    let trace = read(memory);
    let config = trace.config().with(&overrides).unwrap();
    trace.what_if(config).unwrap()
}

#[track_caller]
fn ended(what_if: WhatIf) -> (Outcome, Option<Instant>) {
    match what_if.alternative {
        Alternative::Ended(outcome) => (*outcome, what_if.known_until),
        other @ (Alternative::AnotherConnection { .. } | Alternative::Endless { .. }) => panic!("{other:?}"),
    }
}

#[track_caller]
fn timeout(outcome: &Outcome) -> Phase {
    let error = &outcome.result.as_ref().expect_err("it went well").kind;
    let ErrorKind::Timeout(timeout) = error else { panic!("{error}") };
    timeout.phase
}

/// A stream that goes mute after a delta at 40 ms, and is given up after two seconds
fn mute() -> Memory {
    let memory = Memory::default();
    let overrides = Overrides::new().stream_idle_timeout(2.0).max_attempts(1);
    let mut drive = Drive::new(stream(), overrides, Recorder::new(memory.clone()));
    drive.request(5).receive(30, STREAM_HEAD).receive(40, HI).expire(3);
    assert!(drive.outcome.is_some());
    memory
}

#[test]
fn nothing_changed_ends_the_same_but_not_late() {
    let (outcome, known_until) = ended(what_if(&mute(), Overrides::new()));
    assert_eq!(timeout(&outcome), Phase::StreamIdle);
    assert_eq!((outcome.timeline.ended, known_until), (at(2_040), None));
    assert_eq!(outcome.turn().text(), "Hi");

    let memory = Memory::default();
    let drive = answered(Recorder::new(memory.clone()));
    let (outcome, known_until) = ended(what_if(&memory, Overrides::new()));
    assert_eq!(known_until, None);
    assert_eq!(outcome.timeline, drive.outcome.unwrap().timeline);
}

#[test]
fn a_shorter_bound_ends_it_earlier() {
    let memory = Memory::default();
    let mut drive = Drive::new(stream(), Overrides::new(), Recorder::new(memory.clone()));
    drive.request(0).receive(10, STREAM_HEAD).receive(20, HI).receive(5_000, HI).receive(5_100, STOP);
    let (outcome, known_until) = ended(what_if(&memory, Overrides::new().stream_idle_timeout(1.5)));
    assert_eq!(timeout(&outcome), Phase::StreamIdle);
    assert_eq!((outcome.timeline.ended, known_until), (at(1_520), None));
}

#[test]
fn a_longer_bound_goes_past_what_is_known_and_says_so() {
    let (outcome, known_until) = ended(what_if(&mute(), Overrides::new().stream_idle_timeout(300.0)));
    assert_eq!(timeout(&outcome), Phase::StreamIdle);
    assert_eq!((outcome.timeline.ended, known_until), (at(300_040), Some(at(2_043))));
}

#[test]
fn without_a_bound_it_would_wait_for_ever() {
    let what_if = what_if(&mute(), Overrides::new().stream_idle_timeout(f64::INFINITY));
    assert!(
        matches!(what_if.alternative, Alternative::Endless { since } if since == at(2_043)),
        "{what_if:?}"
    );
    assert_eq!(what_if.known_until, Some(at(2_043)));
}

#[test]
fn a_pause_that_was_an_end_asks_for_a_connection_that_nobody_knows() {
    let memory = Memory::default();
    let mut drive = Drive::new(stream(), Overrides::new().max_attempts(1), Recorder::new(memory.clone()));
    drive.request(0).receive(10, "HTTP/1.1 503 Busy\r\nretry-after: 2\r\ncontent-length: 0\r\n\r\n");
    assert!(drive.outcome.is_some());
    let what_if = what_if(&memory, Overrides::new().max_attempts(2));
    let Alternative::AnotherConnection { at: when, number: 2 } = what_if.alternative else {
        panic!("{what_if:?}")
    };
    assert!(when >= at(2_010) && when <= at(3_010), "{when:?}");
}

#[test]
fn a_connection_keeps_its_distance_to_the_moment_it_was_asked_for() {
    let memory = Memory::default();
    let overrides = Overrides::new().request_timeout(3.0);
    let mut drive = Drive::new(stream(), overrides, Recorder::new(memory.clone()));
    drive.request(0).expire(0).expire(0);
    let asked = drive.deadline.unwrap() - at(3_000);
    let second = asked.as_nanos() as u64 / 1_000_000 + 1;
    drive.connect(second + 10).receive(second + 20, STREAM_HEAD).receive(second + 30, HI);
    drive.receive(second + 40, STOP);
    let recorded = drive.outcome.as_ref().unwrap();
    assert_eq!(recorded.timeline.attempts.len(), 2);
    let (outcome, known_until) = ended(what_if(&memory, Overrides::new().request_timeout(1.0)));
    assert_eq!((outcome.word(), known_until), ("completed", None));
    // The first attempt ends two seconds earlier, and all else with it.
    let gain = recorded.timeline.ended - outcome.timeline.ended;
    assert_eq!(gain.as_millis(), 2_000);
    let (outcome, known_until) = ended(what_if(&memory, Overrides::new().request_timeout(4.0)));
    assert_eq!((outcome.word(), known_until), ("completed", Some(at(3_000))));
}

#[test]
fn the_consumer_takes_its_time_again() {
    let memory = Memory::default();
    let mut drive = Drive::new(stream(), Overrides::new(), Recorder::new(memory.clone()));
    drive.request(0).receive(10, STREAM_HEAD).receive_slowly(20, HI, 3_000);
    drive.receive_slowly(3_030, HI, 4_000).receive(7_040, STOP);
    let recorded = drive.outcome.unwrap().timeline;
    let (outcome, known_until) = ended(what_if(&memory, Overrides::new().stream_idle_timeout(0.5)));
    assert_eq!((outcome.word(), known_until), ("completed", None));
    assert_eq!(outcome.timeline.ended, recorded.ended);
}

#[test]
fn the_caller_gives_up_when_it_did() {
    let memory = Memory::default();
    let mut drive = Drive::new(stream(), Overrides::new(), Recorder::new(memory.clone()));
    drive.request(0).receive(10, STREAM_HEAD).feed(60_000, Event::Cancel);
    let (outcome, _) = ended(what_if(&memory, Overrides::new().stream_idle_timeout(600.0)));
    assert_eq!(outcome.result.unwrap_err().kind, ErrorKind::Cancelled);
    assert_eq!(outcome.timeline.ended, at(60_000));
    let (outcome, _) = ended(what_if(&memory, Overrides::new().stream_idle_timeout(6.0)));
    assert_eq!(timeout(&outcome), Phase::StreamIdle);
}

#[test]
fn bytes_at_the_very_deadline_come_before_it() {
    let memory = Memory::default();
    let mut drive = Drive::new(stream(), Overrides::new(), Recorder::new(memory.clone()));
    drive.request(0).receive(10, STREAM_HEAD).receive(1_010, HI).receive(1_011, STOP);
    let link = drive.link();
    drive.feed(1_012, Event::Eof(link, Ended::Clean));
    let (outcome, _) = ended(what_if(&memory, Overrides::new().stream_idle_timeout(1.0)));
    assert_eq!(outcome.word(), "completed");
    let config = RequestConfig::default().with(&Overrides::new().stream_idle_timeout(0.999)).unwrap();
    let (outcome, _) = ended(read(&memory).what_if(config).unwrap());
    assert_eq!(timeout(&outcome), Phase::StreamIdle);
}
