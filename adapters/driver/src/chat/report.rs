//! What a tool loop says as it goes, and what came of it.

use std::time::Duration;

use steadfast::call::Piece;
use steadfast::chat::{Cost, ToolResult};
use steadfast::outcome::{Outcome, ToolCall};

/// Something that happened in a tool loop
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ToolEvent {
    /// A piece of an answer of the model
    Piece {
        /// Which of the loop's calls of the model, from 1
        turn: u32,
        /// The piece
        piece: Piece,
    },
    /// A tool is being run
    Called {
        /// The call of the model that asked for it, from 1
        turn: u32,
        /// What the model asks for
        call: ToolCall,
    },
    /// A tool call is answered, whether a tool was run for it or not
    Returned {
        /// The call of the model that asked for it, from 1
        turn: u32,
        /// What the model will be told
        result: ToolResult,
    },
}

/// What came of a tool loop
#[derive(Debug)]
pub struct ToolReport {
    /// How it ended
    pub end: LoopEnd,
    /// The outcome of each call of the model, in order
    pub outcomes: Vec<Outcome>,
    /// Each tool call, in the order in which the model made them
    pub tools: Vec<ToolRecord>,
    /// What all calls of the model cost together
    pub cost: Cost,
}

impl ToolReport {
    /// The outcome of the last call of the model; none where the loop was given up before it had one
    pub fn last(&self) -> Option<&Outcome> {
        self.outcomes.last()
    }

    /// Text of the last answer
    pub fn text(&self) -> &str {
        self.last().map_or("", |outcome| outcome.turn().text())
    }
}

/// How a tool loop ended
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoopEnd {
    /// The model answered and asked for no tool; completed or incomplete, as the last outcome says
    Answered,
    /// A call of the model failed: the last outcome says how
    Failed,
    /// The model still asked for tools in the last call that it was allowed
    ///
    /// Those were not run; the conversation says so, and can be gone on with.
    TurnLimit {
        /// How many calls of the model were allowed
        limit: u32,
    },
    /// The time for the whole loop ran out, in a call of the model or in a tool
    Deadline {
        /// How long it was allowed to last
        limit: Duration,
    },
    /// The caller gave up
    Cancelled,
}

/// A tool call, and what became of it
#[derive(Clone, Debug, PartialEq)]
pub struct ToolRecord {
    /// The call of the model that asked for it, from 1
    pub turn: u32,
    /// The provider's id of the tool call
    pub id: String,
    /// The tool's name
    pub name: String,
    /// How long it ran
    pub elapsed: Duration,
    /// What became of it
    pub end: ToolEnd,
}

/// What became of a tool call; the model is told of each but the last
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolEnd {
    /// The tool gave a value
    Returned,
    /// The tool failed
    Failed,
    /// The tool panicked; the message goes to the process's panic hook and nowhere else
    Panicked,
    /// It ran into its bound
    TimedOut {
        /// `tool_timeout`
        limit: Duration,
    },
    /// There is no tool of that name
    Unknown,
    /// Its arguments are no JSON (rule STR-11)
    BadArguments,
    /// The loop had reached its limit of turns
    NotRun,
    /// The loop ended while it ran, or before it did
    Dropped,
}
