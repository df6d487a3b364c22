//! Conversations of a client, and the tools that their models call (rules CHAT-1 and CHAT-2).
//!
//! | file | what is in it |
//! |---|---|
//! | `turn` | [`Chat`]: one turn of a conversation under way |
//! | `tool` | [`Tool`]: what a model may call; [`tool`](fn@tool): one from a closure |
//! | `tool_loop` | [`ToolLoop`]: the tools, and how far a loop may go |
//! | `run` | [`ToolRun`]: a loop under way |
//! | `running` | the tools of one answer, side by side, each within its bound |
//! | `report` | [`ToolEvent`], [`ToolReport`]: what a loop says, and what came of it |

mod report;
mod run;
mod running;
mod tool;
mod tool_loop;
mod turn;

pub use report::{LoopEnd, ToolEnd, ToolEvent, ToolRecord, ToolReport};
pub use run::ToolRun;
pub use tool::{Tool, ToolError, ToolFuture, tool};
pub use tool_loop::ToolLoop;
pub use turn::Chat;
