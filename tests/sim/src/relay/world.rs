//! One run: the driver, both ends, and the order of what happens.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use steadfast::call::CloseMode;
use steadfast::machine::{Ended, Event, FailureKind, IoFailure, Machine, Stage, Step};
use steadfast::relay::{
    Closing, Command, Exchange, Fact, Item, Link, Route, Routes, Served, State, Tap, Timer,
};
use steadfast::time::Instant;

use super::coverage::Coverage;
use super::messages::{Goes, LOCAL, ROUTES};
use super::peers::{App, Opening, Up};
use super::plan::{Answered, Connect, End, Interrupt, Leaves, Plan};
use super::watch::Watch;
use super::{Invariant, Violation};
use crate::random::{Choices, Digest};

/// How many events one run may take
const MAX_EVENTS: u32 = 200_000;
/// How many steps may follow one event
const MAX_STEPS: u32 = 100_000;
/// What the relay's own page says
pub(super) const PAGE: &[u8] = b"served";

/// One run
pub(super) struct World<'c> {
    exchange: Exchange,
    pub(super) side: Side<'c>,
}

/// All that is not the exchange itself
pub(super) struct Side<'c> {
    choices: Choices<'c>,
    pub(super) coverage: &'c mut Coverage,
    pub(super) plan: Plan,
    routes: Arc<Routes>,
    pub(super) now: Instant,
    pub(super) app: App,
    /// All connections that were asked for
    pub(super) ups: Vec<Up>,
    /// The routes of connections that were left open
    kept: Vec<usize>,
    connects: VecDeque<Connect>,
    answers: VecDeque<Answered>,
    serves_at: Option<Instant>,
    pub(super) watch: Watch,
    wants: Wants,
    events: u32,
    steps: u64,
    digest: Digest,
    log: Option<String>,
}

/// What the last wait asked for
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wants {
    pub(super) deadline: Option<(Instant, Timer)>,
    pub(super) reads_app: bool,
    pub(super) writes_app: bool,
    pub(super) reads_up: bool,
    pub(super) writes_up: bool,
}

/// What can happen next
#[derive(Clone, Copy, Debug)]
enum Next {
    AppBytes,
    AppWrites,
    AppLeaves(Leaves),
    Opened,
    UpBytes,
    UpWrites,
    UpBreaks,
    UpEnds(End),
    Served,
}

impl<'c> World<'c> {
    pub(super) fn new(mut choices: Choices<'c>, coverage: &'c mut Coverage, is_logged: bool) -> Self {
        let plan = Plan::draw(&mut choices);
        let routes = Arc::new(routes(&plan));
        let exchange = Exchange::new(Arc::clone(&routes), plan.has_taps, 7, Instant::ORIGIN);
        let side = Side {
            choices,
            coverage,
            routes,
            now: Instant::ORIGIN,
            app: App::new(&plan),
            ups: Vec::new(),
            kept: Vec::new(),
            connects: plan.connects.clone().into(),
            answers: plan.answers.clone().into(),
            serves_at: None,
            watch: Watch::new(),
            wants: Wants::default(),
            events: 0,
            steps: 0,
            digest: Digest::default(),
            log: is_logged.then(|| format!("{plan:?}\n")),
            plan,
        };
        Self { exchange, side }
    }

    pub(super) fn into_tape(self) -> Vec<u32> {
        self.side.choices.into_tape()
    }

    pub(super) fn digest(&self) -> u64 {
        self.side.digest.value()
    }

    pub(super) fn steps(&self) -> u64 {
        self.side.steps
    }

    pub(super) fn log(&self) -> &str {
        self.side.log.as_deref().unwrap_or_default()
    }

