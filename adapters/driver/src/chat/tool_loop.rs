//! The tools, and how far a loop may go.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use steadfast::call::{Request, RequestError};
use steadfast::chat::{Conversation, Input, LoopObserver, ToolDefinition};
use steadfast::time::Bound;

use super::{Tool, ToolRun};
use crate::client::{Client, Network};

/// Calls a model, runs the tools that it asks for, tells it what they gave, and so on (rule CHAT-2)
///
/// All runs under the configuration in force where a run begins. The tools that one answer asks for
/// run side by side, each bounded by `tool_timeout`; those that fail, panic, take too long or do not exist
/// are told to the model as such. A tool call that did not come whole is never run (rule STR-11).
///
/// The first call of the model is retried as any other; what comes after it is not, for deltas or
/// tools have then been seen (rule RTY-5), unless [`ToolLoop::retry_each_turn`] says so.
///
/// Cheap to clone; a loop can run in many conversations at once.
#[derive(Clone)]
pub struct ToolLoop {
    pub(super) tools: Arc<[Arc<dyn Tool>]>,
    pub(super) max_turns: u32,
    pub(super) max_parallel: usize,
    pub(super) deadline: Bound,
    pub(super) retry_each_turn: bool,
    pub(super) observers: Vec<MakeObserver>,
}

/// What observes the runs of a loop
type MakeObserver = Arc<dyn Fn(&Request) -> Option<Box<dyn LoopObserver>> + Send + Sync>;

impl ToolLoop {
    /// How often the model is called at most, unless the loop says otherwise
    pub const MAX_TURNS: u32 = 8;

    /// How many tools run at once at most, unless the loop says otherwise
    pub const MAX_PARALLEL: usize = 16;

    /// A loop with these tools; of two with the same name the first is called
    pub fn new(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        Self {
            tools: tools.into_iter().collect(),
            max_turns: Self::MAX_TURNS,
            max_parallel: Self::MAX_PARALLEL,
            deadline: Bound::Unbounded,
            retry_each_turn: false,
            observers: Vec::new(),
        }
    }

    /// The same loop with one more tool
    ///
    /// ```
    /// use serde_json::json;
    /// use steadfast_driver::{ToolLoop, tool};
    ///
    /// let now = tool("now", "The time", json!({"type": "object"}), |_| async { Ok(json!("12:00")) });
    /// let tools = ToolLoop::new([]).tool(now);
    /// assert_eq!(tools.definitions()[0].name, "now");
    /// ```
    #[must_use]
    pub fn tool(mut self, tool: impl Tool + 'static) -> Self {
        let tool: Arc<dyn Tool> = Arc::new(tool);
        self.tools = self.tools.iter().cloned().chain([tool]).collect();
        self
    }

    /// The same loop, which calls the model at most so often; at least once
    #[must_use]
    pub fn max_turns(mut self, max_turns: u32) -> Self {
        self.max_turns = max_turns.max(1);
        self
    }

    /// The same loop, which runs at most so many tools at once; at least one
    #[must_use]
    pub fn max_parallel(mut self, max_parallel: usize) -> Self {
        self.max_parallel = max_parallel.max(1);
        self
    }

    /// The same loop, which lasts no longer than this: all calls of the model and all tools together
    #[must_use]
    pub fn deadline(mut self, limit: Duration) -> Self {
        self.deadline = Bound::Limited(limit);
        self
    }

    /// The same loop, whose every call of the model is retried until its own first delta
    ///
    /// Tools are never run again for it. Without it a later turn also fails where it is sent on a
    /// connection that the server has just closed, once a byte of it is written (rule RTY-6).
    #[must_use]
    pub fn retry_each_turn(mut self) -> Self {
        self.retry_each_turn = true;
        self
    }

    /// The same loop, which also shows each of its runs to the observer that `observers` gives for it
    ///
    /// It is given the request of the run's first call of the model. What was given here before stays: a run
    /// may have several, and the first is around the others.
    #[must_use]
    pub fn with_observers(
        mut self,
        observers: impl Fn(&Request) -> Option<Box<dyn LoopObserver>> + Send + Sync + 'static,
    ) -> Self {
        self.observers.push(Arc::new(observers));
        self
    }

    /// Says something in a conversation, and goes on until the model asks for no more tools
    ///
    /// The loop begins now, with what is in force here (rule CFG-5), wherever and whenever it is
    /// polled. The conversation is borrowed until it is over or dropped.
    ///
    /// Errors: what is wrong with the endpoint that the conversation was given.
    pub fn run<'c, N: Network>(
        &self,
        client: &Client<N>,
        conversation: &'c mut Conversation,
        input: impl Into<Input>,
    ) -> Result<ToolRun<'c, N>, RequestError> {
        ToolRun::new(self.clone(), client.clone(), conversation.exchange(input))
    }

    /// What the model is told of the tools
    pub fn definitions(&self) -> Vec<ToolDefinition> {
        self.tools.iter().map(|tool| tool.definition()).collect()
    }
}

impl fmt::Debug for ToolLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.definitions().into_iter().map(|tool| tool.name).collect();
        f.debug_struct("ToolLoop")
            .field("tools", &names)
            .field("max_turns", &self.max_turns)
            .field("max_parallel", &self.max_parallel)
            .field("deadline", &self.deadline)
            .field("retry_each_turn", &self.retry_each_turn)
            .finish()
    }
}
