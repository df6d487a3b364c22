//! Cohere v2 chat.
//!
//! The plan that precedes tool calls is reasoning. Citations have no place in a turn and go to the
//! consumer as they came.
//!
//! Source: <https://docs.cohere.com/v2/reference/chat-stream>

use serde::Deserialize;
use serde_json::value::RawValue;

use super::choices::Choices;
use super::definition::Definition;
use super::few::Few;
use super::findings::{Finding, Findings};
use super::identity::Identity;
use super::json::{self, JsonStr, Member};
use super::tools::{Fragment, ToolCall};
use super::{Decode, Decoder, Malformed, Progress, finish, in_band_error, provider_error, usage};
use crate::framing::Framing;

/// The definition
pub const DEFINITION: Definition = Definition {
    name: "cohere",
    framing: Framing::Sse,
    framing_of_json: None,
    has_sentinel: true,
    decoder: || Decoder::Cohere(Cohere::default()),
};

/// Decodes chats
#[derive(Debug, Default)]
pub struct Cohere {
    choices: Choices,
    identity: Identity,
    ended: bool,
}

impl Decode for Cohere {
    fn event(&mut self, _name: &str, data: &str, findings: &mut Findings) -> Result<(), Malformed> {
        json::each_object(data, |object| self.chat_event(data, object, findings))
    }

    fn unary(&mut self, body: &str, findings: &mut Findings) -> Result<(), Malformed> {
        json::each_object(body, |object| self.whole(body, object, findings))?;
        self.ended = true;
        Ok(())
    }

    fn progress(&self) -> Progress {
        if self.ended { Progress::Ended } else { Progress::Open }
    }
}

impl Cohere {
    fn chat_event(&mut self, data: &str, object: &str, findings: &mut Findings) -> Result<(), Malformed> {
        let event = json::read::<Event<'_>>(object)?;
        if json::says_something(event.error) || event.kind.is("error") {
            findings.push(Finding::Error(in_band_error(object)));
            return Ok(());
        }
        match event.kind.plain() {
            Some("message-start") => {
                self.choices.open(0, findings)?;
                self.identity.push(data, event.id, JsonStr::default(), findings);
            }
            Some("content-start" | "content-delta") => {
                self.choices.open(0, findings)?;
                said(data, &event.message()?.content.object()?, findings)?;
            }
            Some("tool-plan-delta") => {
                self.choices.open(0, findings)?;
                let plan = event.message()?.tool_plan;
                findings.push_piece(data, plan, |text| Finding::Reasoning { choice: 0, text })?;
            }
            Some("tool-call-start" | "tool-call-delta") => {
                let open = self.choices.open(0, findings)?;
                let key = event.index.index();
                let fragment = event.message()?.tool_calls.object()?.fragment()?;
                open.tools.take(data, findings, 0, Fragment { key, ..fragment })?;
            }
            Some("message-end") => {
                let Delta { finish_reason, error, usage, .. } = event.delta.object()?;
                self.choices.open(0, findings)?;
                self.end(data, &End { finish_reason, error, usage }, findings);
            }
            Some("content-end" | "tool-call-end" | "citation-end") => {}
            Some("citation-start") => findings.push(Finding::Unknown),
            _ => findings.push(provider_error::from_raw(object).map_or(Finding::Unknown, Finding::Error)),
        }
        Ok(())
    }

    fn end(&mut self, data: &str, end: &End<'_>, findings: &mut Findings) {
        finish::push(findings, data, 0, end.finish_reason, end.error);
        if let Some(usage) = end.usage.and_then(|raw| usage::read(raw.get())) {
            findings.push_usage(data, usage);
        }
        self.ended = true;
    }

    fn whole(&mut self, data: &str, object: &str, findings: &mut Findings) -> Result<(), Malformed> {
        let Chat { id, message } = json::read(object)?;
        // An error has a message too: a text.
        let Some(raw) = message.filter(|raw| raw.get().starts_with('{')) else {
            findings.push(provider_error::from_raw(object).map_or(Finding::Unknown, Finding::Error));
            return Ok(());
        };
        let message = json::object::<Message<'_>>(Some(raw))?;
        let open = self.choices.open(0, findings)?;
        findings.push_piece(data, message.tool_plan, |text| Finding::Reasoning { choice: 0, text })?;
        for content in json::parts::<Content<'_>>(message.content)?.iter() {
            said(data, content, findings)?;
        }
        for call in message.tool_calls.iter() {
            open.tools.take(data, findings, 0, call.fragment()?)?;
        }
        self.identity.push(data, id, JsonStr::default(), findings);
        self.end(data, &json::read(object)?, findings);
        Ok(())
    }
}

fn said(data: &str, content: &Content<'_>, findings: &mut Findings) -> Result<(), Malformed> {
    findings.push_piece(data, content.thinking, |text| Finding::Reasoning { choice: 0, text })?;
    findings.push_piece(data, content.text, |text| Finding::Text { choice: 0, text })?;
    if !matches!(content.kind.plain(), Some("" | "text" | "thinking")) {
        findings.push(Finding::Unknown);
    }
    Ok(())
}

impl<'a> Event<'a> {
    fn message(self) -> Result<MessageDelta<'a>, Malformed> {
        self.delta.object()?.message.object()
    }
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: JsonStr<'a>,
    #[serde(default)]
    id: JsonStr<'a>,
    #[serde(default)]
    index: JsonStr<'a>,
    #[serde(default)]
    delta: Member<Delta<'a>>,
    error: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Delta<'a> {
    #[serde(borrow)]
    message: Member<MessageDelta<'a>>,
    finish_reason: JsonStr<'a>,
    error: JsonStr<'a>,
    usage: Option<&'a RawValue>,
}

/// What an event adds to the message: one thing, where a whole message has lists
#[derive(Default, Deserialize)]
#[serde(default)]
struct MessageDelta<'a> {
    #[serde(borrow)]
    content: Member<Content<'a>>,
    tool_plan: JsonStr<'a>,
    tool_calls: Member<ToolCall<'a>>,
}

/// How a message ended
#[derive(Default, Deserialize)]
#[serde(default)]
struct End<'a> {
    #[serde(borrow)]
    finish_reason: JsonStr<'a>,
    error: JsonStr<'a>,
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Chat<'a> {
    #[serde(borrow, default)]
    id: JsonStr<'a>,
    message: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Message<'a> {
    #[serde(borrow)]
    tool_plan: JsonStr<'a>,
    content: Option<&'a RawValue>,
    tool_calls: Few<ToolCall<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Content<'a> {
    #[serde(borrow, rename = "type")]
    kind: JsonStr<'a>,
    text: JsonStr<'a>,
    thinking: JsonStr<'a>,
}

impl<'a> From<JsonStr<'a>> for Content<'a> {
    fn from(text: JsonStr<'a>) -> Self {
        Self { text, ..Self::default() }
    }
}

#[cfg(test)]
mod tests;
