//! What a decoder finds in an event, in order, as spans of the event's own bytes.

use serde_json::value::RawValue;

use super::json::JsonStr;
use super::usage::{Counted, Tokens};
use crate::outcome::ProviderError;
use crate::outcome::{Delta, ToolKind, Turn};

/// One thing found in an event
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    /// An answer has begun, with or without text
    Opened {
        /// Which of several answers
        choice: u32,
    },
    /// Text of the answer
    Text {
        /// Which of several answers
        choice: u32,
        /// Where the text lies
        text: Span,
    },
    /// Text of the model's reasoning
    Reasoning {
        /// Which of several answers
        choice: u32,
        /// Where the text lies
        text: Span,
    },
    /// Text with which the model declines
    Refusal {
        /// Which of several answers
        choice: u32,
        /// Where the text lies
        text: Span,
    },
    /// A tool call opens; the same index again only brings an id or a name that was missing
    ToolCall {
        /// Which of several answers
        choice: u32,
        /// Position among the tool calls of this choice, from 0, without gaps
        index: u32,
        /// Who runs the tool, and on what
        kind: ToolKind,
        /// Where the provider's id lies; empty where it gives none
        id: Span,
        /// Where the tool's name lies
        name: Span,
    },
    /// A piece of a tool call's arguments
    ToolArguments {
        /// Which of several answers
        choice: u32,
        /// Position among the tool calls of this choice
        index: u32,
        /// Where the piece lies
        fragment: Span,
    },
    /// An answer has its finish reason, which is no error (see [`super::finish`])
    Finish {
        /// Which of several answers
        choice: u32,
        /// Where the provider's word lies
        reason: Span,
    },
    /// The response's id and model; either may be empty, and empty ones change nothing
    Identity {
        /// Where the response's id lies
        id: Span,
        /// Where the model's name lies
        model: Span,
    },
    /// A count of tokens: replaces the one before it
    Usage {
        /// What was counted
        tokens: Tokens,
        /// Where the provider's own report lies
        raw: Span,
    },
    /// The provider reports an error inside its answer
    Error(ProviderError),
    /// The provider refuses the prompt, with its word for why
    Blocked(String),
    /// Something that has no place in a turn, so the event goes to the consumer as it came
    ///
    /// An event of a kind that the dialect does not know, or one with citations, which every
    /// provider gives in a form of its own. Comes after what else is found in the event.
    Unknown,
}

/// Where a string lies: in the event's data, or in the scratch of [`Findings`]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    start: usize,
    end: usize,
    scratch: bool,
}

impl Span {
    /// Where `text` lies in `data`, if it is part of it
    fn within(data: &str, text: &str) -> Option<Self> {
        let start = (text.as_ptr() as usize).checked_sub(data.as_ptr() as usize)?;
        let end = start + text.len();
        (end <= data.len()).then_some(Self { start, end, scratch: false })
    }
}

/// The findings of one event, in the order in which they are to be delivered
///
/// Reused from event to event, so that steady streaming allocates nothing.
#[derive(Debug, Default)]
pub struct Findings {
    queue: Vec<Finding>,
    next: usize,
    scratch: String,
    /// Payloads that were passed over by rule: comments wrapped as data, `null`, and Chat's sentinel
    /// in a stream of another dialect
    pub skipped: u64,
}

impl Findings {
    /// Forgets everything of the event before
    pub fn clear(&mut self) {
        self.queue.clear();
        self.next = 0;
        self.scratch.clear();
    }

    /// Whether everything has been taken
    pub fn is_empty(&self) -> bool {
        self.next == self.queue.len()
    }

    /// How many findings the event has, taken or not
    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    /// The next finding, which stays until the next [`Findings::clear`]
    pub fn take(&mut self) -> Option<&Finding> {
        self.take_index().map(|index| self.get(index))
    }

    /// The place of the next finding, for [`Findings::get`]
    pub(crate) fn take_index(&mut self) -> Option<usize> {
        let index = self.next;
        (index < self.queue.len()).then(|| {
            self.next += 1;
            index
        })
    }

    /// The finding at a place that [`Findings::take_index`] gave
    pub(crate) fn get(&self, index: usize) -> &Finding {
        &self.queue[index]
    }

    /// Adds a finding
    pub fn push(&mut self, finding: Finding) {
        self.queue.push(finding);
    }

    /// Where the string `text` lies: in the event's `data`, or in the scratch if it is escaped there
    pub fn span(&mut self, data: &str, text: JsonStr<'_>) -> Span {
        match text.plain() {
            Some("") => Span::default(),
            Some(plain) => self.part(data, plain),
            None => {
                let start = self.scratch.len();
                text.unescape_into(&mut self.scratch);
                Span { start, end: self.scratch.len(), scratch: true }
            }
        }
    }

