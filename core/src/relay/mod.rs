//! The relay's exchange: what stands between an app and a provider, bounded, and resent only where it is
//! safe (rules RLY-1 to 7).
//!
//! | file | subject |
//! |---|---|
//! | `mod.rs` | [`Exchange`]: the machine, its events and its waits |
//! | `event.rs` | what it is told, asks for, and delivers |
//! | `front.rs` | the app's side: its requests, and the bytes for it |
//! | `upstream.rs` | the provider's side: attempts, and what each comes to |
//! | `passing.rs` | the answer on its way from one to the other |
//! | `progress.rs` | [`Progress`]: what is known of an exchange that goes on |
//! | `body.rs` | a request's body: on its way, and kept while it may be sent again |
//! | `limits.rs` | [`Limits`]: how long each part may take, and what is sent again |
//! | `query.rs` | credentials in the query of a target |
//! | `route.rs` | [`Routes`]: which provider a path belongs to |
//! | `admission.rs` | [`Admission`]: how many connections to providers may be open |
//! | `tap.rs` | [`Capture`]: what goes by, as it is recorded |
//! | `answer.rs` | [`OwnAnswer`]: the relay's own errors |
//!
//! One machine serves one connection of an app, exchange after exchange:
//!
//! ```text
//!             head          connected           head of the answer       its end
//!   Idle ───────────▶ Connecting ───────▶ Waiting ─────────────▶ Answering ─────▶ Flushing ──▶ Idle
//!     │                 ▲   ▲                │ 503, nothing passed on                │
//!     │ refused         │   └─── Pausing ◀───┘                                       ▼
//!     └──────────────▶ Flushing (an answer of the relay's own) ────────────────▶ Lingering ──▶ Over
//! ```
//!
//! - A side is not read while bytes for the other side wait, so what is held on the way is one read.
//! - What can go on at once is not copied: [`Item::Pass`] lends the driver its own bytes.
//! - The body of a request is kept only while it may have to be sent again: up to
//!   [`Retries::max_body_bytes`], until the head of an answer is passed on.
//! - The app's connection is watched for its end even when it is not read ([`Interest`] without `read`):
//!   an app that leaves cancels its call at once.

mod admission;
mod answer;
mod body;
mod event;
mod front;
mod limits;
mod passing;
mod progress;
mod query;
mod route;
mod tap;
#[cfg(test)]
mod tests;
mod upstream;

use std::sync::Arc;

pub use self::admission::Admission;
pub use self::answer::{Code, OwnAnswer, Served, Shape};
pub use self::event::{Command, Ending, Exchanged, Fact, Item, Link, State, Tap, Timer};
pub use self::front::MAX_LINGER_BYTES;
pub use self::limits::{Limits, Retries};
pub use self::progress::{Gap, Progress};
pub use self::route::{APP_KEY_FIELD, APP_KEY_PARAMETER, AppKey, Gate, Route, RouteError, RouteId, Routes};
pub use self::tap::{Caps, Capture, Captured, Counted, Side};

use self::body::Body;
use self::front::Front;
use self::passing::Passing;
use self::upstream::Upstream;
use crate::call::AttemptId;
use crate::http1::IncomingRequest;
use crate::machine::{Event, Interest, Machine, Misuse, Permit, Step, Tail, Wait};
use crate::outcome::{Reason, Span, SpanKind, Timeline};
use crate::time::{Bound, Instant};

/// How long a connection may wait for a request: 75 s
pub const KEEP_ALIVE: Bound = Bound::Limited(std::time::Duration::from_secs(75));
/// How long the head of a request may take: 30 s
pub const REQUEST_HEAD: Bound = Bound::Limited(std::time::Duration::from_secs(30));
/// How long the app may go on sending behind an answer of the relay's own, so that it sees the answer
/// before the connection ends: 10 s
pub const LINGER: Bound = Bound::Limited(std::time::Duration::from_secs(10));

