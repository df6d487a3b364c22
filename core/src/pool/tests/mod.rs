//! The pool at exact instants, and against a model.

mod decisions;
mod model;
