//! A small reference model of the relay's exchange, and every short sequence of events checked against it.
//!
//! As for a call: the model says from rules RLY-1 to 7 alone what is seen of an app's connection, and the
//! search drives the real exchange beside it, through every sequence of up to `k` events.
//!
//! | file | what is in it |
//! |---|---|
//! | `terms` | [`Input`] and [`Seen`]: what can happen to an exchange, what can be seen of it, and the cases |
//! | `model` | what the rules say |
//! | `state` | what the model holds of a connection and its exchange |
//! | `legal` | what can happen next |
//! | `subject` | the real exchange, behind the same inputs |
//! | `search` | every sequence of each case, and the shortest one that differs |

mod legal;
mod model;
mod search;
mod state;
mod subject;
mod terms;

pub use search::{Difference, Report, exhaust, shortest, walk};
pub use terms::{Act, Case, Framing, Input, Seen, Takes, Told, Waits, cases};
