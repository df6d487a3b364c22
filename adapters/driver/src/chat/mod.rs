//! Conversations of a client, and the tools that their models call (rules CHAT-1 and CHAT-2).
//!
//! | file | what is in it |
//! |---|---|
//! | `turn` | [`Chat`]: one turn of a conversation under way |
//! | `tool` | [`Tool`]: what a model may call; [`tool`](fn@tool): one from a closure |
//! | `tool_loop` | [`ToolLoop`]: the tools, and how far a loop may go |
//! | `run` | [`ToolRun`]: a loop under way |
//! | `running` | the tools of one answer, side by side, each within its bound |
//! | `observers` | those who watch a loop under way |
//! | `report` | [`ToolEvent`], [`ToolReport`]: what a loop says, and what came of it |

mod observers;
mod report;
mod run;
mod running;
mod tool;
mod tool_loop;
mod turn;

pub use report::{ToolEvent, ToolReport};
pub use run::ToolRun;
pub use steadfast::chat::{LoopEnd, ToolEnd, ToolRecord};
pub use tool::{Tool, ToolError, ToolFuture, tool};
pub use tool_loop::ToolLoop;
pub use turn::Chat;