/// One connection of an app, and the exchanges that come over it
///
/// Its driver reports the app's connection as open by [`Event::Start`], and each connection to a provider
/// as any machine's. It is done when the app's connection is to be closed.
pub struct Exchange {
    routes: Arc<Routes>,
    has_taps: bool,
    rng: fastrand::Rng,
    now: Instant,
    front: Front,
    /// Of the exchange under way
    current: Current,
    last_id: AttemptId,
    /// Whose the bytes are that are being parsed
    input_of: Link,
    commands: Vec<Command>,
    /// Items that have no bytes, on their way out
    told: Vec<Told>,
    /// Bytes that are lent to the driver, and how many of them a socket took
    pass: Option<Pass>,
    is_draining: bool,
    stale_events: u32,
    tail: Tail,
}

/// What is known of the exchange under way
struct Current {
    state: State,
    /// Since when it is in that state
    since: Instant,
    /// The first byte of the request came
    began: Option<Instant>,
    request_id: String,
    request: Option<Box<IncomingRequest>>,
    /// The key that the app showed, where the relay asks for one
    key: Option<AppKey>,
    /// Whether it is for a page of the relay's own, which people open
    is_for_person: bool,
    route: Option<RouteId>,
    shape: Shape,
    limits: Limits,
    may_resend: bool,
    /// What is asked for at the provider
    target: String,
    body: Body,
    up: Option<Box<Upstream>>,
    /// Connections since the last send that could not be opened
    failed_connects: u32,
    sends: u32,
    /// The app was told to go on with a body that it held back
    said_continue: bool,
    pause_until: Option<Instant>,
    passing: Option<Passing>,
    answer_bytes: u64,
    status: Option<http::StatusCode>,
    /// A part of the answer last reached the app, or its head came
    last_part: Instant,
    /// The longest time until then in which none did
    longest_gap: Option<Gap>,
    ending: Option<Ending>,
    timeline: Timeline,
}

/// An item that lends nothing of the input
enum Told {
    Request,
    Answer,
    Over(Box<Exchanged>),
}

/// Bytes of the input that are lent to the driver
struct Pass {
    to: Link,
    from: usize,
    until: usize,
    took: usize,
}

/// What parsing came to
enum Found {
    /// All is read
    Dry,
    /// Something changed
    Again,
    /// These bytes go to that side
    Pass(Link, std::ops::Range<usize>),
    /// These are to be recorded: of the request
    TapRequest(Bytes),
    /// Of the answer
    TapAnswer(std::ops::Range<usize>),
}

/// Where bytes of a request lie
enum Bytes {
    Input(std::ops::Range<usize>),
    Surplus(std::ops::Range<usize>),
}

/// How the app's connection is to be closed
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// Behind what was written
    Orderly,
    /// By a reset: the answer broke off, and only the end of the connection would have ended it
    Reset,
}

