//! OpenAI Responses.
//!
//! Text is taken from the deltas. Servers that send none give the whole item when it is done, or
//! only in the response at the end; what was not said before is taken from there.
//!
//! Source: <https://platform.openai.com/docs/api-reference/responses-streaming>

use serde::Deserialize;
use serde_json::value::RawValue;

use super::definition::Definition;
use super::few::Few;
use super::findings::{Finding, Findings};
use super::identity::Identity;
use super::json::{self, JsonStr};
use super::provider_error;
use super::tools::{Fragment, Tools};
use super::{Decode, Decoder, Malformed, Progress, finish, in_band_error, usage};
use crate::framing::Framing;
use crate::outcome::ProviderError;
use crate::outcome::ToolKind;

/// The definition
pub const DEFINITION: Definition = Definition {
    name: "openai-responses",
    framing: Framing::Sse,
    framing_of_json: None,
    has_sentinel: true,
    decoder: || Decoder::OpenAiResponses(OpenAiResponses::default()),
};

/// Decodes responses
#[derive(Debug, Default)]
pub struct OpenAiResponses {
    opened: bool,
    identity: Identity,
    /// The output items that have been spoken of, sorted by `output_index`
    items: Vec<Item>,
    tools: Tools,
    ended: bool,
}

/// An output item
#[derive(Clone, Copy, Debug)]
struct Item {
    output_index: u32,
    kind: ItemKind,
    /// Whether its id and name are known, which a call's deltas do not say
    headed: bool,
    /// Whether something of its content came
    said: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ItemKind {
    Message,
    Reasoning,
    Call(ToolKind),
}

/// More output items than any response has; what a peer sends beyond is refused
const MAX_ITEMS: usize = 4096;

impl Decode for OpenAiResponses {
    fn event(&mut self, _name: &str, data: &str, findings: &mut Findings) -> Result<(), Malformed> {
        json::each_object(data, |object| self.response_event(data, object, findings))
    }

    fn unary(&mut self, body: &str, findings: &mut Findings) -> Result<(), Malformed> {
        json::each_object(body, |object| {
            let response = json::read::<Response<'_>>(object)?;
            if response.status.is_empty() && response.output.is_none() && response.error.is_none() {
                findings.push(provider_error::from_raw(object).map_or(Finding::Unknown, Finding::Error));
                return Ok(());
            }
            self.end(body, object, &response, findings)
        })?;
        self.ended = true;
        Ok(())
    }

