//! Traces of calls that a small driver makes.

mod format;
mod reading;
mod recording;
mod secrets;
mod what_if;

use std::time::Duration;

use super::{Memory, Recorder, Trace};
use crate::call::{AttemptId, Call, Command, Env, Request, RequestBuilder};
use crate::config::{Overrides, RequestConfig};
use crate::dialect::Dialect;
use crate::machine::{Event, Machine, Step};
use crate::outcome::Outcome;
use crate::time::Instant;

/// More steps than one event leads to: a call that goes round in circles fails instead of hanging
const MAX_STEPS: usize = 100_000;

const STREAM_HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
const HI: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":null}]}\n\n";
const STOP: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

/// A request for a stream
fn stream() -> RequestBuilder {
    Request::post("http://h/v1").body("{}").dialect(Dialect::OpenAiChat).stream()
}

/// A call and its driver, which takes all steps at once and is its own consumer
struct Drive {
    call: Call,
    link: Option<AttemptId>,
    taken: bool,
    outcome: Option<Outcome>,
    deadline: Option<Instant>,
}

impl Drive {
    fn new(request: RequestBuilder, overrides: Overrides, recorder: Recorder) -> Self {
        let config = RequestConfig::default().with(&overrides).unwrap();
        let env = Env { seed: 7, unix_at_origin: Duration::from_secs(1_700_000_000) };
        let mut call = Call::new(request.build().unwrap(), config, env, at(0));
        call.record(recorder).unwrap();
        Self { call, link: None, taken: false, outcome: None, deadline: None }
    }

    fn feed(&mut self, millis: u64, event: Event<'_, Call>) -> &mut Self {
        let Self { call, link, taken, outcome, deadline } = self;
        let mut drain = call.handle(at(millis), event).unwrap();
        for step in 0.. {
            assert!(step < MAX_STEPS, "the call goes round in circles");
            match drain.next() {
                Step::Do(Command::Connect(id)) => *link = Some(id),
                Step::Do(Command::Close(..) | Command::Retry(_)) | Step::Deliver(_) => {}
                Step::Wait(wait) => {
                    (*taken, *deadline) = (wait.taken, wait.deadline.map(|(at, _)| at));
                    break;
                }
                Step::Done(done) => {
                    *outcome = Some(done);
                    break;
                }
            }
        }
        drop(drain);
        self
    }

    fn link(&self) -> AttemptId {
        self.link.unwrap()
    }

    /// Begun, connected, and the request sent
    fn request(&mut self, millis: u64) -> &mut Self {
        self.feed(millis, Event::Start).connect(millis)
    }

    fn connect(&mut self, millis: u64) -> &mut Self {
        self.feed(millis, Event::Connected(self.link()));
        let sent = self.call.outgoing(self.link()).iter().map(|part| part.len()).sum();
        self.feed(millis, Event::Sent(self.link(), sent))
    }

    /// Bytes come, and what is delivered is taken after `away`
    fn receive_slowly(&mut self, millis: u64, bytes: impl AsRef<[u8]>, away: u64) -> &mut Self {
        self.feed(millis, Event::Received(self.link(), bytes.as_ref()));
        if std::mem::take(&mut self.taken) {
            self.feed(millis + away, Event::Taken);
        }
        self
    }

    fn receive(&mut self, millis: u64, bytes: impl AsRef<[u8]>) -> &mut Self {
        self.receive_slowly(millis, bytes, 0)
    }

    /// The present deadline falls, and the driver is late
    fn expire(&mut self, late: u64) -> &mut Self {
        let millis = self.deadline.unwrap().as_nanos().div_ceil(1_000_000);
        self.feed(millis + late, Event::Elapsed)
    }
}

/// A whole answer of two events
fn answered(recorder: Recorder) -> Drive {
    let mut drive = Drive::new(stream(), Overrides::new(), recorder);
    drive.request(5).receive(30, STREAM_HEAD).receive(40, HI).receive(50, STOP);
    assert!(drive.outcome.is_some());
    drive
}

fn text(memory: &Memory) -> String {
    String::from_utf8(memory.bytes()).unwrap()
}

fn read(memory: &Memory) -> Trace {
    Trace::read(&memory.bytes()[..]).unwrap()
}

/// Replays what was recorded, which comes out the same
#[track_caller]
fn replays(memory: &Memory) {
    let replay = read(memory).replay(|_, _| {});
    assert_eq!(replay.difference, None);
}
