//! An exchange between two ends in memory, in virtual time.

use std::sync::Arc;
use std::time::Duration;

use crate::call::{AttemptId, CloseMode};
use crate::machine::{Ended, Event, FailureKind, IoFailure, Machine, Stage, Step};
use crate::relay::{
    Closing, Command, Ending, Exchange, Exchanged, Fact, Item, Link, Route, Routes, Shape, State, Tap, Timer,
};
use crate::time::Instant;

/// How many steps may follow one event
const MAX_STEPS: usize = 10_000;

/// How much of what is lent a socket takes at once
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    All,
    Nothing,
    /// At most so many bytes
    Some(usize),
}

pub(super) struct Rig {
    pub(super) exchange: Exchange,
    pub(super) now: Instant,
    pub(super) takes: Takes,
    /// What the app got
    pub(super) app: Vec<u8>,
    /// What each connection to the provider got, by its number
    pub(super) up: Vec<Vec<u8>>,
    pub(super) commands: Vec<String>,
    pub(super) over: Vec<Exchanged>,
    pub(super) done: Option<Closing>,
    pub(super) tapped_request: Vec<u8>,
    pub(super) tapped_answer: Vec<u8>,
    pub(super) deadline: Option<(Instant, Timer)>,
    /// Whether the app, and the provider, are to be read
    pub(super) reads: (bool, bool),
    pub(super) most_held: usize,
}

pub(super) fn routes(change: impl FnOnce(&mut Route)) -> Arc<Routes> {
    let mut openai = Route::new("openai", "http://up.example:8080", Shape::OpenAi).unwrap();
    change(&mut openai);
    let anthropic = Route::new("anthropic", "https://api.anthropic.com", Shape::Anthropic).unwrap();
    Arc::new(Routes::new(vec![openai, anthropic], &["/healthz"]).unwrap())
}

impl Rig {
    pub(super) fn new() -> Self {
        Self::with(routes(|_| {}), false)
    }

    pub(super) fn with(routes: Arc<Routes>, has_taps: bool) -> Self {
        let exchange = Exchange::new(routes, has_taps, 7, Instant::ORIGIN);
        let mut rig = Self {
            exchange,
            now: Instant::ORIGIN,
            takes: Takes::All,
            app: Vec::new(),
            up: Vec::new(),
            commands: Vec::new(),
            over: Vec::new(),
            done: None,
            tapped_request: Vec::new(),
            tapped_answer: Vec::new(),
            deadline: None,
            reads: (false, false),
            most_held: 0,
        };
        rig.tell(Event::Start);
        rig
    }

    /// Tells it, takes all steps, and writes what a socket takes
    pub(super) fn tell(&mut self, event: Event<'_, Exchange>) {
        let mut drain = self.exchange.handle(self.now, event).unwrap();
        for step in 0.. {
            assert!(step < MAX_STEPS, "it goes on for ever");
            match drain.next() {
                Step::Do(Command::Connect { id, reuse, .. }) => {
                    assert_eq!(id.number() as usize, self.up.len() + 1);
                    self.up.push(Vec::new());
                    self.commands.push(format!("connect{}{}", id.number(), if reuse { "" } else { " new" }));
                }
                Step::Do(Command::Close(id, mode)) => {
                    let kept = if mode == CloseMode::Keep { "keep" } else { "abort" };
                    self.commands.push(format!("{kept}{}", id.number()));
                }
                Step::Do(Command::Finish) => self.commands.push("finish".into()),
                Step::Do(Command::Serve(_)) => self.commands.push("serve".into()),
                Step::Deliver(Item::Pass { to, before, bytes }) => {
                    let all = [before, bytes].concat();
                    let took = match self.takes {
                        Takes::All => all.len(),
                        Takes::Nothing => 0,
                        Takes::Some(most) => all.len().min(most),
                    };
                    match to {
                        Link::App => self.app.extend_from_slice(&all[..took]),
                        Link::Up(id) => self.up[id.number() as usize - 1].extend_from_slice(&all[..took]),
                    }
                    drain.took(took);
                }
                Step::Deliver(Item::Tap(Tap::RequestBody(bytes))) => {
                    self.tapped_request.extend_from_slice(bytes)
                }
                Step::Deliver(Item::Tap(Tap::AnswerBody(bytes))) => {
                    self.tapped_answer.extend_from_slice(bytes)
                }
                Step::Deliver(Item::Tap(Tap::Request(_) | Tap::Answer(..))) => {}
                Step::Deliver(Item::Over(exchanged)) => self.over.push(*exchanged),
                Step::Done(closing) => {
                    assert_eq!(self.done.replace(closing), None, "done comes once");
                }
                Step::Wait(wait) => {
                    self.deadline = wait.deadline;
                    self.reads = (false, false);
                    for interest in wait.io {
                        match interest.link {
                            Link::App => self.reads.0 = interest.read,
                            Link::Up(_) => self.reads.1 = interest.read,
                        }
                    }
                    break;
                }
            }
        }
        drop(drain);
        self.most_held = self.most_held.max(self.exchange.held());
        self.write();
    }

