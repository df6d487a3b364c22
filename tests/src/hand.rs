//! The call machine in the hands of a test: each event with its instant, each step looked at.

use std::time::Duration;

use steadfast::call::{AttemptId, Call, Command, Env, Item, Request, Timer};
use steadfast::config::RequestConfig;
use steadfast::machine::{Event, Machine, Step};
use steadfast::outcome::{Delta, Outcome};
use steadfast::time::Instant;

/// More steps than one event leads to: a call that goes round in circles fails instead of hanging
const MAX_STEPS: usize = 100_000;

/// A call, and what it last waited for
pub struct Hand {
    call: Call,
    /// The connection asked for last
    pub connection: Option<AttemptId>,
    /// When its deadline is, in seconds, and why
    pub deadline: Option<(f64, Timer)>,
    /// Whether it asks for bytes
    pub reads: bool,
    /// Whether it waits for the consumer
    pub waits_for_consumer: bool,
}

/// What one event led to, up to the next wait
#[derive(Debug, Default)]
pub struct Steps {
    /// What the driver has to do
    pub commands: Vec<Command>,
    /// The text that was delivered
    pub text: String,
    /// How it all ended
    pub outcome: Option<Outcome>,
}

impl Hand {
    /// A call that begins now, at zero, with seed 1; it has asked for its first connection
    ///
    /// # Panics
    ///
    /// If it has not.
    pub fn start(request: Request) -> Self {
        let config = RequestConfig::default().with(request.overrides()).expect("checked when it was built");
        let env = Env { seed: 1, unix_at_origin: Duration::ZERO };
        let call = Call::new(request, config, env, Instant::ORIGIN);
        let mut hand =
            Self { call, connection: None, deadline: None, reads: false, waits_for_consumer: false };
        let steps = hand.feed(0.0, Event::Start);
        assert!(matches!(steps.commands[..], [Command::Connect(_)]), "{steps:?}");
        hand
    }

    /// A call that begins now, and whose request is wholly written at once
    pub fn waiting(request: Request) -> (Self, AttemptId) {
        let mut hand = Self::start(request);
        let id = hand.open(0.0);
        (hand, id)
    }

    /// The connection asked for last opens, and takes the whole request
    ///
    /// # Panics
    ///
    /// If none was asked for.
    pub fn open(&mut self, seconds: f64) -> AttemptId {
        self.open_and_read(seconds).0
    }

    /// As [`Hand::open`], with what goes out
    ///
    /// # Panics
    ///
    /// If no connection was asked for.
    pub fn open_and_read(&mut self, seconds: f64) -> (AttemptId, Vec<u8>) {
        let id = self.connection.expect("a connection asked for");
        self.feed(seconds, Event::Connected(id));
        (id, self.write(id, seconds))
    }

    /// The connection asked for last is one that an earlier call left, and takes the whole request
    ///
    /// # Panics
    ///
    /// If none was asked for.
    pub fn reuse(&mut self, seconds: f64) -> AttemptId {
        let id = self.connection.expect("a connection asked for");
        self.feed(seconds, Event::Reused(id));
        self.write(id, seconds);
        id
    }

    fn write(&mut self, id: AttemptId, seconds: f64) -> Vec<u8> {
        let sent = self.call.outgoing(id).concat();
        self.feed(seconds, Event::Sent(id, sent.len()));
        sent
    }

    /// Feeds one event and takes every step that it leads to; the consumer is not back by that
    ///
    /// # Panics
    ///
    /// If the machine calls it a misuse.
    pub fn feed(&mut self, seconds: f64, event: Event<'_, Call>) -> Steps {
        let now = Instant::ORIGIN + Duration::from_secs_f64(seconds);
        let mut steps = Steps::default();
        let mut drain = self.call.handle(now, event).expect("the test keeps the machine's contract");
        for _ in 0..MAX_STEPS {
            match drain.next() {
                Step::Do(command) => {
                    if let Command::Connect(id) = command {
                        self.connection = Some(id);
                    }
                    steps.commands.push(command);
                }
                Step::Deliver(Item::Delta(Delta::Text { text, .. })) => steps.text.push_str(text),
                Step::Deliver(_) => {}
                Step::Done(outcome) => steps.outcome = Some(outcome),
                Step::Wait(wait) => {
                    self.deadline = wait.deadline.map(|(at, timer)| (at.since_origin().as_secs_f64(), timer));
                    self.reads = wait.io.is_some_and(|io| io.read);
                    self.waits_for_consumer = wait.taken;
                    return steps;
                }
            }
        }
        panic!("the call goes round in circles")
    }
}
