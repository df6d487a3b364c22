//! The model's message, as its dialect wants it back.

use std::ops::Deref;

use serde_json::{Map, Value, json};

use super::Format;
use crate::outcome::{Choice, Outcome, ReasoningMember, Signature, Signed, ToolCall, ToolKind};

impl Format {
    /// The messages that stand for the first choice of an answer; none where nothing was said
    ///
    /// Reasoning is sent back where a provider asks for it: where Anthropic, Google or OpenAI has signed it,
    /// as those want it; in its own words to a server that speaks OpenAI Chat, and to Ollama along with
    /// calls of tools. Calls of the provider's own tools are not, for their results are not in a turn; nor,
    /// if the answer did not come whole, calls that are not whole (rule STR-11), for nobody can answer those.
    pub(super) fn assistant(self, outcome: &Outcome) -> Vec<Value> {
        let Some(choice) = outcome.turn().choices.first() else { return Vec::new() };
        let is_completed = outcome.word() == "completed";
        let is_kept =
            |call: &ToolCall| call.kind != ToolKind::Server && (is_completed || outcome.is_whole(call));
        let signatures: Vec<&Signature> =
            outcome.turn().signatures.iter().filter(|signature| signature.choice == choice.index).collect();
        let signed = |position: usize| {
            signatures.iter().find(|signature| match signature.signs {
                Signed::ToolCall { index } => index as usize == position,
                Signed::Reasoning { .. } | Signed::Hidden => false,
            })
        };
        let calls: Vec<Call<'_>> = choice
            .tool_calls
            .iter()
            .enumerate()
            .filter(|(_, call)| is_kept(call))
            .map(|(at, call)| Call { call, signature: signed(at).map(|signature| signature.token.as_str()) })
            .collect();
        match self {
            Self::OpenAiChat => openai_chat(choice, outcome.turn().reasoning_member, &calls),
            Self::OpenAiResponses => openai_responses(choice, &signatures, &calls),
            Self::Anthropic => anthropic(choice, &signatures, &calls),
            Self::Gemini => gemini(choice, &calls),
            Self::GeminiInteractions => gemini_interactions(choice, &signatures, &calls),
            Self::Ollama => ollama(choice, &calls),
            Self::Cohere => cohere(choice, &calls),
        }
    }
}

/// A call to be sent back, and the provider's signature of it
struct Call<'a> {
    call: &'a ToolCall,
    signature: Option<&'a str>,
}

impl Deref for Call<'_> {
    type Target = ToolCall;

    fn deref(&self) -> &ToolCall {
        self.call
    }
}

/// Reasoning that is signed, in order
fn thoughts<'a>(choice: &'a Choice, signatures: &'a [&'a Signature]) -> impl Iterator<Item = Thought<'a>> {
    let mut from = 0;
    signatures.iter().filter_map(move |signature| {
        let text = match signature.signs {
            Signed::Reasoning { end } => {
                Some(choice.reasoning.get(std::mem::replace(&mut from, end)..end).unwrap_or_default())
            }
            Signed::Hidden => None,
            Signed::ToolCall { .. } => return None,
        };
        Some(Thought { text, token: &signature.token })
    })
}

/// Reasoning that is signed
struct Thought<'a> {
    /// None where the provider keeps it to itself
    text: Option<&'a str>,
    token: &'a str,
}