impl Exchange {
    /// The exchanges of a connection that has just been accepted
    ///
    /// `seed` draws the jitter of pauses and the request ids. With `has_taps` what goes by is delivered as
    /// [`Item::Tap`] as well.
    pub fn new(routes: Arc<Routes>, has_taps: bool, seed: u64, now: Instant) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let current = Current::new(&mut rng, now);
        Self {
            routes,
            has_taps,
            rng,
            now,
            front: Front::new(),
            current,
            last_id: AttemptId::NONE,
            input_of: Link::App,
            commands: Vec::new(),
            told: Vec::new(),
            pass: None,
            is_draining: false,
            stale_events: 0,
            tail: Tail::default(),
        }
    }

    /// The same, accepted while the relay is about to stop: its first request is answered, and then it is
    /// closed
    pub fn draining(mut self) -> Self {
        self.is_draining = true;
        self
    }

    /// Where the exchange is
    pub fn state(&self) -> State {
        self.current.state
    }

    /// The request under way, once its head is whole
    pub fn request(&self) -> Option<&IncomingRequest> {
        self.current.request.as_deref()
    }

    /// The id of the request under way, as it stands in answers of the relay's own
    pub fn request_id(&self) -> &str {
        &self.current.request_id
    }

    /// The route of the request under way
    pub fn route(&self) -> Option<RouteId> {
        self.current.route
    }

    /// The routes in force for this connection
    pub fn routes(&self) -> &Arc<Routes> {
        &self.routes
    }

    /// Bytes held: on their way to either side, or kept to be sent again
    pub fn held(&self) -> usize {
        self.front.held() + self.current.body.held() + self.current.up.as_ref().map_or(0, |up| up.held())
    }

    fn enter(&mut self, state: State) {
        self.current.state = state;
        self.current.since = self.now;
    }

    /// Notes what went on until now
    fn span(&mut self, kind: SpanKind, began: Instant, reason: Reason) {
        let before = self.current.timeline.attempt_count();
        let attempt = if kind == SpanKind::Backoff { before } else { before + 1 };
        self.current.timeline.span(Span { attempt, kind, began, ended: self.now, reason });
    }

    /// The next of the deadlines in force
    fn deadline(&self) -> Option<(Instant, Timer)> {
        let Current { state, since, began, limits, last_part, pause_until, .. } = &self.current;
        let begun = began.unwrap_or(*since);
        let is_open = matches!(
            state,
            State::Serving
                | State::Connecting
                | State::Waiting
                | State::Pausing
                | State::Answering
                | State::Flushing
        );
        let is_before_head = matches!(state, State::Connecting | State::Waiting | State::Pausing);
        let is_behind_head = matches!(state, State::Answering | State::Flushing);
        let is_idle = *state == State::Idle;
        let timers = [
            (Timer::Total, is_open.then(|| begun.after(limits.total))),
            (Timer::FirstByte, is_before_head.then(|| begun.after(limits.first_byte))),
            (Timer::Silence, is_behind_head.then(|| last_part.after(limits.silence))),
            (Timer::Connect, (*state == State::Connecting).then(|| since.after(limits.connect))),
            (Timer::RequestHead, (is_idle && began.is_some()).then(|| begun.after(REQUEST_HEAD))),
            (Timer::Pause, (*state == State::Pausing).then_some(*pause_until)),
            (Timer::Linger, (*state == State::Lingering).then(|| since.after(LINGER))),
            (Timer::KeepAlive, (is_idle && began.is_none()).then(|| since.after(KEEP_ALIVE))),
        ];
        let set = timers.into_iter().filter_map(|(timer, at)| Some((at.flatten()?, timer)));
        set.min()
    }

    fn elapsed(&mut self) {
        let Some((at, timer)) = self.deadline() else { return };
        if at > self.now {
            return;
        }
        match timer {
            Timer::Total | Timer::FirstByte
                if self.current.passing.is_none() && self.current.status.is_none() =>
            {
                self.attempt_ended(Reason::Bound(timer.name()));
                self.refuse(Code::UpstreamTimeout);
            }
            Timer::Total | Timer::FirstByte | Timer::Silence => self.limit(timer),
            Timer::Connect => self.connect_failed(Reason::Bound("connect")),
            Timer::RequestHead => self.refuse(Code::RequestTimeout),
            Timer::Pause => {
                self.span(SpanKind::Backoff, self.current.since, Reason::Slept);
                self.current.failed_connects = 0;
                self.connect(true);
            }
            Timer::Linger | Timer::KeepAlive => self.enter(State::Over),
        }
    }

    /// A limit is reached behind the head: the connection is closed, nothing is added
    fn limit(&mut self, timer: Timer) {
        self.attempt_ended(Reason::Bound(timer.name()));
        self.front.drop_window();
        self.over(Ending::Limit(timer));
    }

    /// The app has left, or the relay is stopped
    fn leave(&mut self, ending: Ending) {
        let is_told = match self.current.state {
            State::Lingering | State::Over => true,
            State::Flushing => self.current.ending.is_none(),
            State::Idle => self.current.began.is_none(),
            State::Serving | State::Connecting | State::Waiting | State::Pausing | State::Answering => false,
        };
        if !is_told {
            let leaks = planted!(RelayLeakOnLeaving) && self.current.state == State::Connecting;
            if leaks {
                self.current.up = None;
            }
            self.attempt_ended(Reason::Cancelled);
            self.over(ending);
        }
        self.enter(State::Over);
    }

    /// The exchange is over; tells so, and what becomes of the app's connection
    fn over(&mut self, ending: Ending) {
        self.note_gap();
        let current = &mut self.current;
        current.timeline.ended = self.now;
        current.timeline.stale_events = self.stale_events;
        let exchanged = Exchanged {
            request_id: current.request_id.clone(),
            ending,
            app: current.key.as_ref().map(|key| key.label.clone()),
            route: current.route.map(|route| self.routes.get(route).name().clone()),
            status: current.status,
            sends: current.sends,
            request_bytes: current.body.payload(),
            answer_bytes: current.answer_bytes,
            longest_gap: current.longest_gap,
            timeline: current.timeline.clone(),
        };
        if planted!(RelayOverTwice) && ending == Ending::Broken {
            self.told.push(Told::Over(Box::new(exchanged.clone())));
        }
        self.told.push(Told::Over(Box::new(exchanged)));
        let is_whole = matches!(ending, Ending::Passed | Ending::Refused(_) | Ending::Served);
        if !is_whole {
            let until_close = current.passing.as_ref().is_some_and(Passing::ends_with_the_connection);
            self.front.closing =
                if until_close && !planted!(RelayBreakUnseen) { Closing::Reset } else { Closing::Orderly };
            self.enter(State::Over);
        } else if !self.keeps_app() {
            // A connection that is closed with something unread in it takes the answer with it.
            self.commands.push(Command::Finish);
            self.enter(State::Lingering);
        } else {
            // The next one begins once this one's end is told.
            self.enter(State::Flushing);
            self.current.ending = None;
        }
    }

    /// Everything is as it is before a request
    fn begin_again(&mut self) {
        if self.is_draining {
            return self.enter(State::Over);
        }
        if let Some(routes) = self.front.next_routes.take() {
            self.routes = routes;
        }
        self.current = Current::new(&mut self.rng, self.now);
        self.front.again();
    }

    fn is_live(&mut self, id: AttemptId) -> Result<bool, Misuse> {
        if id > self.last_id || id == AttemptId::NONE {
            return Err(Misuse::UnknownLink);
        }
        let is_live = self.current.up.as_ref().is_some_and(|up| up.id == id);
        if !is_live {
            self.stale_events = self.stale_events.saturating_add(1);
        }
        Ok(is_live)
    }

    /// As [`Exchange::is_live`], for events that only an open connection can have
    fn is_open(&mut self, id: AttemptId) -> Result<bool, Misuse> {
        let is_live = self.is_live(id)?;
        if is_live && !self.current.up.as_ref().is_some_and(|up| up.is_open) {
            return Err(Misuse::NotConnected);
        }
        Ok(is_live)
    }

    fn take_in<'e>(&mut self, event: Event<'e, Self>) -> Result<&'e [u8], Misuse> {
        match event {
            Event::Start => {}
            Event::Elapsed => self.elapsed(),
            Event::Cancel => self.leave(Ending::Stopped),
            Event::Taken => {
                return Err(Misuse::OutOfOrder("this machine never waits for Taken: do not feed it"));
            }
            Event::Supplied(..) => {
                return Err(Misuse::OutOfOrder("this machine never asks for a supply: do not feed Supplied"));
            }
            Event::Connected(Link::Up(id)) => {
                if self.is_live(id)? {
                    self.connected(false)?;
                }
            }
            Event::Reused(Link::Up(id)) => {
                if self.is_live(id)? {
                    self.connected(true)?;
                }
            }
            Event::Connected(Link::App) | Event::Reused(Link::App) => {
                return Err(Misuse::OutOfOrder(
                    "the app's connection is open from the start: feed Start alone",
                ));
            }
            Event::Sent(Link::App, sent) => {
                let outgoing = self.front.window().len();
                if sent > outgoing {
                    return Err(Misuse::SentTooMuch { sent, outgoing });
                }
                self.front.sent(sent);
                self.reached_the_app(sent);
            }
            Event::Sent(Link::Up(id), sent) => {
                if self.is_open(id)? {
                    self.sent_up(sent)?;
                }
            }
            Event::Received(Link::App, bytes) => {
                self.input_of = Link::App;
                return Ok(bytes);
            }
            Event::Received(Link::Up(id), bytes) => {
                if self.is_open(id)? && self.received_up(bytes.len()) {
                    self.input_of = Link::Up(id);
                    return Ok(bytes);
                }
            }
            Event::Eof(Link::App, _) | Event::Failed(Link::App, _) => self.leave(Ending::AppLeft),
            Event::Eof(Link::Up(id), ended) => {
                if self.is_open(id)? {
                    self.upstream_ended(ended);
                }
            }
            Event::Failed(Link::Up(id), failure) => {
                if self.is_live(id)? {
                    self.upstream_failed(&failure);
                }
            }
            Event::Fact(Fact::Refused(id, code)) => {
                if self.is_live(id)? {
                    self.current.up = None;
                    self.refuse(code);
                }
            }
            Event::Fact(Fact::Draining) => {
                self.is_draining = true;
                if self.current.state == State::Idle && self.current.began.is_none() {
                    self.enter(State::Over);
                }
            }
            Event::Fact(Fact::Routes(routes)) => {
                if self.current.request.is_none() {
                    self.routes = routes;
                } else {
                    self.front.next_routes = Some(routes);
                }
            }
            Event::Fact(Fact::Served(answer)) => self.served(&answer),
        }
        Ok(&[])
    }

    /// A part of the answer reached the app
    fn reached_the_app(&mut self, bytes: usize) {
        if bytes > 0 && !planted!(RelaySilenceFromHead) {
            self.note_gap();
            self.current.last_part = self.now;
        }
    }

    /// What was lent is taken, or copied
    fn settle(&mut self, input: &[u8]) {
        let Some(Pass { to, from, until, took }) = self.pass.take() else { return };
        match to {
            Link::App => {
                let waiting = self.front.window().len();
                let of_window = took.min(waiting);
                self.front.sent(of_window);
                let passed = if planted!(RelayRestPassedTwice) { 0 } else { took - of_window };
                let rest = &input[(from + passed).min(until)..until];
                self.front.push(rest);
                self.reached_the_app(took);
            }
            Link::Up(_) => {
                let took = took.min(until - from);
                self.current.body.keep_rest(&input[from + took..until]);
                if let Some(up) = &mut self.current.up {
                    up.sent(took);
                }
            }
        }
    }

    /// Parses on, to the first thing to deliver
    fn advance(&mut self, input: &[u8], used: &mut usize) -> Found {
        if self.current.state == State::Over {
            *used = input.len();
            return Found::Dry;
        }
        let is_flushed = self.front.window().is_empty() && self.told.is_empty();
        if self.current.state == State::Flushing && is_flushed {
            match self.current.ending {
                Some(ending) => self.over(ending),
                None => self.begin_again(),
            }
            return Found::Again;
        }
        let reads_on = self.current.state == State::Idle || !self.current.body.has_ended();
        if self.front.has_surplus() && reads_on && self.current.state != State::Lingering {
            return self.read_surplus();
        }
        match self.input_of {
            Link::App => self.read_app(input, used),
            Link::Up(id) if self.current.up.as_ref().is_some_and(|up| up.id == id) => {
                self.read_up(input, used)
            }
            Link::Up(_) => {
                *used = input.len();
                Found::Dry
            }
        }
    }

    fn wait(&self) -> Wait<Self> {
        let reads_app = match self.current.state {
            State::Idle | State::Lingering => true,
            State::Waiting | State::Answering => self.reads_request(),
            State::Serving | State::Connecting | State::Pausing | State::Flushing | State::Over => false,
        };
        let app =
            Interest { link: Link::App, read: reads_app, write: !self.front.window().is_empty(), supply: 0 };
        let up = self.current.up.as_ref().filter(|up| up.is_open).map(|up| Interest {
            link: Link::Up(up.id),
            read: self.front.window().is_empty() || planted!(RelayWindowIgnored),
            write: !up.write_failed && (!up.head().is_empty() || !self.current.body.unsent().is_empty()),
            supply: 0,
        });
        Wait { deadline: self.deadline(), io: Interests([Some(app), up]), taken: false }
    }

    /// Whether more of the request's body is wanted
    fn reads_request(&self) -> bool {
        !self.current.body.has_ended()
            && self.current.body.unsent().is_empty()
            && self
                .current
                .up
                .as_ref()
                .is_some_and(|up| up.is_open && up.head().is_empty() && !up.write_failed)
    }
}

