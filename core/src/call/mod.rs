//! The call machine: one call, its attempts, and one [`Outcome`].
//!
//! | file | what is in it |
//! |---|---|
//! | `request` | [`Request`]: what a call asks for, checked when it is built |
//! | `origin` | [`Origin`]: where it goes, and the URL that says so |
//! | `event` | what the machine is told, asks for and delivers; its timers and states |
//! | `fact` | what a driver tells that is no byte of HTTP/1.1 |
//! | `piece` | [`Piece`]: an item of a call, owned |
//! | `observer` | [`Observer`]: who is told each step of the timeline as it happens |
//! | `progress` | [`Progress`]: where a call is, for a live display |
//! | `model` | [`Request::model`]: the model that a request names |
//! | `attempt` | one connection, the request going out, the response coming in |
//! | `assembly` | the answer as it is put together, within its cap |
//! | `stream` | the layers under a stream: framing, dialect, findings |
//! | `document` | one JSON document in place of a stream |
//! | `sending` | the request as it goes out, and what the driver reads of it |
//! | `upload` | what is on its way on one connection: the head, and the body in one buffer or through a window |
//! | `response` | head and body of the response: what each part means for the call |
//! | `clocks` | every deadline, derived from the state; what their expiry does |
//! | `ending` | how an attempt ends: another one, or the outcome |
//! | `held` | [`Held`]: what a call holds of what its peer sent |
//! | `content` | a body whose content is encoded, decoded on its way |
//! | `header_source` | [`HeaderSource`]: header fields that are made for each attempt |
//! | `credentials` | what must never be printed |
//! | `recorded` | [`Call::record`], and a request as a trace describes it |
//!
#![doc = include_str!("states.md")]

mod assembly;
mod attempt;
mod clocks;
mod content;
mod credentials;
mod document;
mod ending;
mod event;
mod fact;
mod header_source;
mod held;
mod model;
mod observer;
mod origin;
mod piece;
mod progress;
mod recorded;
mod request;
mod response;
mod sending;
mod stream;
#[cfg(test)]
mod tests;
mod upload;

use std::fmt;
use std::time::Duration;

use http::{HeaderMap, StatusCode};

use crate::config::RequestConfig;
use crate::http1::{Limits, ResponseDecoder};
use crate::machine::{Event, Interest, IoFailure, Machine, Misuse, Permit, Stage, Step, Tail, Wait};
use crate::outcome::{Billing, ErrorKind, Outcome, Reason, Response, Timeline, Turn};
use crate::retry::backoff::Backoff;
use crate::time::Instant;
use crate::trace::{Noted, Recorder};

use assembly::Assembly;
use attempt::{Attempt, AttemptPhase, PeerEnd, Transport};
pub(crate) use credentials::{Credentials, blanked, names_credential};
use ending::settle;
pub use event::{AttemptId, CloseMode, Command, Fact, Item, State, Timer};
pub use header_source::HeaderSource;
pub use held::Held;
use observer::Observers;
pub use observer::{Observation, Observer};
pub use origin::Origin;
pub(crate) use origin::{host_and_port, in_brackets, parse_url, without_secrets};
pub use piece::Piece;
pub use progress::Progress;
pub(crate) use recorded::Described;
pub use recorded::DescriptionError;
pub use request::{Request, RequestBuilder, RequestError, Retries, Shape};
use response::{Delivery, Silent};
use upload::Upload;

/// What a call takes from the world outside, given once
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Env {
    /// Seed of the call's random pauses; there is no default, and equal seeds give equal calls
    pub seed: u64,
    /// Wall-clock time at [`Instant::ORIGIN`], since the Unix epoch; only HTTP dates need it
    pub unix_at_origin: Duration,
}

/// One call: attempts, pauses, deadlines, the answer as it comes, and how it all ended
///
/// Drive it as any [`Machine`]: feed [`Event::Start`], then take steps. [`State`] tells where it is.
pub struct Call {
    request: Request,
    config: RequestConfig,
    unix_at_origin: Duration,
    rng: fastrand::Rng,
    backoff: Backoff,

    /// The latest instant that any event carried
    now: Instant,
    began: Instant,
    inner: Inner,
    last_id: AttemptId,
    /// Which attempt the unparsed bytes belong to
    input_of: AttemptId,
    close: Option<(AttemptId, CloseMode)>,
    connect: Option<AttemptId>,
    /// The driver has a retry budget
    asks_before_retries: bool,
    /// The attempt after which a retry is planned, of which the driver has yet to hear
    retry: Option<AttemptId>,

