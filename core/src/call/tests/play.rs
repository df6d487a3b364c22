//! A driver in virtual time.

use std::time::Duration;

use crate::call::{AttemptId, Call, Command, Env, Fact, Request, Timer};
use crate::config::{Overrides, RequestConfig};
use crate::dialect::Dialect;
use crate::machine::{Ended, Event, FailureKind, IoFailure, Machine, Misuse, Stage};
use crate::outcome::{Completion, ErrorKind, Outcome, Phase};
use crate::time::Instant;
use crate::trace::{Finish, Memory, Recorder, Trace};

use super::record::Record;
use super::watch::Watch;
use super::wire;

/// More steps than any play takes: a call that goes round in circles fails instead of hanging
const MAX_STEPS: usize = 200_000;

/// Wall-clock time when a call is made: Sun, 06 Nov 1994 08:49:30 GMT
const UNIX_AT_START: Duration = Duration::from_secs(784_111_770);

/// When a call is made; far from the origin of time, so that no test leans on that
pub(super) const START: Instant = Instant::from_nanos(1_000_000_000_000);

pub(super) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A call and its driver; all times are counted from the call's start
///
/// Each method that feeds an event takes all steps that follow from it, and each lets its result be
/// chained: `play.at(300).receive(b"…")`.
pub(super) struct Play {
    pub(super) call: Call,
    pub(super) record: Record,
    now: Duration,
    /// Whether the consumer takes each item at once, or only when the test says so
    eager: bool,
    /// Whether a drain is dropped at this point, by its number
    interrupt: Box<dyn FnMut(usize) -> bool>,
    /// The points at which a drain could be dropped, so far
    pub(super) points: usize,
    pub(super) watch: Watch,
    /// After the call, for what that writes when it is dropped
    replayed: Replayed,
}

/// The trace of a call, which has to come out the same when it is replayed (INV-9)
struct Replayed(Memory);

impl Drop for Replayed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        // A fault may make the driver's own ways a part of what comes out.
        #[cfg(feature = "planted-faults")]
        if crate::planted::is_any() {
            return;
        }
        let trace = Trace::read(&self.0.bytes()[..]).unwrap();
        let replay = trace.replay(|_, _| {});
        assert_eq!(replay.difference, None);
        assert_eq!(replay.outcome.is_some(), trace.finish() == Finish::Whole);
    }
}

impl Play {
    pub(super) fn new(request: Request, overrides: Overrides) -> Self {
        Self::made(request, overrides, false)
    }

    /// A unary call whose driver has a retry budget
    pub(super) fn with_budget(overrides: Overrides) -> Self {
        Self::made(Request::post(wire::URL).body("{}").build().unwrap(), overrides, true)
    }

    fn made(request: Request, overrides: Overrides, has_budget: bool) -> Self {
        let env = Env { seed: 7, unix_at_origin: UNIX_AT_START - START.since_origin() };
        let config = RequestConfig::default().with(&overrides).unwrap();
        let mut call = Call::new(request, config, env, START);
        if has_budget {
            call.ask_before_retries().unwrap();
        }
        let replayed = Replayed(Memory::default());
        call.record(Recorder::new(replayed.0.clone())).unwrap();
        let watch = Watch::default();
        call.observe(watch.clone()).unwrap();
        Self {
            call,
            watch,
            replayed,
            record: Record::default(),
            now: Duration::ZERO,
            eager: true,
            interrupt: Box::new(|_| false),
            points: 0,
        }
    }

    /// A streaming call
    pub(super) fn stream(dialect: Dialect, overrides: Overrides) -> Self {
        Self::new(wire::request(dialect).stream().build().unwrap(), overrides)
    }

    /// A unary call without a dialect
    pub(super) fn unary(overrides: Overrides) -> Self {
        Self::new(Request::post(wire::URL).body("{}").build().unwrap(), overrides)
    }

    /// The consumer comes back only when the test says so
    pub(super) fn slow(mut self) -> Self {
        self.eager = false;
        self
    }