/// An assistant's message with these members
fn message(members: impl IntoIterator<Item = (&'static str, Value)>) -> Vec<Value> {
    let members = members.into_iter().map(|(name, value)| (name.to_owned(), value));
    let role = ("role".to_owned(), Value::from("assistant"));
    vec![Value::Object(Map::from_iter(members.chain([role])))]
}

/// Arguments as the JSON object that they are; an empty one where they are none
///
/// A dialect that wants an object takes nothing else.
fn object(call: &ToolCall) -> Value {
    serde_json::from_str(&call.arguments).ok().filter(Value::is_object).unwrap_or_else(|| json!({}))
}

/// A function call in OpenAI's words
fn function(call: &ToolCall) -> Value {
    match call.kind {
        ToolKind::Custom => json!({
            "id": call.id, "type": "custom", "custom": {"name": call.name, "input": call.arguments},
        }),
        ToolKind::Function | ToolKind::Server => {
            let arguments = if call.arguments.is_empty() { "{}" } else { &call.arguments };
            json!({
                "id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments},
            })
        }
    }
}

fn openai_chat(choice: &Choice, reasons_in: Option<ReasoningMember>, calls: &[Call<'_>]) -> Vec<Value> {
    if choice.text.is_empty() && choice.refusal.is_empty() && calls.is_empty() {
        return Vec::new();
    }
    let content = if choice.text.is_empty() { Value::Null } else { choice.text.as_str().into() };
    let mut members = vec![("content", content)];
    // Empty as well: a server that gives it asks for it in each message.
    if let Some(member) = reasons_in {
        members.push((member.name(), choice.reasoning.as_str().into()));
    }
    if !choice.refusal.is_empty() {
        members.push(("refusal", choice.refusal.as_str().into()));
    }
    if !calls.is_empty() {
        members.push(("tool_calls", calls.iter().map(|call| function(call)).collect()));
    }
    message(members)
}

fn openai_responses(choice: &Choice, signatures: &[&Signature], calls: &[Call<'_>]) -> Vec<Value> {
    let parts: Vec<Value> = [("output_text", "text", &choice.text), ("refusal", "refusal", &choice.refusal)]
        .into_iter()
        .filter(|(_, _, said)| !said.is_empty())
        .map(|(kind, member, said)| {
            let mut part = json!({"type": kind});
            part[member] = said.as_str().into();
            part
        })
        .collect();
    let said = (!parts.is_empty()).then(|| json!({"type": "message", "role": "assistant", "content": parts}));
    let calls = calls.iter().map(|call| match call.kind {
        ToolKind::Custom => json!({
            "type": "custom_tool_call", "call_id": call.id, "name": call.name, "input": call.arguments,
        }),
        ToolKind::Function | ToolKind::Server => {
            let arguments = if call.arguments.is_empty() { "{}" } else { &call.arguments };
            json!({
                "type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments,
            })
        }
    });
    if said.is_none() && calls.len() == 0 {
        return Vec::new();
    }
    let thoughts = thoughts(choice, signatures).map(|thought| {
        let summary = thought.text.into_iter().filter(|text| !text.is_empty());
        let summary: Vec<Value> = summary.map(|text| json!({"type": "summary_text", "text": text})).collect();
        json!({"type": "reasoning", "summary": summary, "encrypted_content": thought.token})
    });
    thoughts.chain(said).chain(calls).collect()
}

fn anthropic(choice: &Choice, signatures: &[&Signature], calls: &[Call<'_>]) -> Vec<Value> {
    // A block without text is refused, and so is a message without a block.
    let text = (!choice.text.is_empty()).then(|| json!({"type": "text", "text": choice.text}));
    let calls = calls
        .iter()
        .map(|call| json!({"type": "tool_use", "id": call.id, "name": call.name, "input": object(call)}));
    if text.is_none() && calls.len() == 0 {
        return Vec::new();
    }
    let thoughts = thoughts(choice, signatures).map(|thought| match thought.text {
        Some(text) => json!({"type": "thinking", "thinking": text, "signature": thought.token}),
        None => json!({"type": "redacted_thinking", "data": thought.token}),
    });
    let content: Vec<Value> = thoughts.chain(text).chain(calls).collect();
    message([("content", content.into())])
}

fn gemini(choice: &Choice, calls: &[Call<'_>]) -> Vec<Value> {
    let text = (!choice.text.is_empty()).then(|| json!({"text": choice.text}));
    let calls = calls.iter().map(|call| {
        let mut part = json!({"name": call.name, "args": object(call)});
        if !call.id.is_empty() {
            part["id"] = call.id.as_str().into();
        }
        let mut part = json!({"functionCall": part});
        if let Some(signature) = call.signature {
            part["thoughtSignature"] = signature.into();
        }
        part
    });
    let parts: Vec<Value> = text.into_iter().chain(calls).collect();
    if parts.is_empty() { parts } else { vec![json!({"role": "model", "parts": parts})] }
}

fn gemini_interactions(choice: &Choice, signatures: &[&Signature], calls: &[Call<'_>]) -> Vec<Value> {
    let part = |text: &str| json!({"type": "text", "text": text});
    let said =
        (!choice.text.is_empty()).then(|| json!({"type": "model_output", "content": [part(&choice.text)]}));
    let calls = calls.iter().map(|call| {
        let mut step = json!({
            "type": "function_call", "id": call.id, "name": call.name, "arguments": object(call),
        });
        if let Some(signature) = call.signature {
            step["signature"] = signature.into();
        }
        step
    });
    if said.is_none() && calls.len() == 0 {
        return Vec::new();
    }
    let thoughts = thoughts(choice, signatures).map(|thought| {
        let mut step = json!({"type": "thought", "signature": thought.token});
        if let Some(text) = thought.text.filter(|text| !text.is_empty()) {
            step["summary"] = json!([part(text)]);
        }
        step
    });
    thoughts.chain(said).chain(calls).collect()
}

fn ollama(choice: &Choice, calls: &[Call<'_>]) -> Vec<Value> {
    if choice.text.is_empty() && calls.is_empty() {
        return Vec::new();
    }
    let mut members = vec![("content", Value::from(choice.text.as_str()))];
    if !calls.is_empty() {
        let calls: Vec<Value> = calls
            .iter()
            .map(|call| json!({"function": {"name": call.name, "arguments": object(call)}}))
            .collect();
        members.push(("tool_calls", calls.into()));
        if !choice.reasoning.is_empty() {
            members.push(("thinking", choice.reasoning.as_str().into()));
        }
    }
    message(members)
}

fn cohere(choice: &Choice, calls: &[Call<'_>]) -> Vec<Value> {
    let text = (!choice.text.is_empty()).then(|| ("content", Value::from(choice.text.as_str())));
    let calls = (!calls.is_empty())
        .then(|| ("tool_calls", calls.iter().map(|call| function(call)).collect::<Value>()));
    let members: Vec<_> = text.into_iter().chain(calls).collect();
    if members.is_empty() { Vec::new() } else { message(members) }
}
