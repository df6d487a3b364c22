//! The dialects behind one type, and what their events have in common.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::anthropic::Anthropic;
use super::cohere::Cohere;
use super::definition::Definition;
use super::findings::{Finding, Findings};
use super::gemini::Gemini;
use super::gemini_interactions::GeminiInteractions;
use super::ollama::Ollama;
use super::openai_chat::{DONE, OpenAiChat};
use super::openai_responses::OpenAiResponses;
use super::{Decode, Malformed, Progress, in_band_error};
use super::{anthropic, cohere, gemini, gemini_interactions, ollama, openai_chat, openai_responses};
use crate::framing::Framing;

/// Names a dialect
///
/// It serialises as its name. Only the names of our own dialects are read back.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// OpenAI Chat Completions and the servers compatible with it
    OpenAiChat,
    /// OpenAI completions: fill-in-the-middle and prefix completion
    OpenAiCompletions,
    /// OpenAI Responses
    OpenAiResponses,
    /// Anthropic Messages
    Anthropic,
    /// Gemini `streamGenerateContent`
    Gemini,
    /// Gemini Interactions
    GeminiInteractions,
    /// Ollama's own `/api/chat` and `/api/generate`
    Ollama,
    /// Cohere v2 chat
    Cohere,
    /// A dialect of another crate (see [how to add one](super#adding-a-dialect))
    Custom(&'static Definition),
}

impl Dialect {
    /// Every dialect of ours
    pub const ALL: [Self; 8] = [
        Self::OpenAiChat,
        Self::OpenAiCompletions,
        Self::OpenAiResponses,
        Self::Anthropic,
        Self::Gemini,
        Self::GeminiInteractions,
        Self::Ollama,
        Self::Cohere,
    ];

    /// What there is to know of it besides what its events mean
    pub const fn definition(self) -> &'static Definition {
        match self {
            Self::OpenAiChat => &openai_chat::DEFINITION,
            Self::OpenAiCompletions => &openai_chat::COMPLETIONS,
            Self::OpenAiResponses => &openai_responses::DEFINITION,
            Self::Anthropic => &anthropic::DEFINITION,
            Self::Gemini => &gemini::DEFINITION,
            Self::GeminiInteractions => &gemini_interactions::DEFINITION,
            Self::Ollama => &ollama::DEFINITION,
            Self::Cohere => &cohere::DEFINITION,
            Self::Custom(definition) => definition,
        }
    }

    /// The dialect's name, as it appears in configuration and messages
    pub const fn name(self) -> &'static str {
        self.definition().name
    }

    /// Whether its streams have a sentinel; one without ends with its body
    pub const fn has_sentinel(self) -> bool {
        self.definition().has_sentinel
    }

    /// How a body with this `Content-Type` is framed, that answers a request for a stream; `None` for
    /// one JSON document
    pub fn framing(self, content_type: Option<&str>) -> Option<Framing> {
        self.definition().framing(content_type)
    }

    /// The dialect of ours with that name, if there is one
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.name() == name)
    }
}

impl fmt::Debug for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Dialect {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Dialect {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = Cow::<'de, str>::deserialize(deserializer)?;
        Self::from_name(&name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            de::Error::custom(format_args!("unknown dialect `{name}`, expected one of {names}"))
        })
    }
}

/// Decodes the events of one answer, in whichever dialect
#[derive(Debug)]
pub enum Decoder {
    /// OpenAI Chat Completions and completions, and the servers compatible with them
    OpenAiChat(OpenAiChat),
    /// OpenAI Responses
    OpenAiResponses(OpenAiResponses),
    /// Anthropic Messages
    Anthropic(Anthropic),
    /// Gemini `streamGenerateContent`
    Gemini(Gemini),
    /// Gemini Interactions
    GeminiInteractions(GeminiInteractions),
    /// Ollama
    Ollama(Ollama),
    /// Cohere v2 chat
    Cohere(Cohere),
    /// A dialect of another crate
    Custom(Box<dyn Decode>),
}

/// Does the same with the decoder of each variant
macro_rules! dispatch {
    ($self:expr, $decoder:ident => $call:expr) => {
        match $self {
            Decoder::OpenAiChat($decoder) => $call,
            Decoder::OpenAiResponses($decoder) => $call,
            Decoder::Anthropic($decoder) => $call,
            Decoder::Gemini($decoder) => $call,
            Decoder::GeminiInteractions($decoder) => $call,
            Decoder::Ollama($decoder) => $call,
            Decoder::Cohere($decoder) => $call,
            Decoder::Custom($decoder) => $call,
        }
    };
}

impl Decoder {
    /// A decoder that has seen nothing yet
    pub fn new(dialect: Dialect) -> Self {
        (dialect.definition().decoder)()
    }
}