    /// Adds what `finding` makes of the piece `text`, unless that is empty
    pub fn push_piece(&mut self, data: &str, text: JsonStr<'_>, finding: impl FnOnce(Span) -> Finding) {
        if !text.is_empty() {
            let span = self.span(data, text);
            self.push(finding(span));
        }
    }

    /// Adds a tool call's arguments, or a piece of them, unless it is empty
    ///
    /// They come as a string that holds JSON or, from some servers, as the JSON itself.
    pub fn push_arguments(&mut self, data: &str, choice: u32, index: u32, raw: &RawValue) {
        let fragment = match raw.get().as_bytes().first() {
            Some(b'{' | b'[') => self.part(data, raw.get()),
            _ => self.span(data, JsonStr::from_raw(raw)),
        };
        if fragment.start < fragment.end {
            self.push(Finding::ToolArguments { choice, index, fragment });
        }
    }

    fn part(&mut self, data: &str, text: &str) -> Span {
        Span::within(data, text).unwrap_or_else(|| self.owned(text))
    }

    /// Adds a count of tokens, read from the event's `data` or from a report put together of it
    pub fn push_usage(&mut self, data: &str, counted: Counted<'_>) {
        let Counted { tokens, raw } = counted;
        let raw = Span::within(data, raw).unwrap_or_else(|| self.owned(raw));
        self.push(Finding::Usage { tokens, raw });
    }

    /// A span of a string that does not lie in the event's data
    pub fn owned(&mut self, text: &str) -> Span {
        let start = self.scratch.len();
        self.scratch.push_str(text);
        Span { start, end: self.scratch.len(), scratch: true }
    }

    /// The string that `span` names; `data` is the event's, as text or as the bytes of that text
    ///
    /// # Panics
    ///
    /// If `data` is not that of the event.
    pub fn resolve<'a>(&'a self, data: &'a (impl AsRef<[u8]> + ?Sized), span: Span) -> &'a str {
        let source = if span.scratch { self.scratch.as_bytes() } else { data.as_ref() };
        // Only the piece is looked at again, never the event around it.
        std::str::from_utf8(&source[span.start..span.end]).expect("a span of the event's text")
    }
}

impl Finding {
    /// Adds this finding to the turn, unless it is an error, a block or unknown
    ///
    /// The first id and the first model stand, as do the last finish reason and the last count.
    pub fn apply(&self, turn: &mut Turn, findings: &Findings, data: &(impl AsRef<[u8]> + ?Sized)) {
        if let Some(delta) = self.delta(findings, data) {
            return turn.apply(&delta);
        }
        match self {
            Self::Opened { choice } => {
                turn.choice_mut(*choice);
            }
            Self::Finish { choice, reason } => {
                turn.choice_mut(*choice).finish_reason = Some(findings.resolve(data, *reason).to_owned());
            }
            Self::Identity { id, model } => {
                for (held, given) in [(&mut turn.id, *id), (&mut turn.model, *model)] {
                    let given = findings.resolve(data, given);
                    if held.is_none() && !given.is_empty() {
                        *held = Some(given.to_owned());
                    }
                }
            }
            Self::Usage { tokens, raw } => {
                // Some providers count in every event, so the report before it lends its room.
                let usage = turn.usage.get_or_insert_default();
                usage.input_tokens = tokens.input;
                usage.output_tokens = tokens.output;
                usage.total_tokens = tokens.total;
                findings.resolve(data, *raw).clone_into(&mut usage.raw);
            }
            Self::Text { .. }
            | Self::Reasoning { .. }
            | Self::Refusal { .. }
            | Self::ToolCall { .. }
            | Self::ToolArguments { .. }
            | Self::Error(_)
            | Self::Blocked(_)
            | Self::Unknown => {}
        }
    }

    /// The delta that this finding is, if it is one
    pub fn delta<'a>(
        &self,
        findings: &'a Findings,
        data: &'a (impl AsRef<[u8]> + ?Sized),
    ) -> Option<Delta<'a>> {
        let resolve = |span| findings.resolve(data, span);
        Some(match *self {
            Self::Text { choice, text } => Delta::Text { choice, text: resolve(text) },
            Self::Reasoning { choice, text } => Delta::Reasoning { choice, text: resolve(text) },
            Self::Refusal { choice, text } => Delta::Refusal { choice, text: resolve(text) },
            Self::ToolCall { choice, index, kind, id, name } => {
                Delta::ToolCall { choice, index, kind, id: resolve(id), name: resolve(name) }
            }
            Self::ToolArguments { choice, index, fragment } => {
                Delta::ToolArguments { choice, index, fragment: resolve(fragment) }
            }
            Self::Opened { .. }
            | Self::Finish { .. }
            | Self::Identity { .. }
            | Self::Usage { .. }
            | Self::Error(_)
            | Self::Blocked(_)
            | Self::Unknown => return None,
        })
    }
}
