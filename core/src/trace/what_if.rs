//! How the same arrivals would have ended under another configuration.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use serde::Deserialize;

use super::event::{Happened, Told};
use super::reader::{Recorded, Trace};
use crate::call::{AttemptId, Call, Command, Fact, State, Timer};
use crate::config::RequestConfig;
use crate::machine::{Event, Machine, Misuse, Step, Wait};
use crate::outcome::Outcome;
use crate::time::Instant;

/// How a call would have gone
#[derive(Clone, Debug)]
pub struct WhatIf {
    /// How it would have ended
    pub alternative: Alternative,
    /// Up to when the trace knows what came; what is said after that supposes that nothing more came
    ///
    /// None where the end lies within what is known. A connection that the recorded call closed might
    /// have brought more.
    pub known_until: Option<Instant>,
}

/// The end of a call that was not made
#[derive(Clone, Debug)]
pub enum Alternative {
    /// It would have ended like this
    Ended(Box<Outcome>),
    /// It would have asked for a connection that the recorded call did not ask for, and of which
    /// nothing is known
    AnotherConnection {
        /// When
        at: Instant,
        /// Which one, from 1
        number: u32,
    },
    /// It would wait for ever: no bound is in force
    Endless {
        /// Since when nothing more is known to happen
        since: Instant,
    },
}

impl Trace {
    /// Plays what arrived to a call under `config`
    ///
    /// What the recorded driver told because of the recorded call's deadlines is left out, and
    /// [`Event::Elapsed`] is told when the new ones fall. What comes over a connection keeps its
    /// distance to the moment at which that was asked for, the consumer takes as long over each item as
    /// it did, and the caller does at the same time what it did.
    ///
    /// Errors: the trace says what no driver would, and the call refuses it.
    pub fn what_if(&self, config: RequestConfig) -> Result<WhatIf, Misuse> {
        let mut play = Play::new(self, config);
        let mut event = Event::Start;
        loop {
            let alternative = match play.feed(event)? {
                Pause::Over(outcome) => Alternative::Ended(outcome),
                Pause::Unheard(id) => Alternative::AnotherConnection { at: play.now, number: id.number() },
                Pause::Wait(wait) => match play.next(&wait) {
                    Some(next) => {
                        event = next;
                        continue;
                    }
                    None => Alternative::Endless { since: play.now },
                },
            };
            return Ok(WhatIf { alternative, known_until: play.known_until });
        }
    }
}

/// What the trace says beside of what its call decided
struct World<'a> {
    links: BTreeMap<AttemptId, Link<'a>>,
    /// How long the consumer kept each item, in order
    away: VecDeque<Duration>,
    /// What the caller did, in order
    caller: VecDeque<&'a Happened>,
    /// After which attempts the retry budget was used up
    refused: BTreeSet<AttemptId>,
    began: Option<Instant>,
}

/// What is known of one connection, by the time since it was asked for
struct Link<'a> {
    asked: Instant,
    arrivals: VecDeque<(Duration, &'a Happened)>,
    /// For how long something that came would have been seen
    known: Duration,
}

/// A call as it goes on under another configuration
struct Play<'a> {
    world: World<'a>,
    call: Call,
    now: Instant,
    /// The last connection that was asked for, and when
    link: Option<(AttemptId, Instant)>,
    /// The timer that is due and for whose sake arrivals were looked at
    looked: Option<Timer>,
    /// The retry that was announced, and that the budget refuses
    refused: Option<AttemptId>,
    known_until: Option<Instant>,
}

/// Where a call stops
enum Pause {
    Wait(Wait<Call>),
    /// It asks for a connection of which nothing is known
    Unheard(AttemptId),
    Over(Box<Outcome>),
}

impl<'a> Play<'a> {
    fn new(trace: &'a Trace, config: RequestConfig) -> Self {
        let world = World::of(trace);
        let now = world.began.unwrap_or(trace.header.began);
        let call = trace.call_with(config);
        Self { world, call, now, link: None, looked: None, refused: None, known_until: None }
    }

    fn feed(&mut self, event: Event<'_, Call>) -> Result<Pause, Misuse> {
        let mut drain = self.call.handle(self.now, event)?;
        loop {
            match drain.next() {
                Step::Do(Command::Connect(id)) if self.world.links.contains_key(&id) => {
                    self.link = Some((id, self.now));
                }
                Step::Do(Command::Connect(id)) => return Ok(Pause::Unheard(id)),
                Step::Do(Command::Retry(id)) => {
                    self.refused = Some(id).filter(|id| self.world.refused.contains(id))
                }
                Step::Do(Command::Close(..)) | Step::Deliver(_) => {}
                Step::Wait(wait) => return Ok(Pause::Wait(wait)),
                Step::Done(outcome) => return Ok(Pause::Over(Box::new(outcome))),
            }
        }
    }

