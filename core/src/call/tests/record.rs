//! What a call did, step by step, and the invariants that hold for every call.

use std::time::Duration;

use crate::call::{AttemptId, Call, Command, Item, State};
use crate::machine::{Step, Wait};
use crate::outcome::{Choice, Delta, Note, Outcome, Turn};

/// All that a call did
#[derive(Default)]
pub(super) struct Record {
    pub(super) commands: Vec<(Duration, Command)>,
    pub(super) items: Vec<(Duration, Got)>,
    /// Changes of state between two drains; an edge that one step passes through is not seen
    pub(super) edges: Vec<(State, State)>,
    /// Every event and step, with its time
    pub(super) trace: Vec<String>,
    /// What is awaited, unless a drain was dropped before it came to that
    pub(super) wait: Option<Wait<Call>>,
    pub(super) done: Option<(Duration, Outcome)>,
    /// What the delivered deltas come to
    delivered: Turn,
}

/// An item, owned
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Got {
    Text(String),
    /// Another delta, in its debug form
    Other(String),
    Bytes(Vec<u8>),
    Unknown(String, String),
    Finished(Box<Turn>),
}

impl Record {
    /// Takes in a step; returns whether more may follow without an event
    pub(super) fn step(&mut self, now: Duration, step: Step<'_, Call>) -> bool {
        assert!(self.done.is_none() || matches!(step, Step::Wait(_)), "INV-2: a step after Done");
        match step {
            Step::Do(command) => {
                self.trace.push(format!("{now:?} {command:?}"));
                self.command(&command);
                self.commands.push((now, command));
            }
            Step::Deliver(item) => {
                self.trace.push(format!("{now:?} {item:?}"));
                if let Item::Delta(delta) = item {
                    self.delivered.apply(&delta);
                }
                self.items.push((now, Got::from(item)));
            }
            Step::Wait(wait) => {
                let Wait { deadline, io, taken } = wait;
                self.trace.push(format!("{now:?} {deadline:?} {io:?} {taken}"));
                self.wait = Some(wait);
                return false;
            }
            Step::Done(outcome) => {
                self.trace.push(format!("{now:?} {outcome:?}"));
                self.over(&outcome);
                self.done = Some((now, outcome));
                self.wait = None;
                return false;
            }
        }
        true
    }

    fn command(&self, command: &Command) {
        if let Command::Connect(_) = command {
            let answer = |(_, item): &(Duration, Got)| !matches!(item, Got::Unknown(..));
            assert!(!self.items.iter().any(answer), "INV-3: an attempt after a delivery");
        }
        assert!(!self.commands.iter().any(|(_, before)| before == command), "{command:?} twice");
    }

    fn over(&self, outcome: &Outcome) {
        let (opened, closed) = (self.opened(), self.closed());
        assert_eq!(opened, closed, "INV-10: every connection asked for is closed, once");
        let replaced = usize::from(outcome.timeline.notes.contains(&Note::StaleConnection));
        assert!(outcome.timeline.attempt_count() as usize + replaced >= opened.len());
        if self.items.iter().any(|(_, item)| !matches!(item, Got::Unknown(..))) {
            let said = |turn: &Turn| -> Vec<Choice> {
                let choices = turn.choices.iter().filter(|choice| !choice.is_empty()).cloned();
                choices.map(|choice| Choice { finish_reason: None, ..choice }).collect()
            };
            assert_eq!(said(&self.delivered), said(outcome.turn()), "INV-5: the deltas are the turn");
        }
        assert!(serde_json::to_string(outcome).is_ok());
    }

    /// Notes a change of state
    pub(super) fn edge(&mut self, from: State, to: State) {
        if from != to {
            self.edges.push((from, to));
        }
    }

    /// The connections that were asked for, in order
    pub(super) fn opened(&self) -> Vec<AttemptId> {
        self.ids(|command| matches!(command, Command::Connect(_)))
    }

    fn closed(&self) -> Vec<AttemptId> {
        self.ids(|command| matches!(command, Command::Close(..)))
    }

    fn ids(&self, of: impl Fn(&Command) -> bool) -> Vec<AttemptId> {
        let commands = self.commands.iter().map(|(_, command)| command).filter(|command| of(command));
        commands
            .map(|command| match command {
                Command::Connect(id) | Command::Retry(id) | Command::Close(id, _) => *id,
            })
            .collect()
    }

    /// The delivered text
    pub(super) fn text(&self) -> String {
        let pieces = self.items.iter().filter_map(|(_, item)| match item {
            Got::Text(text) => Some(text.as_str()),
            Got::Other(_) | Got::Bytes(_) | Got::Unknown(..) | Got::Finished(_) => None,
        });
        pieces.collect()
    }

    /// The delivered bytes of a raw body
    pub(super) fn bytes(&self) -> Vec<u8> {
        let pieces = self.items.iter().filter_map(|(_, item)| match item {
            Got::Bytes(bytes) => Some(bytes.as_slice()),
            Got::Other(_) | Got::Text(_) | Got::Unknown(..) | Got::Finished(_) => None,
        });
        pieces.collect::<Vec<_>>().concat()
    }

    /// When the turn was delivered as finished, each time
    pub(super) fn finished_at(&self) -> Vec<Duration> {
        let finished = self.items.iter().filter(|(_, item)| matches!(item, Got::Finished(_)));
        finished.map(|(at, _)| *at).collect()
    }
}

impl From<Item<'_>> for Got {
    fn from(item: Item<'_>) -> Self {
        match item {
            Item::Delta(Delta::Text { text, .. }) => Self::Text(text.to_owned()),
            Item::Delta(delta) => Self::Other(format!("{delta:?}")),
            Item::Bytes(bytes) => Self::Bytes(bytes.to_owned()),
            Item::Unknown { name, data } => Self::Unknown(name.to_owned(), data.to_owned()),
            Item::Finished(turn) => Self::Finished(Box::new(turn.clone())),
        }
    }
}
