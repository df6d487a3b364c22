//! OpenAI Chat Completions, the older completions, and the many servers compatible with them.
//!
//! Azure, DeepSeek, Mistral, Groq, OpenRouter, vLLM, llama.cpp, LM Studio and others speak it with
//! small differences; each that is known has a test.
//!
//! Completions, which serve fill-in-the-middle and prefix completion, have `text` in a choice where
//! chat has a delta. Mistral answers fill-in-the-middle with chat's deltas, so the two dialects
//! share one decoder, which reads both; only their names differ.
//!
//! Source: <https://platform.openai.com/docs/api-reference/chat-streaming>

use serde::Deserialize;
use serde_json::value::RawValue;

use super::choices::{Choices, Open};
use super::definition::Definition;
use super::few::Few;
use super::findings::{Finding, Findings};
use super::identity::Identity;
use super::json::{self, JsonStr, Member};
use super::tools::{Fragment, Function, ToolCall};
use super::{Decode, Decoder, Malformed, Progress, finish, in_band_error, provider_error, usage};
use crate::framing::Framing;
use crate::outcome::ReasoningMember;

/// The sentinel
pub(super) const DONE: &str = "[DONE]";

/// The definition
pub const DEFINITION: Definition = Definition {
    name: "openai-chat",
    framing: Framing::Sse,
    framing_of_json: None,
    has_sentinel: true,
    decoder: || Decoder::OpenAiChat(OpenAiChat::default()),
};

/// The definition of completions
pub const COMPLETIONS: Definition = Definition { name: "openai-completions", ..DEFINITION };

/// Decodes chat completions and completions
#[derive(Debug, Default)]
pub struct OpenAiChat {
    choices: Choices,
    identity: Identity,
    /// Where reasoning came, and whether it had words there
    reasoning: Option<(ReasoningMember, bool)>,
    ended: bool,
}

impl Decode for OpenAiChat {
    fn event(&mut self, _name: &str, data: &str, findings: &mut Findings) -> Result<(), Malformed> {
        if data.trim_ascii() == DONE {
            self.ended = true;
            return Ok(());
        }
        json::each_object(data, |object| self.chunk(data, object, findings))
    }

    fn unary(&mut self, body: &str, findings: &mut Findings) -> Result<(), Malformed> {
        json::each_object(body, |object| self.chunk(body, object, findings))?;
        self.ended = true;
        Ok(())
    }

    fn progress(&self) -> Progress {
        if self.ended { Progress::Ended } else { self.choices.progress() }
    }
}

impl OpenAiChat {
    fn chunk(&mut self, data: &str, object: &str, findings: &mut Findings) -> Result<(), Malformed> {
        let chunk = json::read::<Chunk<'_>>(object)?;
        self.identity.push(data, chunk.id, chunk.model, findings);
        let failed = json::says_something(chunk.error);
        for (position, choice) in chunk.choices.iter().enumerate() {
            self.choice(data, position, choice, failed, findings)?;
        }
        let groq = json::object::<Groq<'_>>(chunk.x_groq).unwrap_or_default();
        let counted = chunk.usage.or(groq.usage).and_then(|raw| usage::read(raw.get()));
        let cited = json::says_something(chunk.citations);
        let says_nothing = chunk.choices.is_empty() && chunk.id.is_empty() && counted.is_none();
        if let Some(usage) = counted {
            findings.push_usage(data, usage);
        }
        if cited {
            findings.push(Finding::Unknown);
        }
        if failed {
            findings.push(Finding::Error(in_band_error(object)));
        } else if let Some(raw) = chunk.x_groq.filter(|_| json::says_something(groq.error)) {
            findings.push(Finding::Error(in_band_error(raw.get())));
        } else if says_nothing && !cited {
            // vLLM once sent its errors flat, as the whole event.
            findings.push(provider_error::from_raw(object).map_or(Finding::Unknown, Finding::Error));
        }
        Ok(())
    }

    fn choice(
        &mut self,
        data: &str,
        position: usize,
        choice: &Choice<'_>,
        failed: bool,
        findings: &mut Findings,
    ) -> Result<(), Malformed> {
        let index = json::index(choice.index, position);
        let open = self.choices.open(index, findings)?;
        let before = findings.len();
        let mut passed_on = false;
        let mut reasons_in = None;
        if let Some(delta) = choice.delta.as_ref().present()? {
            reasons_in = delta.reasoning_member();
            passed_on |= message(data, index, delta, Calls::InPieces, open, findings)?;
        }
        // Some servers have an empty delta beside what they say. A message is the whole answer: after
        // deltas it would be said twice.
        if findings.len() == before {
            if let Some(whole) = choice.message.filter(|_| !open.said) {
                let whole = json::object::<Message<'_>>(Some(whole))?;
                reasons_in = whole.reasoning_member();
                passed_on |= message(data, index, &whole, Calls::Whole, open, findings)?;
            }
            if choice.message.is_none() {
                findings.push_piece(data, choice.text, |text| Finding::Text { choice: index, text })?;
            }
        }
        open.said |= findings.len() > before;
        remember(&mut self.reasoning, reasons_in, findings);
        if passed_on {
            findings.push(Finding::Unknown);
        }
        // An error object says more than the finish reason next to it.
        if !(failed && finish::word_is_error(choice.finish_reason)) {
            let none = JsonStr::default();
            open.finished |= finish::push(findings, data, index, choice.finish_reason, none);
        }
        Ok(())
    }
}

