//! A conversation: messages, the rest of its requests, and its cost.

use std::fmt;

use serde_json::{Map, Value};

use super::{Cost, Exchange, Format, Prices};
use crate::call::{RequestBuilder, Shape};

/// Messages of one conversation, and what it has cost (rule CHAT-1)
///
/// A failed call leaves it as it was; a turn that the provider ended, completed or incomplete, is
/// added to it with the messages that asked for it, and its cost is added to [`Conversation::cost`].
/// See the [module](super) for an example.
#[derive(Clone)]
pub struct Conversation {
    pub(super) format: Format,
    pub(super) endpoint: RequestBuilder,
    pub(super) model: String,
    pub(super) shape: Shape,
    pub(super) fields: Map<String, Value>,
    pub(super) messages: Vec<Value>,
    pub(super) prices: Option<Prices>,
    pub(super) cost: Cost,
}

impl Conversation {
    /// A conversation without messages, which streams
    ///
    /// `endpoint` is a request without a body: URL, credentials, and what else all calls of the
    /// conversation share, such as overrides and [`retries`](RequestBuilder::retries). `model` goes
    /// into the body, but for Gemini, whose URL names the model.
    pub fn new(format: Format, endpoint: RequestBuilder, model: &str) -> Self {
        Self {
            format,
            endpoint,
            model: model.to_owned(),
            shape: Shape::Stream,
            fields: Map::new(),
            messages: Vec::new(),
            prices: None,
            cost: Cost::default(),
        }
    }

    /// The same conversation, whose answers come in one piece; for Gemini the URL must say so as well
    #[must_use]
    pub fn unary(mut self) -> Self {
        self.shape = Shape::Unary;
        self
    }

    /// The same conversation, begun with these instructions for the model
    #[must_use]
    pub fn system(mut self, text: &str) -> Self {
        match self.format.system(text) {
            Ok((name, value)) => self.field(name, value),
            Err(message) => {
                self.messages.insert(0, message);
                self
            }
        }
    }

    /// The same conversation with a field of its requests' bodies, such as `max_tokens`
    ///
    /// It goes before what is sent otherwise; null takes a field out. Tools of a tool loop are added
    /// to those of a field `tools`. The messages are not a field.
    #[must_use]
    pub fn field(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.fields.insert(name.to_owned(), value.into());
        self
    }

    /// The same conversation with these messages after those it has, in the shape of its dialect
    #[must_use]
    pub fn with_messages(mut self, messages: impl IntoIterator<Item = Value>) -> Self {
        self.messages.extend(messages);
        self
    }

    /// The same conversation, which counts money as well as tokens from now on
    #[must_use]
    pub fn prices(mut self, prices: Prices) -> Self {
        self.prices = Some(prices);
        self
    }

    /// `n` conversations with the same messages, each with a cost of its own that starts from nothing
    pub fn fork(&self, n: usize) -> Vec<Self> {
        let fresh = || Self { cost: Cost::default(), ..self.clone() };
        (0..n).map(|_| fresh()).collect()
    }

    /// The shape of its messages
    pub fn format(&self) -> Format {
        self.format
    }

    /// The model
    pub fn model(&self) -> &str {
        &self.model
    }

    /// Its messages, in the shape of its dialect
    pub fn messages(&self) -> &[Value] {
        &self.messages
    }

    /// Its messages, to be changed by hand: cut short, corrected, or taken out
    pub fn messages_mut(&mut self) -> &mut Vec<Value> {
        &mut self.messages
    }

    /// What it has cost so far
    pub fn cost(&self) -> &Cost {
        &self.cost
    }

    /// A turn that begins with `input`; until it is over, the conversation is borrowed
    pub fn exchange(&mut self, input: impl Into<Input>) -> Exchange<'_> {
        let asked = match input.into() {
            Input::Text(text) => vec![self.format.user(&text)],
            Input::Messages(messages) => messages,
        };
        Exchange::new(self, asked)
    }
}

/// What the caller says: a text of the user, or messages in the shape of the dialect
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// A message of the user with this text
    Text(String),
    /// These messages as they are; none to have the model go on
    Messages(Vec<Value>),
}

impl From<&str> for Input {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Input {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Value> for Input {
    fn from(message: Value) -> Self {
        Self::Messages(vec![message])
    }
}

impl From<Vec<Value>> for Input {
    fn from(messages: Vec<Value>) -> Self {
        Self::Messages(messages)
    }
}

/// Neither the words nor the credentials
impl fmt::Debug for Conversation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conversation")
            .field("format", &self.format)
            .field("model", &self.model)
            .field("messages", &self.messages.len())
            .field("cost", &self.cost)
            .finish_non_exhaustive()
    }
}