    /// Plays to the end of the app's connection
    ///
    /// Errors: the first invariant that did not hold.
    pub(super) fn run(&mut self) -> Result<(), Violation> {
        if self.side.plan.has_taps {
            self.side.coverage.met("taps");
        }
        self.tell(Event::Start)?;
        while self.side.watch.done.is_none() {
            self.side.events += 1;
            if self.side.events > MAX_EVENTS {
                return Err(self.side.wrong(Invariant::Ends, format!("not over after {MAX_EVENTS} events")));
            }
            self.side.send();
            self.interrupt()?;
            if self.side.watch.done.is_some() {
                break;
            }
            let is_due = self.side.wants.deadline.is_some_and(|(at, _)| at <= self.side.now);
            let ready = self.side.ready();
            if !ready.is_empty() {
                let next = self.side.choices.pick(&ready);
                self.happens(next)?;
                let is_still_due = self.side.wants.deadline.is_some_and(|(at, _)| at <= self.side.now);
                if !(is_due && is_still_due) || self.side.watch.done.is_some() {
                    continue;
                }
            }
            let Some((at, timer)) = self.side.wants.deadline else {
                self.side.pass_time(None)?;
                continue;
            };
            if at <= self.side.now {
                self.side.coverage.timer(timer);
                self.elapsed(timer)?;
            } else {
                self.side.pass_time(Some(at))?;
            }
        }
        self.side.check_end()
    }

    fn elapsed(&mut self, timer: Timer) -> Result<(), Violation> {
        let before = (self.exchange.state(), self.side.watch.overs, self.side.ups.len());
        self.tell(Event::Elapsed)?;
        let after = (self.exchange.state(), self.side.watch.overs, self.side.ups.len());
        let is_later = self.side.wants.deadline.is_none_or(|(at, _)| at > self.side.now);
        if is_later || before != after || self.side.watch.done.is_some() {
            return Ok(());
        }
        Err(self.side.wrong(Invariant::Ends, format!("{timer:?} came and nothing changed")))
    }

    fn interrupt(&mut self) -> Result<(), Violation> {
        let Some((at, interrupt)) = self.side.plan.interrupt else { return Ok(()) };
        if at != self.side.events {
            return Ok(());
        }
        match interrupt {
            Interrupt::Draining => {
                self.side.coverage.met("draining");
                self.side.watch.is_draining = true;
                self.tell(Event::Fact(Fact::Draining))
            }
            Interrupt::Cancel => {
                self.side.coverage.met("cancel");
                self.side.watch.is_cancelled = true;
                self.tell(Event::Cancel)?;
                self.side.is_over_at_once()
            }
            Interrupt::Routes => {
                let routes = Arc::new(routes(&self.side.plan));
                self.tell(Event::Fact(Fact::Routes(routes)))
            }
        }
    }