/// Remembers where reasoning comes: a member with words goes before an empty one
fn remember(
    known: &mut Option<(ReasoningMember, bool)>,
    came: Option<(ReasoningMember, bool)>,
    findings: &mut Findings,
) {
    let Some((member, has_words)) = came else { return };
    if known.is_none_or(|(_, had_words)| has_words && !had_words) {
        *known = came;
        findings.push(Finding::ReasoningMember(member));
    }
}

impl Message<'_> {
    /// Where it has reasoning, and whether that has words
    fn reasoning_member(&self) -> Option<(ReasoningMember, bool)> {
        let members = [
            (ReasoningMember::ReasoningContent, self.reasoning_content),
            (ReasoningMember::Reasoning, self.reasoning),
        ];
        let present = members.map(|(member, text)| text.map(|text| (member, !text.is_empty())));
        let with_words = present.into_iter().flatten().find(|(_, has_words)| *has_words);
        with_words.or(present.into_iter().flatten().next())
    }
}

/// How a list gives its tool calls
#[derive(Clone, Copy, PartialEq, Eq)]
enum Calls {
    InPieces,
    /// Each element is a call, even where two have the same id
    Whole,
}

/// Takes in a delta, or a whole message, which has the same members
///
/// Returns whether it has something that has no place in a turn.
fn message(
    data: &str,
    choice: u32,
    said: &Message<'_>,
    calls: Calls,
    open: &mut Open,
    findings: &mut Findings,
) -> Result<bool, Malformed> {
    let reasoning = said.reasoning_content.unwrap_or_default().or(said.reasoning.unwrap_or_default());
    findings.push_piece(data, reasoning, |text| Finding::Reasoning { choice, text })?;
    let mut passed_on = false;
    for part in json::parts::<Part<'_>>(said.content)?.iter() {
        passed_on |= part.thinking.is_none() && part.text.is_none();
        for thought in json::parts::<Thought<'_>>(part.thinking)?.iter() {
            findings.push_piece(data, thought.text, |text| Finding::Reasoning { choice, text })?;
        }
        let text = part.text.unwrap_or_default();
        findings.push_piece(data, text, |text| Finding::Text { choice, text })?;
    }
    findings.push_piece(data, said.refusal, |text| Finding::Refusal { choice, text })?;
    let several = said.tool_calls.len() > 1;
    for (position, call) in said.tool_calls.iter().enumerate() {
        let mut fragment = call.fragment()?;
        if calls == Calls::Whole {
            if !fragment.is_empty() {
                open.tools.whole(data, findings, choice, fragment)?;
            }
            continue;
        }
        // Where a server gives neither number nor id, the place in the list must do.
        if several && fragment.key.is_none() && fragment.id.is_empty() {
            fragment.key = u32::try_from(position).ok();
        }
        open.tools.take(data, findings, choice, fragment)?;
    }
    if let Some(Function { name, arguments }) = said.function_call.present()? {
        open.tools.take(data, findings, choice, Fragment { name, arguments, ..Fragment::default() })?;
    }
    let others = [said.annotations, said.audio, said.images, said.reasoning_details];
    Ok(passed_on || others.into_iter().any(json::says_something))
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow, default)]
    id: JsonStr<'a>,
    #[serde(default)]
    model: JsonStr<'a>,
    #[serde(default)]
    choices: Few<Choice<'a>>,
    usage: Option<&'a RawValue>,
    x_groq: Option<&'a RawValue>,
    citations: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct Groq<'a> {
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow, default)]
    index: JsonStr<'a>,
    #[serde(default)]
    delta: Member<Message<'a>>,
    message: Option<&'a RawValue>,
    #[serde(default)]
    text: JsonStr<'a>,
    #[serde(default)]
    finish_reason: JsonStr<'a>,
}

#[derive(Default, Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    reasoning_content: Option<JsonStr<'a>>,
    reasoning: Option<JsonStr<'a>>,
    #[serde(default)]
    refusal: JsonStr<'a>,
    #[serde(default)]
    tool_calls: Few<ToolCall<'a>>,
    #[serde(default)]
    function_call: Member<Function<'a>>,
    annotations: Option<&'a RawValue>,
    audio: Option<&'a RawValue>,
    images: Option<&'a RawValue>,
    /// At some servers each has the whole text so far, and at others a piece that `reasoning` has too
    reasoning_details: Option<&'a RawValue>,
}

/// A part of content that is a list, as Mistral's reasoning models send it
#[derive(Default, Deserialize)]
struct Part<'a> {
    #[serde(borrow)]
    text: Option<JsonStr<'a>>,
    thinking: Option<&'a RawValue>,
}

impl<'a> From<JsonStr<'a>> for Part<'a> {
    fn from(text: JsonStr<'a>) -> Self {
        Self { text: Some(text), ..Self::default() }
    }
}

#[derive(Deserialize)]
struct Thought<'a> {
    #[serde(borrow, default)]
    text: JsonStr<'a>,
}

impl<'a> From<JsonStr<'a>> for Thought<'a> {
    fn from(text: JsonStr<'a>) -> Self {
        Self { text }
    }
}

#[cfg(test)]
mod tests;
