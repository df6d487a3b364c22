//! LLM calls that end.

pub mod call;
pub mod config;
pub mod dialect;
pub mod framing;
pub mod http1;
pub mod machine;
pub mod outcome;
pub mod retry;
pub mod time;
