//! What a configuration of the relay refuses, by the key that it concerns.

use std::net::SocketAddr;

use steadfast::relay::RouteError;

/// A configuration that cannot be; the text names the key, and the fix
///
/// To follow a file's name, as in `{path}:{error}` where it has a line. No text has a value in it that may be
/// secret.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{}{reason}", line.map(|line| format!("{line}: ")).unwrap_or_default())]
pub struct ConfigError {
    /// The line of the file, from 1; none where no line is to blame
    pub line: Option<usize>,
    /// What is wrong
    pub reason: ConfigErrorReason,
}

/// What is wrong in a configuration of the relay
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ConfigErrorReason {
    /// The file is not TOML
    #[error("{0}")]
    Syntax(String),
    /// No setting has this name
    #[error("there is no setting {key}; the nearest is {nearest}")]
    UnknownKey {
        /// The name as it was given, with its table
        key: String,
        /// The setting with the nearest name, with its table
        nearest: String,
    },
    /// A setting cannot have this value
    #[error("{key} cannot be {value}: it takes {takes}")]
    Value {
        /// The setting, with its table
        key: String,
        /// The value as it was given
        value: String,
        /// What it takes
        takes: &'static str,
    },
    /// A setting has a value of another kind, or one that may be secret
    #[error("{key} takes {takes}")]
    Takes {
        /// The setting, with its table
        key: String,
        /// What it takes
        takes: &'static str,
    },
    /// A table is not written as one, or a setting as a table
    #[error("{0} is a table: write it as [{0}]")]
    NotATable(String),
    /// A route that cannot be
    #[error(transparent)]
    Route(#[from] RouteError),
    /// A name that says nothing about where the provider is
    #[error("upstream {0} needs a URL: only openai, anthropic and gemini are known by name")]
    NoUrl(String),
    /// The key of a provider is to come from the environment, and is not there
    #[error("upstream {upstream}: the environment has no {variable}: set it, or leave key_env out")]
    NoProviderKey {
        /// The route
        upstream: String,
        /// The variable
        variable: String,
    },
    /// A key of a provider that no header can carry
    #[error("upstream {upstream}: {variable} holds a character that a header cannot carry")]
    ProviderKey {
        /// The route
        upstream: String,
        /// The variable
        variable: String,
    },
    /// Two labels have one key
    #[error("keys.{0} and keys.{1} are one key: give each label a key of its own")]
    SameKey(String, String),
    /// Calls are to be recorded, and nothing says where
    #[error("recording.database is missing: name a file, or postgres://user@host/name")]
    NoDatabase,
    /// Where calls are to be recorded is no database
    #[error("recording.database: {0}")]
    Database(String),
    /// TLS has a certificate without a key, or a key without a certificate
    #[error("tls.{0} is missing: name a PEM file")]
    NoTlsFile(&'static str),
    /// Nothing is configured to relay to
    #[error("there is no upstream: add one, such as [upstream.openai]")]
    NoUpstream,
    /// Anyone who reaches the address could use the relay
    #[error(
        "listen = {0} lets in whoever reaches that address: add keys under [keys], listen on 127.0.0.1, or say \
         without_keys = true"
    )]
    Open(SocketAddr),
}

impl ConfigError {
    pub(super) fn at(line: usize, reason: impl Into<ConfigErrorReason>) -> Self {
        Self { line: Some(line), reason: reason.into() }
    }
}

impl<R: Into<ConfigErrorReason>> From<R> for ConfigError {
    fn from(reason: R) -> Self {
        Self { line: None, reason: reason.into() }
    }
}
