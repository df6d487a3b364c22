//! What a call did, step by step, and the invariants that hold for every call.
//!
//! | id | what is checked |
//! |---|---|
//! | INV-1 | from the point at which nothing more comes, it ends within the computed worst case |
//! | INV-2 | one `Done`, and only `Wait` after it |
//! | INV-3 | no attempt after a delivered delta or a terminal state |
//! | INV-4 | not more attempts than are allowed, none at or past the total deadline |
//! | INV-5 | a recorded terminal state survives a cancel, an expiry and a reset; the deltas are the turn |
//! | INV-6 | a timeout is no shorter than its limit, and never stands for an answer with an error status |
//! | INV-7 | no clock over a stream fires before its limit |
//! | INV-8 | the turn and the body stay within the configured cap |
//! | INV-9 | the same events give the same steps, wherever drains are dropped |
//! | INV-10 | every connection asked for is closed, once |
//! | progress | after an expiry the next deadline is later, or something has changed |
//! | misuse | an event that is refused has no effect |

use steadfast::call::{AttemptId, Call, Command, Fact, Item, Progress, State, Timer};
use steadfast::config::RequestConfig;
use steadfast::machine::{Event, Stage, Step, Wait};
use steadfast::outcome::{Billing, Choice, ErrorKind, Note, Outcome, Turn};
use steadfast::time::Instant;

/// All that a call did
pub(super) struct Record {
    config: RequestConfig,
    began: Option<Instant>,
    /// The connections that were asked for, in order
    pub(super) opened: Vec<AttemptId>,
    closed: Vec<AttemptId>,
    /// What is awaited
    pub(super) wait: Option<Wait<Call>>,
    pub(super) done: Option<Instant>,
    /// Every event and step, with its time
    pub(super) trace: Vec<String>,
    /// What the delivered deltas come to
    delivered: Turn,
    /// Deltas, and turns told to be finished
    answered: bool,
    /// Bytes of requests that were reported as sent, and heads that another transport reported
    seen_by_server: bool,
    /// The event at hand is one that a terminal state survives
    must_succeed: bool,
}

/// How a call stood before an event
pub(super) struct Before {
    state: State,
    progress: Progress,
    steps: usize,
    is_expiry: bool,
    sends: bool,
}

impl Record {
    pub(super) fn new(config: RequestConfig) -> Self {
        Self {
            config,
            began: None,
            opened: Vec::new(),
            closed: Vec::new(),
            wait: None,
            done: None,
            trace: Vec::new(),
            delivered: Turn::default(),
            answered: false,
            seen_by_server: false,
            must_succeed: false,
        }
    }

    pub(super) fn deadline(&self) -> Option<(Instant, Timer)> {
        self.wait.as_ref()?.deadline
    }

    /// Takes note of how the call stands before an event
    pub(super) fn happens(&mut self, event: &Event<'_, Call>, now: Instant, call: &Call) -> Before {
        self.began.get_or_insert(now);
        let is_teardown = match event {
            Event::Cancel | Event::Elapsed => true,
            Event::Failed(_, failure) => failure.stage == Stage::Read,
            Event::Start
            | Event::Taken
            | Event::Connected(_)
            | Event::Reused(_)
            | Event::Sent(..)
            | Event::Supplied(..)
            | Event::Received(..)
            | Event::Eof(..)
            | Event::Fact(_) => false,
        };
        self.must_succeed = call.state() == State::Finished && is_teardown;
        Before {
            state: call.state(),
            progress: call.progress(),
            steps: self.trace.len(),
            is_expiry: matches!(event, Event::Elapsed),
            sends: matches!(event, Event::Sent(id, 1..) | Event::Fact(Fact::Head(id, _)) if self.is_live(*id)),
        }
    }

    fn is_live(&self, id: AttemptId) -> bool {
        self.opened.contains(&id) && !self.closed.contains(&id)
    }

    /// An event was refused: it had no effect
    pub(super) fn is_as_it_was(&self, before: Before, call: &Call) {
        assert_eq!(call.progress(), before.progress, "misuse had an effect");
        assert_eq!(self.trace.len(), before.steps + 1, "misuse had an effect");
    }

    /// An event was taken, and all steps that follow from it
    pub(super) fn has_happened(&mut self, before: Before, now: Instant, call: &Call) {
        self.seen_by_server |= before.sends;
        if before.is_expiry {
            let is_later = self.deadline().is_none_or(|(deadline, _)| deadline > now);
            // The event itself, and the wait
            let has_changed = call.state() != before.state || self.trace.len() > before.steps + 2;
            assert!(is_later || has_changed, "the progress law: {:?} at {now:?}", self.deadline());
        }
    }

