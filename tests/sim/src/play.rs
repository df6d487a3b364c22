//! The driver in virtual time.

use std::time::Duration;

use steadfast::body::{Feed, Waker};
use steadfast::call::{AttemptId, Call, Command, Env, Item, Request};
use steadfast::config::RequestConfig;
use steadfast::machine::{Drain, Event, FailureKind, IoFailure, Machine, Stage, Step, Wait};
use steadfast::outcome::{Outcome, Turn};
use steadfast::time::Instant;
use steadfast_scenario::{Call as Caller, Cancel, Listen, Script, Tally};

use crate::observed::Played;
use crate::server::{Peer, PeerEnd, add};
use crate::traces::Traces;

/// The most events of one call; more means that it does not come to an end
pub const MAX_EVENTS: u64 = 50_000_000;

/// In what pieces the bytes of a server are read
#[derive(Clone, Debug)]
pub enum Split {
    /// As many as there are, up to so many
    UpTo(usize),
    /// A random number of them, up to so many
    Random(fastrand::Rng, usize),
}

impl Split {
    fn next(&mut self) -> usize {
        match self {
            Self::UpTo(most) => *most,
            Self::Random(rng, most) => rng.usize(1..=*most),
        }
    }
}

/// A scripted server in memory, and calls made to it under virtual time
pub struct Sim<'a> {
    script: &'a Script,
    split: Split,
    env: Env,
    accepted: u64,
    tally: Tally,
    traces: Option<Traces>,
}

impl<'a> Sim<'a> {
    /// A server that plays `script`, read in pieces of up to 16 KiB
    pub fn new(script: &'a Script) -> Self {
        let env = Env { seed: 1, unix_at_origin: Duration::ZERO };
        Self {
            script,
            split: Split::UpTo(16 * 1024),
            env,
            accepted: 0,
            tally: Tally::default(),
            traces: None,
        }
    }

    /// The same, read in other pieces
    pub fn split(mut self, split: Split) -> Self {
        self.split = split;
        self
    }

    /// The same, with another seed or wall clock
    pub fn env(mut self, env: Env) -> Self {
        self.env = env;
        self
    }

    /// The same, with every call recorded
    pub fn traces(mut self, traces: &Traces) -> Self {
        self.traces = Some(traces.clone());
        self
    }

    /// What the server saw, of all calls together
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Makes one call, as `caller` says
    ///
    /// # Panics
    ///
    /// If the call does not come to an end, or breaks what every machine promises.
    pub fn play(&mut self, request: Request, caller: &Caller) -> Played {
        let config = RequestConfig::default().with(request.overrides()).expect("checked when it was built");
        let mut call = Call::new(request, config, self.env, Instant::ORIGIN);
        if let Some(traces) = &self.traces {
            call.record(traces.recorder()).expect("the call has not begun");
        }
        let consumer = Consumer {
            caller,
            now: Instant::ORIGIN,
            away_until: None,
            deltas: 0,
            turn: Turn::default(),
            turn_at: None,
        };
        let mut play = Play {
            sim: self,
            call,
            consumer,
            connects: Vec::new(),
            peer: None,
            cancelled: false,
            feed: Feed::default(),
            commands: Vec::new(),
        };
        let outcome = play.run();
        let Play { consumer, commands, .. } = play;
        let turn_at = consumer.turn_at.or_else(|| outcome.result.is_ok().then_some(outcome.timeline.ended));
        Played { outcome, turn_of_deltas: consumer.turn, turn_at, commands }
    }
}

struct Play<'p, 'a> {
    sim: &'p mut Sim<'a>,
    call: Call,
    consumer: Consumer<'p>,
    /// Connections asked for that nobody has answered
    connects: Vec<AttemptId>,
    /// The connection in use, and whether the call knows that it is open
    peer: Option<(AttemptId, bool, Peer)>,
    cancelled: bool,
    feed: Feed,
    commands: Vec<(Instant, Command)>,
}

/// Who takes what is delivered, in its own time
struct Consumer<'p> {
    caller: &'p Caller,
    now: Instant,
    away_until: Option<Instant>,
    deltas: u32,
    /// The turn that the deltas make
    turn: Turn,
    turn_at: Option<Instant>,
}

enum Stop {
    /// The consumer has something else to do
    Away,
    Wait(Wait<Call>),
    Done(Box<Outcome>),
}