    attempts_made: u32,
    billing: Billing,
    /// Some of the body was read that is read as it goes out
    body_read: bool,
    /// The consumer has not come back since the last item
    item_out: bool,
    /// One of the items that the consumer now has extends the answer
    content_out: bool,
    assembly: Assembly,
    /// The head of the last response that came in an attempt that is over
    response: Option<Box<Response>>,
    timeline: Timeline,
    tail: Tail,
    /// None unless the call is recorded
    recorder: Option<Box<Recorder>>,
    observers: Observers,
}

enum Inner {
    Idle,
    Attempting(Box<Attempt>),
    Pausing(Pause),
    /// The outcome, on its way out
    Ending(Box<Outcome>),
    Over,
}

/// A pause before another attempt, and the failure that stands if there is none
struct Pause {
    began: Instant,
    until: Instant,
    failure: Box<ErrorKind>,
    retry_after: Option<Duration>,
}

impl Call {
    /// A call that has not begun; its clock starts now (rule CFG-5)
    pub fn new(mut request: Request, config: RequestConfig, env: Env, now: Instant) -> Self {
        request.set_boundary(env.seed);
        Self {
            config,
            unix_at_origin: env.unix_at_origin,
            rng: fastrand::Rng::with_seed(env.seed),
            backoff: Backoff::default(),
            now,
            began: now,
            inner: Inner::Idle,
            last_id: AttemptId::NONE,
            input_of: AttemptId::NONE,
            close: None,
            connect: None,
            asks_before_retries: false,
            retry: None,
            attempts_made: 0,
            billing: Billing::NotSent,
            body_read: false,
            item_out: false,
            content_out: false,
            assembly: Assembly::default(),
            response: None,
            timeline: Timeline::new(env.seed, now),
            tail: Tail::default(),
            recorder: None,
            observers: Observers::default(),
            request,
        }
    }

    /// The driver has a retry budget: each retry is announced by [`Command::Retry`]
    ///
    /// Errors: the call has begun, or is recorded already.
    pub fn ask_before_retries(&mut self) -> Result<(), Misuse> {
        if !matches!(self.inner, Inner::Idle) || self.recorder.is_some() {
            return Err(Misuse::OutOfOrder(
                "a retry budget was named too late: call ask_before_retries before record and Event::Start",
            ));
        }
        self.asks_before_retries = true;
        Ok(())
    }

    /// What is asked for
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// The configuration in force, captured when the call was made
    pub fn config(&self) -> &RequestConfig {
        &self.config
    }

    /// Where the call is
    pub fn state(&self) -> State {
        match &self.inner {
            Inner::Idle => State::Idle,
            Inner::Pausing(_) => State::Pausing,
            Inner::Ending(_) | Inner::Over => State::Over,
            Inner::Attempting(attempt) => match &attempt.phase {
                AttemptPhase::Connecting => State::Connecting,
                AttemptPhase::Waiting => State::Waiting,
                AttemptPhase::Unary(_) => State::Reading,
                AttemptPhase::Refused(_) => State::Refused,
                AttemptPhase::Stream(stream) if stream.marked_at.is_some() => State::Finished,
                AttemptPhase::Stream(_) | AttemptPhase::Raw(_) => State::Streaming,
            },
        }
    }

    /// The answer as far as it came
    pub fn turn(&self) -> &Turn {
        &self.assembly.turn
    }

    /// Status and header fields of the response that is being read, once its head is whole
    ///
    /// Of a call that is over, the outcome has them. Credentials of the request are blanked in them.
    pub fn response(&self) -> Option<(StatusCode, &HeaderMap)> {
        let Inner::Attempting(attempt) = &self.inner else { return None };
        attempt.head.as_ref().map(|head| (head.status, &head.headers))
    }

