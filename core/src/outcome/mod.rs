//! What a caller gets back.

mod turn;

pub use turn::{Choice, Delta, ToolCall, ToolKind, Turn, Usage};
