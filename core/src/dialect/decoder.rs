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

    /// Whether its streams have a sentinel; one without ends with its body
    pub const fn has_sentinel(self) -> bool {
        match self {
            Self::OpenAiChat | Self::OpenAiResponses | Self::Anthropic => true,
            Self::Gemini => false,
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// One event of each dialect with everything that the decoders look at
    const RICH: [&str; 5] = [
        r#"{"id":"c","model":"m","choices":[{"index":0,"delta":{"content":"a\u00e9","reasoning":"r","refusal":"n","tool_calls":[{"index":0,"id":"t","function":{"name":"f","arguments":"{\"a\""}},{"custom":{"name":"g","input":{}}}]},"finish_reason":"stop"},{"text":"b"}],"usage":{"prompt_tokens":5}}"#,
        r#"{"type":"response.completed","response":{"id":"r","status":"completed","output":[{"type":"message","content":[{"text":"a"},{"refusal":"n"}]},{"type":"function_call","call_id":"t","name":"f","arguments":"{}"},{"type":"reasoning","summary":[{"text":"s"}]}],"usage":{"input_tokens":5},"error":null}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"f","input":{"a":[1,"\n"]}}}"#,
        r#"{"type":"message_start","message":{"id":"m","content":[],"usage":{"input_tokens":5,"output_tokens":null}}}"#,
        r#"{"candidates":[{"content":{"parts":[{"text":"a","thought":true},{"functionCall":{"name":"f","args":{"x":1}}}]},"finishReason":"STOP"}],"promptFeedback":{"blockReason":"X"},"error":{"code":429,"message":"no"}}"#,
    ];

    #[test]
    fn names_are_read_back() {
        for dialect in Dialect::ALL {
            assert_eq!(Dialect::from_name(dialect.name()), Some(dialect));
            let json = serde_json::to_string(&dialect).unwrap();
            assert_eq!(json, format!("\"{}\"", dialect.name()));
            assert_eq!(serde_json::from_str::<Dialect>(&json).unwrap(), dialect);
        }
        assert_eq!(Dialect::from_name("openai"), None);
    }

    proptest! {
        /// Whatever the peer sends: an answer or a fault, and every span resolves
        #[test]
        fn damaged_events_never_panic(
            which in prop::sample::select(&RICH[..]),
            cut in any::<prop::sample::Index>(),
            length in 0..12_usize,
            graft in prop::sample::select(&["", "null", "[]", "{}", "\"\\ud83c\"", "-1", "true", "[null,{}]", "\""][..]),
            wrap in any::<bool>(),
        ) {
            let start = cut.index(which.len());
            let end = (start + length).min(which.len());
            let mut data = [&which[..start], graft, &which[end..]].concat();
            if wrap {
                data = format!(" [{data}, {which}]");
            }
            for dialect in Dialect::ALL {
                let mut findings = Findings::default();
                let mut decoder = Decoder::new(dialect);
                for unary in [false, false, true] {
                    let result = match unary {
                        false => decoder.event("message", &data, &mut findings),
                        true => decoder.unary(&data, &mut findings),
                    };
                    if let Err(fault) = result {
                        prop_assert!(!fault.reason.is_empty());
                    }
                    let mut turn = crate::outcome::Turn::default();
                    while let Some(finding) = findings.take().cloned() {
                        finding.apply(&mut turn, &findings, &data);
                    }
                    findings.clear();
                }
            }
        }
    }
}
