//! Anthropic Messages.
//!
//! Gateways that start over upstream send a second `message_start`. What came of the first stays, so
//! once it has words or a whole tool call, which would be there twice, the second is malformed.
//!
//! Source: <https://docs.anthropic.com/en/docs/build-with-claude/streaming>

use serde::Deserialize;
use serde_json::value::RawValue;

use super::blocks::Blocks;
use super::choices::Choices;
use super::definition::Definition;
use super::findings::{Finding, Findings, SignedPart};
use super::identity::Identity;
use super::json::{self, JsonStr, Member};
use super::tools::Fragment;
use super::{Decode, Decoder, Malformed, Progress, finish, in_band_error, usage};
use crate::framing::Framing;
use crate::outcome::ToolKind;

/// The definition
pub const DEFINITION: Definition = Definition {
    name: "anthropic",
    framing: Framing::Sse,
    framing_of_json: None,
    has_sentinel: true,
    decoder: || Decoder::Anthropic(Anthropic::default()),
};

/// Decodes messages
#[derive(Debug, Default)]
pub struct Anthropic {
    choices: Choices,
    /// Whether words of the answer or a whole tool call came
    said: bool,
    identity: Identity,
    blocks: Blocks,
    /// The usage as reported so far: a JSON object, or empty
    usage: String,
    finished: bool,
    ended: bool,
}

/// A larger report of usage is not joined with the one before it
const MAX_USAGE_BYTES: usize = 64 * 1024;

impl Decode for Anthropic {
    fn event(&mut self, _name: &str, data: &str, findings: &mut Findings) -> Result<(), Malformed> {
        json::each_object(data, |object| self.message_event(data, object, findings))
    }

    fn unary(&mut self, body: &str, findings: &mut Findings) -> Result<(), Malformed> {
        json::each_object(body, |object| {
            let message = json::read::<Message<'_>>(object)?;
            if json::says_something(message.error) {
                findings.push(Finding::Error(in_band_error(object)));
                return Ok(());
            }
            if message.kind.is("message") || message.content.is_some() {
                self.whole(body, &message, findings)?;
            }
            Ok(())
        })?;
        self.ended = true;
        Ok(())
    }

    fn progress(&self) -> Progress {
        if self.ended {
            Progress::Ended
        } else if self.finished && self.blocks.is_empty() {
            Progress::Marked
        } else {
            Progress::Open
        }
    }
}

impl Anthropic {
    fn message_event(&mut self, data: &str, object: &str, findings: &mut Findings) -> Result<(), Malformed> {
        let event = json::read::<Event<'_>>(object)?;
        if json::says_something(event.error) || event.kind.is("error") {
            findings.push(Finding::Error(in_band_error(object)));
            return Ok(());
        }
        let index = json::index(event.index, 0);
        match event.kind.plain() {
            Some("message_start") => {
                // A gateway that starts over upstream says everything again; what was said cannot be
                // taken back. Reasoning and calls that were cut do no harm.
                if self.said {
                    let reason = "a second message after words or a whole tool call of the first".to_owned();
                    return Err(Malformed { reason });
                }
                self.blocks.cut(findings);
                self.choices.open(0, findings)?;
                let message = json::object::<Message<'_>>(event.message)?;
                self.identity.push(data, message.id, message.model, findings);
                self.content(data, &message, findings)?;
                self.count(message.usage, findings);
            }
            Some("content_block_start") => {
                self.choices.open(0, findings)?;
                let block = event.content_block.object()?;
                self.said |= block.is_text();
                let call = content(data, &block, findings)?;
                self.blocks.start(data, findings, index, call)?;
            }
            Some("content_block_delta") => {
                self.choices.open(0, findings)?;
                self.delta(data, index, &event.delta.object()?, findings)?;
            }
            Some("content_block_stop") => self.said |= self.blocks.stop(findings, index),
            Some("message_delta") => {
                self.choices.open(0, findings)?;
                let word = event.delta.object()?.stop_reason;
                self.finished |= finish::push(findings, data, 0, word, JsonStr::default());
                self.count(event.usage, findings);
            }
            Some("message_stop") => {
                self.blocks.cut(findings);
                self.ended = true;
            }
            Some("ping") => {}
            _ => findings.push(Finding::Unknown),
        }
        Ok(())
    }

    fn count(&mut self, raw: Option<&RawValue>, findings: &mut Findings) {
        if let Some(raw) = raw {
            self.usage = usage::merge(&self.usage, raw.get());
            if self.usage.len() > MAX_USAGE_BYTES {
                raw.get().clone_into(&mut self.usage);
            }
            if let Some(usage) = usage::read(&self.usage) {
                // The report is put together of several, and lies in none of them.
                findings.push_usage("", usage);
            }
        }
    }

