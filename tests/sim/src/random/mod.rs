//! Random runs: plans drawn from a seed, played in virtual time, and checked at every step.
//!
//! | file | what is in it |
//! |---|---|
//! | `choices` | [`Choices`]: the numbers that a plan is drawn from |
//! | `plan`, `draw` | [`Plan`]: calls, and what their servers do; how it is drawn |
//! | `rare` | plans of something rare, so that few runs meet every row of the coverage |
//! | `wire`, `speech`, `coding` | what a server sends, and what each byte of it makes known |
//! | `spoken` | what it has said of its answer by then |
//! | `server` | the servers of a run, and the connections that calls leave |
//! | `truth` | what the rules make of all that |
//! | `world`, `arrive`, `driver` | the driver and the consumer, and what they are told |
//! | `requests` | what they ask for |
//! | `steps` | the steps of a call, each checked before the next one is taken |
//! | `supply` | bodies that are read as they go out, and header fields that are made |
//! | `budget` | retries that a shared budget allows, or refuses |
//! | `together`, `late` | calls at the same time; what is told too late |
//! | `invariants` | [`Invariant`]: what holds of every call |
//! | `watch`, `waits`, `memory`, `settled` | the checks: of commands and items, of waits, of what is held, of the outcome |
//! | `same_steps` | [`Invariant::SameSteps`]: each call has a twin, which is told the same |
//! | `coverage`, `met` | [`Coverage`]: which faults and transitions were met |
//! | `log` | the traces of the calls, and [`Digest`]: a number for all of them |
//! | `runner` | [`Simulator`]: many runs, and one of them recorded |
//! | `shrink` | [`shrink()`]: shorter tapes that fail as well |
//! | `strategy` | `plans()`, `tapes()`: the same for proptest, with the feature `proptest` |

mod arrive;
mod budget;
mod choices;
mod coding;
mod coverage;
mod draw;
mod driver;
mod invariants;
mod late;
mod log;
mod memory;
mod met;
mod plan;
mod rare;
mod requests;
mod runner;
mod same_steps;
mod server;
mod settled;
mod shrink;
mod speech;
mod spoken;
mod steps;
#[cfg(feature = "proptest")]
mod strategy;
mod supply;
mod together;
mod truth;
mod waits;
mod watch;
mod wire;
mod world;

pub use choices::Choices;
pub use coverage::{Coverage, Fault};
pub use draw::MAX_CALLS;
pub use invariants::{Invariant, Violation};
pub use log::Digest;
pub use plan::{
    CallPlan, Cancel, Client, Connect, ContentType, Cut, End, Exchange, Framing, Head, MadeFields, Piece,
    Plan, Problem, RetryAfter, Streamed,
};
pub use runner::{Failure, Played, Simulator, Totals};
pub use shrink::{MAX_TRIES, shrink};
#[cfg(feature = "proptest")]
pub use strategy::{MAX_TAPE, plans, tapes};
pub use world::MAX_EVENTS_PER_CALL;
