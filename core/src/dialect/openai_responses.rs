//! OpenAI Responses.
//!
//! Text is taken from the deltas. Servers that send none give the whole item when it is done, or
//! only in the response at the end; what was not said before is taken from there. Ids and numbers
//! change on the way on some servers, so a whole item is first known again by its text.
//!
//! Source: <https://platform.openai.com/docs/api-reference/responses-streaming>

mod event;

use serde_json::value::RawValue;

use self::event::{Event, Output, Response};
use super::choices::Choices;
use super::definition::Definition;
use super::few::Few;
use super::findings::{Finding, Findings, SignedPart, Span};
use super::identity::Identity;
use super::json::{self, JsonStr};
use super::provider_error;
use super::tools::{Fragment, Tools};
use super::{Decode, Decoder, Malformed, Progress, finish, in_band_error, usage};
use crate::fnv::Fnv1a;
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
    choices: Choices,
    identity: Identity,
    /// The output items that have been spoken of, sorted by `output_index`
    items: Vec<Item>,
    tools: Tools,
    ended: bool,
}

/// An output item
#[derive(Debug)]
struct Item {
    output_index: u32,
    kind: ItemKind,
    /// The item's latest id; [`Digest::default`] where it has none
    id: Digest,
    /// Whether its id and name are known, which a call's deltas do not say
    headed: bool,
    /// Whether something of a call's arguments came, or reasoning in the form that only OpenAI can read
    said: bool,
    /// Whether the event came that has the whole of it
    whole: bool,
    /// Whether the whole response that is being read lists it, as far as that has been read
    found: bool,
    /// What came of a message or of reasoning
    parts: Vec<Said>,
}

/// What came of one part of an item
#[derive(Debug)]
struct Said {
    kind: PartKind,
    index: u32,
    text: Digest,
}

/// A text as far as it must be known again: its hash and length
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Digest {
    hash: Fnv1a,
    length: usize,
}

impl Default for Digest {
    fn default() -> Self {
        Self { hash: Fnv1a::new(), length: 0 }
    }
}

impl Digest {
    fn add(&mut self, text: &str) {
        self.hash.add(text.as_bytes());
        self.length += text.len();
    }

