//! The dialects behind one type, and what their events have in common.

use serde::{Deserialize, Serialize};

use super::anthropic::Anthropic;
use super::findings::{Finding, Findings};
use super::gemini::Gemini;
use super::openai_chat::{DONE, OpenAiChat};
use super::openai_responses::OpenAiResponses;
use super::{Decode, Malformed, Progress, in_band_error};

/// Names a dialect
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Dialect {
    /// OpenAI Chat Completions, completions, and the servers compatible with them
    #[serde(rename = "openai-chat")]
    OpenAiChat,
    /// OpenAI Responses
    #[serde(rename = "openai-responses")]
    OpenAiResponses,
    /// Anthropic Messages
    #[serde(rename = "anthropic")]
    Anthropic,
    /// Gemini `streamGenerateContent`
    #[serde(rename = "gemini")]
    Gemini,
}

impl Dialect {
    /// Every dialect
    pub const ALL: [Self; 4] = [Self::OpenAiChat, Self::OpenAiResponses, Self::Anthropic, Self::Gemini];

    /// The dialect's name, as it appears in configuration and messages
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenAiChat => "openai-chat",
            Self::OpenAiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
        }
    }

    /// The dialect of that name, if there is one
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.name() == name)
    }
}

/// Decodes the events of one answer, in whichever dialect
#[derive(Debug)]
pub enum Decoder {
    /// OpenAI Chat Completions, completions, and the servers compatible with them
    OpenAiChat(OpenAiChat),
    /// OpenAI Responses
    OpenAiResponses(OpenAiResponses),
    /// Anthropic Messages
    Anthropic(Anthropic),
    /// Gemini `streamGenerateContent`
    Gemini(Gemini),
}

impl Decoder {
    /// A decoder that has seen nothing yet
    pub fn new(dialect: Dialect) -> Self {
        match dialect {
            Dialect::OpenAiChat => Self::OpenAiChat(OpenAiChat::default()),
            Dialect::OpenAiResponses => Self::OpenAiResponses(OpenAiResponses::default()),
            Dialect::Anthropic => Self::Anthropic(Anthropic::default()),
            Dialect::Gemini => Self::Gemini(Gemini::default()),
        }
    }
}

impl Decode for Decoder {
    /// Passes over payloads that say nothing and takes an event named `error` for one, whatever the
    /// dialect; the rest is the dialect's
    fn event(&mut self, name: &str, data: &str, findings: &mut Findings) -> Result<(), Malformed> {
        let payload = data.trim_ascii();
        if payload.is_empty() {
            return Ok(());
        }
        if payload.starts_with(':') || payload == "null" {
            findings.skipped += 1;
            return Ok(());
        }
        if name == "error" {
            findings.push(Finding::Error(in_band_error(payload)));
            return Ok(());
        }
        match self {
            Self::OpenAiChat(decoder) => decoder.event(name, data, findings),
            // Gateways end streams of every dialect with it; only in Chat does it mean anything.
            _ if payload == DONE => {
                findings.skipped += 1;
                Ok(())
            }
            Self::OpenAiResponses(decoder) => decoder.event(name, data, findings),
            Self::Anthropic(decoder) => decoder.event(name, data, findings),
            Self::Gemini(decoder) => decoder.event(name, data, findings),
        }
    }

    fn unary(&mut self, body: &str, findings: &mut Findings) -> Result<(), Malformed> {
        match self {
            Self::OpenAiChat(decoder) => decoder.unary(body, findings),
            Self::OpenAiResponses(decoder) => decoder.unary(body, findings),
            Self::Anthropic(decoder) => decoder.unary(body, findings),
            Self::Gemini(decoder) => decoder.unary(body, findings),
        }
    }

    fn progress(&self) -> Progress {
        match self {
            Self::OpenAiChat(decoder) => decoder.progress(),
            Self::OpenAiResponses(decoder) => decoder.progress(),
            Self::Anthropic(decoder) => decoder.progress(),
            Self::Gemini(decoder) => decoder.progress(),
        }
    }
}
