//! Record and replay: what a call was told and what it decided, line by line.

mod bodies;
mod step;

pub use bodies::{Bodies, UnknownBodies};
pub use step::StepLine;