    /// Writes what waits, where sockets take anything
    pub(super) fn write(&mut self) {
        if self.takes == Takes::Nothing || self.done.is_some() {
            return;
        }
        let links = [Some(Link::App), self.open().map(Link::Up)];
        for link in links.into_iter().flatten() {
            let outgoing = self.exchange.outgoing(link).concat();
            if !outgoing.is_empty() {
                match link {
                    Link::App => self.app.extend_from_slice(&outgoing),
                    Link::Up(id) => self.up[id.number() as usize - 1].extend_from_slice(&outgoing),
                }
                return self.tell(Event::Sent(link, outgoing.len()));
            }
        }
    }

    /// The connection that is open
    fn open(&self) -> Option<AttemptId> {
        self.exchange.current.up.as_ref().filter(|up| up.is_open).map(|up| up.id)
    }

    fn last(&self) -> Link {
        Link::Up(self.exchange.last_id)
    }

    pub(super) fn app_sends(&mut self, bytes: impl AsRef<[u8]>) {
        self.tell(Event::Received(Link::App, bytes.as_ref()));
    }

    pub(super) fn connected(&mut self) {
        let link = self.last();
        self.tell(Event::Connected(link));
    }

    pub(super) fn reused(&mut self) {
        let link = self.last();
        self.tell(Event::Reused(link));
    }

    pub(super) fn up_sends(&mut self, bytes: impl AsRef<[u8]>) {
        let link = self.last();
        self.tell(Event::Received(link, bytes.as_ref()));
    }

    pub(super) fn up_ends(&mut self) {
        let link = self.last();
        self.tell(Event::Eof(link, Ended::Clean));
    }

    pub(super) fn up_fails(&mut self, stage: Stage) {
        let link = self.last();
        let failure = IoFailure { stage, kind: FailureKind::Reset, message: "reset".into() };
        self.tell(Event::Failed(link, failure));
    }

    pub(super) fn refused(&mut self, code: crate::relay::Code) {
        let id = self.exchange.last_id;
        self.tell(Event::Fact(Fact::Refused(id, code)));
    }

    pub(super) fn app_leaves(&mut self) {
        self.tell(Event::Eof(Link::App, Ended::Clean));
    }

    /// Time goes on to the next deadline
    pub(super) fn wait(&mut self) -> Timer {
        let (at, timer) = self.deadline.expect("a wait is bounded");
        self.now = at.max(self.now);
        self.tell(Event::Elapsed);
        timer
    }

    pub(super) fn after(&mut self, seconds: f64) {
        self.now = self.now + Duration::from_secs_f64(seconds);
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.app).into_owned()
    }

    pub(super) fn up_text(&self, number: usize) -> String {
        String::from_utf8_lossy(&self.up[number - 1]).into_owned()
    }

    pub(super) fn ending(&self) -> Ending {
        self.over.last().expect("it is over").ending
    }

    pub(super) fn state(&self) -> State {
        self.exchange.state()
    }
}

/// A POST of that body to the route
pub(super) fn post(route: &str, body: &str) -> String {
    format!(
        "POST /{route}/v1/chat HTTP/1.1\r\nHost: localhost:9\r\nAuthorization: Bearer sk-1\r\nX-Odd-Case: a\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}
