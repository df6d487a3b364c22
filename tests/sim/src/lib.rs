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
//! # Random runs
//!
//! [`random`] draws calls, clients and servers from a seed, and checks every step against what must
//! always hold: each wait ends, nothing is tried again once something was delivered, no pause is slept
//! past the deadline, and fifteen more ([`random::Invariant`]).
//!
//! ```
//! use steadfast_sim::random::{Choices, Plan, Simulator};
//!
//! let mut simulator = Simulator::new();
//! for seed in 1..=200 {
//!     if let Err(violation) = simulator.run(seed) {
//!         panic!("seed {seed}: {violation}\n{:?}", Simulator::explain(seed));
//!     }
//! }
//! assert_eq!(simulator.totals().runs, 200);
//!
//! // The same servers and clients, with the bounds and retries of your own
//! let mut plan = Plan::draw(&mut Choices::from_seed(7));
//! plan.config = plan.config.with(&steadfast::config::Overrides::new().total_deadline(30.0))?;
//! assert_eq!(simulator.play(&plan), Ok(()));
//! # Ok::<(), steadfast::config::ConfigError>(())
//! ```
//!
//! A plan is plain data, so it can be made by hand as well: here a server that is overloaded and asks
//! for two seconds, twice, and then answers.
//!
//! ```
//! use std::time::Duration;
//! use steadfast::config::RequestConfig;
//! use steadfast::dialect::Dialect;
//! use steadfast_sim::random::{CallPlan, Exchange, Head, Plan, RetryAfter, Simulator};
//!
//! let busy = Exchange {
//!     head: Head { retry_after: RetryAfter::Seconds(2), ..Head::new(429) },
//!     ..Exchange::new()
//! };
//! let plan = Plan {
//!     config: RequestConfig::default(),
//!     seed: 1,
//!     unix_seconds: 1_700_000_000,
//!     budget: None,
//!     calls: vec![CallPlan::stream(Dialect::OpenAiChat)],
//!     exchanges: vec![busy.clone(), busy, Exchange::new()],
//! };
//! let played = Simulator::record(&plan);
//! assert_eq!(played.violation, None);
//! let outcome = &played.outcomes[0];
//! assert!(outcome.result.is_ok() && outcome.timeline.attempt_count() == 3);
//! assert!(outcome.timeline.elapsed() >= Duration::from_secs(4), "{}", played.log());
//! ```
//!
//! `steadfast sim` does the same from the command line.
//!
//! | file | what is in it |
//! |---|---|
//! | `play` | [`Sim`]: the driver in virtual time |
//! | [`random`] | random runs, and the invariants |
//! | `replay` | [`replay()`]: a call against an answer that is there already |
//! | `server` | the scripted server, step by step |
//! | `traces` | [`Traces`]: calls recorded in memory, and whether each replays |
//! | `observed` | what came of a call, in the terms of scenarios |

mod observed;
mod play;
pub mod random;
pub mod relay;
mod replay;
mod server;
mod traces;

pub use observed::{Played, observed, request, request_to};
pub use play::{MAX_EVENTS, Sim, Split};
pub use replay::{Arrival, Endless, Source, replay};
pub use traces::Traces;
