//! The shapes of messages, tools and results in each dialect.

use serde_json::{Map, Value, json};

use super::{ToolDefinition, ToolResult};
use crate::call::Shape;
use crate::dialect::Dialect;
use crate::outcome::ToolKind;

/// A dialect that has messages, and so conversations
///
/// Completions have a prompt and no messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// OpenAI Chat Completions, and the servers compatible with them
    OpenAiChat,
    /// OpenAI Responses, with the whole conversation as `input`
    ///
    /// Reasoning goes back where the field `include` asks for `reasoning.encrypted_content`.
    OpenAiResponses,
    /// Anthropic Messages
    Anthropic,
    /// Gemini `generateContent`, whose model is in the URL
    Gemini,
    /// Gemini Interactions, with the whole conversation as steps of `input`
    ///
    /// Google keeps what it is sent unless the field `store` is false.
    GeminiInteractions,
    /// Ollama's `/api/chat`
    Ollama,
    /// Cohere v2 chat
    Cohere,
}

/// A dialect without messages
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` has no messages, so there are no conversations in it")]
pub struct NoFormat(&'static str);

impl TryFrom<Dialect> for Format {
    type Error = NoFormat;

    fn try_from(dialect: Dialect) -> Result<Self, NoFormat> {
        match dialect {
            Dialect::OpenAiChat => Ok(Self::OpenAiChat),
            Dialect::OpenAiResponses => Ok(Self::OpenAiResponses),
            Dialect::Anthropic => Ok(Self::Anthropic),
            Dialect::Gemini => Ok(Self::Gemini),
            Dialect::GeminiInteractions => Ok(Self::GeminiInteractions),
            Dialect::Ollama => Ok(Self::Ollama),
            Dialect::Cohere => Ok(Self::Cohere),
            Dialect::OpenAiCompletions | Dialect::Custom(_) => Err(NoFormat(dialect.name())),
        }
    }
}

impl Format {
    /// The dialect of the answers
    pub fn dialect(self) -> Dialect {
        match self {
            Self::OpenAiChat => Dialect::OpenAiChat,
            Self::OpenAiResponses => Dialect::OpenAiResponses,
            Self::Anthropic => Dialect::Anthropic,
            Self::Gemini => Dialect::Gemini,
            Self::GeminiInteractions => Dialect::GeminiInteractions,
            Self::Ollama => Dialect::Ollama,
            Self::Cohere => Dialect::Cohere,
        }
    }

    /// A message of the user
    pub fn user(self, text: &str) -> Value {
        match self {
            Self::Gemini => json!({"role": "user", "parts": [{"text": text}]}),
            Self::GeminiInteractions => {
                json!({"type": "user_input", "content": [{"type": "text", "text": text}]})
            }
            Self::OpenAiChat | Self::OpenAiResponses | Self::Anthropic | Self::Ollama | Self::Cohere => {
                json!({"role": "user", "content": text})
            }
        }
    }

    /// The member of a request's body that holds the messages
    pub(super) fn messages_member(self) -> &'static str {
        match self {
            Self::OpenAiResponses | Self::GeminiInteractions => "input",
            Self::Gemini => "contents",
            Self::OpenAiChat | Self::Anthropic | Self::Ollama | Self::Cohere => "messages",
        }
    }

    /// What a request's body says beside its messages, unless the caller says otherwise: the model, and
    /// how the answer comes
    pub(super) fn members(self, model: &str, shape: Shape) -> Vec<(&'static str, Value)> {
        let streams = shape == Shape::Stream;
        match self {
            Self::Gemini => Vec::new(),
            Self::OpenAiChat if streams => vec![
                ("model", model.into()),
                ("stream", true.into()),
                // Else nothing is counted.
                ("stream_options", json!({"include_usage": true})),
            ],
            // Ollama streams unless it is told not to.
            Self::OpenAiChat
            | Self::OpenAiResponses
            | Self::Anthropic
            | Self::GeminiInteractions
            | Self::Ollama
            | Self::Cohere => {
                vec![("model", model.into()), ("stream", streams.into())]
            }
        }
    }

    /// Where the instructions of a conversation go: into a member of the body, or before the messages
    pub(super) fn system(self, text: &str) -> Result<(&'static str, Value), Value> {
        match self {
            Self::OpenAiResponses => Ok(("instructions", text.into())),
            Self::Anthropic => Ok(("system", text.into())),
            Self::Gemini => Ok(("systemInstruction", json!({"parts": [{"text": text}]}))),
            Self::GeminiInteractions => Ok(("system_instruction", text.into())),
            Self::OpenAiChat | Self::Ollama | Self::Cohere => Err(json!({"role": "system", "content": text})),
        }
    }

    /// Tools as elements of the body's `tools`
    pub(super) fn tools(self, tools: &[ToolDefinition]) -> Vec<Value> {
        if tools.is_empty() {
            return Vec::new();
        }
        let each = |shape: fn(&ToolDefinition) -> Value| tools.iter().map(shape).collect();
        match self {
            Self::OpenAiChat | Self::Ollama | Self::Cohere => each(|tool| {
                json!({"type": "function", "function": {
                    "name": tool.name, "description": tool.description, "parameters": tool.schema,
                }})
            }),
            Self::OpenAiResponses => each(|tool| {
                json!({
                    "type": "function", "name": tool.name, "description": tool.description,
                    "parameters": tool.schema,
                    // Without it the schema is made strict, and refused where it cannot be.
                    "strict": false,
                })
            }),
            Self::Anthropic => each(
                |tool| json!({"name": tool.name, "description": tool.description, "input_schema": tool.schema}),
            ),
            Self::GeminiInteractions => each(|tool| {
                json!({
                    "type": "function", "name": tool.name, "description": tool.description,
                    "parameters": tool.schema,
                })
            }),
            Self::Gemini => {
                let declarations: Vec<Value> = each(|tool| {
                    json!({
                        "name": tool.name, "description": tool.description,
                        "parametersJsonSchema": tool.schema,
                    })
                });
                vec![json!({"functionDeclarations": declarations})]
            }
        }
    }

    /// What tools gave, as messages for the model
    pub(super) fn results(self, results: &[ToolResult]) -> Vec<Value> {
        let each = |shape: fn(&ToolResult) -> Value| results.iter().map(shape).collect();
        let together = |shape: fn(&ToolResult) -> Value, member: &str| match results {
            [] => Vec::new(),
            _ => {
                let parts: Vec<Value> = each(shape);
                vec![Value::from(Map::from_iter([
                    ("role".to_owned(), Value::from("user")),
                    (member.to_owned(), Value::from(parts)),
                ]))]
            }
        };
        match self {
            Self::OpenAiChat | Self::Cohere => each(
                |result| json!({"role": "tool", "tool_call_id": result.call.id, "content": result.text()}),
            ),
            Self::Ollama => each(
                |result| json!({"role": "tool", "tool_name": result.call.name, "content": result.text()}),
            ),
            Self::OpenAiResponses => each(|result| {
                let kind = match result.call.kind {
                    ToolKind::Custom => "custom_tool_call_output",
                    ToolKind::Function | ToolKind::Server => "function_call_output",
                };
                json!({"type": kind, "call_id": result.call.id, "output": result.text()})
            }),
            Self::Anthropic => together(
                |result| {
                    let mut part = json!({
                        "type": "tool_result", "tool_use_id": result.call.id, "content": result.text(),
                    });
                    if result.value.is_err() {
                        part["is_error"] = true.into();
                    }
                    part
                },
                "content",
            ),
            Self::GeminiInteractions => each(|result| {
                let mut step = json!({
                    "type": "function_result", "call_id": result.call.id, "name": result.call.name,
                    "result": [{"type": "text", "text": result.text()}],
                });
                if result.value.is_err() {
                    step["is_error"] = true.into();
                }
                step
            }),
            Self::Gemini => together(
                |result| {
                    let response = match &result.value {
                        Ok(value) => json!({"output": value}),
                        Err(message) => json!({"error": message}),
                    };
                    let mut part = json!({"name": result.call.name, "response": response});
                    if !result.call.id.is_empty() {
                        part["id"] = result.call.id.as_str().into();
                    }
                    json!({"functionResponse": part})
                },
                "parts",
            ),
        }
    }
}
