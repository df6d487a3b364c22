//! Ollama, `/api/chat` and `/api/generate`.
//!
//! Every line is a message of the same form, the last with `done`. Tool calls come whole.
//!
//! Source: <https://github.com/ollama/ollama/blob/main/docs/api.md>

use serde::Deserialize;
use serde_json::value::RawValue;

use super::choices::Choices;
use super::definition::Definition;
use super::few::Few;
use super::findings::{Finding, Findings};
use super::identity::Identity;
use super::json::{self, JsonStr, Member};
use super::tools::ToolCall;
use super::{Decode, Decoder, Malformed, Progress, finish, in_band_error, provider_error, usage};
use crate::framing::Framing;

/// The definition
///
/// Proxies call its lines `application/json`, and an answer that is no stream is one such line.
pub const DEFINITION: Definition = Definition {
    name: "ollama",
    framing: Framing::Ndjson,
    framing_of_json: Some(Framing::Ndjson),
    has_sentinel: true,
    decoder: || Decoder::Ollama(Ollama::default()),
};

/// Decodes chats and generated text
#[derive(Debug, Default)]
pub struct Ollama {
    choices: Choices,
    identity: Identity,
    ended: bool,
}

/// The members of the last line that are counted, not said
const COUNTERS: &[&str] = &[
    "total_duration",
    "load_duration",
    "prompt_eval_count",
    "prompt_eval_duration",
    "eval_count",
    "eval_duration",
];

impl Decode for Ollama {
    fn event(&mut self, _name: &str, data: &str, findings: &mut Findings) -> Result<(), Malformed> {
        json::each_object(data, |object| self.line(data, object, findings))
    }

    fn unary(&mut self, body: &str, findings: &mut Findings) -> Result<(), Malformed> {
        json::each_object(body, |object| self.line(body, object, findings))?;
        self.ended = true;
        Ok(())
    }

    fn progress(&self) -> Progress {
        if self.ended { Progress::Ended } else { Progress::Open }
    }
}

impl Ollama {
    fn line(&mut self, data: &str, object: &str, findings: &mut Findings) -> Result<(), Malformed> {
        let line = json::read::<Line<'_>>(object)?;
        if json::says_something(line.error) {
            findings.push(Finding::Error(in_band_error(object)));
            return Ok(());
        }
        if !matches!(line.message, Member::Object(_)) && line.response.is_none() && line.done.is_empty() {
            // An error has a message too: a text.
            if let Some(error) = provider_error::from_raw(object) {
                findings.push(Finding::Error(error));
            } else {
                line.message.object()?;
                findings.push(Finding::Unknown);
            }
            return Ok(());
        }
        self.identity.push(data, JsonStr::default(), line.model, findings);
        let open = self.choices.open(0, findings)?;
        let said = line.message.object()?;
        for thinking in [said.thinking, line.thinking] {
            findings.push_piece(data, thinking, |text| Finding::Reasoning { choice: 0, text })?;
        }
        for content in [said.content, line.response.unwrap_or_default()] {
            findings.push_piece(data, content, |text| Finding::Text { choice: 0, text })?;
        }
        for call in said.tool_calls.iter() {
            open.tools.whole(data, findings, 0, call.fragment()?)?;
        }
        // A turn has no place for pictures, so the line goes to the consumer as it came.
        if [said.images, line.image].into_iter().any(json::says_something) {
            findings.push(Finding::Unknown);
        }
        if line.done.is("true") {
            finish::push(findings, data, 0, line.done_reason, JsonStr::default());
            if let Some(usage) = usage::read(&usage::select(object, COUNTERS)) {
                findings.push_usage(data, usage);
            }
            self.ended = true;
        }
        Ok(())
    }
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow, default)]
    model: JsonStr<'a>,
    #[serde(default)]
    message: Member<Message<'a>>,
    response: Option<JsonStr<'a>>,
    #[serde(default)]
    thinking: JsonStr<'a>,
    #[serde(default)]
    done: JsonStr<'a>,
    #[serde(default)]
    done_reason: JsonStr<'a>,
    /// What image models generate
    image: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    content: JsonStr<'a>,
    #[serde(default)]
    thinking: JsonStr<'a>,
    #[serde(default)]
    tool_calls: Few<ToolCall<'a>>,
    images: Option<&'a RawValue>,
}

#[cfg(test)]
mod tests;