impl Play<'_, '_> {
    fn run(&mut self) -> Outcome {
        let mut stop = if self.cancel_due() {
            // Before anything was done: nobody acts on what the call would have asked for.
            self.cancelled = true;
            drop(self.call.handle(self.consumer.now, Event::Start).expect("a new call can begin"));
            self.feed(Event::Cancel)
        } else {
            self.feed(Event::Start)
        };
        let mut looked = None;
        for _ in 0..MAX_EVENTS {
            if let Some((_, _, peer)) = &mut self.peer {
                peer.run(self.consumer.now);
            }
            let wait = match stop {
                Stop::Done(outcome) => {
                    self.close();
                    return *outcome;
                }
                _ if self.cancel_due() => {
                    self.cancelled = true;
                    stop = self.feed(Event::Cancel);
                    continue;
                }
                // While the consumer is away, nobody drives the call; the server goes on.
                Stop::Away => {
                    match self.consumer.away_until.take() {
                        Some(until) if until > self.consumer.now => {
                            let peer = self.peer.as_ref().and_then(|(_, _, peer)| peer.wakes_at());
                            self.jump([Some(until), self.cancel_at(), peer]);
                            self.consumer.away_until = Some(until);
                        }
                        _ => stop = self.drain(),
                    }
                    continue;
                }
                Stop::Wait(wait) => wait,
            };
            let due = wait.deadline.filter(|(at, _)| *at <= self.consumer.now).map(|(_, timer)| timer);
            if due.is_none() {
                looked = None;
            }
            stop = if wait.taken {
                self.feed(Event::Taken)
            } else if due.is_some() && looked == due {
                looked = None;
                self.elapsed()
            } else if let Some(next) = self.arrived(&wait) {
                looked = due;
                next
            } else if due.is_some() {
                self.elapsed()
            } else {
                let peer = self.peer.as_ref().and_then(|(_, _, peer)| peer.wakes_at());
                self.jump([wait.deadline.map(|(at, _)| at), peer, self.cancel_at()]);
                Stop::Wait(wait)
            };
        }
        panic!("no end after {MAX_EVENTS} events: {:?}", self.call);
    }

    /// Lets time pass until the earliest of these
    fn jump(&mut self, next: [Option<Instant>; 3]) {
        let next = next.into_iter().flatten().min();
        let next = next.unwrap_or_else(|| panic!("nothing will ever happen: {:?}", self.call));
        assert!(next > self.consumer.now, "time stands still at {next:?}: {:?}", self.call);
        self.consumer.now = next;
    }

    /// Reports an expiry, which must change something or move the deadline on
    fn elapsed(&mut self) -> Stop {
        let state = self.call.state();
        let stop = self.feed(Event::Elapsed);
        if let Stop::Wait(after) = &stop {
            let moved =
                after.deadline.is_none_or(|(at, _)| at > self.consumer.now) || self.call.state() != state;
            assert!(moved, "no progress at {:?}: {:?}", self.consumer.now, self.call);
        }
        stop
    }

    /// Feeds one thing that has arrived, if there is one
    fn arrived(&mut self, wait: &Wait<Call>) -> Option<Stop> {
        if let Some(id) = self.connects.pop() {
            match self.sim.script.server.listen {
                Listen::Refuse => {
                    let failure = IoFailure {
                        stage: Stage::Connect,
                        kind: FailureKind::Refused,
                        message: "connection refused".to_owned(),
                    };
                    return Some(self.feed(Event::Failed(id, failure)));
                }
                Listen::FullBacklog => return None,
                Listen::Accept => {
                    let connection = self.sim.script.connection(self.sim.accepted)?;
                    self.sim.accepted += 1;
                    let mut peer = Peer::new(&self.sim.script.server, &connection.steps);
                    peer.run(self.consumer.now);
                    self.peer = Some((id, false, peer));
                }
            }
        }
        let (id, connected, peer) = self.peer.as_mut()?;
        let id = *id;
        if !*connected {
            if !peer.is_open() {
                return None;
            }
            *connected = true;
            return Some(self.feed(Event::Connected(id)));
        }
        let io = wait.io?;
        if io.read {
            let bytes = peer.read(self.sim.split.next());
            if !bytes.is_empty() {
                peer.run(self.consumer.now);
                return Some(self.feed(Event::Received(id, &bytes)));
            }
            match peer.end() {
                Some(PeerEnd::Fin(ended)) => return Some(self.feed(Event::Eof(id, ended))),
                Some(PeerEnd::Reset) => {
                    let failure = IoFailure {
                        stage: Stage::Read,
                        kind: FailureKind::Reset,
                        message: "connection reset by peer".to_owned(),
                    };
                    return Some(self.feed(Event::Failed(id, failure)));
                }
                None => {}
            }
        }
        if io.write && peer.room() > 0 {
            let mut sent = 0;
            for part in self.call.outgoing(id) {
                let count = part.len().min(peer.room());
                peer.write(&part[..count]);
                sent += count;
            }
            peer.run(self.consumer.now);
            return Some(self.feed(Event::Sent(id, sent)));
        }
        if io.supply > 0 {
            let mut buffer = vec![0; io.supply];
            let Self { call, feed, .. } = self;
            // A source in memory never waits; one that does is not for virtual time.
            let supply = feed.supply(call.request(), id, Waker::noop(), &mut buffer)?;
            return Some(self.feed(Event::Supplied(id, supply)));
        }
        None
    }

