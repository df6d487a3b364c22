//! What came of a case, in one line.

use std::fmt::Write as _;
use std::time::Duration;

use steadfast::call::{CloseMode, Command};
use steadfast::machine::IoFailure;
use steadfast::outcome::{Billing, Ending, ErrorKind, Note, ProtocolError, ProviderError, Truncation, Usage};

use super::Ran;

impl Ran {
    /// All that a caller can know of the end, but for the tool calls: in one line, to be compared whole
    ///
    /// `completed "Hi" finish=stop usage=5/2 turn@1.1 end@1.1 requests=1`, where `-` is what the
    /// provider did not say; a failure has its fields in place of the word, and `billing` and
    /// `retry_after` with it. Notes stand at the end, where there are any.
    pub fn told(&self) -> String {
        format!("{} end@{} requests={}{}", self.answer(), self.seconds(), self.tally.requests, self.notes())
    }

    /// As [`Ran::told`], where the times hang on a random pause: without them
    pub fn told_without_times(&self) -> String {
        format!("{} requests={}{}", self.answer_without_times(), self.tally.requests, self.notes())
    }

    fn answer(&self) -> String {
        let mut answer = self.answer_without_times();
        if let (Ok(_), Some(at)) = (&self.played.outcome.result, self.played.turn_at) {
            let _ = write!(answer, " turn@{}", at.since_origin().as_secs_f64());
        }
        answer
    }

    fn answer_without_times(&self) -> String {
        let turn = self.turn();
        let end = match &self.played.outcome.result {
            Ok(completion) => match &completion.ending {
                Ending::Completed => "completed".to_owned(),
                Ending::Incomplete(word) => format!("incomplete({word})"),
            },
            Err(error) => kind(&error.kind),
        };
        let usage = turn.usage.as_ref().map_or_else(|| "-".to_owned(), counted);
        let finish = turn.finish_reason().unwrap_or("-");
        let mut answer = format!("{end} {:?} finish={finish} usage={usage}", turn.text());
        if let Err(error) = &self.played.outcome.result {
            let billing = match error.billing {
                Billing::NotSent => "not_sent",
                Billing::MaybeBilled => "maybe_billed",
                Billing::Delivered => "delivered",
            };
            let _ = write!(answer, " billing={billing}");
            if let Some(pause) = error.retry_after {
                let _ = write!(answer, " retry_after={}", pause.as_secs_f64());
            }
        }
        answer
    }

    fn notes(&self) -> String {
        let notes: &[Note] = &self.played.outcome.timeline.notes;
        if notes.is_empty() { String::new() } else { format!(" notes={notes:?}") }
    }

    /// The tool calls of the first choice: id, name, arguments, and whether they may be run
    pub fn tool_calls(&self) -> Vec<(&str, &str, &str, bool)> {
        let outcome = &self.played.outcome;
        let calls = self.turn().choices.first().map_or(&[][..], |choice| &choice.tool_calls);
        calls.iter().map(|call| (&*call.id, &*call.name, &*call.arguments, outcome.is_whole(call))).collect()
    }

    /// When each connection was asked for, in seconds
    pub fn connects(&self) -> Vec<f64> {
        self.commands(|command| matches!(command, Command::Connect(_)))
    }

    /// When connections were broken off, in seconds
    pub fn aborts(&self) -> Vec<f64> {
        self.commands(|command| matches!(command, Command::Close(_, CloseMode::Abort)))
    }

    fn commands(&self, which: impl Fn(&Command) -> bool) -> Vec<f64> {
        let commands = self.played.commands.iter().filter(|(_, command)| which(command));
        commands.map(|(at, _)| at.since_origin().as_secs_f64()).collect()
    }

    /// How long the pause after attempt `number`, from 1, lasted
    ///
    /// # Panics
    ///
    /// If no attempt followed it.
    pub fn pause_after(&self, number: usize) -> Duration {
        let attempts = &self.played.outcome.timeline.attempts;
        attempts[number].began - attempts[number - 1].ended
    }
}

fn counted(usage: &Usage) -> String {
    let count = |count: Option<u64>| count.map_or_else(|| "-".to_owned(), |count| count.to_string());
    format!("{}/{}", count(usage.input_tokens), count(usage.output_tokens))
}

#[expect(clippy::wildcard_enum_match_arm, reason = "the others have no fields, or none to compare")]
fn kind(kind: &ErrorKind) -> String {
    match kind {
        ErrorKind::Timeout(timeout) => format!(
            "timeout({} {}/{})",
            timeout.phase.name(),
            timeout.elapsed.as_secs_f64(),
            timeout.limit.as_secs_f64()
        ),
        ErrorKind::Status(error) => format!("status({}{})", error.status.as_u16(), cut(error.whole)),
        ErrorKind::InBand(provider) => format!("in_band({})", words(provider)),
        ErrorKind::Truncated(Truncation::NoTerminalState) => "truncated(no terminal state)".to_owned(),
        ErrorKind::Truncated(Truncation::InResponse { .. }) => "truncated(in response)".to_owned(),
        ErrorKind::Truncated(Truncation::InToolCall) => "truncated(in tool call)".to_owned(),
        ErrorKind::Blocked { reason } => format!("blocked({reason})"),
        ErrorKind::Transport(IoFailure { stage, kind, .. }) => {
            format!("transport({} {kind:?})", stage.name())
        }
        ErrorKind::Proxy(IoFailure { kind, .. }) => format!("proxy({kind:?})"),
        ErrorKind::Protocol(ProtocolError::Malformed { .. }) => "protocol(malformed)".to_owned(),
        other => other.name().to_owned(),
    }
}

fn cut(whole: bool) -> &'static str {
    if whole { "" } else { " cut" }
}

/// Type, code, status and message
fn words(provider: &ProviderError) -> String {
    let ProviderError { kind, code, status, message, .. } = provider;
    let word = |word: &Option<String>| word.clone().unwrap_or_else(|| "-".to_owned());
    let status = status.map_or_else(|| "-".to_owned(), |status| status.to_string());
    format!("{} {} {status} {message:?}", word(kind), word(code))
}
