//! What the model said: the assembled turn, and the deltas whose concatenation it is.

use serde::Serialize;

/// One piece of an answer, lent from the bytes it came in
///
/// The deltas of a call, applied in order to an empty [`Turn`], give the turn (rule STR-8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delta<'a> {
    /// Text of the answer
    Text {
        /// Which of several answers; 0 where there is one
        choice: u32,
        /// The piece, never empty
        text: &'a str,
    },
    /// Text of the model's reasoning, or of a summary of it
    Reasoning {
        /// Which of several answers
        choice: u32,
        /// The piece, never empty
        text: &'a str,
    },
    /// Text with which the model declines
    Refusal {
        /// Which of several answers
        choice: u32,
        /// The piece, never empty
        text: &'a str,
    },
    /// A tool call opens; the same index again only brings an id or a name that was missing
    ToolCall {
        /// Which of several answers
        choice: u32,
        /// Position among the tool calls of this choice, from 0
        index: u32,
        /// Who runs the tool, and on what
        kind: ToolKind,
        /// The provider's id of the call; empty where the provider gives none
        id: &'a str,
        /// The tool's name
        name: &'a str,
    },
    /// A piece of a tool call's arguments, which is not JSON on its own
    ToolArguments {
        /// Which of several answers
        choice: u32,
        /// Position among the tool calls of this choice, from 0
        index: u32,
        /// The piece, never empty
        fragment: &'a str,
    },
}

impl Delta<'_> {
    /// How many bytes of text it brings
    pub fn len(&self) -> usize {
        match self {
            Self::Text { text, .. } | Self::Reasoning { text, .. } | Self::Refusal { text, .. } => text.len(),
            Self::ToolCall { id, name, .. } => id.len() + name.len(),
            Self::ToolArguments { fragment, .. } => fragment.len(),
        }
    }

    /// Whether it brings no text at all: a tool call without an id
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The answer as far as it came
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Turn {
    /// The provider's id of the response
    pub id: Option<String>,
    /// The model that answered, in the provider's words
    pub model: Option<String>,
    /// The answers; more than one only where the request asked for several
    pub choices: Vec<Choice>,
    /// What the provider counted, as last reported
    pub usage: Option<Usage>,
    /// What the provider wants back with the answer, where it signs parts of it; in order
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub signatures: Vec<Signature>,
    /// Where a server that speaks OpenAI Chat gives its reasoning, and wants it back
    #[serde(skip)]
    pub reasoning_member: Option<ReasoningMember>,
}

/// The member of a message in which a server that speaks OpenAI Chat gives its reasoning
///
/// OpenAI itself gives none. DeepSeek and Moonshot refuse the results of tools without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReasoningMember {
    /// `reasoning_content`: DeepSeek, Moonshot, Z.ai, Alibaba, llama.cpp and others
    ReasoningContent,
    /// `reasoning`: OpenRouter, Groq, Cerebras, vLLM and others
    Reasoning,
}

impl ReasoningMember {
    /// Its name in JSON
    pub fn name(self) -> &'static str {
        match self {
            Self::ReasoningContent => "reasoning_content",
            Self::Reasoning => "reasoning",
        }
    }
}

/// A token by which a provider knows a part of its answer when that is sent back
///
/// Anthropic signs what it thinks, and refuses the results of tools without it; Gemini signs calls of
/// functions, and does the same. OpenAI gives its reasoning in a form that only it can read, where the
/// request includes `reasoning.encrypted_content`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Signature {
    /// Which of several answers
    pub choice: u32,
    /// The part that is signed
    pub signs: Signed,
    /// The token, which only the provider can read
    pub token: String,
}

/// A part of an answer that a provider has signed
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Signed {
    /// The choice's reasoning from the end of what was signed before, up to this many bytes of it
    Reasoning {
        /// The end, in bytes of [`Choice::reasoning`]
        end: usize,
    },
    /// No part of the turn: reasoning that the provider keeps to itself, of which the token is all there is
    ///
    /// Anthropic's `redacted_thinking`, which goes back as it came, at its place among the signatures.
    Hidden,
    /// A tool call, by its position in [`Choice::tool_calls`]
    ToolCall {
        /// The position
        index: u32,
    },
}

/// One answer of a turn
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// The provider's number of this choice
    pub index: u32,
    /// Text of the answer
    pub text: String,
    /// Text of the model's reasoning
    pub reasoning: String,
    /// Text with which the model declined
    pub refusal: String,
    /// Tool calls in the order in which they opened
    pub tool_calls: Vec<ToolCall>,
    /// The provider's own word for why it stopped
    pub finish_reason: Option<String>,
}

/// A tool call of the model, whole or not: only [`Outcome::is_whole`](super::Outcome::is_whole) tells
/// whether it may be run
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ToolCall {
    /// Who runs the tool, and on what
    pub kind: ToolKind,
    /// The provider's id of the call; empty where the provider gives none
    pub id: String,
    /// The tool's name
    pub name: String,
    /// The arguments as they came: JSON text, once the call is whole; free text of a custom tool
    pub arguments: String,
}