    fn of(text: JsonStr<'_>) -> Self {
        let mut digest = Self::default();
        match text.plain() {
            Some(plain) => digest.add(plain),
            None => digest.add(&text.to_string()),
        }
        digest
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PartKind {
    Text,
    Refusal,
    Reasoning,
    Summary,
}

impl PartKind {
    fn item(self) -> ItemKind {
        match self {
            Self::Text | Self::Refusal => ItemKind::Message,
            Self::Reasoning | Self::Summary => ItemKind::Reasoning,
        }
    }

    fn finding(self, text: Span) -> Finding {
        match self {
            Self::Text => Finding::Text { choice: 0, text },
            Self::Refusal => Finding::Refusal { choice: 0, text },
            Self::Reasoning | Self::Summary => Finding::Reasoning { choice: 0, text },
        }
    }
}

/// A part of a whole item
struct WholePart<'a> {
    kind: PartKind,
    index: u32,
    text: JsonStr<'a>,
    digest: Digest,
}

impl<'a> WholePart<'a> {
    fn new(kind: PartKind, position: usize, text: JsonStr<'a>) -> Result<Self, Malformed> {
        let index = u32::try_from(position).unwrap_or(u32::MAX);
        Ok(Self { kind, index, text: text.text()?, digest: Digest::of(text) })
    }
}

impl Item {
    /// Whether one of these parts is what was said of it
    fn says_one_of(&self, parts: &[WholePart<'_>]) -> bool {
        let said = |part: &WholePart<'_>| self.parts.iter().any(|said| said.text == part.digest);
        parts.iter().any(said)
    }

    fn length(&self) -> usize {
        self.parts.iter().map(|said| said.text.length).sum()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ItemKind {
    Message,
    Reasoning,
    Call(ToolKind),
}

/// More output items than any response has; what a peer sends beyond is refused
const MAX_ITEMS: usize = 4096;

/// More parts than any item has; what a peer sends beyond is refused
const MAX_PARTS: usize = 256;

/// More items and parts than any whole response lists; what a peer lists beyond is refused
const MAX_LISTED: usize = 2 * MAX_ITEMS;

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
            Some("output_text.delta") => self.piece(data, &event, PartKind::Text, findings),
            Some("refusal.delta") => self.piece(data, &event, PartKind::Refusal, findings),
            Some("reasoning_text.delta") => self.piece(data, &event, PartKind::Reasoning, findings),
            Some("reasoning_summary_text.delta") => self.piece(data, &event, PartKind::Summary, findings),
            Some("output_text.done") => self.whole_part(data, &event, PartKind::Text, findings),
            Some("refusal.done") => self.whole_part(data, &event, PartKind::Refusal, findings),
            Some("reasoning_text.done") => self.whole_part(data, &event, PartKind::Reasoning, findings),
            Some("reasoning_summary_text.done") => self.whole_part(data, &event, PartKind::Summary, findings),
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
                self.choices.open(0, findings)?;
                let output = json::object::<Output<'_>>(event.item)?;
                let Some(kind) = output.kind() else {
                    // What was added comes again, whole, when it is done.
                    if known == "output_item.done" {
                        findings.push(Finding::Unknown);
                    }
                    return Ok(());
                };
                let parts = output.parts(kind)?;
                let known_again = (known == "output_item.done")
                    .then(|| self.known_again(kind, Digest::of(output.id), &parts, |item| !item.whole));
                let at = match known_again.flatten() {
                    Some(at) => at,
                    None => self.item(event.output_index(), kind)?,
                };
                self.items[at].id = Digest::of(output.id);
                self.head(data, at, &output, findings)?;
                if known == "output_item.done" {
                    self.rest(data, at, &output, &parts, findings)?;
                }
                Ok(())
            }
            Some("created" | "in_progress" | "queued") => {
                self.choices.open(0, findings)?;
                let response = json::object::<Response<'_>>(event.response).unwrap_or_default();
                self.identity.push(data, response.id, response.model, findings);
                Ok(())
            }
            Some("completed" | "incomplete" | "failed") => {
                let raw = event.response.map_or("{}", RawValue::get);
                let mut response = json::object::<Response<'_>>(event.response)?;
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

    /// Takes in a piece of a message or of reasoning
    fn piece(
        &mut self,
        data: &str,
        event: &Event<'_>,
        kind: PartKind,
        findings: &mut Findings,
    ) -> Result<(), Malformed> {
        self.choices.open(0, findings)?;
        let at = self.item(event.output_index(), kind.item())?;
        if !event.item_id.is_empty() {
            self.items[at].id = Digest::of(event.item_id);
        }
        let text = event.delta.map_or(JsonStr::default(), JsonStr::from_raw);
        self.say(data, at, kind, event.part_index(kind), text, findings)
    }

    /// Takes in a part that is done, unless it came in pieces
    fn whole_part(
        &mut self,
        data: &str,
        event: &Event<'_>,
        kind: PartKind,
        findings: &mut Findings,
    ) -> Result<(), Malformed> {
        self.choices.open(0, findings)?;
        let text = if kind == PartKind::Refusal { event.refusal } else { event.text }.text()?;
        if text.is_empty() {
            return Ok(());
        }
        let part = WholePart { kind, index: event.part_index(kind), text, digest: Digest::of(text) };
        let parts = std::slice::from_ref(&part);
        let id = Digest::of(event.item_id);
        let at = match self.known_again(kind.item(), id, parts, |item| !item.whole) {
            Some(at) => at,
            None => self.item(event.output_index(), kind.item())?,
        };
        self.missing(data, at, parts, findings)
    }

    /// Says a piece of a part
    fn say(
        &mut self,
        data: &str,
        at: usize,
        kind: PartKind,
        index: u32,
        text: JsonStr<'_>,
        findings: &mut Findings,
    ) -> Result<(), Malformed> {
        if text.text()?.is_empty() {
            return Ok(());
        }
        let parts = &mut self.items[at].parts;
        let known = parts.iter().rposition(|said| said.kind == kind && said.index == index);
        if known.is_none() {
            if parts.len() == MAX_PARTS {
                return Err(Malformed { reason: format!("more than {MAX_PARTS} parts of an output item") });
            }
            parts.push(Said { kind, index, text: Digest::default() });
        }
        let known = known.unwrap_or(parts.len() - 1);
        if let Some(span) = findings.push_and_locate(data, text, |text| kind.finding(text))? {
            parts[known].text.add(findings.resolve(data, span));
        }
        Ok(())
    }

    /// Says those of an item's parts of which nothing was said
    fn missing(
        &mut self,
        data: &str,
        at: usize,
        parts: &[WholePart<'_>],
        findings: &mut Findings,
    ) -> Result<(), Malformed> {
        for WholePart { kind, index, text, digest } in parts {
            let mut said = self.items[at].parts.iter();
            // Two parts may have the same text: what another one has said is no word of this one.
            let of_another = |said: &Said| {
                said.kind == *kind && parts.iter().any(|part| part.kind == *kind && part.index == said.index)
            };
            let same = |said: &Said| {
                (said.kind == *kind && said.index == *index) || (said.text == *digest && !of_another(said))
            };
            if !said.any(same) {
                self.say(data, at, *kind, *index, *text, findings)?;
            }
        }
        Ok(())
    }

    /// Where the message or reasoning is that has said one of these parts or has this id
    fn known_again(
        &self,
        kind: ItemKind,
        id: Digest,
        parts: &[WholePart<'_>],
        may_be: impl Fn(&Item) -> bool,
    ) -> Option<usize> {
        if matches!(kind, ItemKind::Call(_)) {
            return None;
        }
        let find = |is: &dyn Fn(&Item) -> bool| {
            self.items.iter().position(|item| item.kind == kind && may_be(item) && is(item))
        };
        // Before the id: some servers give several items the same.
        find(&|item| item.says_one_of(parts))
            .or_else(|| find(&|item| id.length > 0 && item.id == id && !item.parts.is_empty()))
    }

    /// Takes in a piece of a tool call's arguments
    fn arguments(
        &mut self,
        data: &str,
        event: &Event<'_>,
        kind: ToolKind,
        findings: &mut Findings,
    ) -> Result<(), Malformed> {
        self.choices.open(0, findings)?;
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
        self.choices.open(0, findings)?;
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
        let item = Item {
            output_index,
            kind,
            id: Digest::default(),
            headed: false,
            said: false,
            whole: false,
            found: false,
            parts: Vec::new(),
        };
        self.items.insert(at, item);
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
            let id = output.call_id.or(output.id);
            let key = Some(item.output_index);
            let fragment = Fragment { key, kind, id, name: output.name, arguments: None };
            self.tools.take(data, findings, 0, fragment)?;
        }
        item.headed = true;
        Ok(())
    }

    /// Takes in the content of a whole item, as far as it did not come in pieces
    fn rest(
        &mut self,
        data: &str,
        at: usize,
        output: &Output<'_>,
        parts: &[WholePart<'_>],
        findings: &mut Findings,
    ) -> Result<(), Malformed> {
        let item = &mut self.items[at];
        item.whole = true;
        let ItemKind::Call(kind) = item.kind else {
            // Some servers number the parts in another way than they list them.
            let length: usize = parts.iter().map(|part| part.digest.length).sum();
            if length > item.length() {
                self.missing(data, at, parts, findings)?;
            }
            let encrypted = output.encrypted_content;
            if !encrypted.is_empty() && !std::mem::replace(&mut self.items[at].said, true) {
                findings.push_signature(data, 0, SignedPart::Reasoning, encrypted);
            }
            return Ok(());
        };
        if std::mem::replace(&mut item.said, true) {
            return Ok(());
        }
        let arguments = if kind == ToolKind::Custom { output.input } else { output.arguments };
        let key = Some(item.output_index);
        self.tools.take(data, findings, 0, Fragment { key, kind, arguments, ..Fragment::default() })
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
            if response.status.is("failed") {
                finish::push(findings, data, 0, response.status, JsonStr::default());
            }
            findings.push(Finding::Error(error));
            return Ok(());
        }
        self.choices.open(0, findings)?;
        if let Some(outputs) = response.output {
            self.outputs(data, outputs, findings)?;
        }
        let reason = response.incomplete_details.object().unwrap_or_default().reason;
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
    /// The items are told apart by what was said of them, then by their ids, and at last by their
    /// place and their order within their kind: some servers change the ids on the way, and some
    /// leave out reasoning, so that the places shift.
    fn outputs(&mut self, data: &str, outputs: &RawValue, findings: &mut Findings) -> Result<(), Malformed> {
        let outputs = json::read::<Few<Output<'_>>>(outputs.get())?;
        let mut wholes = Vec::new();
        let mut listed = 0;
        for item in &mut self.items {
            item.found = false;
        }
        for (position, output) in outputs.iter().enumerate() {
            let Some(kind) = output.kind() else { continue };
            let parts = output.parts(kind)?;
            // Each is looked for among all that was said.
            listed += 1 + parts.len();
            if listed > MAX_LISTED {
                return Err(Malformed { reason: format!("more than {MAX_LISTED} output items and parts") });
            }
            let at = self.known_again(kind, Digest::of(output.id), &parts, |item| !item.found);
            // Places shift when an item is made, and numbers stay.
            let number = at.map(|at| {
                self.items[at].found = true;
                self.items[at].output_index
            });
            wholes.push((position, output, kind, parts, number));
        }
        for (position, output, kind, parts, number) in wholes {
            let is_free = |item: &&Item| item.kind == kind && !item.found;
            let is_call = matches!(kind, ItemKind::Call(_));
            let in_place = || {
                let there = |item: &&Item| usize::try_from(item.output_index) == Ok(position);
                self.items.iter().filter(is_free).find(there).filter(|_| !is_call)
            };
            let known = || in_place().or_else(|| self.items.iter().find(is_free));
            let next = self.items.last().map_or(0, |item| item.output_index.saturating_add(1));
            let output_index = number.or_else(|| known().map(|item| item.output_index)).unwrap_or(next);
            let at = self.item(Some(output_index), kind)?;
            self.items[at].found = true;
            self.head(data, at, output, findings)?;
            self.rest(data, at, output, &parts, findings)?;
        }
        Ok(())
    }
}

/// Events, without their prefix, that add nothing to what others say
const SILENT: &[&str] = &[
    "content_part.added",
    "content_part.done",
    "reasoning_part.added",
    "reasoning_part.done",
    "reasoning_summary_part.added",
    "reasoning_summary_part.done",
];

#[cfg(test)]
mod tests;