    fn delta(
        &mut self,
        data: &str,
        index: u32,
        delta: &Delta<'_>,
        findings: &mut Findings,
    ) -> Result<(), Malformed> {
        match delta.kind.plain() {
            Some("text_delta") => {
                self.said |= !delta.text.is_empty();
                findings.push_piece(data, delta.text, |text| Finding::Text { choice: 0, text })?;
            }
            Some("thinking_delta") => {
                findings.push_piece(data, delta.thinking, |text| Finding::Reasoning { choice: 0, text })?;
            }
            Some("input_json_delta") => {
                let fragment = Fragment { arguments: delta.partial_json, ..Fragment::default() };
                if !self.blocks.grow(data, findings, index, fragment)? {
                    findings.push(Finding::Unknown);
                }
            }
            Some("signature_delta") => {
                findings.push_signature(data, 0, SignedPart::Reasoning, delta.signature)
            }
            _ => findings.push(Finding::Unknown),
        }
        Ok(())
    }

    /// Takes in the blocks that a message has in itself
    fn content(
        &mut self,
        data: &str,
        message: &Message<'_>,
        findings: &mut Findings,
    ) -> Result<(), Malformed> {
        for part in json::parts::<Content<'_>>(message.content)?.iter() {
            self.said |= part.is_text();
            if let Some(call) = content(data, part, findings)? {
                self.said = true;
                self.blocks.whole(data, findings, call)?;
            }
        }
        Ok(())
    }

    fn whole(&mut self, data: &str, message: &Message<'_>, findings: &mut Findings) -> Result<(), Malformed> {
        self.choices.open(0, findings)?;
        self.identity.push(data, message.id, message.model, findings);
        self.content(data, message, findings)?;
        self.finished |= finish::push(findings, data, 0, message.stop_reason, JsonStr::default());
        self.count(message.usage, findings);
        Ok(())
    }
}

/// Takes in what a content block says, and returns the tool call that it is
fn content<'a>(
    data: &str,
    content: &Content<'a>,
    findings: &mut Findings,
) -> Result<Option<Fragment<'a>>, Malformed> {
    let kind = match content.kind.plain() {
        Some("text") => {
            findings.push_piece(data, content.text, |text| Finding::Text { choice: 0, text })?;
            return Ok(None);
        }
        Some("thinking") => {
            findings.push_piece(data, content.thinking, |text| Finding::Reasoning { choice: 0, text })?;
            findings.push_signature(data, 0, SignedPart::Reasoning, content.signature);
            return Ok(None);
        }
        Some("redacted_thinking") => {
            findings.push_signature(data, 0, SignedPart::Hidden, content.data);
            return Ok(None);
        }
        Some("tool_use") => ToolKind::Function,
        Some("server_tool_use" | "mcp_tool_use") => ToolKind::Server,
        _ => {
            findings.push(Finding::Unknown);
            return Ok(None);
        }
    };
    let Content { id, name, input, .. } = *content;
    Ok(Some(Fragment { kind, id, name, arguments: input, ..Fragment::default() }))
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: JsonStr<'a>,
    #[serde(default)]
    index: JsonStr<'a>,
    message: Option<&'a RawValue>,
    #[serde(default)]
    content_block: Member<Content<'a>>,
    #[serde(default)]
    delta: Member<Delta<'a>>,
    usage: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct Message<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: JsonStr<'a>,
    #[serde(default)]
    id: JsonStr<'a>,
    #[serde(default)]
    model: JsonStr<'a>,
    content: Option<&'a RawValue>,
    #[serde(default)]
    stop_reason: JsonStr<'a>,
    usage: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct Content<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: JsonStr<'a>,
    #[serde(default)]
    text: JsonStr<'a>,
    #[serde(default)]
    thinking: JsonStr<'a>,
    #[serde(default)]
    signature: JsonStr<'a>,
    #[serde(default)]
    data: JsonStr<'a>,
    #[serde(default)]
    id: JsonStr<'a>,
    #[serde(default)]
    name: JsonStr<'a>,
    input: Option<&'a RawValue>,
}

impl Content<'_> {
    fn is_text(&self) -> bool {
        self.kind.is("text") && !self.text.is_empty()
    }
}

impl<'a> From<JsonStr<'a>> for Content<'a> {
    fn from(text: JsonStr<'a>) -> Self {
        Self { kind: JsonStr::from("text"), text, ..Self::default() }
    }
}

#[derive(Default, Deserialize)]
struct Delta<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: JsonStr<'a>,
    #[serde(default)]
    text: JsonStr<'a>,
    #[serde(default)]
    thinking: JsonStr<'a>,
    #[serde(default)]
    signature: JsonStr<'a>,
    partial_json: Option<&'a RawValue>,
    #[serde(default)]
    stop_reason: JsonStr<'a>,
}

#[cfg(test)]
mod tests;