/// Names of events that only keep a connection alive
const KEEP_ALIVES: [&str; 5] = ["ping", "heartbeat", "keepalive", "keep-alive", "keep_alive"];

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
        // Anthropic has JSON in such an event, gateways have a time or a word.
        if KEEP_ALIVES.contains(&name) && !payload.starts_with(['{', '[']) {
            findings.skipped += 1;
            return Ok(());
        }
        // Gateways end streams of every dialect with it; of ours, it means something in one only.
        if payload == DONE && !matches!(self, Self::OpenAiChat(_) | Self::Custom(_)) {
            findings.skipped += 1;
            return Ok(());
        }
        dispatch!(self, decoder => decoder.event(name, data, findings))
    }

    fn unary(&mut self, body: &str, findings: &mut Findings) -> Result<(), Malformed> {
        dispatch!(self, decoder => decoder.unary(body, findings))
    }

    fn progress(&self) -> Progress {
        dispatch!(self, decoder => decoder.progress())
    }

    fn held(&self) -> usize {
        dispatch!(self, decoder => decoder.held())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// One event of each dialect with everything that the decoders look at
    const RICH: [&str; 10] = [
        r#"{"id":"c","model":"m","choices":[{"index":0,"delta":{"content":"a\u00e9","reasoning":"r","refusal":"n","tool_calls":[{"index":0,"id":"t","function":{"name":"f","arguments":"{\"a\""}},{"custom":{"name":"g","input":{}}}]},"finish_reason":"stop"},{"text":"b"}],"usage":{"prompt_tokens":5}}"#,
        r#"{"type":"response.completed","response":{"id":"r","status":"completed","output":[{"type":"message","content":[{"text":"a"},{"refusal":"n"}]},{"type":"function_call","call_id":"t","name":"f","arguments":"{}"},{"type":"reasoning","summary":[{"text":"s"}]}],"usage":{"input_tokens":5},"error":null}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"f","input":{"a":[1,"\n"]}}}"#,
        r#"{"type":"message_start","message":{"id":"m","content":[],"usage":{"input_tokens":5,"output_tokens":null}}}"#,
        r#"{"candidates":[{"content":{"parts":[{"text":"a","thought":true},{"functionCall":{"name":"f","args":{"x":1}}}]},"finishReason":"STOP"}],"promptFeedback":{"blockReason":"X"},"error":{"code":429,"message":"no"}}"#,
        r#"{"event_type":"step.start","index":0,"step":{"type":"function_call","id":"t","name":"f","arguments":{},"content":[{"text":"a"}],"summary":[{"text":"s"}],"annotations":[1]}}"#,
        r#"{"id":"i","model":"m","status":"completed","steps":[{"type":"model_output","content":[{"text":"a"}]},{"type":"x_call","arguments":{"a":1}}],"outputs":[{"type":"text","text":"b"}],"usage":{"total_input_tokens":5}}"#,
        r#"{"model":"m","message":{"content":"a\n","thinking":"r","tool_calls":[{"id":"t","function":{"name":"f","arguments":{"a":1}}}]},"response":"b","done":true,"done_reason":"stop","eval_count":2}"#,
        r#"{"type":"tool-call-start","id":"c","index":0,"delta":{"message":{"content":{"text":"a","thinking":"r"},"tool_plan":"p","tool_calls":{"id":"t","function":{"name":"f","arguments":"{"}}},"finish_reason":"COMPLETE","usage":{"tokens":{"input_tokens":5}}}}"#,
        r#"{"id":"c","message":{"content":[{"text":"a"},{"thinking":"r"}],"tool_plan":"p","tool_calls":[{"id":"t","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"COMPLETE","usage":{"billed_units":{"input_tokens":5}}}"#,
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
        let error = serde_json::from_str::<Dialect>("\"openai\"").unwrap_err().to_string();
        assert!(error.starts_with("unknown dialect `openai`, expected one of openai-chat, "), "{error}");
    }

    #[test]
    fn what_all_dialects_have_in_common() {
        for dialect in Dialect::ALL {
            let mut findings = Findings::default();
            let mut decoder = Decoder::new(dialect);
            for nothing in ["", " ", "null", ": ping"] {
                decoder.event("message", nothing, &mut findings).unwrap();
            }
            assert_eq!((findings.skipped, findings.is_empty()), (2, true), "{dialect:?}");
            for name in KEEP_ALIVES {
                decoder.event(name, "2026-11-30T12:00:00Z", &mut findings).unwrap();
            }
            assert_eq!((findings.skipped, findings.is_empty()), (7, true), "{dialect:?}");
            assert!(decoder.event("message", "2026-11-30T12:00:00Z", &mut findings).is_err(), "{dialect:?}");
            decoder.event("message", DONE, &mut findings).unwrap();
            let is_sentinel = matches!(dialect, Dialect::OpenAiChat | Dialect::OpenAiCompletions);
            let progress = if is_sentinel { Progress::Ended } else { Progress::Open };
            assert_eq!((decoder.progress(), findings.is_empty()), (progress, true), "{dialect:?}");
            decoder.event("error", r#"{"message":"no"}"#, &mut findings).unwrap();
            assert!(matches!(findings.take(), Some(Finding::Error(_))), "{dialect:?}");
        }
    }

    #[test]
    fn decoders_may_move_between_threads() {
        fn sendable<T: Send + Sync>() {}
        sendable::<Decoder>();
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
