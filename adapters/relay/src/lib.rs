//! A relay that bounds, safely retries and records LLM calls, whatever SDK makes them.
//!
//! Point an SDK's base URL at it: `http://localhost:7071/openai/v1` in the place of
//! `https://api.openai.com/v1`. What it decides is decided by [`steadfast::relay`]; this crate moves the
//! bytes, on tokio.
//!
//! | file | what is in it |
//! |---|---|
//! | `server` | [`Server`]: listens, accepts, drains |
//! | `serving` | one connection of an app, and the runtime of its exchanges |
//! | `app_socket` | an app's socket, which tells when the app has gone |
//! | `config` | [`Config`]: what a file and a command line say, and the routes that it makes |
//! | `keys` | [`Keys`]: who may use the relay |
//! | [`pages`] | what it shows of itself: health, metrics, and a page of its calls |
//! | `record` | [`Recorder`]: what went through, in a database |
//! | `shared` | what all connections share: routes, the client towards the providers, admission |

mod app_socket;
mod config;
mod keys;
pub mod pages;
pub mod record;
mod server;
mod serving;
mod shared;

pub use config::{
    AppTls, Config, ConfigError, ConfigErrorReason, DEFAULT_DRAIN, DEFAULT_MAX_CONNECTIONS, DEFAULT_PORT,
    Limit, OWN_PATHS, Recording, RouteLimits, Setting, Source, Upstream,
};
pub use keys::{KeyHash, Keys, NotAHash};
pub use record::Recorder;
pub use server::{MAX_REFUSALS, Server, ServerError};
pub use serving::HANDSHAKE_WITHIN;
pub use shared::{Observer, Pages, Relay, Seen};
/// The pure part
pub use steadfast::relay::{
    Code, Ending, Exchanged, Gate, Limits, Retries, Route, RouteError, RouteId, Routes, Served, Shape, Side,
    Tap, Timer,
};
/// TLS towards apps
pub use steadfast_tls::{TlsServerConfig, TlsServerConfigError};
