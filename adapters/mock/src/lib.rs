//! A scripted server on real sockets: plays a scenario step by step and records what it sees.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! let scenario = steadfast_scenario::find("unary-mute").expect("a scenario of that name");
//! let mock = steadfast_mock::Mock::start(&scenario.script, None)?;
//! println!("{}", mock.base_url());
//! let saw_it = mock.wait_for(Duration::from_secs(60), |recorded| recorded.requests.len() == 1);
//! println!("{saw_it:?}");
//! # std::io::Result::Ok(())
//! ```
//!
//! One thread per connection, blocking sockets, and nothing shared with the library's own HTTP and
//! event-stream code: a fault common to both would hide.
//!
//! | where | what |
//! |---|---|
//! | [`mock`] | the server: listening, accepting, shutting down |
//! | [`record`] | what it saw |
//! | `play` | the steps of one connection |
//! | `request` | requests as they come in |
//! | `wire` | a socket, plain or under TLS |
//! | `identity` | a certificate authority of its own |
//! | `state` | what all its threads share |

mod identity;
pub mod mock;
mod play;
pub mod record;
mod request;
mod state;
mod wire;

pub use mock::Mock;
pub use record::{Blocked, Close, Closed, ConnectionRecord, Recorded, RequestRecord, Sighting};
