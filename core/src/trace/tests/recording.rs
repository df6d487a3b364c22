//! What recording promises: a bound, and no harm to the call.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Drive, HI, STREAM_HEAD, answered, read, replays, stream, text};
use crate::call::{Call, Env, Request};
use crate::config::{Overrides, RequestConfig};
use crate::machine::{Event, Machine, Misuse};
use crate::time::Instant;
use crate::trace::{Finish, Memory, Recorder, Recording};

#[test]
fn a_whole_recording_says_so_and_replays() {
    let memory = Memory::default();
    let drive = answered(Recorder::new(memory.clone()));
    assert_eq!(drive.call.recording(), Some(&Recording::Whole));
    assert_eq!(read(&memory).finish(), Finish::Whole);
    replays(&memory);
}

#[test]
fn at_every_bound_it_is_within_it_and_replays_so_far() {
    let memory = Memory::default();
    answered(Recorder::new(memory.clone()));
    let whole = memory.bytes().len() as u64;
    let first = text(&memory).lines().next().unwrap().len() as u64;
    for max_bytes in (first + 65..whole).step_by(7) {
        let memory = Memory::default();
        let drive = answered(Recorder::new(memory.clone()).max_bytes(max_bytes));
        assert_eq!(drive.call.recording(), Some(&Recording::Truncated { max_bytes }));
        assert!(memory.bytes().len() as u64 <= max_bytes);
        assert_eq!(read(&memory).finish(), Finish::Truncated);
        replays(&memory);
    }
    let memory = Memory::default();
    let drive = answered(Recorder::new(memory.clone()).max_bytes(whole + 64));
    assert_eq!(drive.call.recording(), Some(&Recording::Whole));
}

/// Fails after so many writes
struct Failing(usize, Arc<AtomicUsize>);

impl io::Write for Failing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let asked = self.1.fetch_add(1, Ordering::Relaxed);
        if asked < self.0 { Ok(bytes.len()) } else { Err(io::Error::from(io::ErrorKind::StorageFull)) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.write(&[]).map(|_| ())
    }
}

#[test]
fn a_writer_that_fails_harms_no_call_and_is_asked_no_more() {
    let asked = Arc::new(AtomicUsize::new(0));
    let whole = answered(Recorder::new(Failing(usize::MAX, Arc::clone(&asked))));
    let whole = serde_json::to_string(&whole.outcome.unwrap()).unwrap();
    let writes = asked.load(Ordering::Relaxed);
    assert!(writes > 20);
    for fails_at in 0..writes {
        let asked = Arc::new(AtomicUsize::new(0));
        let drive = answered(Recorder::new(Failing(fails_at, Arc::clone(&asked))));
        let Some(Recording::Failed(error)) = drive.call.recording() else {
            panic!("{:?}", drive.call.recording())
        };
        assert_eq!(error.kind, io::ErrorKind::StorageFull);
        assert_eq!(error.to_string(), format!("the trace could not be written: {}", error.message));
        assert_eq!(serde_json::to_string(drive.outcome.as_ref().unwrap()).unwrap(), whole);
        drop(drive);
        assert_eq!(asked.load(Ordering::Relaxed), fails_at + 1);
    }
}

#[test]
fn a_call_that_is_dropped_leaves_a_trace_that_was_cut() {
    let memory = Memory::default();
    let mut drive =
        Drive::new(stream().bearer("Hi-is-a-secret"), Overrides::new(), Recorder::new(memory.clone()));
    drive.request(0).receive(1, STREAM_HEAD).receive(2, "data: H");
    // The last read may be the beginning of the key, and so waits for the next one.
    assert!(!text(&memory).contains("data: H"));
    assert_eq!(drive.call.recording(), Some(&Recording::UnderWay));
    drop(drive);
    assert!(text(&memory).contains("data: H"));
    assert_eq!(read(&memory).finish(), Finish::Cut);
    replays(&memory);
}

#[test]
fn a_wait_that_is_asked_for_again_is_written_once() {
    let memory = Memory::default();
    let mut drive = Drive::new(stream(), Overrides::new(), Recorder::new(memory.clone()));
    drive.request(0);
    let before = text(&memory);
    for _ in 0..3 {
        _ = drive.call.drain().next();
    }
    assert_eq!(text(&memory), before);
}

#[test]
fn an_event_that_is_refused_is_not_in_it() {
    let memory = Memory::default();
    let mut drive = Drive::new(stream(), Overrides::new(), Recorder::new(memory.clone()));
    drive.request(0);
    let before = text(&memory);
    assert!(drive.call.handle(Instant::ORIGIN, Event::Start).is_err());
    let link = drive.link();
    assert!(drive.call.handle(Instant::ORIGIN, Event::Sent(link, 1 << 20)).is_err());
    assert_eq!(text(&memory), before);
    drive.receive(1, STREAM_HEAD).receive(2, HI);
    replays(&memory);
}

#[test]
fn a_call_that_has_begun_is_not_recorded() {
    let env = Env { seed: 1, unix_at_origin: std::time::Duration::ZERO };
    let request = Request::post("http://h/").build().unwrap();
    let mut call = Call::new(request, RequestConfig::default(), env, Instant::ORIGIN);
    assert_eq!(call.recording(), None);
    drop(call.handle(Instant::ORIGIN, Event::Start).unwrap());
    let memory = Memory::default();
    assert!(matches!(call.record(Recorder::new(memory.clone())), Err(Misuse::OutOfOrder(_))));
    assert!(memory.bytes().is_empty());
}

#[test]
fn equal_calls_leave_equal_traces() {
    let [first, second] = [(); 2].map(|()| {
        let memory = Memory::default();
        answered(Recorder::new(memory.clone()));
        memory.bytes()
    });
    assert_eq!(first, second);
}
