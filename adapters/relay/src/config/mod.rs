//! The relay's configuration: a file, what is said over it, and what that makes.
//!
//! ```toml
//! listen = "127.0.0.1:7071"      # where it listens
//! max_connections = 1024         # connections to providers in use at once, or inf
//! max_app_connections = 2048     # connections of apps open at once, or inf; twice max_connections
//! drain = 30                     # seconds for what runs when it is told to stop, or inf
//! share_port = false             # whether other processes may listen there too
//! without_keys = false           # whether it may listen on other addresses than this machine's own without keys
//!
//! [limits]                       # of every upstream, in seconds
//! first_byte = 120
//!
//! [retries]
//! overloads = 1
//!
//! [upstream.openai]              # /openai/v1/… goes to /v1/… there
//! url = "https://api.openai.com"
//! key_env = "OPENAI_API_KEY"     # takes the place of the app's own key
//!
//! [upstream.openai.limits]       # of this one alone
//! total = "inf"
//!
//! [upstream.local]
//! url = "http://127.0.0.1:8080"
//! shape = "openai"               # whose errors the relay's own look like: openai, anthropic or gemini
//!
//! [recording]                    # without it, nothing is recorded
//! database = "calls.db"           # or postgres://user@host/name, which several relays may share
//! max_age = 2592000              # seconds that a record is kept
//!
//! [tls]                          # without it, apps speak plain text; else HTTPS alone
//! certificate = "relay.pem"      # its own certificate first, then those that sign it
//! key = "relay-key.pem"
//!
//! [keys]                         # who may use it, by hashes of their keys
//! laptop = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
//! ```
//!
//! | file | what is in it |
//! |---|---|
//! | `mod.rs` | [`Config`], and the routes that it makes |
//! | `file.rs` | the file, table by table |
//! | `limit.rs` | [`Limit`]: the limits that can be set for all routes or for one |
//! | `error.rs` | [`ConfigError`] |

mod error;
mod file;
mod limit;
#[cfg(test)]
mod tests;

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, HeaderValue, header};
use steadfast::relay::{Route, Routes, Shape};
use steadfast::time::Bound;

pub use self::error::{ConfigError, ConfigErrorReason};
pub use self::limit::{Limit, RouteLimits};
use crate::keys::Keys;
use crate::pages::OPEN_PATHS;
use crate::record::{Database, RecordSettings};

/// Paths that are the relay's own, so that no upstream can have their names
pub const OWN_PATHS: [&str; 4] = ["/healthz", "/readyz", "/metrics", "/_steadfast"];

/// The port that it listens on by default
pub const DEFAULT_PORT: u16 = 7071;

/// How many connections to providers may be in use at once, by default
pub const DEFAULT_MAX_CONNECTIONS: usize = 1024;

/// How long what runs may go on when the relay is told to stop, by default: 30 s
pub const DEFAULT_DRAIN: Bound = Bound::Limited(Duration::from_secs(30));

/// The configuration of a relay
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Where it listens; the loopback interface, port 7071
    pub listen: Setting<SocketAddr>,
    /// How many connections to providers may be in use at once; 1024
    pub max_connections: Setting<Option<usize>>,
    /// How many connections of apps may be open at once, idle ones included; twice as many as may be in use
    /// to providers
    pub max_app_connections: Setting<Option<usize>>,
    /// How long what runs may go on when it is told to stop; 30 s
    pub drain: Setting<Bound>,
    /// Whether other processes may listen on the same port; no
    pub share_port: Setting<bool>,
    /// Whether it may listen on other addresses than loopback ones without keys; no
    pub without_keys: Setting<bool>,
    /// The keys that let apps in; without any, whoever reaches it is let in
    pub keys: Keys,
    /// The providers, in the order in which they were named
    pub upstreams: Vec<Upstream>,
    /// Where calls are recorded, and how much of them; nowhere
    pub recording: Option<Recording>,
    /// The files of the certificate that apps are shown; none, and apps speak plain text
    pub tls: Option<AppTls>,
    /// What holds for every upstream
    limits: RouteLimits,
}

