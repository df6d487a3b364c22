//! What a case says of its end, checked in full; and what each single read delivers.

use std::time::Duration;

use steadfast::call::{AttemptId, Call, CloseMode, Command, Env, Item, Request};
use steadfast::config::RequestConfig;
use steadfast::dialect::Dialect;
use steadfast::machine::{Event, Machine, Step};
use steadfast::outcome::{Billing, Delta, ErrorKind, Note, Outcome, ProviderError};
use steadfast::time::Instant;
use steadfast_scenario::Shape;

use super::Ran;

/// More steps than one event leads to: a call that goes round in circles fails instead of hanging
const MAX_STEPS: usize = 100_000;

impl Ran {
    /// What holds however a call ends: the deltas of a stream make its turn, and no connection is
    /// left open
    pub(super) fn check(&self, shape: Shape) {
        if shape == Shape::Stream {
            let mut said = self.turn().choices.clone();
            for choice in &mut said {
                choice.finish_reason = None;
            }
            said.retain(|choice| !choice.is_empty());
            assert_eq!(said, self.played.turn_of_deltas.choices, "the deltas are not the turn");
        }
        let opened = |command: &Command| matches!(command, Command::Connect(_));
        let (opened, closed): (Vec<_>, Vec<_>) =
            self.played.commands.iter().map(|(_, command)| command.clone()).partition(opened);
        assert_eq!(opened.len(), closed.len(), "connections opened and closed");
    }

    /// What the provider counted: tokens of the prompt, of the answer, and of both
    pub fn usage(&self) -> Option<[Option<u64>; 3]> {
        let usage = self.turn().usage.as_ref()?;
        Some([usage.input_tokens, usage.output_tokens, usage.total_tokens])
    }

    /// The error in the provider's words
    ///
    /// # Panics
    ///
    /// If the call did not fail by one.
    pub fn provider_error(&self) -> &ProviderError {
        if let ErrorKind::InBand(provider) = self.kind() {
            return provider;
        }
        let ErrorKind::Status(status) = self.kind() else { panic!("not the provider's: {}", self.error()) };
        status.provider.as_ref().expect("words of the provider")
    }

    /// Events of the last attempt's stream
    pub fn events(&self) -> u64 {
        self.played.outcome.timeline.attempts.last().expect("an attempt").events
    }

    /// What became of the last connection
    pub fn closed(&self) -> Option<CloseMode> {
        self.played.commands.iter().rev().find_map(|(_, command)| match command {
            Command::Close(_, mode) => Some(mode.clone()),
            Command::Connect(_) | Command::Retry(_) => None,
        })
    }

    /// Checks what the provider counted
    ///
    /// # Panics
    ///
    /// If it is not that.
    pub fn assert_usage(&self, counts: Option<[u64; 3]>) -> &Self {
        assert_eq!(self.usage(), counts.map(|counts| counts.map(Some)));
        self
    }

    /// Checks when the turn was delivered, if it was, and when the call ended, in seconds
    ///
    /// # Panics
    ///
    /// If it was at other times.
    pub fn assert_times(&self, finished: Option<f64>, ended: f64) -> &Self {
        let finished_at = self.played.turn_at.map(|at| at.since_origin().as_secs_f64());
        assert_eq!((finished_at, self.seconds()), (finished, ended));
        self
    }

    /// Checks the notes of the timeline, all of them, in their order
    ///
    /// # Panics
    ///
    /// If there are others.
    pub fn assert_notes(&self, notes: &[Note]) -> &Self {
        assert_eq!(self.played.outcome.timeline.notes, notes);
        self
    }

    /// Checks what a failure may have cost
    ///
    /// # Panics
    ///
    /// If it is something else, or the call did not fail.
    pub fn assert_billing(&self, billing: Billing) -> &Self {
        assert_eq!(self.error().billing, billing);
        self
    }
}

/// What each of these reads of a stream's body delivers, as the pieces of its text; and the
/// outcome, where the call came to its end
///
/// # Panics
///
/// If a call cannot be driven so.
pub fn deliveries(dialect: Dialect, reads: &[&[u8]]) -> (Vec<Vec<String>>, Option<Outcome>) {
    const UNTIL_EOF: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
    let request = Request::post("http://corpus.invalid/v1").dialect(dialect).stream().build();
    let request = request.expect("a request that can be sent");
    let env = Env { seed: 1, unix_at_origin: Duration::ZERO };
    let mut call = Call::new(request, RequestConfig::default(), env, Instant::ORIGIN);
    let id = feed(&mut call, Event::Start).connect.expect("a connection is asked for");
    feed(&mut call, Event::Connected(id));
    feed(&mut call, Event::Received(id, UNTIL_EOF));
    let mut delivered = Vec::new();
    let mut outcome = None;
    for read in reads {
        let came = feed(&mut call, Event::Received(id, read));
        delivered.push(came.texts);
        outcome = came.outcome.or(outcome);
        feed(&mut call, Event::Taken);
    }
    (delivered, outcome)
}

#[derive(Default)]
struct Came {
    connect: Option<AttemptId>,
    texts: Vec<String>,
    outcome: Option<Outcome>,
}

fn feed(call: &mut Call, event: Event<'_, Call>) -> Came {
    let mut came = Came::default();
    let mut drain = call.handle(Instant::ORIGIN, event).expect("the machine's contract is kept");
    for _ in 0..MAX_STEPS {
        match drain.next() {
            Step::Do(Command::Connect(id)) => came.connect = Some(id),
            Step::Deliver(Item::Delta(Delta::Text { text, .. })) => came.texts.push(text.to_owned()),
            Step::Do(Command::Close(..) | Command::Retry(_)) | Step::Deliver(_) => {}
            Step::Wait(_) => return came,
            Step::Done(outcome) => came.outcome = Some(outcome),
        }
    }
    panic!("the call goes round in circles")
}
