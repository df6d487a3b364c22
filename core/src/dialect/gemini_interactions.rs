//! Gemini Interactions.
//!
//! An interaction is a list of steps: thoughts, output, and calls of the caller's tools and of
//! Google's. Before May 2026 the events had other names (`content.*`, `interaction.start`,
//! `interaction.complete`) and a whole answer had `outputs` in place of `steps`; both are read.
//! Steps that no event brought are taken from the interaction at the end. A call that has not stopped
//! by then is not whole. Citations, pictures and results of Google's tools have no place in a turn and go to the consumer
//! as they came.
//!
//! Source: <https://ai.google.dev/api/interactions-api>

use serde::Deserialize;
use serde_json::value::RawValue;

use super::blocks::Blocks;
use super::choices::Choices;
use super::definition::Definition;
use super::few::Few;
use super::findings::{Finding, Findings, SignedPart};
use super::identity::Identity;
use super::json::{self, JsonStr, Member};
use super::tools::Fragment;
use super::{Decode, Decoder, Malformed, Progress, finish, in_band_error, provider_error, usage};
use crate::framing::Framing;
use crate::outcome::{ProviderError, ToolKind};

/// The definition
pub const DEFINITION: Definition = Definition {
    name: "gemini-interactions",
    framing: Framing::Sse,
    framing_of_json: None,
    has_sentinel: true,
    decoder: || Decoder::GeminiInteractions(GeminiInteractions::default()),
};

/// Decodes interactions
#[derive(Debug, Default)]
pub struct GeminiInteractions {
    choices: Choices,
    identity: Identity,
    blocks: Blocks,
    /// What came of steps, in order
    told: Vec<Told>,
    ended: bool,
}

/// Something that came of a step
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Told {
    index: u32,
    kind: Kind,
}

/// What a step is to a turn
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Reasoning,
    Call,
    Unknown,
}

/// More than any interaction has; what a peer sends beyond is refused
const MAX_STEPS: usize = 4096;

impl Decode for GeminiInteractions {
    fn event(&mut self, _name: &str, data: &str, findings: &mut Findings) -> Result<(), Malformed> {
        json::each_object(data, |object| self.interaction_event(data, object, findings))
    }

    fn unary(&mut self, body: &str, findings: &mut Findings) -> Result<(), Malformed> {
        json::each_object(body, |object| {
            let interaction = json::read::<Interaction<'_>>(object)?;
            if interaction.status.is_empty() && interaction.steps.is_empty() && interaction.outputs.is_empty()
            {
                findings.push(provider_error::from_raw(object).map_or(Finding::Unknown, Finding::Error));
                return Ok(());
            }
            self.choices.open(0, findings)?;
            self.end(body, object, &interaction, findings)
        })?;
        self.ended = true;
        Ok(())
    }

    fn progress(&self) -> Progress {
        if self.ended { Progress::Ended } else { Progress::Open }
    }
}

impl GeminiInteractions {
    fn interaction_event(
        &mut self,
        data: &str,
        object: &str,
        findings: &mut Findings,
    ) -> Result<(), Malformed> {
        let event = json::read::<Event<'_>>(object)?;
        if json::says_something(event.error) || event.kind.is("error") {
            findings.push(Finding::Error(in_band_error(object)));
            return Ok(());
        }
        let index = json::index(event.index, 0);
        match event.kind.plain() {
            Some("interaction.created" | "interaction.start") => {
                self.choices.open(0, findings)?;
                let interaction = json::object::<Interaction<'_>>(event.interaction).unwrap_or_default();
                self.identity.push(data, interaction.id, interaction.model, findings);
            }
            Some("step.start" | "content.start") => {
                self.choices.open(0, findings)?;
                let step = if matches!(event.step, Member::Absent) { event.content } else { event.step };
                let step = step.object()?;
                let before = findings.len();
                let call = match step.read(data, findings)? {
                    Read::Call(call) => Some(call),
                    Read::Unknown => {
                        findings.push(Finding::Unknown);
                        None
                    }
                    Read::Said => None,
                };
                if findings.len() > before || call.is_some() {
                    self.tell(index, step.kind())?;
                }
                let signature = if call.is_some() { step.signature } else { JsonStr::default() };
                self.blocks.start(data, findings, index, call)?;
                self.sign_call(data, signature, findings);
            }
            Some("step.delta" | "content.delta") => {
                self.choices.open(0, findings)?;
                self.delta(data, index, &event.delta.object()?, findings)?;
            }
            Some("step.stop" | "content.stop") => {
                self.blocks.stop(findings, index);
            }
            Some("interaction.completed" | "interaction.complete") => {
                self.choices.open(0, findings)?;
                let raw = event.interaction.map_or("{}", RawValue::get);
                self.end(data, raw, &json::object(event.interaction)?, findings)?;
            }
            Some("interaction.status_update" | "interaction.in_progress" | "interaction.requires_action") => {
                self.choices.open(0, findings)?;
                if event.status.is("failed") {
                    findings.push(Finding::Error(failed(object)));
                }
            }
            _ => findings.push(provider_error::from_raw(object).map_or(Finding::Unknown, Finding::Error)),
        }
        Ok(())
    }

