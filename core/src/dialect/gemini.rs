//! Gemini `generateContent` and `streamGenerateContent`, of the Gemini API and of Vertex AI.
//!
//! Source: <https://ai.google.dev/api/generate-content>

use serde::Deserialize;
use serde_json::value::RawValue;

use super::choices::Choices;
use super::definition::Definition;
use super::few::Few;
use super::findings::{Finding, Findings};
use super::identity::Identity;
use super::json::{self, JsonStr};
use super::tools::Fragment;
use super::{Decode, Decoder, Malformed, Progress, finish, in_band_error, provider_error, usage};
use crate::framing::Framing;

/// The definition
pub const DEFINITION: Definition = Definition {
    name: "gemini",
    framing: Framing::Sse,
    framing_of_json: Some(Framing::JsonArray),
    has_sentinel: false,
    decoder: || Decoder::Gemini(Gemini::default()),
};

/// Decodes generated content
#[derive(Debug, Default)]
pub struct Gemini {
    choices: Choices,
    identity: Identity,
    ended: bool,
}

impl Decode for Gemini {
    fn event(&mut self, _name: &str, data: &str, findings: &mut Findings) -> Result<(), Malformed> {
        json::each_object(data, |object| self.response(data, object, findings))
    }

    fn unary(&mut self, body: &str, findings: &mut Findings) -> Result<(), Malformed> {
        json::each_object(body, |object| self.response(body, object, findings))?;
        self.ended = true;
        Ok(())
    }

    /// A stream has no sentinel: only its end, outside of this decoder's sight, ends it
    fn progress(&self) -> Progress {
        if self.ended { Progress::Ended } else { self.choices.progress() }
    }
}

impl Gemini {
    fn response(&mut self, data: &str, object: &str, findings: &mut Findings) -> Result<(), Malformed> {
        let response = json::read::<Response<'_>>(object)?;
        self.identity.push(data, response.response_id, response.model_version, findings);
        for (position, candidate) in response.candidates.iter().enumerate() {
            self.candidate(data, position, candidate, findings)?;
        }
        let counted = response.usage_metadata.and_then(|raw| usage::read(raw.get()));
        let blocked = response.prompt_feedback.unwrap_or_default().block_reason;
        let says_nothing = response.candidates.is_empty()
            && response.response_id.is_empty()
            && counted.is_none()
            && blocked.is_empty();
        if let Some(usage) = counted {
            findings.push_usage(data, usage);
        }
        if !blocked.is_empty() {
            findings.push(Finding::Blocked(blocked.to_string()));
        }
        if json::says_something(response.error) {
            findings.push(Finding::Error(in_band_error(object)));
        } else if says_nothing {
            findings.push(provider_error::from_raw(object).map_or(Finding::Unknown, Finding::Error));
        }
        Ok(())
    }

    fn candidate(
        &mut self,
        data: &str,
        position: usize,
        candidate: &Candidate<'_>,
        findings: &mut Findings,
    ) -> Result<(), Malformed> {
        let choice = json::index(candidate.index, position);
        let (open, _) = self.choices.open(choice, findings)?;
        let mut passed_on = json::says_something(candidate.grounding_metadata)
            || json::says_something(candidate.citation_metadata);
        for part in candidate.content.iter().flat_map(|content| content.parts.iter()) {
            let thought = part.thought.is("true");
            findings.push_piece(data, part.text, |text| match thought {
                true => Finding::Reasoning { choice, text },
                false => Finding::Text { choice, text },
            });
            // Arguments that are streamed by path, in parts without a name, have no place in a turn.
            passed_on |= part.function_call.is_some_and(|call| json::says_something(call.partial_args));
            if let Some(FunctionCall { id, name, args, .. }) = part.function_call
                && !name.is_empty()
            {
                let fragment = Fragment { id, name, ..Fragment::default() };
                let index = open.tools.open(data, findings, choice, fragment)?;
                if let Some(args) = args {
                    findings.push_arguments(data, choice, index, args);
                }
            }
        }
        let Candidate { finish_reason, finish_message, .. } = *candidate;
        if passed_on {
            findings.push(Finding::Unknown);
        }
        open.finished |= finish::push(findings, data, choice, finish_reason, finish_message);
        Ok(())
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Response<'a> {
    #[serde(borrow, default)]
    response_id: JsonStr<'a>,
    #[serde(default)]
    model_version: JsonStr<'a>,
    #[serde(default)]
    candidates: Few<Candidate<'a>>,
    usage_metadata: Option<&'a RawValue>,
    prompt_feedback: Option<PromptFeedback<'a>>,
    error: Option<&'a RawValue>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PromptFeedback<'a> {
    #[serde(borrow, default)]
    block_reason: JsonStr<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    #[serde(borrow, default)]
    index: JsonStr<'a>,
    content: Option<Content<'a>>,
    #[serde(default)]
    finish_reason: JsonStr<'a>,
    #[serde(default)]
    finish_message: JsonStr<'a>,
    grounding_metadata: Option<&'a RawValue>,
    citation_metadata: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow, default)]
    parts: Few<Part<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(borrow, default)]
    text: JsonStr<'a>,
    #[serde(default)]
    thought: JsonStr<'a>,
    function_call: Option<FunctionCall<'a>>,
}

#[derive(Clone, Copy, Deserialize)]
struct FunctionCall<'a> {
    #[serde(borrow, default)]
    id: JsonStr<'a>,
    #[serde(default)]
    name: JsonStr<'a>,
    args: Option<&'a RawValue>,
    #[serde(rename = "partialArgs")]
    partial_args: Option<&'a RawValue>,
}

#[cfg(test)]
mod tests;
