//! What a tool loop says as it goes, and what came of it.

use steadfast::call::Piece;
use steadfast::chat::{Cost, LoopEnd, ToolRecord, ToolResult};
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
