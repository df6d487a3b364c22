//! One configuration: every bound a call can have, and the ways to change it.
//!
//! | file | subject |
//! |---|---|
//! | `table` | the table of fields, and what follows from it: [`Field`], [`RequestConfig`], [`Overrides`] |
//! | `value` | how a time, a count or a size is written and checked: [`Seconds`] |
//! | `error` | [`ConfigError`], and the nearest name for one that is not known |
//! | `map` | [`Overrides`] from the maps of TOML and JSON |
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

mod error;
mod map;
mod table;
#[cfg(test)]
mod tests;
mod value;

pub use error::ConfigError;
pub use table::{Field, Overrides, RequestConfig};
pub use value::Seconds;
