//! Anthropic Messages.
//!
//! Source: <https://docs.anthropic.com/en/docs/build-with-claude/streaming>

use serde::Deserialize;
use serde_json::value::RawValue;

use super::few::Few;
use super::findings::{Finding, Findings};
use super::identity::Identity;
use super::json::{self, JsonStr};
use super::tools::{Fragment, Tools};
use super::{Decode, Malformed, Progress, finish, in_band_error, usage};
use crate::outcome::ToolKind;

/// Decodes messages
#[derive(Debug, Default)]
pub struct Anthropic {
    opened: bool,
    identity: Identity,
    /// The content blocks that have started and not stopped
    blocks: Vec<Block>,
    tools: Tools,
    /// The usage as reported so far: a JSON object, or empty
    usage: String,
    finished: bool,
    ended: bool,
}

/// A content block that is open
#[derive(Debug)]
struct Block {
    index: u32,
    call: Option<Call>,
}

/// The tool call that an open block is
#[derive(Clone, Copy, Debug)]
struct Call {
    index: u32,
    arguments: Arguments,
}

/// What has come of a call's arguments
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arguments {
    Nothing,
    /// The block started with `{}`, which stands only if no piece follows
    EmptyObject,
    /// The block started with all of them
    Whole,
    Pieces,
}

/// What every tool call's block starts with
const EMPTY_OBJECT: &str = "{}";

/// More content blocks than any answer has open at a time; what a peer sends beyond is refused
const MAX_OPEN_BLOCKS: usize = 1024;

/// A larger report of usage is not joined with the one before it
const MAX_USAGE_BYTES: usize = 64 * 1024;

impl Decode for Anthropic {
    fn event(&mut self, _name: &str, data: &str, findings: &mut Findings) -> Result<(), Malformed> {
        json::each_object(data, |object| self.message_event(data, object, findings))
    }