    fn progress(&self) -> Progress {
        if self.ended { Progress::Ended } else { Progress::Open }
    }
}

impl OpenAiResponses {
    fn response_event(&mut self, data: &str, object: &str, findings: &mut Findings) -> Result<(), Malformed> {
        let event = json::read::<Event<'_>>(object)?;
        if json::says_something(event.error) || event.kind.is("error") {
            findings.push(Finding::Error(in_band_error(object)));
            return Ok(());
        }
        match event.kind.plain().and_then(|kind| kind.strip_prefix("response.")) {
            Some("output_text.delta") => self.piece(
                data,
                &event,
                ItemKind::Message,
                |text| Finding::Text { choice: 0, text },
                findings,
            ),
            Some("refusal.delta") => {
                let refusal = |text| Finding::Refusal { choice: 0, text };
                self.piece(data, &event, ItemKind::Message, refusal, findings)
            }
            Some("reasoning_text.delta" | "reasoning_summary_text.delta") => {
                let reasoning = |text| Finding::Reasoning { choice: 0, text };
                self.piece(data, &event, ItemKind::Reasoning, reasoning, findings)
            }
            Some("function_call_arguments.delta") => {
                self.arguments(data, &event, ToolKind::Function, findings)
            }
            Some("custom_tool_call_input.delta") => self.arguments(data, &event, ToolKind::Custom, findings),
            Some("mcp_call_arguments.delta") => self.arguments(data, &event, ToolKind::Server, findings),
            Some("function_call_arguments.done") => {
                self.whole_arguments(data, &event, ToolKind::Function, event.arguments, findings)
            }
            Some("custom_tool_call_input.done") => {
                self.whole_arguments(data, &event, ToolKind::Custom, event.input, findings)
            }
            Some("mcp_call_arguments.done") => {
                self.whole_arguments(data, &event, ToolKind::Server, event.arguments, findings)
            }
            Some(known @ ("output_item.added" | "output_item.done")) => {
                self.open(findings);
                let Some(raw) = event.item else { return Ok(()) };
                let output = json::read::<Output<'_>>(raw.get())?;
                let Some(kind) = output.kind() else {
                    // What was added comes again, whole, when it is done.
                    if known == "output_item.done" {
                        findings.push(Finding::Unknown);
                    }
                    return Ok(());
                };
                let at = self.item(event.output_index(), kind)?;
                self.head(data, at, &output, findings)?;
                if known == "output_item.done" {
                    self.rest(data, at, &output, findings)?;
                }
                Ok(())
            }
            Some("created" | "in_progress" | "queued") => {
                self.open(findings);
                if let Some(raw) = event.response {
                    let response = json::read::<Response<'_>>(raw.get())?;
                    self.identity.push(data, response.id, response.model, findings);
                }
                Ok(())
            }
            Some("completed" | "incomplete" | "failed") => {
                let raw = event.response.map_or("{}", RawValue::get);
                let mut response = json::read::<Response<'_>>(raw)?;
                // The event's own word, for servers that leave the status out.
                response.status = event.kind.after("response.");
                self.end(data, raw, &response, findings)
            }
            Some(kind) if SILENT.contains(&kind) => Ok(()),
            _ => {
                findings.push(Finding::Unknown);
                Ok(())
            }
        }
    }

    fn open(&mut self, findings: &mut Findings) {
        if !self.opened {
            self.opened = true;
            findings.push(Finding::Opened { choice: 0 });
        }
    }

    /// Takes in a piece of a message or of reasoning
    fn piece(
        &mut self,
        data: &str,
        event: &Event<'_>,
        kind: ItemKind,
        finding: impl FnOnce(super::findings::Span) -> Finding,
        findings: &mut Findings,
    ) -> Result<(), Malformed> {
        self.open(findings);
        let at = self.item(event.output_index(), kind)?;
        let text = event.delta.map_or(JsonStr::default(), JsonStr::from_raw);
        self.items[at].said |= !text.is_empty();
        findings.push_piece(data, text, finding);
        Ok(())
    }

    /// Takes in a piece of a tool call's arguments
    fn arguments(
        &mut self,
        data: &str,
        event: &Event<'_>,
        kind: ToolKind,
        findings: &mut Findings,
    ) -> Result<(), Malformed> {
        self.open(findings);
        let at = self.item(event.output_index(), ItemKind::Call(kind))?;
        let item = &mut self.items[at];
        item.said |= event.delta.is_some_and(|raw| !json::is_empty_string(raw));
        let fragment =
            Fragment { key: Some(item.output_index), kind, arguments: event.delta, ..Fragment::default() };
        self.tools.take(data, findings, 0, fragment)
    }

    /// Takes in a tool call's whole arguments, unless they came in pieces
    fn whole_arguments(
        &mut self,
        data: &str,
        event: &Event<'_>,
        kind: ToolKind,
        arguments: Option<&RawValue>,
        findings: &mut Findings,
    ) -> Result<(), Malformed> {
        self.open(findings);
        let at = self.item(event.output_index(), ItemKind::Call(kind))?;
        let item = &mut self.items[at];
        let Some(arguments) = arguments.filter(|raw| !item.said && !json::is_empty_string(raw)) else {
            return Ok(());
        };
        item.said = true;
        let key = Some(item.output_index);
        let arguments = Some(arguments);
        self.tools.take(data, findings, 0, Fragment { key, kind, arguments, ..Fragment::default() })
    }