/// The files of a certificate and of its private key, in PEM
#[derive(Clone, Debug, PartialEq)]
pub struct AppTls {
    /// The certificate, and behind it those that sign it
    pub certificate: Setting<PathBuf>,
    /// Its private key
    pub key: Setting<PathBuf>,
}

/// Where calls are recorded, and how much of them
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// The database
    pub database: Setting<Database>,
    /// How much is recorded, and for how long
    pub settings: RecordSettings,
}

/// A value, and where it comes from
#[derive(Clone, Debug, PartialEq)]
pub struct Setting<T> {
    /// The value
    pub value: T,
    /// Where it comes from
    pub source: Source,
}

/// Where a value comes from
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// No one said otherwise
    BuiltIn,
    /// A line of the file
    File {
        /// The table, empty where it is none
        table: String,
        /// The line, from 1
        line: usize,
    },
    /// An option of the command line
    Option(&'static str),
}

/// A provider, as it is configured
#[derive(Clone, Debug, PartialEq)]
pub struct Upstream {
    /// The first segment of its paths
    pub name: String,
    /// Where it is
    pub url: Setting<String>,
    /// Whose error shape the relay's own errors have
    pub shape: Shape,
    /// The environment variable that holds the key to use in place of the app's
    pub key_env: Option<String>,
    /// The limits in force, and where each comes from
    pub limits: RouteLimits,
    /// The line of the file that it begins in
    line: Option<usize>,
}

/// What the relay listens by unless it is told otherwise
impl Default for Config {
    fn default() -> Self {
        Self {
            listen: Setting::built_in(SocketAddr::from((Ipv4Addr::LOCALHOST, DEFAULT_PORT))),
            max_connections: Setting::built_in(Some(DEFAULT_MAX_CONNECTIONS)),
            max_app_connections: Setting::built_in(twice(Some(DEFAULT_MAX_CONNECTIONS))),
            drain: Setting::built_in(DEFAULT_DRAIN),
            share_port: Setting::built_in(false),
            without_keys: Setting::built_in(false),
            keys: Keys::default(),
            upstreams: Vec::new(),
            recording: None,
            tls: None,
            limits: RouteLimits::default(),
        }
    }
}

impl Config {
    /// What a file says
    ///
    /// Errors: the first line that is wrong.
    pub fn from_toml(text: &str) -> Result<Self, ConfigError> {
        file::read(text)
    }

    /// Adds an upstream, or gives the one of that name another URL, as `option` of the command line says it:
    /// `NAME=URL`, or one of the names known by themselves, openai, anthropic and gemini
    ///
    /// Errors: a name without a URL that is not known.
    pub fn upstream(&mut self, text: &str, option: &'static str) -> Result<(), ConfigError> {
        let (name, url) = match text.split_once('=') {
            Some((name, url)) => (name.trim(), Some(url.trim())),
            None => (text.trim(), None),
        };
        let no_url = || ConfigErrorReason::NoUrl(name.to_owned());
        let url = url.or_else(|| known_url(name)).ok_or_else(no_url)?;
        let url = Setting { value: url.to_owned(), source: Source::Option(option) };
        match self.upstreams.iter_mut().find(|upstream| upstream.name == name) {
            Some(upstream) => upstream.url = url,
            None => self.upstreams.push(Upstream {
                name: name.to_owned(),
                url,
                shape: shape_of(name),
                key_env: None,
                limits: self.limits.clone(),
                line: None,
            }),
        }
        Ok(())
    }

