//! What a model may call.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use serde_json::Value;
use steadfast::chat::ToolDefinition;

/// Something that a model may call: a function of the caller's, or a tool of an MCP server
///
/// It is called with JSON of the model's making: an object, where the model keeps to the schema, and a
/// string where the model calls a tool that takes free text. What it gives goes to the model.
pub trait Tool: Send + Sync {
    /// What the model is told of it
    fn definition(&self) -> ToolDefinition;

    /// Does what it is for
    ///
    /// The future is polled within the scope in which the loop began (rule CFG-3), and dropped when its
    /// time is up or the loop is. Where it panics, the model is told so, but not with what message, and
    /// the loop goes on; a program that aborts on panics does all the same.
    fn call(&self, arguments: Value) -> ToolFuture<'_>;

    /// Whether each call of it ends within a bound of its own, as a request of MCP does
    ///
    /// If not, `tool_timeout` bounds it.
    fn is_bounded(&self) -> bool {
        false
    }
}

/// A call of a tool under way
pub type ToolFuture<'a> = Pin<Box<dyn Future<Output = Result<Value, ToolError>> + Send + 'a>>;

/// A tool that could not do what it was called for; the model is told, and may try something else
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolError(String);

impl ToolError {
    /// A failure in words that the model can read
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Any error of the tool's own, in its own words, so that a tool can use `?`
impl<E: std::error::Error> From<E> for ToolError {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

/// A tool from a function: its name, what it is for, the JSON Schema of its arguments, and what it does
///
/// ```
/// use serde_json::json;
/// use steadfast_driver::{ToolError, tool};
///
/// let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
/// let weather = tool("weather", "The weather in a city now", schema, |arguments| async move {
///     let city = arguments["city"].as_str().ok_or_else(|| ToolError::new("`city` is missing"))?;
///     Ok(json!({"city": city, "sky": "clear"}))
/// });
/// ```
pub fn tool<F, O>(name: &str, description: &str, schema: Value, function: F) -> impl Tool + 'static
where
    F: Fn(Value) -> O + Send + Sync + 'static,
    O: Future<Output = Result<Value, ToolError>> + Send + 'static,
{
    let definition = ToolDefinition { name: name.to_owned(), description: description.to_owned(), schema };
    Function { definition, function }
}

struct Function<F> {
    definition: ToolDefinition,
    function: F,
}

impl<F, O> Tool for Function<F>
where
    F: Fn(Value) -> O + Send + Sync,
    O: Future<Output = Result<Value, ToolError>> + Send + 'static,
{
    fn definition(&self) -> ToolDefinition {
        self.definition.clone()
    }

    fn call(&self, arguments: Value) -> ToolFuture<'_> {
        Box::pin((self.function)(arguments))
    }
}