    /// Where the item is, made if it is new; without a number it is the last one of its kind
    fn item(&mut self, output_index: Option<u32>, kind: ItemKind) -> Result<usize, Malformed> {
        let known = self.items.iter().rposition(|item| {
            item.kind == kind && output_index.is_none_or(|output_index| item.output_index == output_index)
        });
        if let Some(at) = known {
            return Ok(at);
        }
        if self.items.len() == MAX_ITEMS {
            return Err(Malformed { reason: format!("more than {MAX_ITEMS} output items") });
        }
        let next = || self.items.last().map_or(0, |item| item.output_index.saturating_add(1));
        let output_index = output_index.unwrap_or_else(next);
        let at = self.items.partition_point(|item| item.output_index <= output_index);
        self.items.insert(at, Item { output_index, kind, headed: false, said: false });
        Ok(at)
    }

    /// Opens the tool call that an item is, once
    fn head(
        &mut self,
        data: &str,
        at: usize,
        output: &Output<'_>,
        findings: &mut Findings,
    ) -> Result<(), Malformed> {
        let item = &mut self.items[at];
        // Ids change between the events of one item on some servers: the first one stands.
        if let ItemKind::Call(kind) = item.kind
            && !item.headed
        {
            let id = if output.call_id.is_empty() { output.id } else { output.call_id };
            let key = Some(item.output_index);
            let fragment = Fragment { key, kind, id, name: output.name, arguments: None };
            self.tools.take(data, findings, 0, fragment)?;
        }
        item.headed = true;
        Ok(())
    }

    /// Takes in the content of a whole item, unless it came in pieces
    fn rest(
        &mut self,
        data: &str,
        at: usize,
        output: &Output<'_>,
        findings: &mut Findings,
    ) -> Result<(), Malformed> {
        let item = &mut self.items[at];
        if std::mem::replace(&mut item.said, true) {
            return Ok(());
        }
        match item.kind {
            ItemKind::Message => {
                for part in output.content()?.iter() {
                    findings.push_piece(data, part.text, |text| Finding::Text { choice: 0, text });
                    findings.push_piece(data, part.refusal, |text| Finding::Refusal { choice: 0, text });
                }
            }
            ItemKind::Reasoning => {
                for part in output.summary.iter().chain(output.content()?.iter()) {
                    findings.push_piece(data, part.text, |text| Finding::Reasoning { choice: 0, text });
                }
            }
            ItemKind::Call(kind) => {
                let arguments = if kind == ToolKind::Custom { output.input } else { output.arguments };
                let key = Some(item.output_index);
                self.tools.take(
                    data,
                    findings,
                    0,
                    Fragment { key, kind, arguments, ..Fragment::default() },
                )?;
            }
        }
        Ok(())
    }

    /// Takes in a whole response: what was not said before, and how it ended
    fn end(
        &mut self,
        data: &str,
        raw: &str,
        response: &Response<'_>,
        findings: &mut Findings,
    ) -> Result<(), Malformed> {
        self.identity.push(data, response.id, response.model, findings);
        if response.status.is("failed") || json::says_something(response.error) {
            let error = provider_error::from_raw(raw).unwrap_or_else(|| ProviderError {
                kind: Some("response.failed".to_owned()),
                ..ProviderError::default()
            });
            findings.push(Finding::Error(error));
            return Ok(());
        }
        self.open(findings);
        if let Some(outputs) = response.output {
            self.outputs(data, outputs, findings)?;
        }
        let reason = response.incomplete_details.unwrap_or_default().reason;
        let word = if reason.is_empty() { response.status } else { reason };
        finish::push(findings, data, 0, word, JsonStr::default());
        if let Some(usage) = response.usage.and_then(|raw| usage::read(raw.get())) {
            findings.push_usage(data, usage);
        }
        self.ended = true;
        Ok(())
    }