    fn cancel_at(&self) -> Option<Instant> {
        match self.consumer.caller.cancel {
            Some(Cancel::At(at)) if !self.cancelled => Some(Instant::ORIGIN + at),
            _ => None,
        }
    }

    fn cancel_due(&self) -> bool {
        !self.cancelled
            && match self.consumer.caller.cancel {
                None => false,
                Some(Cancel::At(at)) => Instant::ORIGIN + at <= self.consumer.now,
                Some(Cancel::AfterDeltas(deltas)) => self.consumer.deltas >= deltas,
                Some(Cancel::AfterTurn) => self.consumer.turn_at.is_some(),
            }
    }

    fn feed(&mut self, event: Event<'_, Call>) -> Stop {
        let Self { call, consumer, .. } = self;
        let mut commands = Vec::new();
        let drain = call.handle(consumer.now, event).expect("the simulator keeps the machine's contract");
        let stop = steps(drain, consumer, &mut commands);
        self.act(commands);
        stop
    }

    fn drain(&mut self) -> Stop {
        let mut commands = Vec::new();
        let stop = steps(self.call.drain(), &mut self.consumer, &mut commands);
        self.act(commands);
        stop
    }

    fn act(&mut self, commands: Vec<Command>) {
        for command in commands {
            self.commands.push((self.consumer.now, command.clone()));
            match command {
                Command::Connect(id) => self.connects.push(id),
                Command::Retry(_) => {}
                Command::Close(id, _) => {
                    self.connects.retain(|connect| *connect != id);
                    if self.peer.as_ref().is_some_and(|(of, ..)| *of == id) {
                        self.close();
                    }
                }
            }
        }
    }

    fn close(&mut self) {
        if let Some((_, _, mut peer)) = self.peer.take() {
            peer.client_closed(self.consumer.now);
            add(&mut self.sim.tally, &peer.tally());
        }
    }
}

/// Takes steps until the call waits or ends, or the consumer goes away
fn steps(mut drain: Drain<'_, Call>, consumer: &mut Consumer<'_>, commands: &mut Vec<Command>) -> Stop {
    loop {
        match drain.next() {
            Step::Do(command) => commands.push(command),
            Step::Deliver(item) => {
                if consumer.take(item) {
                    return Stop::Away;
                }
            }
            Step::Wait(wait) => return Stop::Wait(wait),
            Step::Done(outcome) => return Stop::Done(Box::new(outcome)),
        }
    }
}

impl Consumer<'_> {
    /// Takes an item; returns whether it has something else to do now
    fn take(&mut self, item: Item<'_>) -> bool {
        match item {
            Item::Delta(delta) => {
                self.turn.apply(&delta);
                self.deltas += 1;
                let pause =
                    self.caller.consumer.filter(|consumer| self.deltas.is_multiple_of(consumer.every));
                self.away_until = pause.map(|consumer| self.now + consumer.pause);
                self.away_until.is_some() || matches!(self.caller.cancel, Some(Cancel::AfterDeltas(_)))
            }
            Item::Finished(_) => {
                self.turn_at.get_or_insert(self.now);
                matches!(self.caller.cancel, Some(Cancel::AfterTurn))
            }
            Item::Bytes(_) | Item::Unknown { .. } => false,
        }
    }
}
