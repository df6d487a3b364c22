//! What a decoder finds in an event, in order, as spans of the event's own bytes.

use serde_json::value::RawValue;

use super::Malformed;
use super::json::JsonStr;
use super::usage::{Counted, Tokens};
use crate::outcome::ProviderError;
use crate::outcome::{Delta, ReasoningMember, Signature, Signed, ToolKind, Turn};

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
    /// The provider signs a part of the answer, to know it when it is sent back
    Signature {
        /// Which of several answers
        choice: u32,
        /// What is signed
        part: SignedPart,
        /// Where the token lies, never empty
        token: Span,
    },
    /// The member in which the server gives its reasoning, and wants it back; the last one stands
    ReasoningMember(ReasoningMember),
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

/// A part of an answer that a provider signs
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignedPart {
    /// The reasoning so far, from the end of what was signed before
    Reasoning,
    /// Reasoning of which the token is all there is
    Hidden,
    /// The tool call at this position
    ToolCall(u32),
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

/// The first half of a surrogate pair, at the end of a piece
///
/// Some servers cut a character that is written as two escapes.
#[derive(Debug)]
struct Half {
    choice: u32,
    /// What the piece was of, without its text
    of: Finding,
    high: u16,
}

/// More halves than any answers leave at a time; those beyond are replaced at once
const MAX_HALVES: usize = 64;

/// The findings of one event, in the order in which they are to be delivered
///
/// Reused from event to event, so that steady streaming allocates nothing.
#[derive(Debug, Default)]
pub struct Findings {
    queue: Vec<Finding>,
    next: usize,
    scratch: String,
    /// The halves of characters at the ends of pieces, whose other halves may come in the next ones
    halves: Vec<Half>,
    /// Payloads that were passed over by rule: comments wrapped as data, `null`, plain text of
    /// keep-alive events, and Chat's sentinel in a stream of another dialect
    pub skipped: u64,
}

impl Findings {
    /// Forgets everything of the event before but half a character at the end of a piece
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

    /// Bytes that are held of the event: strings without their escapes, and a place for each finding
    pub(crate) fn held(&self) -> usize {
        self.scratch.len() + self.queue.len() * size_of::<Finding>() + self.halves.len() * size_of::<Half>()
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
    ///
    /// [`Finding::Unknown`] is told once of an event, at its last mention.
    pub fn push(&mut self, finding: Finding) {
        if matches!(finding, Finding::Unknown) {
            self.queue.retain(|finding| !matches!(finding, Finding::Unknown));
        }
        if let Finding::Finish { choice, .. } = finding {
            self.replace_halves(|half| half.choice == choice);
        }
        self.queue.push(finding);
    }

    /// The answer ends here: half a character at the end of a piece becomes U+FFFD
    pub(crate) fn end(&mut self) {
        self.replace_halves(|_| true);
    }

    fn replace_halves(&mut self, ends: impl Fn(&Half) -> bool) {
        while let Some(at) = self.halves.iter().position(&ends) {
            let span = self.owned(REPLACEMENT);
            let piece = self.halves.remove(at).of.with_piece(span);
            self.queue.push(piece);
        }
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
    ///
    /// Half a character at its end is kept for the next piece of the same choice and kind, or
    /// replaced by U+FFFD where that does not go on with the other half, or the choice finishes.
    ///
    /// Errors: [`Malformed`] where it is no text and not empty.
    pub fn push_piece(
        &mut self,
        data: &str,
        text: JsonStr<'_>,
        finding: impl FnOnce(Span) -> Finding,
    ) -> Result<(), Malformed> {
        self.push_and_locate(data, text, finding).map(|_| ())
    }

    /// As [`Findings::push_piece`]; returns where the piece lies, if one was added
    pub(super) fn push_and_locate(
        &mut self,
        data: &str,
        text: JsonStr<'_>,
        finding: impl FnOnce(Span) -> Finding,
    ) -> Result<Option<Span>, Malformed> {
        if text.text()?.is_empty() {
            return Ok(None);
        }
        if self.halves.is_empty() && text.high_half_at_end().is_none() {
            let span = self.span(data, text);
            self.push(finding(span));
            return Ok(Some(span));
        }
        let of = finding(Span::default());
        let held = self.halves.iter().position(|half| half.of == of);
        let held = held.map(|at| self.halves.swap_remove(at).high);
        let start = self.scratch.len();
        let text = text.unescape_half(held, &mut self.scratch);
        match (text.high_half_at_end(), of.choice()) {
            (Some((before, high)), Some(choice)) if self.halves.len() < MAX_HALVES => {
                before.unescape_into(&mut self.scratch);
                self.halves.push(Half { choice, of: of.clone(), high });
            }
            _ => text.unescape_into(&mut self.scratch),
        }
        let span = Span { start, end: self.scratch.len(), scratch: true };
        Ok((span.start < span.end).then(|| {
            self.push(of.with_piece(span));
            span
        }))
    }

    /// Adds a tool call's arguments, or a piece of them, unless it is empty
    ///
    /// They come as a string that holds JSON or, from some servers, as the JSON itself.
    pub fn push_arguments(
        &mut self,
        data: &str,
        choice: u32,
        index: u32,
        raw: &RawValue,
    ) -> Result<(), Malformed> {
        let finding = |fragment| Finding::ToolArguments { choice, index, fragment };
        if raw.get().starts_with(['{', '[']) {
            let fragment = self.part(data, raw.get());
            self.push(finding(fragment));
            return Ok(());
        }
        self.push_piece(data, JsonStr::from_raw(raw), finding)
    }

    fn part(&mut self, data: &str, text: &str) -> Span {
        Span::within(data, text).unwrap_or_else(|| self.owned(text))
    }

    /// Adds a signature of a part of the answer, unless it is empty
    pub fn push_signature(&mut self, data: &str, choice: u32, part: SignedPart, token: JsonStr<'_>) {
        if !token.is_empty() {
            let token = self.span(data, token);
            self.push(Finding::Signature { choice, part, token });
        }
    }

    /// How many bytes the string has that `span` names
    pub(crate) fn len_of(span: Span) -> usize {
        span.end - span.start
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

const REPLACEMENT: &str = "\u{FFFD}";

impl Finding {
    /// The choice that a piece belongs to; `None` for what is no piece
    fn choice(&self) -> Option<u32> {
        match *self {
            Self::Text { choice, .. }
            | Self::Reasoning { choice, .. }
            | Self::Refusal { choice, .. }
            | Self::ToolArguments { choice, .. } => Some(choice),
            Self::Opened { .. }
            | Self::ToolCall { .. }
            | Self::Signature { .. }
            | Self::ReasoningMember(_)
            | Self::Finish { .. }
            | Self::Identity { .. }
            | Self::Usage { .. }
            | Self::Error(_)
            | Self::Blocked(_)
            | Self::Unknown => None,
        }
    }

    /// The same of another piece
    fn with_piece(mut self, span: Span) -> Self {
        match &mut self {
            Self::Text { text: piece, .. }
            | Self::Reasoning { text: piece, .. }
            | Self::Refusal { text: piece, .. }
            | Self::ToolArguments { fragment: piece, .. } => *piece = span,
            Self::Opened { .. }
            | Self::ToolCall { .. }
            | Self::Signature { .. }
            | Self::ReasoningMember(_)
            | Self::Finish { .. }
            | Self::Identity { .. }
            | Self::Usage { .. }
            | Self::Error(_)
            | Self::Blocked(_)
            | Self::Unknown => {}
        }
        self
    }

    /// Bytes of the provider's own words about the answer, which no delta brings
    pub(crate) fn words(&self) -> usize {
        match self {
            Self::Finish { reason, .. } => Findings::len_of(*reason),
            Self::Identity { id, model } => Findings::len_of(*id) + Findings::len_of(*model),
            Self::Usage { raw, .. } => Findings::len_of(*raw),
            Self::Opened { .. }
            | Self::Text { .. }
            | Self::Reasoning { .. }
            | Self::Refusal { .. }
            | Self::ToolCall { .. }
            | Self::ToolArguments { .. }
            | Self::Signature { .. }
            | Self::ReasoningMember(_)
            | Self::Error(_)
            | Self::Blocked(_)
            | Self::Unknown => 0,
        }
    }

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
            Self::ReasoningMember(member) => turn.reasoning_member = Some(*member),
            Self::Signature { choice, part, token } => {
                let signs = match *part {
                    SignedPart::Reasoning => {
                        Signed::Reasoning { end: turn.choice_mut(*choice).reasoning.len() }
                    }
                    SignedPart::Hidden => Signed::Hidden,
                    SignedPart::ToolCall(index) => Signed::ToolCall { index },
                };
                let token = findings.resolve(data, *token).to_owned();
                turn.signatures.push(Signature { choice: *choice, signs, token });
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
            | Self::Signature { .. }
            | Self::ReasoningMember(_)
            | Self::Finish { .. }
            | Self::Identity { .. }
            | Self::Usage { .. }
            | Self::Error(_)
            | Self::Blocked(_)
            | Self::Unknown => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Dialect;
    use super::super::testing::play;

    fn played(deltas: &[&str]) -> [String; 2] {
        let chunk = |delta: &&str| format!(r#"{{"choices":[{{"delta":{{{delta}}}}}]}}"#);
        let mut events: Vec<_> = deltas.iter().map(chunk).collect();
        events.push(r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#.to_owned());
        let events: Vec<_> = events.iter().map(String::as_str).collect();
        let choice = play(Dialect::OpenAiChat, &events).turn.choices.remove(0);
        [choice.text, choice.reasoning]
    }

    #[test]
    fn a_character_cut_in_two_is_put_together() {
        let texts = |pieces: &[&str]| {
            let deltas: Vec<_> = pieces.iter().map(|piece| format!(r#""content":"{piece}""#)).collect();
            let [text, _] = played(&deltas.iter().map(String::as_str).collect::<Vec<_>>());
            text
        };
        for (pieces, text) in [
            (&[r"\ud83d", r"\ude00"][..], "\u{1F600}"),
            (&[r"a\n\ud83d", "", r"\ude00b\ud83d", r"\ude00"], "a\n\u{1F600}b\u{1F600}"),
            (&[r"\ud83d", "x"], "\u{FFFD}x"),
            (&[r"\ud83d", r"\ud83d", r"\ude00"], "\u{FFFD}\u{1F600}"),
            (&[r"\ud83d", r"\u0041"], "\u{FFFD}A"),
            (&[r"a\ud83d"], "a\u{FFFD}"),
            (&[r"\\ud83d", r"\ude00"], "\\ud83d\u{FFFD}"),
        ] {
            assert_eq!(texts(pieces), text, "{pieces:?}");
        }
    }

    #[test]
    fn halves_of_different_kinds_stay_apart() {
        let [text, reasoning] = played(&[
            r#""content":"\ud83d""#,
            r#""reasoning":"\ud83d""#,
            r#""content":"\ude00""#,
            r#""reasoning":"\ude01""#,
        ]);
        assert_eq!([text, reasoning], ["\u{1F600}", "\u{1F601}"]);
    }
}