    /// The consumer takes each item at once from now on
    pub(super) fn eagerly(mut self) -> Self {
        self.eager = true;
        self
    }

    /// What was recorded so far
    pub(super) fn trace(&self) -> String {
        String::from_utf8(self.replayed.0.bytes()).unwrap()
    }

    /// The time
    pub(super) fn now(&self) -> Duration {
        self.now
    }

    /// The drain is dropped at each point for which `interrupt` says so
    pub(super) fn interrupted(mut self, interrupt: impl FnMut(usize) -> bool + 'static) -> Self {
        self.interrupt = Box::new(interrupt);
        self
    }

    /// The call begins
    pub(super) fn start(mut self) -> Self {
        self.feed(Event::Start);
        self
    }

    /// The connection that was asked for last
    pub(super) fn link(&self) -> AttemptId {
        *self.record.opened().last().expect("no connection was asked for")
    }

    pub(super) fn deadline(&self) -> Option<(Duration, Timer)> {
        let (at, timer) = self.record.wait.as_ref()?.deadline?;
        Some((at - START, timer))
    }

    /// Whether bytes are to be read
    pub(super) fn reads(&self) -> bool {
        self.record.wait.as_ref().is_some_and(|wait| wait.io.is_some_and(|interest| interest.read))
    }

    /// Goes on to `millis`: deadlines before that expire, one at that very instant does not
    pub(super) fn at(&mut self, millis: u64) -> &mut Self {
        self.at_instant(ms(millis))
    }

    pub(super) fn at_instant(&mut self, at: Duration) -> &mut Self {
        assert!(at >= self.now, "{at:?} is past");
        while self.deadline().is_some_and(|(deadline, _)| deadline < at) {
            self.expire();
        }
        self.now = at;
        self
    }

    /// Jumps to `millis`, as a driver that was held up: what expired meanwhile is not reported
    pub(super) fn late(&mut self, millis: u64) -> &mut Self {
        self.now = ms(millis);
        self
    }

    /// Goes on to the next deadline and reports it
    pub(super) fn expire(&mut self) -> &mut Self {
        let (deadline, _) = self.deadline().expect("no deadline");
        self.now = self.now.max(deadline);
        self.elapsed()
    }

    /// Reports now that the deadline has come
    pub(super) fn elapsed(&mut self) -> &mut Self {
        let before = (self.call.state(), self.record.commands.len());
        self.feed(Event::Elapsed);
        let later = self.deadline().is_none_or(|(deadline, _)| deadline > self.now);
        let changed = before != (self.call.state(), self.record.commands.len());
        assert!(later || changed, "the progress law: {:?} at {:?}", self.deadline(), self.now);
        self
    }

    pub(super) fn connected(&mut self) -> &mut Self {
        self.feed(Event::Connected(self.link()))
    }

    /// The connection is one that an earlier call left
    pub(super) fn reused(&mut self) -> &mut Self {
        self.feed(Event::Reused(self.link()))
    }

    /// The connection takes what is left of the request
    pub(super) fn sent_all(&mut self) -> &mut Self {
        self.sent(self.outgoing())
    }

    pub(super) fn sent(&mut self, bytes: usize) -> &mut Self {
        self.feed(Event::Sent(self.link(), bytes))
    }

    pub(super) fn outgoing(&self) -> usize {
        self.call.outgoing(self.link()).iter().map(|part| part.len()).sum()
    }

    pub(super) fn receive(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        self.feed(Event::Received(self.link(), bytes.as_ref()))
    }

    /// As [`Play::receive`], a byte at a time
    pub(super) fn trickle(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        let link = self.link();
        for byte in bytes.as_ref() {
            if self.record.done.is_none() && self.record.opened().last() == Some(&link) {
                self.feed(Event::Received(link, std::slice::from_ref(byte)));
            }
        }
        self
    }

    /// Connected, all of the request sent, and the head of a stream in chunks
    pub(super) fn open(&mut self) -> &mut Self {
        self.request().receive(wire::STREAM_HEAD)
    }