    /// The routes that it makes, with the keys of providers that `environment` has
    ///
    /// Errors: what cannot be put in force, such as a URL that is none, a key that is not there, or an address
    /// that lets in whoever reaches it.
    pub fn routes(&self, environment: impl Fn(&str) -> Option<String>) -> Result<Routes, ConfigError> {
        if self.upstreams.is_empty() {
            return Err(ConfigErrorReason::NoUpstream.into());
        }
        let is_open = self.keys.is_empty() && !self.without_keys.value;
        if is_open && !self.listen.value.ip().to_canonical().is_loopback() {
            let line = self.listen.source.line();
            return Err(ConfigError { line, reason: ConfigErrorReason::Open(self.listen.value) });
        }
        let routes = self.upstreams.iter().map(|upstream| {
            let at = |reason| ConfigError { line: upstream.url.source.line().or(upstream.line), reason };
            upstream.route(&environment).map_err(at)
        });
        let routes = Routes::new(routes.collect::<Result<_, _>>()?, &OWN_PATHS)?.opened(&OPEN_PATHS);
        Ok(if self.keys.is_empty() { routes } else { routes.gated(Arc::new(self.keys.clone())) })
    }
}

impl Upstream {
    fn route(&self, environment: impl Fn(&str) -> Option<String>) -> Result<Route, ConfigErrorReason> {
        let mut route = Route::new(&self.name, &self.url.value, self.shape)?;
        self.limits.put_in_force(&mut route);
        if let Some(variable) = &self.key_env {
            let names = || (self.name.clone(), variable.clone());
            let key = environment(variable).filter(|key| !key.trim().is_empty()).ok_or_else(|| {
                let (upstream, variable) = names();
                ConfigErrorReason::NoProviderKey { upstream, variable }
            })?;
            let credential = credential(self.shape, key.trim()).ok_or_else(|| {
                let (upstream, variable) = names();
                ConfigErrorReason::ProviderKey { upstream, variable }
            })?;
            route.key = Some(credential);
        }
        Ok(route)
    }
}

/// How many connections of apps may be open, where so many calls may run at once: theirs, and as many idle
/// ones
pub(crate) fn twice(max_connections: Option<usize>) -> Option<usize> {
    max_connections.map(|most| most.saturating_mul(2))
}

impl<T> Setting<T> {
    const fn built_in(value: T) -> Self {
        Self { value, source: Source::BuiltIn }
    }
}

impl Source {
    /// The line of the file, where there is one
    pub fn line(&self) -> Option<usize> {
        match self {
            Self::File { line, .. } => Some(*line),
            Self::BuiltIn | Self::Option(_) => None,
        }
    }
}

/// `built-in`, the option, or the table and the line of the file
impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => f.write_str("built-in"),
            Self::Option(option) => f.write_str(option),
            Self::File { table, line } if table.is_empty() => write!(f, "line {line}"),
            Self::File { table, line } => write!(f, "[{table}], line {line}"),
        }
    }
}

/// Where the providers are that are known by name
fn known_url(name: &str) -> Option<&'static str> {
    match name {
        "openai" => Some("https://api.openai.com"),
        "anthropic" => Some("https://api.anthropic.com"),
        "gemini" => Some("https://generativelanguage.googleapis.com"),
        _ => None,
    }
}

/// The shape of a provider of this name, unless it says otherwise
fn shape_of(name: &str) -> Shape {
    shape_named(name).unwrap_or(Shape::OpenAi)
}

fn shape_named(name: &str) -> Option<Shape> {
    match name {
        "openai" => Some(Shape::OpenAi),
        "anthropic" => Some(Shape::Anthropic),
        "gemini" => Some(Shape::Google),
        _ => None,
    }
}

/// The field that carries a key to a provider of this shape; `None` where no field can
fn credential(shape: Shape, key: &str) -> Option<(HeaderName, HeaderValue)> {
    let (name, value) = match shape {
        Shape::OpenAi => (header::AUTHORIZATION, format!("Bearer {key}")),
        Shape::Anthropic => (HeaderName::from_static("x-api-key"), key.to_owned()),
        Shape::Google => (HeaderName::from_static("x-goog-api-key"), key.to_owned()),
    };
    let mut value = HeaderValue::from_str(&value).ok()?;
    value.set_sensitive(true);
    Some((name, value))
}
