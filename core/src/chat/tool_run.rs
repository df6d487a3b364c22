//! How a tool loop goes: what becomes of it and of its tools, and who is told as it happens.

use std::time::Duration;

use super::Cost;
use crate::outcome::ToolCall;

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

impl ToolEnd {
    /// The name in lower case, as it appears in traces
    pub fn name(self) -> &'static str {
        match self {
            Self::Returned => "returned",
            Self::Failed => "failed",
            Self::Panicked => "panicked",
            Self::TimedOut { .. } => "tool_timeout",
            Self::Unknown => "unknown_tool",
            Self::BadArguments => "bad_arguments",
            Self::NotRun => "not_run",
            Self::Dropped => "dropped",
        }
    }
}

impl LoopEnd {
    /// The name in lower case, as it appears in traces
    pub fn name(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Failed => "failed",
            Self::TurnLimit { .. } => "turn_limit",
            Self::Deadline { .. } => "deadline",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Is told what happens in a tool loop, and is around its work
///
/// It sees and does not decide. It is called within the driver's poll, so it must not block, and a panic of
/// it is the driver's.
pub trait LoopObserver: Send + Sync {
    /// Takes note of what happened
    fn observe(&mut self, seen: &LoopObservation<'_>);

    /// Does `act`, which is a piece of the loop's work, under whatever the observer puts in force for it
    ///
    /// It must call `act`, and once.
    fn around(&mut self, work: LoopWork, act: &mut dyn FnMut()) {
        let _ = work;
        act();
    }
}

/// A piece of a tool loop's work
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoopWork {
    /// A call of the model begins; what is around it then is what a call's own observers find
    Call,
    /// A tool is polled
    Tool {
        /// Its position among the tool calls of the answer that asked for it
        position: usize,
    },
}

/// Something that happened in a tool loop
///
/// Neither arguments nor results are told but in the call itself; an observer that writes them down does so
/// of its own will.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum LoopObservation<'a> {
    /// A tool is being run; one that is refused never is
    ToolBegan {
        /// The call of the model that asked for it, from 1
        turn: u32,
        /// Its position among the tool calls of that answer
        position: usize,
        /// What the model asks for
        call: &'a ToolCall,
    },
    /// A tool that was being run is not any more
    ToolEnded {
        /// Its position among the tool calls of the answer that asked for it
        position: usize,
        /// What became of it
        record: &'a ToolRecord,
    },
    /// The loop is over; nothing follows
    Over {
        /// How it ended
        end: LoopEnd,
        /// How often the model was called
        turns: u32,
        /// What all calls of the model cost together
        cost: &'a Cost,
    },
}