    /// The next step, or what is to be delivered as one
    fn next_step(&mut self, input: &[u8], used: &mut usize) -> Result<Silent, Delivery> {
        loop {
            if let Some((id, mode)) = self.close.take() {
                let mode = match mode {
                    CloseMode::Finish(tail) if id == self.input_of => {
                        let rest = &input[*used..];
                        *used = input.len();
                        settle(tail, rest)
                    }
                    CloseMode::Finish(tail) => settle(tail, &[]),
                    mode @ (CloseMode::Abort | CloseMode::Keep | CloseMode::KeepFor(_)) => mode,
                };
                return Ok(Silent::Do(Command::Close(id, mode)));
            }
            if let Some(id) = self.connect.take() {
                self.attempt_began();
                return Ok(Silent::Do(Command::Connect(id)));
            }
            if let Some(id) = self.retry.take() {
                return Ok(Silent::Do(Command::Retry(id)));
            }
            match &self.inner {
                Inner::Attempting(attempt) if attempt.id == self.input_of || *used == input.len() => {}
                Inner::Attempting(_) => *used = input.len(),
                Inner::Idle | Inner::Pausing(_) | Inner::Over => {
                    *used = input.len();
                    return Ok(Silent::Wait);
                }
                Inner::Ending(_) => {
                    *used = input.len();
                    if let Inner::Ending(outcome) = std::mem::replace(&mut self.inner, Inner::Over) {
                        return Ok(Silent::Done(outcome));
                    }
                }
            }
            match self.advance(input, used) {
                Delivery::Nothing => {}
                Delivery::Dry => return Ok(Silent::Wait),
                delivery @ (Delivery::Delta(_)
                | Delivery::Bytes { .. }
                | Delivery::Unknown
                | Delivery::Finished) => {
                    return Err(delivery);
                }
            }
        }
    }

