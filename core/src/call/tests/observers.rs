//! What observers are told, step by step, with its time.

use std::sync::{Arc, Mutex};

use super::play::{Play, START, ms};
use super::wire::{Answer, STREAM_HEAD, chunk, response};
use crate::call::{Observation, Observer};
use crate::config::Overrides;
use crate::dialect::Dialect;
use crate::machine::Misuse;
use crate::time::Instant;

const CHAT: Dialect = Dialect::OpenAiChat;

/// The steps in a few words, with their times in milliseconds
fn in_words(told: &Arc<Mutex<Vec<String>>>) -> impl Observer + 'static {
    let told = Arc::clone(told);
    move |at: Instant, seen: &Observation<'_>| {
        let words = match *seen {
            Observation::AttemptBegan { attempt } => format!("attempt {attempt}"),
            Observation::PhaseBegan { kind, .. } => format!("{}…", kind.name()),
            Observation::PhaseEnded(span) => format!("{}: {}", span.kind.name(), span.reason),
            Observation::FirstByte { .. } => "first byte".to_owned(),
            Observation::Head { status, .. } => format!("head {status}"),
            Observation::FirstDelta { .. } => "first delta".to_owned(),
            Observation::Terminal { reason, .. } => format!("whole: {reason}"),
            Observation::Breached(timeout) => format!("breach of {}", timeout.setting),
            Observation::AttemptEnded(record) => format!("attempt {} over", record.number),
            Observation::Pausing { pause, failure, retry_after, .. } => {
                format!("pausing {pause:?} after {} ({retry_after:?})", failure.name())
            }
            Observation::Over(outcome) => format!("over: {}", outcome.word()),
        };
        told.lock().unwrap().push(format!("{} {words}", (at - START).as_millis()));
    }
}

#[test]
fn a_retried_stream_is_told_step_by_step() {
    let told = Arc::default();
    let mut play = Play::stream(CHAT, Overrides::new().stream_idle_timeout(2.0));
    play.call.observe(in_words(&told)).unwrap();
    let mut play = play.start();
    play.at(10).request().receive(response("503 Busy", &["retry-after-ms: 1000"], ""));
    let paused = play.deadline().unwrap().0;
    play.expire();
    let second = paused.as_millis() as u64;
    play.at(second + 5).request().receive(STREAM_HEAD);
    play.at(second + 30).receive(chunk(CHAT.text("Hi")));
    play.at(second + 60).receive(chunk(CHAT.terminal()));
    play.at(second + 70).receive(chunk(CHAT.sentinel().unwrap()));
    assert!(play.watch.is_over());
    let pause = paused - ms(10);
    let mut expected: Vec<String> = ["0 attempt 1", "0 connect…", "10 connect: done", "10 request…"]
        .into_iter()
        .chain(["10 first byte", "10 head 503", "10 request: done", "10 body…", "10 body: status 503"])
        .chain(["10 attempt 1 over"])
        .map(str::to_owned)
        .collect();
    expected.push(format!("10 pausing {pause:?} after status (Some(1s))"));
    for (after, words) in [
        (0, "backoff: slept"),
        (0, "attempt 2"),
        (0, "connect…"),
        (5, "connect: done"),
        (5, "request…"),
        (5, "first byte"),
        (5, "head 200"),
        (5, "request: done"),
        (5, "stream…"),
        (30, "first delta"),
        (60, "stream: completion marker"),
        (60, "whole: completion marker"),
        (60, "after_marker…"),
        (70, "after_marker: sentinel"),
        (70, "attempt 2 over"),
        (70, "over: completed"),
    ] {
        expected.push(format!("{} {words}", second + after));
    }
    assert_eq!(*told.lock().unwrap(), expected);
}

#[test]
fn a_breach_is_told_when_it_happens() {
    let mut play = Play::stream(CHAT, Overrides::new().stream_idle_timeout(2.0)).start();
    play.at(10).request().receive(STREAM_HEAD).receive(chunk(CHAT.text("Hi")));
    assert!(play.watch.breaches().is_empty());
    play.expire();
    let settings: Vec<_> = play.watch.breaches().iter().map(|breach| breach.setting).collect();
    assert_eq!(settings, ["stream_idle_timeout"]);
    assert!(play.watch.is_over());
}

#[test]
fn a_call_that_has_begun_takes_no_observer() {
    let mut play = Play::unary(Overrides::new()).start();
    let refused = play.call.observe(|_: Instant, _: &Observation<'_>| {});
    assert!(matches!(refused, Err(Misuse::OutOfOrder(_))));
}
