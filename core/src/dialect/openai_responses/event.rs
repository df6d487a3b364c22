//! The shapes of OpenAI Responses events, as far as they are read.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{ItemKind, PartKind, WholePart};
use crate::dialect::Malformed;
use crate::dialect::json::{self, JsonStr, Member};
use crate::outcome::ToolKind;

#[derive(Deserialize)]
pub(super) struct Event<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: JsonStr<'a>,
    #[serde(default)]
    pub(super) output_index: JsonStr<'a>,
    #[serde(default)]
    pub(super) item_id: JsonStr<'a>,
    #[serde(default)]
    pub(super) content_index: JsonStr<'a>,
    #[serde(default)]
    pub(super) summary_index: JsonStr<'a>,
    #[serde(default)]
    pub(super) text: JsonStr<'a>,
    #[serde(default)]
    pub(super) refusal: JsonStr<'a>,
    pub(super) delta: Option<&'a RawValue>,
    pub(super) arguments: Option<&'a RawValue>,
    pub(super) input: Option<&'a RawValue>,
    pub(super) item: Option<&'a RawValue>,
    pub(super) response: Option<&'a RawValue>,
    pub(super) error: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
pub(super) struct Response<'a> {
    #[serde(borrow, default)]
    pub(super) id: JsonStr<'a>,
    #[serde(default)]
    pub(super) model: JsonStr<'a>,
    #[serde(default)]
    pub(super) status: JsonStr<'a>,
    #[serde(default)]
    pub(super) incomplete_details: Member<IncompleteDetails<'a>>,
    pub(super) output: Option<&'a RawValue>,
    pub(super) usage: Option<&'a RawValue>,
    pub(super) error: Option<&'a RawValue>,
}

#[derive(Clone, Copy, Default, Deserialize)]
pub(super) struct IncompleteDetails<'a> {
    #[serde(borrow, default)]
    pub(super) reason: JsonStr<'a>,
}

#[derive(Default, Deserialize)]
pub(super) struct Output<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: JsonStr<'a>,
    #[serde(default)]
    pub(super) id: JsonStr<'a>,
    #[serde(default)]
    pub(super) call_id: JsonStr<'a>,
    #[serde(default)]
    pub(super) name: JsonStr<'a>,
    #[serde(default)]
    pub(super) encrypted_content: JsonStr<'a>,
    pub(super) arguments: Option<&'a RawValue>,
    pub(super) input: Option<&'a RawValue>,
    pub(super) summary: Option<&'a RawValue>,
    pub(super) content: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
pub(super) struct Part<'a> {
    #[serde(borrow, default)]
    pub(super) text: JsonStr<'a>,
    #[serde(default)]
    pub(super) refusal: JsonStr<'a>,
}

impl Event<'_> {
    pub(super) fn output_index(&self) -> Option<u32> {
        self.output_index.index()
    }

    pub(super) fn part_index(&self, kind: PartKind) -> u32 {
        let own = if kind == PartKind::Summary { self.summary_index } else { self.content_index };
        json::index(own, 0)
    }
}

impl<'a> Output<'a> {
    /// What the item is to a turn; nothing if it is of a kind that adds nothing
    pub(super) fn kind(&self) -> Option<ItemKind> {
        Some(match self.kind.plain()? {
            "message" => ItemKind::Message,
            "reasoning" => ItemKind::Reasoning,
            "function_call" => ItemKind::Call(ToolKind::Function),
            "custom_tool_call" => ItemKind::Call(ToolKind::Custom),
            "mcp_call" => ItemKind::Call(ToolKind::Server),
            _ => return None,
        })
    }

    /// The parts of a message or of reasoning that say something
    pub(super) fn parts(&self, kind: ItemKind) -> Result<Vec<WholePart<'a>>, Malformed> {
        let mut parts = Vec::new();
        if kind == ItemKind::Reasoning {
            for (position, part) in json::parts::<Part<'_>>(self.summary)?.iter().enumerate() {
                parts.push(WholePart::new(PartKind::Summary, position, part.text)?);
            }
        }
        let text = match kind {
            ItemKind::Message => PartKind::Text,
            ItemKind::Reasoning => PartKind::Reasoning,
            ItemKind::Call(_) => return Ok(parts),
        };
        for (position, part) in json::parts::<Part<'_>>(self.content)?.iter().enumerate() {
            parts.push(WholePart::new(text, position, part.text)?);
            if kind == ItemKind::Message {
                parts.push(WholePart::new(PartKind::Refusal, position, part.refusal)?);
            }
        }
        parts.retain(|part| !part.text.is_empty());
        Ok(parts)
    }
}

impl<'a> From<JsonStr<'a>> for Part<'a> {
    fn from(text: JsonStr<'a>) -> Self {
        Self { text, ..Self::default() }
    }
}