    /// Takes what was not said before from the items of a whole response
    ///
    /// The items are told apart by their order within their kind: some servers change the ids on
    /// the way, and some leave out reasoning, so that the places shift.
    fn outputs(&mut self, data: &str, outputs: &RawValue, findings: &mut Findings) -> Result<(), Malformed> {
        let mut seen: Vec<ItemKind> = Vec::new();
        for output in json::read::<Few<Output<'_>>>(outputs.get())?.iter() {
            let Some(kind) = output.kind() else { continue };
            let before = seen.iter().filter(|&&earlier| earlier == kind).count();
            seen.push(kind);
            let known = self.items.iter().filter(|item| item.kind == kind).nth(before);
            let next = self.items.last().map_or(0, |item| item.output_index.saturating_add(1));
            let output_index = known.map_or(next, |item| item.output_index);
            let at = self.item(Some(output_index), kind)?;
            self.head(data, at, output, findings)?;
            self.rest(data, at, output, findings)?;
        }
        Ok(())
    }
}

/// Events, without their prefix, that add nothing to what others say
const SILENT: &[&str] = &[
    "content_part.added",
    "content_part.done",
    "output_text.done",
    "refusal.done",
    "reasoning_part.added",
    "reasoning_part.done",
    "reasoning_text.done",
    "reasoning_summary_part.added",
    "reasoning_summary_part.done",
    "reasoning_summary_text.done",
];

impl Event<'_> {
    fn output_index(&self) -> Option<u32> {
        self.output_index.number().and_then(|index| u32::try_from(index).ok())
    }
}

impl<'a> Output<'a> {
    /// What the item is to a turn; nothing if it is of a kind that adds nothing
    fn kind(&self) -> Option<ItemKind> {
        Some(match self.kind.plain()? {
            "message" => ItemKind::Message,
            "reasoning" => ItemKind::Reasoning,
            "function_call" => ItemKind::Call(ToolKind::Function),
            "custom_tool_call" => ItemKind::Call(ToolKind::Custom),
            "mcp_call" => ItemKind::Call(ToolKind::Server),
            _ => return None,
        })
    }

    fn content(&self) -> Result<Few<Part<'a>>, Malformed> {
        match self.content {
            Some(raw) if raw.get().starts_with('[') => json::read(raw.get()),
            // Compatible servers give a message as plain text.
            Some(raw) => Ok(Few::from(Part { text: JsonStr::from_raw(raw), refusal: JsonStr::default() })),
            None => Ok(Few::default()),
        }
    }
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: JsonStr<'a>,
    #[serde(default)]
    output_index: JsonStr<'a>,
    delta: Option<&'a RawValue>,
    arguments: Option<&'a RawValue>,
    input: Option<&'a RawValue>,
    item: Option<&'a RawValue>,
    response: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Response<'a> {
    #[serde(borrow, default)]
    id: JsonStr<'a>,
    #[serde(default)]
    model: JsonStr<'a>,
    #[serde(default)]
    status: JsonStr<'a>,
    incomplete_details: Option<IncompleteDetails<'a>>,
    output: Option<&'a RawValue>,
    usage: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
}

#[derive(Clone, Copy, Default, Deserialize)]
struct IncompleteDetails<'a> {
    #[serde(borrow, default)]
    reason: JsonStr<'a>,
}

#[derive(Deserialize)]
struct Output<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: JsonStr<'a>,
    #[serde(default)]
    id: JsonStr<'a>,
    #[serde(default)]
    call_id: JsonStr<'a>,
    #[serde(default)]
    name: JsonStr<'a>,
    arguments: Option<&'a RawValue>,
    input: Option<&'a RawValue>,
    #[serde(default)]
    summary: Few<Part<'a>>,
    content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow, default)]
    text: JsonStr<'a>,
    #[serde(default)]
    refusal: JsonStr<'a>,
}

#[cfg(test)]
mod tests;
