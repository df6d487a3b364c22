//! Calls under virtual time, against scripted servers in memory.
//!
//! The clock jumps to the next thing that happens and nowhere else, so a call of an hour is over at
//! once, its times are exact, and the same inputs give the same run. The servers are those of
//! [`steadfast_scenario`]: the same file plays here, on real sockets, and as a real server for
//! anybody's client.
//!
//! ```
//! use std::time::Duration;
//! use steadfast::config::Overrides;
//! use steadfast_scenario::find;
//! use steadfast_sim::{Sim, request};
//!
//! let scenario = find("stream-mute-after-delta").expect("a scenario of that name");
//! let mut sim = Sim::new(&scenario.script);
//! let played = sim.play(request(scenario), &scenario.call);
//! assert!(scenario.check(0, &played.observed(), Duration::ZERO).is_empty());
//! ```
//!
//! | file | what is in it |
//! |---|---|
//! | `play` | [`Sim`]: the driver in virtual time |
//! | `replay` | [`replay()`]: a call against an answer that is there already |
//! | `server` | the scripted server, step by step |
//! | `traces` | [`Traces`]: calls recorded in memory, and whether each replays |
//! | `observed` | what came of a call, in the terms of scenarios |

mod observed;
mod play;
mod replay;
mod server;
mod traces;

pub use observed::{Played, observed, request, request_to};
pub use play::{MAX_EVENTS, Sim, Split};
pub use replay::{Arrival, Endless, Source, replay};
pub use traces::Traces;