    /// Signs the call that was opened last
    fn sign_call(&self, data: &str, signature: JsonStr<'_>, findings: &mut Findings) {
        if let Some(index) = self.blocks.newest() {
            findings.push_signature(data, 0, SignedPart::ToolCall(index), signature);
        }
    }

    fn delta(
        &mut self,
        data: &str,
        index: u32,
        delta: &Step<'_>,
        findings: &mut Findings,
    ) -> Result<(), Malformed> {
        match delta.kind.plain() {
            Some("arguments_delta") => {
                let arguments = delta.arguments.or(delta.partial_arguments);
                let fragment = Fragment { arguments, ..Fragment::default() };
                if !self.blocks.grow(data, findings, index, fragment)? {
                    findings.push(Finding::Unknown);
                }
            }
            Some("thought_signature") => {
                findings.push_signature(data, 0, SignedPart::Reasoning, delta.signature);
                self.tell(index, Kind::Reasoning)?;
            }
            _ => match self.read_delta(data, index, delta, findings)? {
                // Google's own calls, and formerly all, come whole in the delta of a call that is open.
                Read::Call(call) => {
                    if !self.blocks.grow(data, findings, index, call)? {
                        self.blocks.start(data, findings, index, Some(call))?;
                        self.blocks.settle(findings, index);
                        self.tell(index, Kind::Call)?;
                    }
                }
                Read::Unknown => findings.push(Finding::Unknown),
                Read::Said => {}
            },
        }
        Ok(())
    }

    fn read_delta<'a>(
        &mut self,
        data: &str,
        index: u32,
        delta: &Step<'a>,
        findings: &mut Findings,
    ) -> Result<Read<'a>, Malformed> {
        let before = findings.len();
        let read = delta.read(data, findings)?;
        if findings.len() > before && !matches!(read, Read::Unknown) {
            self.tell(index, delta.kind())?;
        }
        Ok(read)
    }

    /// Remembers that something came of a step
    fn tell(&mut self, index: u32, kind: Kind) -> Result<(), Malformed> {
        let told = Told { index, kind };
        if self.told.contains(&told) {
            return Ok(());
        }
        if self.told.len() == MAX_STEPS {
            return Err(Malformed { reason: format!("more than {MAX_STEPS} steps") });
        }
        self.told.push(told);
        Ok(())
    }

    /// Takes what did not come before from the steps of a whole interaction
    ///
    /// Those that came are known again by their order within their kind: the list may have steps of
    /// the caller's, too, so the places shift.
    fn rest(
        &mut self,
        data: &str,
        interaction: &Interaction<'_>,
        findings: &mut Findings,
    ) -> Result<(), Malformed> {
        let mut told = std::mem::take(&mut self.told);
        for step in interaction.steps.iter().chain(interaction.outputs.iter()) {
            let kind = step.kind();
            if let Some(at) = told.iter().position(|told| told.kind == kind) {
                let index = told.remove(at).index;
                if kind == Kind::Call {
                    self.blocks.fill(data, findings, index, step.arguments)?;
                }
                continue;
            }
            match step.read(data, findings)? {
                Read::Call(call) => {
                    self.blocks.whole(data, findings, call)?;
                    self.sign_call(data, step.signature, findings);
                }
                Read::Unknown => findings.push(Finding::Unknown),
                Read::Said => {}
            }
        }
        Ok(())
    }

    /// Takes in a whole interaction: what was not said before, and how it ended
    fn end(
        &mut self,
        data: &str,
        raw: &str,
        interaction: &Interaction<'_>,
        findings: &mut Findings,
    ) -> Result<(), Malformed> {
        self.identity.push(data, interaction.id, interaction.model, findings);
        self.rest(data, interaction, findings)?;
        self.blocks.cut(findings);
        if interaction.status.is("failed") || json::says_something(interaction.error) {
            findings.push(Finding::Error(failed(raw)));
            return Ok(());
        }
        finish::push(findings, data, 0, interaction.status, JsonStr::default());
        if let Some(usage) = interaction.usage.and_then(|raw| usage::read(raw.get())) {
            findings.push_usage(data, usage);
        }
        self.ended = true;
        Ok(())
    }
}