    /// Takes in a step; returns whether more may follow without an event
    pub(super) fn step(&mut self, now: Instant, step: Step<'_, Call>) -> bool {
        assert!(self.done.is_none() || matches!(step, Step::Wait(_)), "INV-2: a step after Done");
        match step {
            Step::Do(command) => {
                self.trace.push(format!("{now:?} {command:?}"));
                match command {
                    Command::Connect(id) => self.opens(id, now),
                    Command::Retry(_) => {}
                    Command::Close(id, _) => {
                        assert!(self.opened.contains(&id) && !self.closed.contains(&id), "INV-10: {id:?}");
                        self.closed.push(id);
                    }
                }
            }
            Step::Deliver(item) => {
                self.trace.push(format!("{now:?} {item:?}"));
                match item {
                    Item::Delta(delta) => {
                        self.delivered.apply(&delta);
                        self.answered = true;
                    }
                    Item::Finished(_) => self.answered = true,
                    Item::Unknown { .. } | Item::Bytes(_) => {}
                }
            }
            Step::Wait(wait) => {
                self.trace.push(format!("{now:?} {wait:?}"));
                self.wait = Some(wait);
                return false;
            }
            Step::Done(outcome) => {
                self.trace.push(format!("{now:?} {outcome:?}"));
                self.over(&outcome);
                self.done = Some(now);
                self.wait = None;
                return false;
            }
        }
        true
    }

    fn opens(&mut self, id: AttemptId, now: Instant) {
        assert!(!self.answered, "INV-3: an attempt after an answer");
        assert!(!self.opened.contains(&id), "{id:?} is asked for twice");
        let limit = self.config.total_deadline().limit().expect("it is set");
        let began = self.began.expect("it began with its first event");
        assert!(now < began + limit, "INV-4: an attempt past the total deadline");
        self.opened.push(id);
    }

    fn over(&self, outcome: &Outcome) {
        assert_eq!(self.opened, self.closed, "INV-10: every connection asked for is closed, once");
        let attempts = outcome.timeline.attempt_count();
        assert!(attempts <= self.config.max_attempts().get(), "INV-4: {attempts} attempts");
        let replaced = usize::from(outcome.timeline.notes.contains(&Note::StaleConnection));
        assert!(self.opened.len() <= attempts as usize + replaced, "INV-4: {:?}", self.opened);
        if self.answered {
            assert_eq!(said(&self.delivered), said(outcome.turn()), "INV-5: the deltas are the turn");
        }
        assert!(!self.must_succeed || outcome.result.is_ok(), "INV-5: {:?}", outcome.result);
        self.holds_little(outcome);
        if let Err(error) = &outcome.result {
            let billing = match (self.seen_by_server, self.answered) {
                (_, true) => Billing::Delivered,
                (true, false) => Billing::MaybeBilled,
                (false, false) => Billing::NotSent,
            };
            assert_eq!(error.billing, billing, "END-4");
            self.is_true(&error.kind, outcome);
        }
        assert!(serde_json::to_string(outcome).is_ok());
        assert!(!outcome.timeline.to_string().is_empty());
    }

    fn holds_little(&self, outcome: &Outcome) {
        let limit = self.config.max_body_bytes();
        let held: usize = outcome.turn().choices.iter().map(bytes_of).sum();
        assert!(held <= limit, "INV-8: a turn of {held} bytes");
        let body = match &outcome.result {
            Ok(completion) => completion.body.len(),
            Err(error) => match &error.kind {
                ErrorKind::Status(status) => status.body.len(),
                ErrorKind::Timeout(_)
                | ErrorKind::InBand(_)
                | ErrorKind::Truncated(_)
                | ErrorKind::Empty
                | ErrorKind::Blocked { .. }
                | ErrorKind::Transport(_)
                | ErrorKind::Proxy(_)
                | ErrorKind::Protocol(_)
                | ErrorKind::Cancelled
                | ErrorKind::Consumer(_) => 0,
                _ => panic!("a kind of error that is not known here: {error:?}"),
            },
        };
        assert!(body <= limit, "INV-8: a body of {body} bytes");
    }

    fn is_true(&self, kind: &ErrorKind, outcome: &Outcome) {
        let ErrorKind::Timeout(timeout) = kind else { return };
        assert!(timeout.elapsed >= timeout.limit, "INV-6, INV-7: {timeout:?}");
        let status = outcome.timeline.attempts.last().and_then(|attempt| attempt.status);
        assert!(
            status.is_none_or(|status| (200..300).contains(&status)),
            "INV-6: {timeout:?} in place of {status:?}"
        );
    }

    /// The call ended no later than that
    pub(super) fn ended_by(&self, worst: Instant) {
        assert!(self.done.is_some_and(|done| done <= worst), "INV-1: {:?}, not {worst:?}", self.done);
    }
}

fn bytes_of(choice: &Choice) -> usize {
    let calls = choice.tool_calls.iter().map(|call| call.id.len() + call.name.len() + call.arguments.len());
    choice.text.len() + choice.reasoning.len() + choice.refusal.len() + calls.sum::<usize>()
}

/// What a consumer of the deltas knows of a turn
fn said(turn: &Turn) -> Vec<Choice> {
    let choices = turn.choices.iter().filter(|choice| !choice.is_empty()).cloned();
    choices.map(|choice| Choice { finish_reason: None, ..choice }).collect()
}