    fn happens(&mut self, next: Next) -> Result<(), Violation> {
        let (side, exchange) = (&mut self.side, &self.exchange);
        let up = side.ups.len().saturating_sub(1);
        match next {
            Next::AppBytes => {
                let bytes = side.app.stream.unread(side.now);
                let most = bytes.len().min(side.plan.max_read);
                let bytes = bytes[..side.choices.length(most)].to_vec();
                side.app.stream.read += bytes.len();
                self.tell(Event::Received(Link::App, &bytes))
            }
            Next::AppWrites => {
                let outgoing = exchange.outgoing(Link::App).concat();
                let sent = side.choices.length(outgoing.len().min(side.app.room(side.now)));
                side.app_takes(&outgoing[..sent]);
                self.tell(Event::Sent(Link::App, sent))
            }
            Next::AppLeaves(how) => {
                side.coverage.met("app leaves");
                side.app.has_left = true;
                match how {
                    Leaves::Fin => self.tell(Event::Eof(Link::App, Ended::Clean))?,
                    Leaves::Reset => self.tell(Event::Failed(Link::App, failure(Stage::Read)))?,
                }
                self.side.is_over_at_once()
            }
            Next::Opened => self.opened(up),
            Next::UpBytes => {
                let now = side.now;
                let up = &mut side.ups[up];
                let bytes = up.stream.unread(now);
                let most = bytes.len().min(side.plan.max_read);
                let bytes = bytes[..side.choices.length(most)].to_vec();
                up.stream.read += bytes.len();
                if up.got.is_empty() {
                    side.coverage.met("answer unasked");
                } else if up.stream.read >= up.head_length && up.head_read.is_none() {
                    up.head_read = Some(now);
                }
                let link = Link::Up(up.id);
                self.tell(Event::Received(link, &bytes))
            }
            Next::UpWrites => {
                let up = &mut side.ups[up];
                let outgoing = exchange.outgoing(Link::Up(up.id)).concat();
                let sent = side.choices.length(outgoing.len().min(up.room()));
                up.got.extend_from_slice(&outgoing[..sent]);
                let link = Link::Up(up.id);
                self.tell(Event::Sent(link, sent))
            }
            Next::UpBreaks => {
                side.coverage.met("write fails");
                side.ups[up].write_failed = true;
                let link = Link::Up(side.ups[up].id);
                self.tell(Event::Failed(link, failure(Stage::Write)))
            }
            Next::UpEnds(end) => {
                side.met_end(up);
                let up = &mut side.ups[up];
                up.end_told = true;
                let link = Link::Up(up.id);
                self.tell(match end {
                    End::Fin | End::Keeps => Event::Eof(link, Ended::Clean),
                    End::Unauthenticated => Event::Eof(link, Ended::WithoutCloseNotify),
                    End::Reset => Event::Failed(link, failure(Stage::Read)),
                })
            }
            Next::Served => {
                side.serves_at = None;
                let served = Served { status: StatusCode::OK, fields: Vec::new(), body: PAGE.to_vec() };
                self.tell(Event::Fact(Fact::Served(Box::new(served))))
            }
        }
    }

    fn opened(&mut self, up: usize) -> Result<(), Violation> {
        let side = &mut self.side;
        let up = &mut side.ups[up];
        let link = Link::Up(up.id);
        match up.opening {
            Opening::Refused(code) => {
                up.opening = Opening::Over;
                let id = up.id;
                side.watch.refused = Some(code);
                self.tell(Event::Fact(Fact::Refused(id, code)))
            }
            Opening::Fails(_) => {
                up.opening = Opening::Over;
                side.coverage.met("connection fails");
                self.tell(Event::Failed(link, failure(Stage::Connect)))
            }
            Opening::Opens(_) | Opening::Hangs | Opening::Open | Opening::Over => {
                up.opening = Opening::Open;
                if up.stale.is_none() {
                    let answered = side.answers.pop_front().unwrap_or_else(Answered::sound);
                    side.coverage.answer(&answered);
                    up.answered = Some(answered);
                }
                if up.is_reused {
                    side.coverage.met("connection reused");
                    self.tell(Event::Reused(link))
                } else {
                    self.tell(Event::Connected(link))
                }
            }
        }
    }

    /// Tells the exchange, and does what it says until it waits
    fn tell(&mut self, event: Event<'_, Exchange>) -> Result<(), Violation> {
        let Self { exchange, side } = self;
        side.note(|| format!("{event:?}"), 1);
        let mut drain = match exchange.handle(side.now, event) {
            Ok(drain) => drain,
            Err(misuse) => return Err(side.wrong(Invariant::Contract, misuse.to_string())),
        };
        for _ in 0..MAX_STEPS {
            side.steps += 1;
            match drain.next() {
                Step::Do(command) => side.command(command)?,
                Step::Deliver(Item::Pass { to, before, bytes }) => {
                    let took = side.pass(to, &[before, bytes].concat())?;
                    drain.took(took);
                }
                Step::Deliver(Item::Tap(tap)) => side.tap(&tap),
                Step::Deliver(Item::Over(exchanged)) => side.over(&exchanged)?,
                Step::Done(closing) => {
                    side.done(closing)?;
                    let is_waiting = matches!(drain.next(), Step::Wait(_));
                    drop(drain);
                    side.wants = Wants::default();
                    side.coverage.state(exchange.state());
                    let text = "something follows Done".to_owned();
                    return if is_waiting { Ok(()) } else { Err(side.wrong(Invariant::Once, text)) };
                }
                Step::Wait(wait) => {
                    drop(drain);
                    return self.waits(wait.deadline, wait.io);
                }
            }
            if side.plan.drops > 0 && side.choices.one_in(side.plan.drops) {
                side.coverage.met("drain dropped");
                drop(drain);
                drain = exchange.drain();
            }
        }
        drop(drain);
        Err(self.side.wrong(Invariant::Ends, format!("more than {MAX_STEPS} steps follow one event")))
    }

