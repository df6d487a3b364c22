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
//! | `upload` | the same of a request's body that is read as it goes out |
//! | `state` | [`State`]: what the model holds of a call |
//! | `legal` | what can happen next: to a driver that keeps its contract, and on the wire |
//! | `mutation` | [`Mutation`]: what the model can get wrong on purpose |
//! | `subject` | [`Subject`]: the real call, behind the same inputs |
//! | `wire` | the bytes that stand for each input |
//! | `cases` | [`cases()`]: under which settings calls are checked |
//! | `search` | [`Search`]: every sequence of one case, and the shortest one that differs |
//! | `run` | all cases, on several threads |
//! | [`relay`] | the same of the relay's exchange |

#![forbid(unsafe_code)]
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a rule names the inputs and the states that it is about"
)]

mod cases;
mod legal;
mod model;
mod mutation;
pub mod relay;
mod run;
mod search;
mod state;
mod subject;
mod terms;
mod upload;
mod wire;

pub use cases::cases;
pub use model::Model;
pub use mutation::Mutation;
pub use run::{Totals, exhaust, shortest, walk};
pub use search::{Difference, Report, Search};
pub use state::State;
pub use subject::Subject;
pub use terms::{Case, Ended, Framing, Input, Mode, Outcome, Seen, Waiting};
