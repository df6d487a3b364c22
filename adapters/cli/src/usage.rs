//! What makes a command line, the environment, or a file, unusable.

use steadfast::config::{ConfigError, EnvironmentError, FileError};
use steadfast_relay::{ConfigError as RelayConfigError, TlsServerConfigError};
use steadfast_scenario::ParseError;
use steadfast_tokio::RequestError;

/// Why the program cannot begin; no message repeats a value that may be secret
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum UsageError {
    #[error("{0} takes KEY=VALUE")]
    NotASetting(&'static str),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    #[error("{path}:{error}")]
    ConfigFile { path: String, error: FileError },
    #[error("--base-url has to begin with http:// or https://")]
    Scheme,
    #[error("--base-url cannot hold a query or a fragment: it is what the endpoints' paths are added to")]
    Query,
    #[error("--base-url: {0}")]
    BaseUrl(&'static str),
    #[error("--database: {0}")]
    Calls(String),
    #[error("there is no call {id}: see `steadfast calls`")]
    NoCall { id: String },
    #[error("call {id} has no trace: {why}")]
    NoTrace { id: String, why: String },
    #[error(transparent)]
    Request(RequestError),
    #[error("{provider} needs a key: set {keys}, or name a server without one by --base-url")]
    NoKey { provider: &'static str, keys: String },
    #[error("nobody to measure: set one of {keys}, or name a server by --base-url")]
    NothingToMeasure { keys: String },
    #[error("there is no <PROMPT>: give it as an argument, or on stdin")]
    NoPrompt,
    #[error("{0} holds a character that a header cannot carry")]
    UnusableKey(&'static str),
    #[error("{}{error}", of_file(path.as_deref(), error))]
    Relay { path: Option<String>, error: RelayConfigError },
    #[error("{path}: {error}")]
    AppTls { path: String, error: TlsServerConfigError },
    #[error(
        "there is no key on stdin: pipe one in, as in `openssl rand -hex 32 | tee key | steadfast serve --hash-key`"
    )]
    NoKeyToHash,
    #[error(
        "a key of fewer than {0} characters can be found from its hash: make one by `openssl rand -hex 32`"
    )]
    ShortKey(usize),
    #[error("{path}: {error}")]
    Unreadable { path: String, error: String },
    #[error("{path}: {error}")]
    Unwritable { path: String, error: String },
    #[error("{path}: {error}")]
    Script { path: String, error: ParseError },
    #[error(
        "with --end open and no bound in force the call would never end: make one of its settings finite"
    )]
    Endless,
    #[error("there is no scenario {name}; the nearest is {nearest}")]
    NoScenario { name: String, nearest: &'static str },
    #[cfg(feature = "planted-faults")]
    #[error("--plant all plays runs until each fault is found: it goes with neither --replay nor --tape")]
    EveryFaultOnOneRun,
}

/// The file's name, to stand before what is wrong in it
fn of_file(path: Option<&str>, error: &RelayConfigError) -> String {
    match (path, error.line) {
        (Some(path), Some(_)) => format!("{path}:"),
        (Some(path), None) => format!("{path}: "),
        (None, _) => String::new(),
    }
}
