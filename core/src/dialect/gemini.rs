//! Gemini `generateContent` and `streamGenerateContent`, of the Gemini API and of Vertex AI.
//!
//! Vertex AI streams arguments value by value where it is asked to. They are put together, and said
//! when the call is over; a call that is not over by the finish reason lacks its last brace.
//!
//! Source: <https://ai.google.dev/api/generate-content>

mod arguments;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use self::arguments::{PartialArg, Streamed};
use super::choices::Choices;
use super::definition::Definition;
use super::few::Few;
use super::findings::{Finding, Findings, SignedPart};
use super::identity::Identity;
use super::json::{self, JsonStr, Member};
use super::tools::{Fragment, Tools};
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
    /// The calls whose arguments are on their way, at most one of each choice
    streamed: BTreeMap<u32, Streamed>,
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

    /// Arguments that come value by value
    fn held(&self) -> usize {
        self.streamed.values().map(Streamed::held).sum()
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
        let blocked = response.prompt_feedback.object().unwrap_or_default().block_reason;
        // What the field is where nobody set it.
        let blocked = if blocked.is("BLOCK_REASON_UNSPECIFIED") { JsonStr::default() } else { blocked };
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
        let open = self.choices.open(choice, findings)?;
        let mut passed_on = json::says_something(candidate.grounding_metadata)
            || json::says_something(candidate.citation_metadata);
        let content = candidate.content.as_ref().present()?;
        for part in content.iter().flat_map(|content| content.parts.iter()) {
            let thought = part.thought.is("true");
            let text = part.text.unwrap_or_default();
            findings.push_piece(data, text, |text| match thought {
                true => Finding::Reasoning { choice, text },
                false => Finding::Text { choice, text },
            })?;
            match part.function_call.as_ref().present()? {
                Some(call) => {
                    let calls = &mut self.streamed;
                    passed_on |= function_call(data, choice, call, &mut open.tools, calls, findings)?;
                    let signature = part.thought_signature.unwrap_or_default();
                    let part = open.tools.newest().map_or(SignedPart::Reasoning, SignedPart::ToolCall);
                    findings.push_signature(data, choice, part, signature);
                }
                // A signature comes alone, too; any other part is of a kind that is no text.
                None => passed_on |= part.text.is_none() && part.thought_signature.is_none(),
            }
        }
        let Candidate { finish_reason, finish_message, .. } = *candidate;
        if passed_on {
            findings.push(Finding::Unknown);
        }
        if !finish_reason.is_empty()
            && let Some(cut) = self.streamed.remove(&choice)
        {
            cut.end(choice, false, findings);
        }
        open.finished |= finish::push(findings, data, choice, finish_reason, finish_message);
        Ok(())
    }
}

/// Takes in a function call, or a part of one whose arguments come value by value
///
/// Such a call goes on until a part of it does not say that it will; one that is followed by another
/// name before is not whole. Returns whether something of it has no place in a turn.
fn function_call(
    data: &str,
    choice: u32,
    call: &FunctionCall<'_>,
    tools: &mut Tools,
    streamed: &mut BTreeMap<u32, Streamed>,
    findings: &mut Findings,
) -> Result<bool, Malformed> {
    let FunctionCall { id, name, args, .. } = *call;
    let (name, will_continue) = (name.text()?, call.will_continue.is("true"));
    if !name.is_empty() {
        if let Some(cut) = streamed.remove(&choice) {
            cut.end(choice, false, findings);
        }
        if !will_continue && call.partial_args.is_empty() {
            tools.whole(
                data,
                findings,
                choice,
                Fragment { id, name, arguments: args, ..Fragment::default() },
            )?;
            return Ok(false);
        }
        let number = tools.open(data, findings, choice, Fragment { id, name, ..Fragment::default() })?;
        streamed.insert(choice, Streamed::new(number, args)?);
    }
    let Some(present) = streamed.get_mut(&choice) else {
        return Ok(!call.partial_args.is_empty() || json::says_something(args));
    };
    let mut passed_on = name.is_empty() && json::says_something(args);
    for piece in call.partial_args.iter() {
        passed_on |= !present.add(piece)?;
    }
    if !will_continue && let Some(whole) = streamed.remove(&choice) {
        whole.end(choice, true, findings);
    }
    Ok(passed_on)
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
    #[serde(default)]
    prompt_feedback: Member<PromptFeedback<'a>>,
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
    #[serde(default)]
    content: Member<Content<'a>>,
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
    #[serde(borrow)]
    text: Option<JsonStr<'a>>,
    #[serde(default)]
    thought: JsonStr<'a>,
    thought_signature: Option<JsonStr<'a>>,
    #[serde(default)]
    function_call: Member<FunctionCall<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct FunctionCall<'a> {
    #[serde(borrow)]
    id: JsonStr<'a>,
    name: JsonStr<'a>,
    args: Option<&'a RawValue>,
    partial_args: Few<PartialArg<'a>>,
    will_continue: JsonStr<'a>,
}

#[cfg(test)]
mod tests;
