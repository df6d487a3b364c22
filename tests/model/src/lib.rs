//! A small reference model of one call, and every short sequence of events checked against it.
//!
//! The model says from the rules alone what is seen of a call: which connections it asks for and
//! closes, what it delivers, until when it waits and why, and how it ends. The search drives the real
//! call beside it, through every sequence of up to `k` events, and compares after each.
//!
//! | file | what is in it |
//! |---|---|
//! | `terms` | [`Input`] and [`Seen`]: what can happen to a call, and what can be seen of it |
//! | `model` | [`Model`]: what the rules say |
//! | `mutation` | [`Mutation`]: what the model can get wrong on purpose |
//! | `subject` | [`Subject`]: the real call, behind the same inputs |
//! | `wire` | the bytes that stand for each input |
//! | `cases` | [`cases()`]: under which settings calls are checked |
//! | `search` | [`Search`]: every sequence, and the shortest one that differs |

#![forbid(unsafe_code)]

mod cases;
mod model;
mod mutation;
mod search;
mod subject;
mod terms;
mod wire;

pub use cases::cases;
pub use model::{Model, State};
pub use mutation::Mutation;
pub use search::{Difference, Report, Search};
pub use subject::Subject;
pub use terms::{Case, Ended, Framing, Input, Mode, Outcome, Seen, Waiting};