impl Current {
    fn new(rng: &mut fastrand::Rng, now: Instant) -> Self {
        let seed = rng.u64(..);
        Self {
            state: State::Idle,
            since: now,
            began: None,
            request_id: format!("req_{seed:016x}"),
            request: None,
            key: None,
            is_for_person: false,
            route: None,
            shape: Shape::default(),
            limits: Limits::default(),
            may_resend: false,
            target: String::new(),
            body: Body::new(crate::http1::BodyLength::None, 0),
            up: None,
            failed_connects: 0,
            sends: 0,
            said_continue: false,
            pause_until: None,
            passing: None,
            answer_bytes: 0,
            status: None,
            last_part: now,
            longest_gap: None,
            ending: None,
            timeline: Timeline::new(seed, now),
        }
    }
}

/// What an exchange wants of its connections: the app's, and perhaps one to a provider
#[derive(Clone, Copy, Debug)]
pub struct Interests([Option<Interest<Link>>; 2]);

impl IntoIterator for Interests {
    type Item = Interest<Link>;
    type IntoIter = std::iter::Flatten<std::array::IntoIter<Option<Interest<Link>>, 2>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter().flatten()
    }
}

impl Machine for Exchange {
    type Link = Link;
    type Timer = Timer;
    type Io = Interests;
    type Fact<'e> = Fact;
    type Item<'i> = Item<'i>;
    type Command = Command;
    type Done = Closing;

