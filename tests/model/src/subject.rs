//! The call under test, driven by the inputs of the model.

use std::time::Duration;

use steadfast::body::{Body, Ready, WINDOW_BYTES};
use steadfast::call::{AttemptId, Call, CloseMode, Command, Env, Fact, Item, Request, Shape};
use steadfast::machine::{
    self, Drain, Ended as PeerEnded, Event, FailureKind, IoFailure, Machine, Stage, Step,
};
use steadfast::outcome::{self, Delta, ErrorKind, Truncation};
use steadfast::time::Instant;

use crate::terms::{BEGAN, Case, Ended, Input, Mode, Outcome, Seen, THOUGHT_BYTES, Upload, Waiting, much_of};
use crate::wire::Server;

/// More steps than any event causes: a call that goes round in circles fails instead of hanging
const MAX_STEPS: usize = 64;

/// The call under test
pub struct Subject<'c> {
    case: &'c Case,
    call: Call,
    ends: Ends,
}

/// The connections of a call, as its driver and its servers have them
#[derive(Default)]
struct Ends {
    open: Option<AttemptId>,
    closed: Option<AttemptId>,
    server: Server,
    /// How much of the request's body was asked for
    wanted: usize,
    /// The largest gap is compared
    gaps: bool,
}

/// What stands for the bytes of every request's body
static UPLOAD: [u8; WINDOW_BYTES] = [b' '; WINDOW_BYTES];

impl<'c> Subject<'c> {
    /// A call that has not begun
    pub fn new(case: &'c Case, request: &Request, seed: u64) -> Self {
        let env = Env { seed, unix_at_origin: Duration::ZERO };
        let call = Call::new(request.clone(), case.config, env, BEGAN);
        Self { case, call, ends: Ends { gaps: case.gaps, ..Ends::default() } }
    }

    /// What all calls of a case ask for
    ///
    /// # Panics
    ///
    /// Never: the request is a fixed one.
    pub fn request(case: &Case) -> Request {
        let nothing = || Ready(std::io::empty());
        let body = match case.upload {
            Upload::Whole => Body::from("{}"),
            Upload::Chunked => Body::source(move || Ok(nothing())),
            Upload::ChunkedOnce => Body::once(nothing()),
            Upload::OfTwoBytes => Body::source(move || Ok(nothing())).length(2),
        };
        let request = Request::post("http://api.example/v1/answers").body(body).retries(case.retries);
        let request = match case.shape {
            Shape::Unary => request.dialect(case.dialect),
            Shape::Stream => request.dialect(case.dialect).stream(),
            Shape::Raw => request.raw(),
        };
        request.build().expect("a request that can be sent")
    }

    /// Feeds `input`, and appends what is seen of it
    pub fn step(&mut self, now: Instant, input: Input, seen: &mut Vec<Seen>) {
        use Input::*;
        let failure = |stage, kind| IoFailure { stage, kind, message: String::new() };
        let Some(link) = self.ends.open else {
            let event = if input == Cancel { Event::Cancel } else { Event::Start };
            return self.feed(now, event, seen);
        };
        let event = match input {
            Tick | Oversleep => {
                return take_steps(self.call.drain(), false, &mut self.ends, seen);
            }
            Start | StartLate => Event::Start,
            Cancel => Event::Cancel,
            Taken => Event::Taken,
            ConsumerFails => Event::Fact(Fact::ConsumerFailed("no")),
            Elapse => Event::Elapsed,
            Connected => Event::Connected(link),
            Reused => Event::Reused(link),
            Refused => Event::Failed(link, failure(Stage::Connect, FailureKind::Refused)),
            SentPart => Event::Sent(link, 1),
            SentAll => Event::Sent(link, self.call.outgoing(link).iter().map(|part| part.len()).sum()),
            WriteFails => Event::Failed(link, failure(Stage::Write, FailureKind::Reset)),
            Eof => Event::Eof(link, PeerEnded::Clean),
            Cut => Event::Eof(link, PeerEnded::WithoutCloseNotify),
            Reset => Event::Failed(link, failure(Stage::Read, FailureKind::Reset)),
            Supply => Event::Supplied(link, machine::Supply::Bytes(&UPLOAD[..1])),
            SupplyMuch => Event::Supplied(link, machine::Supply::Bytes(&UPLOAD[..much_of(self.ends.wanted)])),
            SupplyEnd => Event::Supplied(link, machine::Supply::End),
            SupplyFails => Event::Supplied(link, machine::Supply::Failed("no".to_owned())),
            Late => Event::Received(self.ends.closed.unwrap_or(link), b"x"),
            _ => {
                let bytes = self.ends.server.say(self.case, input);
                return self.feed(now, Event::Received(link, &bytes), seen);
            }
        };
        self.feed(now, event, seen);
    }

