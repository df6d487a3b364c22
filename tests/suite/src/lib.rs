//! Every scenario against any driver: whether each call ends as its file says.
//!
//! Whoever writes a driver of their own, for a runtime that has none yet, implements [`Driver`], some
//! thirty lines that make calls, and has it measured by what all other drivers are measured by:
//!
//! ```
//! use steadfast_scenario::find;
//! use steadfast_suite::{Driver, Ended, Part, Simulated, play};
//!
//! /// Gives up before it has begun
//! struct Useless;
//!
//! impl Driver for Useless {
//!     fn name(&self) -> &'static str {
//!         "useless"
//!     }
//!
//!     fn play(&self, _: &Part<'_>) -> Result<Vec<Ended>, String> {
//!         Err("no".to_owned())
//!     }
//! }
//!
//! let scenario = find("unary-happy").expect("a scenario of that name");
//! assert!(!play(scenario, &Useless).agrees());
//! assert!(play(scenario, &Simulated).agrees());
//! ```
//!
//! | file | what is in it |
//! |---|---|
//! | `driver` | [`Driver`]: what a driver has to do in a scenario |
//! | `caller` | [`Caller`]: what the caller in a scenario does with what it takes |
//! | `play` | [`play()`]: one scenario, and where it went otherwise than its file says |
//! | `all` | [`play_all`]: many of them, at once |
//! | `simulated` | [`Simulated`]: the driver under virtual time |

mod all;
mod caller;
mod driver;
mod play;
mod simulated;

pub use all::{AT_ONCE, play_all};
pub use caller::{Caller, Then};
pub use driver::{Driver, Ended, Part};
pub use play::{Difference, LATE, MOST_PLAYS, Played, SEEN_WITHIN, play};
pub use simulated::Simulated;