    /// Lets time pass to the next thing that happens; none where nothing ever does
    fn next(&mut self, wait: &Wait<Call>) -> Option<Event<'a, Call>> {
        if let Some(id) = self.refused.take() {
            return Some(Event::Fact(Fact::RetryRefused(id)));
        }
        let gives_up = self.world.caller.front().map(|happened| happened.at.max(self.now));
        if wait.taken {
            // Nobody drives the call while its consumer is away.
            let away = self.world.away.pop_front().unwrap_or_default();
            let back = self.now + away;
            return Some(match gives_up.filter(|at| *at < back) {
                Some(at) => {
                    self.world.away.push_front(back - at);
                    self.give_up(at)
                }
                None => {
                    self.now = back;
                    Event::Taken
                }
            });
        }
        let arrives = self.arrives(wait);
        let expires = wait.deadline.map(|(at, _)| at.max(self.now));
        let Some(next) = [gives_up, arrives, expires].into_iter().flatten().min() else {
            let until = self.known().unwrap_or(self.now);
            self.now = self.now.max(until);
            self.known_until.get_or_insert(until);
            return None;
        };
        if gives_up == Some(next) {
            return Some(self.give_up(next));
        }
        self.now = next;
        let due = wait.deadline.filter(|(at, _)| *at <= next).map(|(_, timer)| timer);
        // Arrived beats expired, once: one look, then the clock.
        if arrives == Some(next) && (due.is_none() || self.looked != due) {
            self.looked = due;
            let link = self.link.and_then(|(id, _)| self.world.links.get_mut(&id));
            return link.and_then(|link| link.arrivals.pop_front()).map(|(_, happened)| happened.event());
        }
        self.looked = None;
        if let Some(until) = self.known().filter(|until| *until < next) {
            self.known_until.get_or_insert(until);
        }
        Some(Event::Elapsed)
    }

    fn give_up(&mut self, at: Instant) -> Event<'a, Call> {
        self.now = at;
        self.world.caller.pop_front().expect("it was there").event()
    }

    /// When the next thing comes over the connection in use, if the call wants it
    fn arrives(&mut self, wait: &Wait<Call>) -> Option<Instant> {
        let (id, asked) = self.link.filter(|_| self.is_connected())?;
        let arrivals = &mut self.world.links.get_mut(&id)?.arrivals;
        let (read, write, supply) =
            wait.io.map_or((true, true, true), |io| (io.read, io.write, io.supply > 0));
        // A call that has stopped writing takes no more, nor one that has stopped asking for the body.
        while arrivals.front().is_some_and(|(_, happened)| {
            (!write && happened.is_sent()) || (!supply && happened.is_supplied())
        }) {
            arrivals.pop_front();
        }
        let (after, happened) = arrivals.front()?;
        (read || happened.is_sent() || happened.is_supplied()).then(|| (asked + *after).max(self.now))
    }

    /// Up to when the trace knows what comes over the connection in use
    fn known(&self) -> Option<Instant> {
        let (id, asked) = self.link.filter(|_| self.is_connected())?;
        Some(asked + self.world.links.get(&id)?.known)
    }

    /// Whether a connection is in use, or being opened
    fn is_connected(&self) -> bool {
        match self.call.state() {
            State::Connecting
            | State::Waiting
            | State::Reading
            | State::Refused
            | State::Streaming
            | State::Finished => true,
            State::Idle | State::Pausing | State::Over => false,
        }
    }
}

impl<'a> World<'a> {
    fn of(trace: &'a Trace) -> Self {
        let mut world = Self {
            links: BTreeMap::new(),
            away: VecDeque::new(),
            caller: VecDeque::new(),
            refused: BTreeSet::new(),
            began: None,
        };
        let mut closed = BTreeMap::new();
        let mut now = trace.header.began;
        for (_, recorded) in &trace.lines {
            match recorded {
                Recorded::Event(happened) => {
                    let before = now;
                    now = now.max(happened.at);
                    world.take(happened, before, now);
                }
                Recorded::Step(line) => match serde_json::from_str(line) {
                    Ok(OfLink { step: Of::Connect, link: Some(link) }) => {
                        let known = Link { asked: now, arrivals: VecDeque::new(), known: Duration::ZERO };
                        world.links.entry(link).or_insert(known);
                    }
                    Ok(OfLink { step: Of::Close, link: Some(link) }) => {
                        closed.entry(link).or_insert(now);
                    }
                    Ok(OfLink { .. }) | Err(_) => {}
                },
            }
        }
        for (id, link) in &mut world.links {
            let last = link.arrivals.back().map(|(after, _)| *after).unwrap_or_default();
            link.known = (*closed.get(id).unwrap_or(&now) - link.asked).max(last);
        }
        world
    }

    fn take(&mut self, happened: &'a Happened, before: Instant, now: Instant) {
        match (happened.told(), happened.link()) {
            (Told::Start, _) => _ = self.began.get_or_insert(now),
            (Told::Taken, _) => self.away.push_back(now - before),
            (Told::Cancel | Told::ConsumerFailed { .. }, _) => self.caller.push_back(happened),
            (Told::RetryRefused { link }, _) => _ = self.refused.insert(*link),
            (_, Some(link)) => {
                if let Some(link) = self.links.get_mut(&link) {
                    link.arrivals.push_back((now - link.asked, happened));
                }
            }
            (_, None) => {}
        }
    }
}

/// A step line, as far as it is about connections
#[derive(Deserialize)]
struct OfLink {
    step: Of,
    link: Option<AttemptId>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Of {
    Connect,
    Close,
    #[serde(other)]
    Other,
}