    fn take_in<'e>(&mut self, event: Event<'e, Self>) -> Result<&'e [u8], Misuse> {
        match event {
            // No attempt starts with nothing left, not even the first.
            Event::Start => match self.spent() {
                Some(timeout) => self.fail(ErrorKind::Timeout(timeout)),
                None => self.start_attempt(),
            },
            Event::Elapsed => self.elapsed(),
            Event::Taken => self.taken(),
            Event::Cancel => self.cancel(),
            Event::Connected(id) => self.connected(id, false)?,
            Event::Reused(id) => self.connected(id, true)?,
            Event::Sent(id, sent) => self.sent(id, sent)?,
            Event::Supplied(id, supply) => self.supplied(id, supply)?,
            Event::Received(id, bytes) => return self.received(id, bytes, false),
            Event::Eof(id, ended) => self.peer_ended(id, PeerEnd::Eof(ended))?,
            Event::Failed(id, failure) => self.failed(id, failure)?,
            Event::Fact(fact) => return self.fact(fact),
        }
        Ok(&[])
    }

    /// The present attempt, if that is `id`; counts the event as stale where `id` is past
    fn live(&mut self, id: AttemptId) -> Result<Option<&mut Attempt>, Misuse> {
        if id > self.last_id || id == AttemptId::NONE {
            return Err(Misuse::UnknownLink);
        }
        let is_late = !matches!(&self.inner, Inner::Attempting(attempt) if attempt.id == id);
        if is_late && planted!(LateEventRefused) {
            return Err(Misuse::UnknownLink);
        }
        match &mut self.inner {
            Inner::Attempting(attempt) if attempt.id == id => Ok(Some(attempt)),
            Inner::Idle | Inner::Attempting(_) | Inner::Pausing(_) | Inner::Ending(_) | Inner::Over => {
                self.timeline.stale_events = self.timeline.stale_events.saturating_add(1);
                Ok(None)
            }
        }
    }

    /// As [`Call::live`], for events that only an open connection can have
    fn open(&mut self, id: AttemptId) -> Result<Option<&mut Attempt>, Misuse> {
        match self.live(id)? {
            Some(attempt) if !attempt.is_connected() => Err(Misuse::NotConnected),
            live => Ok(live),
        }
    }

    fn start_attempt(&mut self) {
        if planted!(DeadlineRestartedPerAttempt) {
            self.began = self.now;
        }
        // Not before: until there is another one, what came belongs to the failure that stands.
        if !planted!(FailedTurnKept) {
            self.assembly = Assembly::default();
        }
        self.attempts_made += 1;
        self.begin_attempt(None);
    }

    /// Asks for a connection: for a new attempt, or for the present one, and when that began
    fn begin_attempt(&mut self, began: Option<Instant>) {
        self.last_id = self.last_id.next();
        let limits = Limits { max_head_bytes: self.config.max_head_bytes() };
        let http = ResponseDecoder::new(&self.request.method, limits);
        self.connect = Some(self.last_id);
        // Where header fields are made for each attempt, the head is whole once they are there.
        let head = self.request.header_maker.is_none().then(|| self.request.head.clone());
        let upload = Upload::new(head, &self.request.body);
        let began_at = began.unwrap_or(self.now);
        let mut attempt = Attempt::new(self.last_id, self.attempts_made, began_at, http, upload);
        attempt.phase_began = self.now;
        attempt.is_replacement = began.is_some();
        self.inner = Inner::Attempting(Box::new(attempt));
        if began.is_some() {
            self.phase_began();
        }
    }

    /// The attempt is real, for its connection is asked for
    fn attempt_began(&mut self) {
        if matches!(&self.inner, Inner::Attempting(attempt) if !attempt.is_replacement) {
            self.observers.tell(self.now, Observation::AttemptBegan { attempt: self.attempts_made });
            self.phase_began();
        }
    }

    /// Tells the observers which phase the attempt is in
    fn phase_began(&mut self) {
        if let Inner::Attempting(attempt) = &self.inner {
            let (attempt, kind) = (attempt.record.number, attempt.span_kind());
            self.observers.tell(self.now, Observation::PhaseBegan { attempt, kind });
        }
    }

    fn connected(&mut self, id: AttemptId, reused: bool) -> Result<(), Misuse> {
        let now = self.now;
        let Some(attempt) = self.live(id)? else { return Ok(()) };
        if attempt.is_connected() {
            return Err(Misuse::OutOfOrder(
                "that connection was reported open before: feed Event::Connected or Reused once",
            ));
        }
        if reused && !id.may_be_reused() {
            return Err(Misuse::OutOfOrder(
                "a new connection is wanted: reuse one only where AttemptId::may_be_reused says so",
            ));
        }
        attempt.record.reused = reused;
        self.enter(AttemptPhase::Waiting, now);
        Ok(())
    }

    /// Takes note of bytes that came: of HTTP/1.1, or of a body that another transport parsed
    fn received<'e>(&mut self, id: AttemptId, bytes: &'e [u8], are_facts: bool) -> Result<&'e [u8], Misuse> {
        let now = self.now;
        let Some(attempt) = self.open(id)? else { return Ok(&[]) };
        match (&attempt.http, are_facts) {
            (Transport::Http1(_), false) | (Transport::Facts, true) => {}
            (Transport::Http1(_), true) => {
                return Err(Misuse::OutOfOrder("a body came before its head: feed Fact::Head first"));
            }
            (Transport::Facts, false) => {
                return Err(Misuse::OutOfOrder(
                    "bytes came on a connection that reports facts: feed Fact::Body instead of Received",
                ));
            }
        }
        if attempt.peer_end.is_some() {
            return Err(Misuse::OutOfOrder(
                "bytes came after the end of that connection: feed Eof and Failed last",
            ));
        }
        // Another transport says what it has sent by the head that answers it.
        if attempt.record.reused && !attempt.upload.is_begun() && !are_facts && !bytes.is_empty() {
            // No answer to a request that nobody has seen: perhaps why the server closes it. Past the
            // deadline there is no time for another connection, and the expiry is what comes next.
            if self.spent().is_none() {
                self.replace_connection(Reason::Protocol);
            }
            return Ok(&[]);
        }
        if attempt.record.bytes_received == 0 && !bytes.is_empty() {
            let attempt = attempt.record.number;
            self.observers.tell(now, Observation::FirstByte { attempt });
        }
        let Some(attempt) = self.open(id)? else { return Ok(&[]) };
        attempt.record.bytes_received += bytes.len() as u64;
        if planted!(TrickledHeadGainsTime) {
            attempt.began = now;
        }
        if let Some(quiet_since) = attempt.quiet_since()
            && !bytes.is_empty()
        {
            let before =
                if planted!(LastGapForLargest) { Duration::ZERO } else { attempt.record.largest_gap };
            attempt.record.largest_gap = before.max(now - quiet_since);
            attempt.restart_idle(now);
        }
        if are_facts {
            attempt.body_left = bytes.len();
        }
        self.input_of = id;
        Ok(bytes)
    }

    fn peer_ended(&mut self, id: AttemptId, end: PeerEnd) -> Result<(), Misuse> {
        if let Some(attempt) = self.open(id)? {
            attempt.peer_gone = true;
            attempt.peer_end.get_or_insert(end);
        }
        Ok(())
    }

    fn failed(&mut self, id: AttemptId, failure: IoFailure) -> Result<(), Misuse> {
        let Some(attempt) = self.live(id)? else { return Ok(()) };
        if !attempt.is_connected() {
            self.fail(failure.into());
        } else if failure.stage == Stage::Write && !planted!(FailedWriteHidesAnswer) {
            // An answer may lie in the socket: a 413 before the reset that cut the upload short.
            attempt.write_failed.get_or_insert(failure);
        } else {
            attempt.peer_gone = true;
            attempt.peer_end.get_or_insert(PeerEnd::Failed(failure));
        }
        Ok(())
    }

    fn cancel(&mut self) {
        match &self.inner {
            Inner::Over if planted!(SecondDone) => self.fail(ErrorKind::Cancelled),
            Inner::Ending(_) | Inner::Over => {}
            Inner::Idle | Inner::Attempting(_) | Inner::Pausing(_) => self.fail(ErrorKind::Cancelled),
        }
    }

    fn taken(&mut self) {
        if !std::mem::take(&mut self.item_out) {
            return;
        }
        let (now, content_out) = (self.now, std::mem::take(&mut self.content_out));
        if let Inner::Attempting(attempt) = &mut self.inner {
            // The clocks restart (rule STR-3), that over the content only where some was taken: a peer
            // that floods with keep-alives would otherwise live on the time it takes to deliver them.
            if !planted!(IdleNotRestartedOnReturn) {
                attempt.restart_idle(now);
            }
            if content_out && let Some(stream) = attempt.stream() {
                stream.content_since = now;
            }
        }
    }

    fn wait(&self) -> Wait<Self> {
        let io = match &self.inner {
            Inner::Attempting(attempt) if attempt.is_connected() => Some(Interest {
                link: attempt.id,
                read: !self.item_out && attempt.peer_end.is_none(),
                write: self.outgoing(attempt.id).iter().any(|part| !part.is_empty()),
                supply: attempt.wants(),
            }),
            Inner::Idle | Inner::Attempting(_) | Inner::Pausing(_) | Inner::Ending(_) | Inner::Over => None,
        };
        Wait { deadline: self.deadline(), io, taken: self.item_out && !matches!(self.inner, Inner::Over) }
    }
}