    fn unary(&mut self, body: &str, findings: &mut Findings) -> Result<(), Malformed> {
        json::each_object(body, |object| {
            let message = json::read::<Message<'_>>(object)?;
            if json::reports_error(message.error) {
                findings.push(Finding::Error(in_band_error(object)));
                return Ok(());
            }
            if message.kind.is("message") || !message.content.is_empty() {
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
        if json::reports_error(event.error) || event.kind.is("error") {
            findings.push(Finding::Error(in_band_error(object)));
            return Ok(());
        }
        let index = json::index(event.index, 0);
        match event.kind.plain() {
            Some("message_start") => {
                self.open(findings);
                // A gateway that starts over upstream leaves the blocks before it for good.
                self.blocks.clear();
                if let Some(raw) = event.message {
                    let message = json::read::<Message<'_>>(raw.get())?;
                    self.identity.push(data, message.id, message.model, findings);
                    self.count(message.usage, findings);
                }
            }
            Some("content_block_start") => {
                self.open(findings);
                self.start_block(data, index, &member(event.content_block)?, findings)?;
            }
            Some("content_block_delta") => {
                self.open(findings);
                self.delta(data, index, &member(event.delta)?, findings);
            }
            Some("content_block_stop") => self.stop_blocks(|block| block.index == index, findings),
            Some("message_delta") => {
                self.open(findings);
                let word = member::<Delta<'_>>(event.delta)?.stop_reason;
                self.finished |= finish::push(findings, data, 0, word, JsonStr::default());
                self.count(event.usage, findings);
            }
            Some("message_stop") => {
                self.stop_blocks(|_| true, findings);
                self.ended = true;
            }
            Some("ping") => {}
            _ => findings.push(Finding::Unknown),
        }
        Ok(())
    }

    fn open(&mut self, findings: &mut Findings) {
        if !self.opened {
            self.opened = true;
            findings.push(Finding::Opened { choice: 0 });
        }
    }

    fn count(&mut self, raw: Option<&RawValue>, findings: &mut Findings) {
        if let Some(raw) = raw {
            self.usage = usage::merge(&self.usage, raw.get());
            if self.usage.len() > MAX_USAGE_BYTES {
                raw.get().clone_into(&mut self.usage);
            }
            if let Some(usage) = usage::read(&self.usage) {
                findings.push(Finding::Usage(usage));
            }
        }
    }

    fn start_block(
        &mut self,
        data: &str,
        index: u32,
        content: &Content<'_>,
        findings: &mut Findings,
    ) -> Result<(), Malformed> {
        if self.blocks.len() == MAX_OPEN_BLOCKS {
            return Err(Malformed { reason: format!("more than {MAX_OPEN_BLOCKS} open content blocks") });
        }
        let call = match self.content(data, content, findings)? {
            Some(index) => {
                let arguments = match content.input {
                    None => Arguments::Nothing,
                    Some(input) if input.get() == EMPTY_OBJECT => Arguments::EmptyObject,
                    Some(input) => {
                        findings.push_arguments(data, 0, index, input);
                        Arguments::Whole
                    }
                };
                Some(Call { index, arguments })
            }
            None => None,
        };
        self.blocks.retain(|block| block.index != index);
        self.blocks.push(Block { index, call });
        Ok(())
    }

    /// Takes in what a content block says of itself, without its input; returns its tool call's number
    fn content(
        &mut self,
        data: &str,
        content: &Content<'_>,
        findings: &mut Findings,
    ) -> Result<Option<u32>, Malformed> {
        let kind = match content.kind.plain() {
            Some("text") => {
                findings.push_piece(data, content.text, |text| Finding::Text { choice: 0, text });
                return Ok(None);
            }
            Some("thinking") => {
                findings.push_piece(data, content.thinking, |text| Finding::Reasoning { choice: 0, text });
                return Ok(None);
            }
            Some("tool_use") => ToolKind::Function,
            Some("server_tool_use" | "mcp_tool_use") => ToolKind::Server,
            _ => return Ok(None),
        };
        let fragment = Fragment { kind, id: content.id, name: content.name, ..Fragment::default() };
        self.tools.open(data, findings, 0, fragment).map(Some)
    }

    fn delta(&mut self, data: &str, index: u32, delta: &Delta<'_>, findings: &mut Findings) {
        match delta.kind.plain() {
            Some("text_delta") => {
                findings.push_piece(data, delta.text, |text| Finding::Text { choice: 0, text });
            }
            Some("thinking_delta") => {
                findings.push_piece(data, delta.thinking, |text| Finding::Reasoning { choice: 0, text });
            }
            Some("input_json_delta") => {
                let block = self.blocks.iter_mut().find(|block| block.index == index);
                let Some(call) = block.and_then(|block| block.call.as_mut()) else {
                    findings.push(Finding::Unknown);
                    return;
                };
                if call.arguments == Arguments::Whole || delta.partial_json.is_empty() {
                    return;
                }
                call.arguments = Arguments::Pieces;
                let index = call.index;
                findings.push_piece(data, delta.partial_json, |fragment| Finding::ToolArguments {
                    choice: 0,
                    index,
                    fragment,
                });
            }
            Some("signature_delta" | "citations_delta") => {}
            _ => findings.push(Finding::Unknown),
        }
    }

    fn stop_blocks(&mut self, stops: impl Fn(&Block) -> bool, findings: &mut Findings) {
        self.blocks.retain(|block| {
            let stopped = stops(block);
            if let Some(Call { index, arguments: Arguments::EmptyObject }) = block.call
                && stopped
            {
                let fragment = findings.owned(EMPTY_OBJECT);
                findings.push(Finding::ToolArguments { choice: 0, index, fragment });
            }
            !stopped
        });
    }

    fn whole(&mut self, data: &str, message: &Message<'_>, findings: &mut Findings) -> Result<(), Malformed> {
        self.open(findings);
        self.identity.push(data, message.id, message.model, findings);
        for content in message.content.iter() {
            let call = self.content(data, content, findings)?;
            if let (Some(index), Some(input)) = (call, content.input) {
                findings.push_arguments(data, 0, index, input);
            }
        }
        self.finished |= finish::push(findings, data, 0, message.stop_reason, JsonStr::default());
        self.count(message.usage, findings);
        Ok(())
    }
}

/// Reads a member of an event of a known type; in others it may be anything
fn member<'a, T: Default + Deserialize<'a>>(raw: Option<&'a RawValue>) -> Result<T, Malformed> {
    raw.map_or_else(|| Ok(T::default()), |raw| json::read(raw.get()))
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: JsonStr<'a>,
    #[serde(default)]
    index: JsonStr<'a>,
    message: Option<&'a RawValue>,
    content_block: Option<&'a RawValue>,
    delta: Option<&'a RawValue>,
    usage: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: JsonStr<'a>,
    #[serde(default)]
    id: JsonStr<'a>,
    #[serde(default)]
    model: JsonStr<'a>,
    #[serde(default)]
    content: Few<Content<'a>>,
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
    id: JsonStr<'a>,
    #[serde(default)]
    name: JsonStr<'a>,
    input: Option<&'a RawValue>,
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
    partial_json: JsonStr<'a>,
    #[serde(default)]
    stop_reason: JsonStr<'a>,
}

#[cfg(test)]
mod tests;