    fn waits(
        &mut self,
        deadline: Option<(Instant, Timer)>,
        io: steadfast::relay::Interests,
    ) -> Result<(), Violation> {
        let Self { exchange, side } = self;
        let mut wants = Wants { deadline, ..Wants::default() };
        for interest in io {
            match interest.link {
                Link::App => (wants.reads_app, wants.writes_app) = (interest.read, interest.write),
                Link::Up(id) => {
                    if side.ups.last().is_none_or(|up| up.id != id || up.is_closed) {
                        let what = format!("it waits for {id:?}, which is not open");
                        return Err(side.wrong(Invariant::Closed, what));
                    }
                    (wants.reads_up, wants.writes_up) = (interest.read, interest.write);
                }
            }
        }
        let waiting = |link| exchange.outgoing(link).iter().map(|part| part.len()).sum::<usize>();
        let up = side.ups.last().map(|up| waiting(Link::Up(up.id)));
        let for_app = waiting(Link::App);
        side.wants = wants;
        side.check_wait(exchange.state(), wants, exchange.held(), (for_app, up.unwrap_or(0)))
    }
}

impl Side<'_> {
    pub(super) fn wrong(&self, invariant: Invariant, what: String) -> Violation {
        Violation { invariant, what, at: self.now }
    }

    fn note(&mut self, text: impl FnOnce() -> String, kind: u64) {
        self.digest.number(self.now.as_nanos() ^ kind);
        if let Some(log) = &mut self.log {
            log.push_str(&format!("{:?} {}\n", self.now.since_origin(), text()));
        }
    }

    /// Both ends send what they can
    fn send(&mut self) {
        let before = self.app.sent;
        self.app.send(&self.plan, self.watch.overs, self.now);
        for sent in &self.plan.requests[before..self.app.sent] {
            self.coverage.request(sent);
        }
        let request = self.plan.requests.get(self.watch.overs).map(|sent| &sent.request);
        if let (Some(up), Some(request)) = (self.ups.last_mut(), request) {
            up.send(request, self.now);
        }
    }

    /// The connection that is under way
    fn live(&self) -> Option<&Up> {
        self.ups.last().filter(|up| !up.is_closed && up.opening != Opening::Over)
    }

    /// What can happen now
    fn ready(&self) -> Vec<Next> {
        let (wants, now) = (self.wants, self.now);
        let mut ready = Vec::new();
        let unread = !self.app.stream.unread(now).is_empty();
        if wants.reads_app && unread && !self.app.has_left {
            ready.push(Next::AppBytes);
        }
        if wants.writes_app && self.app.room(now) > 0 {
            ready.push(Next::AppWrites);
        }
        if let Some((at, how)) = self.app.leaves {
            let is_seen = how == Leaves::Reset || !wants.reads_app || self.app.stream.is_all_read();
            if at <= now && !self.app.has_left && is_seen {
                ready.push(Next::AppLeaves(how));
            }
        }
        if self.serves_at.is_some_and(|at| at <= now) {
            ready.push(Next::Served);
        }
        let Some(up) = self.live() else { return ready };
        match up.opening {
            Opening::Opens(at) | Opening::Fails(at) if at <= now => ready.push(Next::Opened),
            Opening::Refused(_) => ready.push(Next::Opened),
            Opening::Opens(_) | Opening::Fails(_) | Opening::Hangs | Opening::Open | Opening::Over => {}
        }
        let unread = !up.stream.unread(now).is_empty();
        if wants.reads_up && unread {
            ready.push(Next::UpBytes);
        }
        if wants.writes_up && up.room() > 0 {
            ready.push(Next::UpWrites);
        }
        if wants.writes_up && up.is_broken() {
            ready.push(Next::UpBreaks);
        }
        if let Some((at, end)) = up.end
            && at <= now
            && wants.reads_up
            && (end == End::Reset || up.stream.is_all_read())
        {
            ready.push(Next::UpEnds(end));
        }
        ready
    }

    /// Time goes on to what comes next, or to the deadline
    fn pass_time(&mut self, deadline: Option<Instant>) -> Result<(), Violation> {
        let up = self.live().and_then(|up| up.next(self.now));
        let serves = self.serves_at.filter(|at| *at > self.now);
        let next = [self.app.next(self.now), up, serves].into_iter().flatten().min();
        match (next, deadline) {
            (Some(next), Some(at)) if next > at => self.pass_to(at),
            (Some(next), _) => self.now = next,
            (None, Some(at)) => self.pass_to(at),
            (None, None) => {
                return Err(self.wrong(Invariant::Deadline, "it waits for ever".to_owned()));
            }
        }
        Ok(())
    }

    fn pass_to(&mut self, deadline: Instant) {
        self.now = deadline;
        if self.plan.late > 0 && self.choices.one_in(self.plan.late) {
            self.coverage.met("late");
            self.now = deadline + Duration::from_millis(u64::from(1 + self.choices.below(5_000)));
        }
    }

    fn command(&mut self, command: Command) -> Result<(), Violation> {
        self.note(|| format!("    {command:?}"), 2);
        match command {
            Command::Connect { id, origin, reuse } => {
                self.check_connect(&origin, reuse)?;
                self.watch.connect_at = self.now;
                let route = self.watch.route.unwrap_or_default();
                let mut up = Up::new(id, route, Opening::Hangs);
                let planned = self.connects.pop_front().unwrap_or(Connect::Opens(Duration::ZERO));
                up.opening = match planned {
                    Connect::Opens(after) => Opening::Opens(self.now + after),
                    Connect::Stale(_) if !reuse => Opening::Opens(self.now),
                    Connect::Stale(behind) => {
                        (up.stale, up.is_reused) = (Some(behind), true);
                        Opening::Opens(self.now)
                    }
                    Connect::Fails(after) => Opening::Fails(self.now + after),
                    Connect::Hangs => {
                        self.coverage.met("connection hangs");
                        Opening::Hangs
                    }
                    Connect::Refused(code) => Opening::Refused(code),
                };
                let left = self.kept.iter().position(|kept| *kept == route);
                if let (Opening::Opens(_), None, true, Some(left)) = (up.opening, up.stale, reuse, left) {
                    self.kept.swap_remove(left);
                    up.is_reused = true;
                }
                self.ups.push(up);
            }
            Command::Close(id, mode) => {
                let keeps = !matches!(mode, CloseMode::Abort);
                self.check_close(id, keeps)?;
                let up = self.ups.iter_mut().find(|up| up.id == id).expect("it was checked");
                up.is_closed = true;
                if keeps && up.stream.is_all_read() && up.end.is_none() {
                    self.coverage.met("connection kept");
                    self.kept.push(up.route);
                }
            }
            Command::Serve(_) => self.serves_at = Some(self.now + self.plan.serves_after),
            Command::Finish => self.watch.linger_at = self.now,
        }
        Ok(())
    }

    /// A socket takes what it can of bytes that are lent
    fn pass(&mut self, to: Link, bytes: &[u8]) -> Result<usize, Violation> {
        let room = match to {
            Link::App => self.app.room(self.now),
            Link::Up(id) => match self.live() {
                Some(up) if up.id == id && up.opening == Opening::Open => up.room(),
                _ => return Err(self.wrong(Invariant::Closed, format!("bytes for {id:?}, which is closed"))),
            },
        };
        let most = bytes.len().min(room);
        let took = if most == 0 || self.choices.one_in(5) { 0 } else { self.choices.length(most) };
        match to {
            Link::App => self.app_takes(&bytes[..took]),
            Link::Up(_) => {
                if let Some(up) = self.ups.last_mut() {
                    up.got.extend_from_slice(&bytes[..took]);
                }
            }
        }
        self.note(|| format!("    pass {} to {to:?}, {took} taken", bytes.len()), took as u64);
        Ok(took)
    }

    fn app_takes(&mut self, bytes: &[u8]) {
        self.digest.bytes(bytes);
        if !bytes.is_empty() {
            self.watch.part_at = self.now;
        }
        self.app.takes(bytes, self.now);
        if self.app.is_stalled(self.now) {
            self.coverage.met("app stalls");
        }
    }

    fn tap(&mut self, tap: &Tap<'_>) {
        self.note(|| format!("    {tap:?}"), 3);
        match tap {
            Tap::RequestBody(bytes) => self.watch.tapped_request.extend_from_slice(bytes),
            Tap::AnswerBody(bytes) => self.watch.tapped_answer.extend_from_slice(bytes),
            Tap::Request(_) => self.watch.taps.0 += 1,
            Tap::Answer(..) => self.watch.taps.1 += 1,
        }
    }

    fn done(&mut self, closing: Closing) -> Result<(), Violation> {
        self.note(|| format!("    done: {closing:?}"), 4);
        match self.watch.done.replace(closing) {
            None => Ok(()),
            Some(_) => Err(self.wrong(Invariant::Once, "it is done twice".to_owned())),
        }
    }

    /// The app has left, or the relay was stopped
    fn is_over_at_once(&self) -> Result<(), Violation> {
        match self.watch.done {
            Some(_) => Ok(()),
            None => Err(self.wrong(Invariant::Ruling, "it goes on without its app".to_owned())),
        }
    }

    fn met_end(&mut self, up: usize) {
        let up = &self.ups[up];
        match up.stale {
            Some(_) if up.got.is_empty() => self.coverage.met("connection stale before a byte"),
            Some(_) => self.coverage.met("connection stale behind a byte"),
            None => {}
        }
    }

    /// The request of the exchange under way
    pub(super) fn goes(&self) -> Option<Goes> {
        self.plan.requests.get(self.watch.overs).map(|sent| sent.request.goes)
    }

    /// The route of the exchange under way
    pub(super) fn origin_of(&self, route: usize) -> &steadfast::call::Origin {
        let id = self.routes.named(ROUTES[route].0).expect("it was made");
        self.routes.get(id).origin()
    }

    pub(super) fn state_met(&mut self, state: State) {
        self.coverage.state(state);
    }
}

impl Choices<'_> {
    /// A length from 1 to `most`, which is zero where that is zero; the longest is the simplest
    fn length(&mut self, most: usize) -> usize {
        if most == 0 || !self.one_in(3) {
            return most;
        }
        most - self.below(most as u32) as usize
    }
}

fn routes(plan: &Plan) -> Routes {
    let mut routes = Vec::new();
    for ((name, host, shape), limits) in ROUTES.into_iter().zip(plan.limits) {
        let mut route = Route::new(name, &format!("http://{host}"), shape).expect("a sound route");
        route.limits = limits;
        routes.push(route);
    }
    Routes::new(routes, &[LOCAL]).expect("sound routes")
}

fn failure(stage: Stage) -> IoFailure {
    IoFailure { stage, kind: FailureKind::Reset, message: "reset".into() }
}