    fn feed(&mut self, now: Instant, event: Event<'_, Call>, seen: &mut Vec<Seen>) {
        let item = |last: Option<&Seen>| last.is_some_and(is_item);
        match self.call.handle(now, event) {
            Ok(drain) => take_steps(drain, self.case.drops, &mut self.ends, seen),
            Err(misuse) => seen.push(Seen::Other(misuse.to_string())),
        }
        while self.case.drops && item(seen.last()) {
            take_steps(self.call.drain(), true, &mut self.ends, seen);
        }
    }
}

/// Whether the consumer gets something
fn is_item(seen: &Seen) -> bool {
    matches!(seen, Seen::Delta | Seen::Thought | Seen::RawByte | Seen::Finished)
}

/// Takes all steps, or those up to the first item
fn take_steps(mut drain: Drain<'_, Call>, to_item: bool, ends: &mut Ends, seen: &mut Vec<Seen>) {
    for _ in 0..MAX_STEPS {
        seen.push(match drain.next() {
            Step::Do(Command::Connect(link)) => {
                (ends.open, ends.server) = (Some(link), Server::default());
                Seen::Connect(link.number())
            }
            Step::Do(Command::Retry(_)) => unreachable!("only a driver with a retry budget is asked"),
            Step::Do(Command::Close(link, mode)) => {
                ends.closed = Some(link);
                let mode = match mode {
                    CloseMode::Abort => Mode::Abort,
                    CloseMode::Keep | CloseMode::KeepFor(_) => Mode::Keep,
                    CloseMode::Finish(_) => Mode::Finish,
                };
                Seen::Close(link.number(), mode)
            }
            Step::Deliver(Item::Delta(Delta::Text { choice: 0, text: "x" })) => Seen::Delta,
            Step::Deliver(Item::Delta(Delta::Reasoning { choice: 0, text }))
                if text.len() == THOUGHT_BYTES =>
            {
                Seen::Thought
            }
            Step::Deliver(Item::Bytes(b"x")) => Seen::RawByte,
            Step::Deliver(Item::Finished(_)) => Seen::Finished,
            Step::Deliver(item) => Seen::Other(format!("{item:?}")),
            Step::Wait(wait) => {
                let io = wait.io.map(|io| (io.link.number(), io.read, io.write, io.supply));
                ends.wanted = wait.io.map_or(0, |io| io.supply);
                return seen.push(Seen::Wait(Waiting { deadline: wait.deadline, io, taken: wait.taken }));
            }
            Step::Done(done) => return seen.push(Seen::Done(ended(&done, ends.gaps))),
        });
        if to_item && seen.last().is_some_and(is_item) {
            return;
        }
    }
    seen.push(Seen::Other(format!("more than {MAX_STEPS} steps")));
}

fn ended(done: &outcome::Outcome, gaps: bool) -> Ended {
    let turn = done.turn();
    let error = done.result.as_ref().err();
    Ended {
        result: match &done.result {
            Ok(completion) if completion.ending == outcome::Ending::Completed => Outcome::Completed,
            Ok(_) => Outcome::Incomplete,
            Err(error) => kind(&error.kind),
        },
        billing: error.map(|error| error.billing),
        retry_after: error.and_then(|error| error.retry_after),
        attempts: done.timeline.attempt_count(),
        pieces: turn.text().len(),
        has_reason: turn.finish_reason().is_some(),
        has_usage: turn.usage.is_some(),
        largest_gap: gaps
            .then(|| done.timeline.attempts.last().map_or(Duration::ZERO, |last| last.largest_gap)),
    }
}

fn kind(kind: &ErrorKind) -> Outcome {
    match kind {
        ErrorKind::Timeout(timeout) => Outcome::Timeout {
            phase: timeout.phase,
            elapsed: timeout.elapsed,
            limit: timeout.limit,
            setting: timeout.setting,
        },
        ErrorKind::Status(error) => Outcome::Status(error.status.as_u16(), error.whole),
        ErrorKind::InBand(_) => Outcome::InBand,
        ErrorKind::Truncated(Truncation::NoTerminalState) => Outcome::TruncatedAtEnd,
        ErrorKind::Truncated(Truncation::InResponse { .. }) => Outcome::TruncatedInBody,
        ErrorKind::Empty => Outcome::Empty,
        ErrorKind::Transport(failure) => Outcome::Transport(failure.stage),
        ErrorKind::Protocol(_) => Outcome::Protocol,
        ErrorKind::Cancelled => Outcome::Cancelled,
        ErrorKind::Consumer(_) => Outcome::Consumer,
        other => Outcome::Other(other.name()),
    }
}
