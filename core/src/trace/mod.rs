//! Record and replay: what a call was told and what it decided, line by line.

mod bodies;
mod event;
mod format;
mod memory;
mod reader;
mod recorder;
mod redact;
mod replay;
mod step;
#[cfg(test)]
mod tests;
mod what_if;

pub use bodies::{Bodies, UnknownBodies};
pub(crate) use event::Noted;
pub(crate) use format::Header;
pub use memory::Memory;
pub use reader::{Finish, Problem, Trace, TraceError};
pub use recorder::{RecordError, Recorder, Recording};
pub(crate) use redact::{Redactor, placeholder};
pub use replay::{Difference, Line, Replay};
pub use step::StepLine;
pub use what_if::{Alternative, WhatIf};