/// The error of an interaction that failed, which may not say why
fn failed(raw: &str) -> ProviderError {
    provider_error::from_raw(raw)
        .unwrap_or_else(|| ProviderError { kind: Some("failed".to_owned()), ..ProviderError::default() })
}

/// What a step, or a piece of one, is to a turn
enum Read<'a> {
    /// Something that the model said, which has been taken in
    Said,
    Call(Fragment<'a>),
    Unknown,
}

impl<'a> Step<'a> {
    /// Takes in what the model says in a step, in a part of one, or in a delta of one
    fn read(&self, data: &str, findings: &mut Findings) -> Result<Read<'a>, Malformed> {
        let (kind, name) = match self.kind.plain().unwrap_or_default() {
            "text" => return self.part().read(data, findings),
            "model_output" => {
                let mut read = Read::Said;
                for part in json::parts::<Part<'_>>(self.content)?.iter() {
                    if let unknown @ Read::Unknown = part.read(data, findings)? {
                        read = unknown;
                    }
                }
                return Ok(read);
            }
            "thought" | "thought_summary" => {
                for raw in [self.summary, self.content] {
                    for part in json::parts::<Part<'_>>(raw)?.iter() {
                        findings
                            .push_piece(data, part.text, |text| Finding::Reasoning { choice: 0, text })?;
                    }
                }
                findings.push_signature(data, 0, SignedPart::Reasoning, self.signature);
                return Ok(Read::Said);
            }
            "function_call" => (ToolKind::Function, self.name),
            // Of Google's own tools only those of MCP servers have names.
            kind if kind.ends_with("_call") && self.name.is_empty() => {
                (ToolKind::Server, self.kind.before("_call"))
            }
            kind if kind.ends_with("_call") => (ToolKind::Server, self.name),
            _ => return Ok(Read::Unknown),
        };
        Ok(Read::Call(Fragment { key: None, kind, id: self.id, name, arguments: self.arguments }))
    }

    /// What it is, whether or not it says anything
    fn kind(&self) -> Kind {
        match self.kind.plain().unwrap_or_default() {
            "text" | "model_output" => Kind::Text,
            "thought" | "thought_summary" => Kind::Reasoning,
            kind if kind.ends_with("_call") => Kind::Call,
            _ => Kind::Unknown,
        }
    }

    fn part(&self) -> Part<'a> {
        Part { kind: self.kind, text: self.text, annotations: self.annotations }
    }
}

impl<'a> Part<'a> {
    fn read(&self, data: &str, findings: &mut Findings) -> Result<Read<'a>, Malformed> {
        findings.push_piece(data, self.text, |text| Finding::Text { choice: 0, text })?;
        let is_text = self.kind.is_empty() || self.kind.is("text");
        let is_known = is_text && !json::says_something(self.annotations);
        Ok(if is_known { Read::Said } else { Read::Unknown })
    }
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, default, rename = "event_type")]
    kind: JsonStr<'a>,
    #[serde(default)]
    index: JsonStr<'a>,
    #[serde(default)]
    status: JsonStr<'a>,
    interaction: Option<&'a RawValue>,
    #[serde(default)]
    step: Member<Step<'a>>,
    #[serde(default)]
    content: Member<Step<'a>>,
    #[serde(default)]
    delta: Member<Step<'a>>,
    error: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Interaction<'a> {
    #[serde(borrow)]
    id: JsonStr<'a>,
    model: JsonStr<'a>,
    status: JsonStr<'a>,
    steps: Few<Step<'a>>,
    outputs: Few<Step<'a>>,
    usage: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
}

/// A step, a part of a former answer, or a delta: they share their members
#[derive(Default, Deserialize)]
#[serde(default)]
struct Step<'a> {
    #[serde(borrow, rename = "type")]
    kind: JsonStr<'a>,
    id: JsonStr<'a>,
    name: JsonStr<'a>,
    text: JsonStr<'a>,
    signature: JsonStr<'a>,
    content: Option<&'a RawValue>,
    summary: Option<&'a RawValue>,
    annotations: Option<&'a RawValue>,
    arguments: Option<&'a RawValue>,
    partial_arguments: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Part<'a> {
    #[serde(borrow, rename = "type")]
    kind: JsonStr<'a>,
    text: JsonStr<'a>,
    annotations: Option<&'a RawValue>,
}

impl<'a> From<JsonStr<'a>> for Part<'a> {
    fn from(text: JsonStr<'a>) -> Self {
        Self { text, ..Self::default() }
    }
}

#[cfg(test)]
mod tests;
