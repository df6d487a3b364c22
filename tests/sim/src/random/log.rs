//! What happened, step by step: as a digest, or as lines to read.

use std::fmt::Write as _;

use steadfast::call::{Call, CloseMode, Command, Fact, Item};
use steadfast::machine::{Event, Wait};
use steadfast::outcome::{Delta, Outcome};
use steadfast::time::Instant;

/// A log of events and steps
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// Over everything, in order
    pub(crate) digest: Option<Digest>,
    /// A line for each
    pub(crate) lines: Option<String>,
}

impl Log {
    /// Nothing is logged, which is the usual case
    #[inline]
    fn is_off(&self) -> bool {
        self.digest.is_none() && self.lines.is_none()
    }

    #[inline]
    pub(crate) fn event(&mut self, now: Instant, event: &Event<'_, Call>) {
        if self.is_off() {
            return;
        }
        if let Some(digest) = &mut self.digest {
            digest.number(now.as_nanos());
            digest_event(digest, event);
        }
        if let Some(lines) = &mut self.lines {
            let seconds = now.since_origin().as_secs_f64();
            // Writing to a string cannot fail.
            _ = if let Event::Received(id, bytes) = event {
                writeln!(lines, "{seconds:>12.6} <- {event:?} {id:?} {}", quoted(bytes))
            } else if let Event::Fact(fact) = event {
                writeln!(lines, "{seconds:>12.6} <- {fact:?}")
            } else {
                writeln!(lines, "{seconds:>12.6} <- {event:?}")
            };
        }
    }

    #[inline]
    pub(crate) fn command(&mut self, command: &Command) {
        if self.is_off() {
            return;
        }
        if let Some(digest) = &mut self.digest {
            digest.number(match command {
                Command::Connect(id) => u64::from(id.number()) << 8 | 1,
                Command::Close(id, CloseMode::Abort) => u64::from(id.number()) << 8 | 2,
                Command::Close(id, CloseMode::Keep) => u64::from(id.number()) << 8 | 3,
                Command::Close(id, CloseMode::Finish(_)) => u64::from(id.number()) << 8 | 4,
            });
        }
        if let Some(lines) = &mut self.lines {
            _ = if let Command::Close(id, CloseMode::Finish(_)) = command {
                writeln!(lines, "{:12} -> Close({id:?}, Finish)", "")
            } else {
                writeln!(lines, "{:12} -> {command:?}", "")
            };
        }
    }

    #[inline]
    pub(crate) fn item(&mut self, item: &Item<'_>) {
        if self.is_off() {
            return;
        }
        if let Some(digest) = &mut self.digest {
            match item {
                Item::Delta(delta) => digest_delta(digest, delta),
                Item::Unknown { name, data } => {
                    digest.number(6);
                    digest.bytes(name.as_bytes());
                    digest.bytes(data.as_bytes());
                }
                Item::Finished(turn) => {
                    digest.number(7);
                    digest.bytes(turn.text().as_bytes());
                }
            }
        }
        if let Some(lines) = &mut self.lines {
            _ = match item {
                Item::Delta(delta) => writeln!(lines, "{:12} -> {delta:?}", ""),
                Item::Unknown { name, data } => writeln!(lines, "{:12} -> Unknown {name} {data}", ""),
                Item::Finished(_) => writeln!(lines, "{:12} -> Finished", ""),
            };
        }
    }

    #[inline]
    pub(crate) fn wait(&mut self, wait: &Wait<Call>) {
        if self.is_off() {
            return;
        }
        if let Some(digest) = &mut self.digest {
            let (at, timer) = wait.deadline.map_or((0, 0), |(at, timer)| (at.as_nanos(), 1 + timer as u64));
            let io = wait.io.map_or(0, |io| {
                u64::from(io.link.number()) << 8 | u64::from(io.read) << 1 | u64::from(io.write) << 2
            });
            digest.number(at);
            digest.number(timer);
            digest.number(io | u64::from(wait.taken) << 3);
        }
        if let Some(lines) = &mut self.lines {
            _ = writeln!(lines, "{:12} -- {wait:?}", "");
        }
    }

    pub(crate) fn done(&mut self, outcome: &Outcome) {
        if let Some(digest) = &mut self.digest {
            let word = outcome.result.as_ref().map_or_else(|error| error.kind.name(), |_| outcome.word());
            digest.bytes(word.as_bytes());
            digest.number(outcome.timeline.ended.as_nanos());
        }
        if let Some(lines) = &mut self.lines {
            let said =
                outcome.result.as_ref().map_or_else(ToString::to_string, |_| outcome.word().to_owned());
            _ = writeln!(lines, "{:12} -> Done: {said}", "");
        }
    }
}

fn digest_event(digest: &mut Digest, event: &Event<'_, Call>) {
    let kind = |kind: u64, id: steadfast::call::AttemptId| u64::from(id.number()) << 8 | kind;
    match event {
        Event::Start => digest.number(1),
        Event::Elapsed => digest.number(2),
        Event::Taken => digest.number(3),
        Event::Cancel => digest.number(4),
        Event::Connected(id) => digest.number(kind(5, *id)),
        Event::Reused(id) => digest.number(kind(6, *id)),
        Event::Sent(id, count) => {
            digest.number(kind(7, *id));
            digest.number(*count as u64);
        }
        Event::Received(id, bytes) => {
            digest.number(kind(8, *id));
            digest.bytes(bytes);
        }
        Event::Eof(id, ended) => digest.number(kind(9, *id) | (*ended as u64) << 7),
        Event::Failed(id, failure) => {
            digest.number(kind(10, *id));
            digest.bytes(failure.stage.name().as_bytes());
        }
        Event::Fact(Fact::Head(id, head)) => {
            digest.number(kind(11, *id));
            digest.number(head.status.as_u16().into());
        }
        Event::Fact(Fact::Body(id, bytes)) => {
            digest.number(kind(12, *id));
            digest.bytes(bytes);
        }
        Event::Fact(Fact::End(id)) => digest.number(kind(13, *id)),
        Event::Fact(Fact::ConsumerFailed(words)) => digest.bytes(words.as_bytes()),
    }
}

fn digest_delta(digest: &mut Digest, delta: &Delta<'_>) {
    match *delta {
        Delta::Text { choice, text } => digest.piece(1, choice, 0, text),
        Delta::Reasoning { choice, text } => digest.piece(2, choice, 0, text),
        Delta::Refusal { choice, text } => digest.piece(3, choice, 0, text),
        Delta::ToolCall { choice, index, id, name, .. } => {
            digest.piece(4, choice, index, id);
            digest.bytes(name.as_bytes());
        }
        Delta::ToolArguments { choice, index, fragment } => digest.piece(5, choice, index, fragment),
    }
}

/// As much of these bytes as is of use to a reader
fn quoted(bytes: &[u8]) -> String {
    const MOST: usize = 200;
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(MOST)]).into_owned();
    let more = if bytes.len() > MOST { "..." } else { "" };
    format!("{text:?}{more}")
}

/// A number that stands for a whole log: the same on every platform
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self(0x243f_6a88_85a3_08d3)
    }
}

impl Digest {
    pub(crate) fn number(&mut self, number: u64) {
        let mixed = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 29);
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.number(u64::from_le_bytes(word));
        }
    }

    fn piece(&mut self, kind: u64, choice: u32, index: u32, text: &str) {
        self.number(kind << 60 | u64::from(choice) << 32 | u64::from(index));
        self.bytes(text.as_bytes());
    }

    /// The number
    pub fn value(self) -> u64 {
        self.0
    }
}

/// Sixteen hexadecimal digits
impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}