    /// Connected, and all of the request sent
    pub(super) fn request(&mut self) -> &mut Self {
        self.connected().sent_all()
    }

    pub(super) fn fin(&mut self) -> &mut Self {
        self.eof(Ended::Clean)
    }

    pub(super) fn eof(&mut self, ended: Ended) -> &mut Self {
        self.feed(Event::Eof(self.link(), ended))
    }

    pub(super) fn reset(&mut self) -> &mut Self {
        self.fail(Stage::Read, FailureKind::Reset, "connection reset by peer")
    }

    pub(super) fn fail(&mut self, stage: Stage, kind: FailureKind, message: &str) -> &mut Self {
        self.feed(Event::Failed(self.link(), IoFailure { stage, kind, message: message.to_owned() }))
    }

    pub(super) fn taken(&mut self) -> &mut Self {
        self.feed(Event::Taken)
    }

    pub(super) fn cancel(&mut self) -> &mut Self {
        self.feed(Event::Cancel)
    }

    pub(super) fn fact(&mut self, fact: Fact<'_>) -> &mut Self {
        self.feed(Event::Fact(fact))
    }

    pub(super) fn feed(&mut self, event: Event<'_, Call>) -> &mut Self {
        self.try_feed(event).unwrap();
        self
    }

    /// Feeds an event and takes all steps that follow from it
    pub(super) fn try_feed(&mut self, event: Event<'_, Call>) -> Result<(), Misuse> {
        let Self { call, record, now, eager, interrupt, points, .. } = self;
        let now = *now;
        record.trace.push(format!("{now:?} <- {event:?}"));
        let mut stopped_at = |points: &mut usize| {
            assert!(*points < MAX_STEPS, "the call goes round in circles");
            *points += 1;
            interrupt(*points - 1)
        };
        let mut next = Some(event);
        loop {
            let before = call.state();
            let mut drain = match next.take() {
                Some(event) => {
                    let drain = call.handle(START + now, event)?;
                    if stopped_at(points) {
                        drop(drain);
                        record.edge(before, call.state());
                        continue;
                    }
                    drain
                }
                None => call.drain(),
            };
            let at_rest = loop {
                let more = record.step(now, drain.next());
                if !more {
                    break true;
                }
                if stopped_at(points) {
                    break false;
                }
            };
            drop(drain);
            record.edge(before, call.state());
            if at_rest {
                if !(*eager && record.wait.as_ref().is_some_and(|wait| wait.taken)) {
                    return Ok(());
                }
                next = Some(Event::Taken);
            }
        }
    }

    /// Lets deadlines expire until the call is over
    pub(super) fn end(&mut self) -> &Outcome {
        while self.record.done.is_none() {
            self.expire();
        }
        self.outcome()
    }

    /// The outcome of a call that is over
    pub(super) fn outcome(&self) -> &Outcome {
        &self.record.done.as_ref().expect("the call is not over").1
    }

    /// When the call ended
    pub(super) fn ended_at(&self) -> Duration {
        self.record.done.as_ref().expect("the call is not over").0
    }

    /// The answer of a call that went well
    pub(super) fn completion(&self) -> &Completion {
        self.outcome().result.as_ref().expect("the call failed")
    }

    /// The failure of a call that failed
    pub(super) fn error(&self) -> &ErrorKind {
        &self.outcome().result.as_ref().expect_err("the call went well").kind
    }

    /// The breach of a call that timed out: phase, elapsed and limit
    pub(super) fn breach(&self) -> (Phase, Duration, Duration) {
        match self.error() {
            ErrorKind::Timeout(timeout) => (timeout.phase, timeout.elapsed, timeout.limit),
            other => panic!("no timeout: {other:?}"),
        }
    }

    /// When each connection was asked for
    pub(super) fn attempts_at(&self) -> Vec<Duration> {
        let connects =
            self.record.commands.iter().filter(|(_, command)| matches!(command, Command::Connect(_)));
        connects.map(|(at, _)| *at).collect()
    }
}
