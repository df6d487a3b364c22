//! Scenarios as data: what a server does and when, what the caller does, how the call must end.
//!
//! One file runs under the simulator, under every driver, and as `steadfast mock --script FILE`, a
//! real server for anyone's client. So a file holds no code and knows no provider.
//!
//! | where | what |
//! |---|---|
//! | [`scenario`] | a scenario: the call, the script, the ends expected |
//! | [`script`] | the server's side alone: connections and their steps |
//! | [`mod@format`] | the file format, key by key |
//! | [`observed`] | what a run showed, and where it differs from what was expected |
//! | `parse` | text to validated values |
//! | `embedded` | the files of `scenarios`, compiled in |

mod embedded;
pub mod format;
pub mod observed;
mod parse;
pub mod scenario;
pub mod script;

pub use embedded::{all, find, nearest, sources};
pub use observed::{Mismatch, Observed, Tally};
pub use parse::{ParseError, Problem};
pub use scenario::{Billing, Call, Cancel, Consumer, Dialect, End, Expect, Phase, Scenario, Seen, Shape};
pub use script::{Connection, Listen, Read, Script, Server, Step};

#[cfg(test)]
mod tests;
