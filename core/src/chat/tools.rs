//! What goes to the model about tools.

use serde_json::{Value, json};

use crate::outcome::ToolCall;

/// A tool as the model is told of it
#[derive(Clone, Debug, PartialEq)]
pub struct ToolDefinition {
    /// Its name: letters, digits, `_` and `-`, at most 64 of them, for most providers
    pub name: String,
    /// What it does and when to use it, in the caller's words
    pub description: String,
    /// JSON Schema of its arguments: an object
    pub schema: Value,
}

/// What became of a tool call, for the model to read
#[derive(Clone, Debug, PartialEq)]
pub struct ToolResult {
    /// The call it answers
    pub call: ToolCall,
    /// What the tool gave, or in words why it gave nothing
    pub value: Result<Value, String>,
}

impl ToolResult {
    /// The result as text: a string as it is, any other value as JSON, an error as `{"error": "…"}`
    pub(super) fn text(&self) -> String {
        match &self.value {
            Ok(Value::String(text)) => text.clone(),
            Ok(value) => value.to_string(),
            Err(message) => json!({"error": message}).to_string(),
        }
    }
}
