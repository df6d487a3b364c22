//! One turn under way.

use std::fmt;

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

use super::{Conversation, Cost, Tokens, ToolDefinition, ToolResult};
use crate::call::{Request, RequestBuilder, RequestError, Shape};
use crate::outcome::Outcome;

/// A turn under way: a conversation, borrowed, and the messages that are not yet part of it
///
/// Dropped before [`Exchange::finish`], it leaves the conversation as it was. A tool loop is one
/// exchange of several calls: [`Exchange::answered`] and [`Exchange::results`] say how it goes.
#[must_use = "a turn that is dropped leaves no trace in its conversation"]
pub struct Exchange<'c> {
    conversation: &'c mut Conversation,
    /// What is said and not kept yet
    said: Vec<Value>,
    cost: Cost,
}

impl<'c> Exchange<'c> {
    pub(super) fn new(conversation: &'c mut Conversation, said: Vec<Value>) -> Self {
        Self { conversation, said, cost: Cost::default() }
    }

    /// The conversation as it was before what is not kept yet
    pub fn conversation(&self) -> &Conversation {
        self.conversation
    }

    /// The request for the next answer of the model
    ///
    /// Errors: what is wrong with the endpoint that the conversation was given; that it answers in another
    /// dialect is [`RequestError::OtherDialect`].
    pub fn request(&self) -> Result<Request, RequestError> {
        self.request_with(&[], |request| request)
    }

    /// As [`Exchange::request`], with tools that the model may call, and changed as `change` says
    ///
    /// Errors: as there, and what is wrong with the change.
    pub fn request_with(
        &self,
        tools: &[ToolDefinition],
        change: impl FnOnce(RequestBuilder) -> RequestBuilder,
    ) -> Result<Request, RequestError> {
        let Conversation { endpoint, format, shape, .. } = &*self.conversation;
        let body = Body { exchange: self, tools: format.tools(tools) };
        let request = change(endpoint.clone().json(&body).only_dialect(format.dialect()));
        if *shape == Shape::Stream { request.stream().build() } else { request.build() }
    }

    /// The turn is over: where the call succeeded, messages and cost become the conversation's
    ///
    /// Returns the cost of the exchange.
    pub fn finish(mut self, outcome: &Outcome) -> Cost {
        self.answered(outcome);
        if outcome.result.is_ok() {
            self.keep();
        }
        self.cost
    }

    /// The model has answered, and the turn may go on: the answer is said, its cost is the conversation's
    ///
    /// The answer is kept only with what follows it: no dialect takes a call of a tool without its
    /// result. Nothing happens where the call failed.
    pub fn answered(&mut self, outcome: &Outcome) {
        if let Ok(completion) = &outcome.result {
            self.said.extend(self.conversation.format.assistant(outcome));
            let tokens = completion.turn.usage.as_ref().and_then(Tokens::of);
            let cost = Cost::of_call(tokens, self.conversation.prices.as_ref());
            self.cost += cost;
            self.conversation.cost += cost;
        }
    }

    /// Tools have given these results; what is said so far is kept
    pub fn results(&mut self, results: &[ToolResult]) {
        self.said.extend(self.conversation.format.results(results));
        self.keep();
    }

    /// What is said so far becomes the conversation's
    pub fn keep(&mut self) {
        self.conversation.messages.append(&mut self.said);
    }

    /// What the exchange has cost so far
    pub fn cost(&self) -> &Cost {
        &self.cost
    }
}

/// The body of a request: written as it is, without a copy of the messages
struct Body<'a> {
    exchange: &'a Exchange<'a>,
    tools: Vec<Value>,
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Exchange { conversation, said, .. } = self.exchange;
        let Conversation { format, model, shape, fields, messages, .. } = &**conversation;
        let (messages_member, tools_member) = (format.messages_member(), "tools");
        let mut out = serializer.serialize_map(None)?;
        for (name, value) in format.members(model, *shape) {
            if !fields.contains_key(name) {
                out.serialize_entry(name, &value)?;
            }
        }
        let of_caller = fields.get(tools_member).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        for (name, value) in fields {
            let is_said_below = name == messages_member || name == tools_member && !self.tools.is_empty();
            if !is_said_below && !value.is_null() {
                out.serialize_entry(name, value)?;
            }
        }
        if !self.tools.is_empty() {
            out.serialize_entry(tools_member, &Joined(of_caller, &self.tools))?;
        }
        out.serialize_entry(messages_member, &Joined(messages, said))?;
        out.end()
    }
}

/// Two lists as one
struct Joined<'a>(&'a [Value], &'a [Value]);

impl Serialize for Joined<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().chain(self.1))
    }
}

/// Neither the words nor the credentials
impl fmt::Debug for Exchange<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange")
            .field("conversation", &self.conversation)
            .field("said", &self.said.len())
            .field("cost", &self.cost)
            .finish()
    }
}