impl Machine for Call {
    type Link = AttemptId;
    type Timer = Timer;
    type Io = Option<Interest<AttemptId>>;
    type Fact<'e> = Fact<'e>;
    type Item<'i> = Item<'i>;
    type Command = Command;
    type Done = Outcome;

    fn accept<'e>(&mut self, _: Permit, now: Instant, event: Event<'e, Self>) -> Result<&'e [u8], Misuse> {
        match (&self.inner, &event) {
            (Inner::Idle, Event::Start | Event::Cancel) => {}
            (Inner::Idle, _) => return Err(Misuse::NotStarted),
            (_, Event::Start) => return Err(Misuse::StartedTwice),
            _ => {}
        }
        let before = (self.now, self.timeline.clock_steps_back);
        if now < self.now {
            self.timeline.clock_steps_back = self.timeline.clock_steps_back.saturating_add(1);
        }
        self.now = self.now.max(now);
        let noted = self.recorder.is_some().then(|| Noted::of(&event));
        let taken_in = self.take_in(event);
        if taken_in.is_err() {
            (self.now, self.timeline.clock_steps_back) = before;
        } else if let (Some(recorder), Some(noted)) = (&mut self.recorder, noted) {
            recorder.event(now, noted);
        }
        taken_in
    }

    fn step<'s>(&'s mut self, _: Permit, input: &'s [u8], used: &mut usize) -> Step<'s, Self> {
        match self.next_step(input, used) {
            Ok(silent) if self.recorder.is_none() => self.silent_step(silent),
            Ok(silent) => {
                let step = self.silent_step(silent);
                if let Some(recorder) = &mut self.recorder {
                    recorder.step(&step);
                }
                step
            }
            Err(delivery) => self.deliver(delivery, input),
        }
    }

    fn detach(&mut self, _: Permit, input: &[u8]) {
        if let Inner::Attempting(attempt) = &mut self.inner
            && attempt.content.is_none()
            && let Some(stream) = attempt.stream()
        {
            stream.detach(input);
        }
    }

    fn tail(&mut self, _: Permit) -> &mut Tail {
        &mut self.tail
    }

    fn outgoing(&self, link: AttemptId) -> [&[u8]; 2] {
        match &self.inner {
            Inner::Attempting(attempt)
                if attempt.id == link && attempt.is_connected() && attempt.write_failed.is_none() =>
            {
                attempt.upload.outgoing(&self.request.body)
            }
            Inner::Idle | Inner::Attempting(_) | Inner::Pausing(_) | Inner::Ending(_) | Inner::Over => {
                [&[], &[]]
            }
        }
    }
}

/// Where it is; neither the request nor the answer
impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("origin", &format_args!("{}", self.request.origin()))
            .field("state", &self.state())
            .field("attempts_made", &self.attempts_made)
            .finish_non_exhaustive()
    }
}