/// Who runs a tool, and on what
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolKind {
    /// The caller, on JSON
    #[default]
    Function,
    /// The caller, on free text (OpenAI's custom tools)
    Custom,
    /// The provider itself, within its answer: a tool loop must leave it alone
    Server,
}

impl ToolCall {
    /// Whether the arguments look whole: JSON, or empty for a call without any
    ///
    /// Empty arguments and free text do not show whether they are whole:
    /// [`Outcome::is_whole`](super::Outcome::is_whole) tells.
    pub(crate) fn looks_whole(&self) -> bool {
        self.kind == ToolKind::Custom
            || self.arguments.is_empty()
            || serde_json::from_str::<serde::de::IgnoredAny>(&self.arguments).is_ok()
    }
}

/// What the provider counted
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// Tokens of the prompt
    pub input_tokens: Option<u64>,
    /// Tokens of the answer
    pub output_tokens: Option<u64>,
    /// Both together, where the provider says so
    pub total_tokens: Option<u64>,
    /// The provider's own report: a JSON object
    #[serde(serialize_with = "raw_json")]
    pub raw: String,
}

fn raw_json<S: serde::Serializer>(raw: &str, serializer: S) -> Result<S::Ok, S::Error> {
    match serde_json::from_str::<&serde_json::value::RawValue>(raw) {
        Ok(raw) => raw.serialize(serializer),
        Err(_) => serializer.serialize_none(),
    }
}

impl Turn {
    /// Adds a delta
    pub fn apply(&mut self, delta: &Delta<'_>) {
        match *delta {
            Delta::Text { choice, text } => self.choice_mut(choice).text.push_str(text),
            Delta::Reasoning { choice, text } => self.choice_mut(choice).reasoning.push_str(text),
            Delta::Refusal { choice, text } => self.choice_mut(choice).refusal.push_str(text),
            Delta::ToolCall { choice, index, kind, id, name } => {
                let call = self.choice_mut(choice).tool_call_mut(index);
                call.kind = kind;
                for (held, given) in [(&mut call.id, id), (&mut call.name, name)] {
                    if held.is_empty() {
                        held.push_str(given);
                    }
                }
            }
            Delta::ToolArguments { choice, index, fragment } => {
                self.choice_mut(choice).tool_call_mut(index).arguments.push_str(fragment);
            }
        }
    }

    /// Bytes of what the provider says about its answer: id, model, usage, finish reasons
    pub(crate) fn words(&self) -> usize {
        let reasons = self.choices.iter().map(|choice| &choice.finish_reason);
        let words = reasons.chain([&self.id, &self.model]).flatten().map(String::len);
        words.sum::<usize>() + self.usage.as_ref().map_or(0, |usage| usage.raw.len())
    }

    /// Text of the first choice; empty where there is none
    pub fn text(&self) -> &str {
        self.choices.first().map_or("", |choice| &choice.text)
    }

    /// The finish reason of the first choice, in the provider's word
    pub fn finish_reason(&self) -> Option<&str> {
        self.choices.first()?.finish_reason.as_deref()
    }

    /// The choice with that number, made if it is new; choices stay sorted by number
    pub(crate) fn choice_mut(&mut self, index: u32) -> &mut Choice {
        let at = match self.choices.binary_search_by_key(&index, |choice| choice.index) {
            Ok(at) => at,
            Err(at) => {
                // More than one answer is rare.
                if self.choices.is_empty() {
                    self.choices.reserve_exact(1);
                }
                self.choices.insert(at, Choice { index, ..Choice::default() });
                at
            }
        };
        &mut self.choices[at]
    }
}

impl Choice {
    /// Whether nothing was said, not even a tool call
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
            && self.reasoning.is_empty()
            && self.refusal.is_empty()
            && self.tool_calls.is_empty()
    }

    /// The tool call at that position, made if it is the next one
    ///
    /// Decoders number calls without gaps. Beyond the next one it is the next one all the same, so
    /// that a careless decoder does not let a peer say how much we hold.
    fn tool_call_mut(&mut self, index: u32) -> &mut ToolCall {
        let index = (index as usize).min(self.tool_calls.len());
        if index == self.tool_calls.len() {
            self.tool_calls.push(ToolCall::default());
        }
        &mut self.tool_calls[index]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_call_far_beyond_the_others_is_the_next_one() {
        let mut turn = Turn::default();
        for index in [0, u32::MAX] {
            let kind = ToolKind::Function;
            turn.apply(&Delta::ToolCall { choice: 0, index, kind, id: "t", name: "f" });
        }
        turn.apply(&Delta::ToolArguments { choice: 0, index: 1, fragment: "{}" });
        let arguments: Vec<_> = turn.choices[0].tool_calls.iter().map(|call| &*call.arguments).collect();
        assert_eq!(arguments, ["", "{}"]);
    }
}
