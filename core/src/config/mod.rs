//! One configuration: every bound a call can have, and the four channels that set it.
//!
//! | file | subject |
//! |---|---|
//! | `table` | the table of fields, and what follows from it: [`Field`], [`RequestConfig`], [`Overrides`] |
//! | `value` | how a time, a count or a size is written and checked: [`Seconds`] |
//! | `effective` | what is in force, and where it came from: [`EffectiveConfig`], [`Source`] |
//! | `scope` | overrides in force for a while: [`Scope`], [`Scoped`] |
//! | `process_default` | the default of the whole process |
//! | `environment` | [`Overrides`] from variables: [`EnvironmentError`] |
//! | `file` | [`Overrides`] from a settings file, by the feature `toml`: `FileError` |
//! | `map` | [`Overrides`] from the maps of JSON and whatever else serde reads |
//! | `error` | [`ConfigError`], and the nearest name for one that is not known |
//!
//! A [`RequestConfig`] is valid whoever made it: the only ways to one are its defaults and
//! [`RequestConfig::with`], which checks what it is given (rule CFG-1).
//!
//! ```
//! use std::time::Duration;
//! use steadfast::config::{Overrides, RequestConfig};
//! use steadfast::time::Bound;
//!
//! let overrides = Overrides::new()
//!     .request_timeout(30.0)
//!     .after_marker(Duration::from_millis(500))
//!     .stream_idle_timeout(Bound::Unbounded)
//!     .max_attempts(1);
//! let config = RequestConfig::default().with(&overrides)?;
//! assert_eq!(config.request_timeout(), Bound::Limited(Duration::from_secs(30)));
//!
//! let refused = config.with(&Overrides::new().connect_timeout(-1.0)).unwrap_err();
//! assert_eq!(
//!     refused.to_string(),
//!     "connect_timeout cannot be -1: it takes seconds over 0 and up to 1e9, or inf for no bound"
//! );
//! # Ok::<(), steadfast::config::ConfigError>(())
//! ```
//!
//! # The four channels
//!
//! Field by field, the first channel that gives a value wins (rule CFG-2):
//!
//! | channel | how it is set | what it reaches |
//! |---|---|---|
//! | the call | `RequestBuilder::overrides` and `config`, over those of the client, `Client::with_config` | that call |
//! | a scope | [`RequestConfig::scope`] for a future, [`RequestConfig::sync_scope`] for a closure | the calls made inside, also in tasks that the adapters' `spawn` starts there |
//! | the process default | [`RequestConfig::set_default`], [`RequestConfig::set_default_overrides`]; programs feed it from the environment ([`Overrides::from_environment`]) and a file (`Overrides::from_toml`) | every call outside of a scope |
//! | the built-ins | the table of rule CFG, which is [`RequestConfig::default`] | what nobody gives |
//!
//! A whole configuration gives every field, overrides those that were set and nothing about the
//! others. Each channel takes both: `config.into()` makes overrides of a whole configuration.
//! [`RequestConfig::current`] tells what is in force, and which channel each value came from.
//!
//! Everything is captured early, so that nothing changes under a call:
//!
//! | what | takes its configuration |
//! |---|---|
//! | a call | when it is made, `client.send(…)` or `client.stream(…)`, not when it is first polled (rule CFG-5) |
//! | a scope | when it is made, not when its future is first polled (rule CFG-3) |
//! | a spawned task | the scope around `spawn`, when it is spawned |
//!
//! ```
//! use std::task::{Context, Poll, Waker};
//! use steadfast::config::{Field, Origin, Overrides, RequestConfig, Source};
//!
//! // The program's start: the process default.
//! RequestConfig::set_default_overrides(&Overrides::new().max_attempts(5).request_timeout(60.0))?;
//!
//! // A part of the program that is in a hurry: a scope, here around a future.
//! let answer = async {
//!     let in_force = RequestConfig::current();
//!     assert_eq!(in_force.source(Field::RequestTimeout), Source::Scope);
//!     assert_eq!(in_force.source(Field::MaxAttempts), Source::Default(Origin::Program));
//!     assert_eq!(in_force.source(Field::ConnectTimeout), Source::BuiltIn);
//!
//!     // One call in it: overrides of its own.
//!     let of_call = in_force.with(&Overrides::new().max_attempts(1))?;
//!     assert_eq!(of_call.source(Field::MaxAttempts), Source::Call);
//!     assert_eq!(of_call.config().request_timeout(), in_force.config().request_timeout());
//!     Ok::<_, steadfast::config::ConfigError>(of_call.config())
//! };
//! let answer = RequestConfig::scope(&Overrides::new().request_timeout(5.0), answer)?;
//!
//! // Whatever the default is by now, the scope has what was in force when it was made.
//! RequestConfig::set_default(RequestConfig::default());
//! let mut answer = std::pin::pin!(answer);
//! let Poll::Ready(config) = answer.as_mut().poll(&mut Context::from_waker(Waker::noop())) else { panic!() };
//! assert_eq!(config?.get(Field::RequestTimeout), "5");
//! # Ok::<(), steadfast::config::ConfigError>(())
//! ```

mod effective;
mod environment;
mod error;
#[cfg(feature = "toml")]
mod file;
mod map;
mod process_default;
mod scope;
mod table;
#[cfg(test)]
mod tests;
mod value;

pub use effective::{EffectiveConfig, Origin, Source};
pub use environment::{CONFIG_FILE_VARIABLE, EnvironmentError};
pub use error::{ConfigError, nearest};
#[cfg(feature = "toml")]
pub use file::{FileError, FileErrorReason};
pub use scope::{Scope, Scoped};
pub use table::{Field, Overrides, RequestConfig};
pub use value::Seconds;
