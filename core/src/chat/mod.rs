//! Conversations: messages as their dialect has them, and what they have cost (rule CHAT-1).
//!
//! | file | what is in it |
//! |---|---|
//! | `conversation` | [`Conversation`]: messages, model, other fields of the request, cost; and [`Input`] |
//! | `exchange` | [`Exchange`]: one turn under way, which borrows its conversation |
//! | `format` | [`Format`]: the shapes of messages, tools and results in each dialect |
//! | `assistant` | the model's message, as its dialect wants it back |
//! | `tools` | [`ToolDefinition`] and [`ToolResult`]: what goes to the model about tools |
//! | `tool_run` | [`LoopEnd`], [`ToolRecord`], [`LoopObserver`]: how a tool loop goes, and who is told |
//! | `cost` | [`Cost`], [`Prices`], [`Price`], [`Amount`]: tokens and money, exactly |
//! | `tokens` | [`Tokens`]: what each provider counts, in one way of counting |
//!
//! Messages are the caller's own JSON values, so that whatever a provider can say can be said. A
//! conversation is plain data: it owns all it says, knows of no connection, and can be cloned, forked
//! and kept. While a turn is under way it is borrowed, so that two calls at once on one conversation do
//! not compile:
//!
//! ```compile_fail,E0499
//! # use steadfast::call::Request;
//! # use steadfast::chat::{Conversation, Format};
//! let mut conversation = Conversation::new(Format::OpenAiChat, Request::post("http://h/"), "gpt-5");
//! let first = conversation.exchange("Hello");
//! let second = conversation.exchange("Hello again");
//! drop((first, second));
//! ```
//!
//! The adapters' clients do the rest in one call; this is what they do:
//!
//! ```
//! use steadfast::call::Request;
//! use steadfast::chat::{Conversation, Format, Prices};
//! # use steadfast::outcome::Outcome;
//! # fn send(request: Request) -> Option<Outcome> { None }
//!
//! let endpoint = Request::post("https://api.openai.com/v1/chat/completions").bearer("sk-example");
//! let mut conversation = Conversation::new(Format::OpenAiChat, endpoint, "gpt-5")
//!     .system("Be brief.")
//!     .prices(Prices::new("1.25".parse()?, "10".parse()?).cached_input("0.125".parse()?));
//! let exchange = conversation.exchange("Hello");
//! if let Some(outcome) = send(exchange.request()?) {
//!     exchange.finish(&outcome);
//! }
//! assert_eq!(conversation.messages().len(), 1, "a turn that came to nothing leaves it as it was");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod assistant;
mod conversation;
mod cost;
mod exchange;
mod format;
#[cfg(test)]
mod tests;
mod tokens;
mod tool_run;
mod tools;

pub use conversation::{Conversation, Input};
pub use cost::{Amount, Cost, Price, PriceError, Prices};
pub use exchange::Exchange;
pub use format::{Format, NoFormat};
pub use tokens::Tokens;
pub use tool_run::{LoopEnd, LoopObservation, LoopObserver, LoopWork, ToolEnd, ToolRecord};
pub use tools::{ToolDefinition, ToolResult};
