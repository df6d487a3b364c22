//! Plays events to a decoder and keeps all that comes of it.

use super::findings::{Finding, Findings};
use super::finish::{self, Ending};
use super::{Decode, Decoder, Dialect, Malformed, Progress};
use crate::outcome::ProviderError;
use crate::outcome::Turn;

/// What came of some events
pub(super) struct Played {
    pub(super) turn: Turn,
    /// After each event
    pub(super) progress: Vec<Progress>,
    pub(super) errors: Vec<ProviderError>,
    pub(super) blocked: Option<String>,
    pub(super) opened: usize,
    pub(super) identities: usize,
    pub(super) unknown: usize,
    pub(super) skipped: u64,
}

impl Played {
    pub(super) fn last(&self) -> Progress {
        *self.progress.last().unwrap()
    }

    pub(super) fn ending(&self) -> Ending {
        finish::ending(&self.turn)
    }

    /// Id, name and arguments of the first choice's tool calls
    pub(super) fn calls(&self) -> Vec<[&str; 3]> {
        let calls = self.turn.choices.iter().take(1).flat_map(|choice| &choice.tool_calls);
        calls.map(|call| [&*call.id, &*call.name, &*call.arguments]).collect()
    }

    /// Input, output and total tokens
    pub(super) fn tokens(&self) -> Option<[Option<u64>; 3]> {
        self.turn.usage.as_ref().map(|usage| [usage.input_tokens, usage.output_tokens, usage.total_tokens])
    }

    /// Kind, code, status and message of the first error
    pub(super) fn error(&self) -> (Option<&str>, Option<&str>, Option<u16>, &str) {
        let error = self.errors.first().unwrap();
        (error.kind.as_deref(), error.code.as_deref(), error.status, &error.message)
    }
}

/// Plays events without names
pub(super) fn play(dialect: Dialect, events: &[&str]) -> Played {
    try_play(dialect, events).unwrap()
}

/// Plays events without names that may not be of the dialect
pub(super) fn try_play(dialect: Dialect, events: &[&str]) -> Result<Played, Malformed> {
    let events: Vec<_> = events.iter().map(|data| ("message", *data)).collect();
    try_play_named(dialect, &events)
}

/// Plays events, each a name and data
pub(super) fn play_named(dialect: Dialect, events: &[(&str, &str)]) -> Played {
    try_play_named(dialect, events).unwrap()
}

/// The fault in the last of some events
pub(super) fn malformed(dialect: Dialect, events: &[&str]) -> String {
    try_play(dialect, events).map(|_| ()).unwrap_err().reason
}

/// Plays a whole unary body
pub(super) fn play_unary(dialect: Dialect, body: &str) -> Played {
    try_play_unary(dialect, body).unwrap()
}

/// Plays a whole unary body that may not be of the dialect
pub(super) fn try_play_unary(dialect: Dialect, body: &str) -> Result<Played, Malformed> {
    run(dialect, &[body], |decoder, body, findings| decoder.unary(body, findings))
}

fn try_play_named(dialect: Dialect, events: &[(&str, &str)]) -> Result<Played, Malformed> {
    run(dialect, events, |decoder, (name, data), findings| decoder.event(name, data, findings))
}

fn run<E: Data + Copy>(
    dialect: Dialect,
    events: &[E],
    feed: impl Fn(&mut Decoder, E, &mut Findings) -> Result<(), Malformed>,
) -> Result<Played, Malformed> {
    let mut decoder = Decoder::new(dialect);
    let mut findings = Findings::default();
    let mut played = Played {
        turn: Turn::default(),
        progress: Vec::new(),
        errors: Vec::new(),
        blocked: None,
        opened: 0,
        identities: 0,
        unknown: 0,
        skipped: 0,
    };
    for &event in events {
        feed(&mut decoder, event, &mut findings)?;
        played.progress.push(decoder.progress());
        while let Some(finding) = findings.take().cloned() {
            finding.apply(&mut played.turn, &findings, event.data());
            match finding {
                Finding::Text { text: piece, .. }
                | Finding::Reasoning { text: piece, .. }
                | Finding::Refusal { text: piece, .. }
                | Finding::ToolArguments { fragment: piece, .. } => {
                    assert!(!findings.resolve(event.data(), piece).is_empty(), "an empty piece");
                }
                Finding::Error(error) => played.errors.push(error),
                Finding::Blocked(reason) => played.blocked = Some(reason),
                Finding::Opened { .. } => played.opened += 1,
                Finding::Identity { .. } => played.identities += 1,
                Finding::Unknown => played.unknown += 1,
                Finding::ToolCall { .. }
                | Finding::Signature { .. }
                | Finding::ReasoningMember(_)
                | Finding::Finish { .. }
                | Finding::Usage { .. } => {}
            }
        }
        findings.clear();
    }
    played.skipped = findings.skipped;
    Ok(played)
}

trait Data {
    fn data(&self) -> &str;
}

impl Data for &str {
    fn data(&self) -> &str {
        self
    }
}

impl Data for (&str, &str) {
    fn data(&self) -> &str {
        self.1
    }
}