    fn accept<'e>(&mut self, _: Permit, now: Instant, event: Event<'e, Self>) -> Result<&'e [u8], Misuse> {
        let before = self.now;
        self.now = self.now.max(now);
        self.take_in(event).inspect_err(|_| self.now = before)
    }

    fn step<'s>(&'s mut self, _: Permit, input: &'s [u8], used: &mut usize) -> Step<'s, Self> {
        self.settle(input);
        let found = loop {
            if !self.commands.is_empty() {
                return Step::Do(self.commands.remove(0));
            }
            if !self.told.is_empty() {
                match self.told.remove(0) {
                    Told::Over(exchanged) => return Step::Deliver(Item::Over(exchanged)),
                    Told::Request => break Found::Again,
                    Told::Answer => break Found::Dry,
                }
            }
            match self.advance(input, used) {
                Found::Again => {}
                Found::Dry if !self.commands.is_empty() || !self.told.is_empty() => {}
                Found::Dry if self.current.state == State::Over && !self.front.is_done => {
                    self.front.is_done = true;
                    return Step::Done(self.front.closing);
                }
                Found::Dry => return Step::Wait(self.wait()),
                found @ (Found::Pass(..) | Found::TapRequest(_) | Found::TapAnswer(_)) => break found,
            }
        };
        match found {
            Found::Again => {
                let request = self.current.request.as_deref().expect("its head was just read");
                Step::Deliver(Item::Tap(Tap::Request(request)))
            }
            Found::Dry => {
                let (status, fields) = self.answer_head().expect("its head was just read");
                Step::Deliver(Item::Tap(Tap::Answer(status, fields)))
            }
            Found::Pass(to, range) => {
                self.pass = Some(Pass { to, from: range.start, until: range.end, took: 0 });
                let before = if to == Link::App { self.front.window() } else { &[] };
                Step::Deliver(Item::Pass { to, before, bytes: &input[range] })
            }
            Found::TapRequest(Bytes::Input(range)) => {
                Step::Deliver(Item::Tap(Tap::RequestBody(&input[range])))
            }
            Found::TapRequest(Bytes::Surplus(range)) => {
                Step::Deliver(Item::Tap(Tap::RequestBody(self.front.surplus(range))))
            }
            Found::TapAnswer(range) => Step::Deliver(Item::Tap(Tap::AnswerBody(&input[range]))),
        }
    }

    fn passes<'i>(item: &'i Item<'_>) -> Option<(Link, [&'i [u8]; 2])> {
        match item {
            Item::Pass { to, before, bytes } => Some((*to, [before, bytes])),
            Item::Tap(_) | Item::Over(_) => None,
        }
    }

    fn took(&mut self, _: Permit, bytes: usize) {
        if let Some(pass) = &mut self.pass {
            pass.took += bytes;
        }
    }

    fn detach(&mut self, _: Permit, input: &[u8]) {
        self.settle(input);
        self.keep_parsed(input);
    }

    fn tail(&mut self, _: Permit) -> &mut Tail {
        &mut self.tail
    }

    fn outgoing(&self, link: Link) -> [&[u8]; 2] {
        match (link, &self.current.up) {
            (Link::App, _) => [self.front.window(), &[]],
            (Link::Up(id), Some(up)) if up.id == id => [up.head(), self.current.body.unsent()],
            (Link::Up(_), _) => [&[], &[]],
        }
    }
}
