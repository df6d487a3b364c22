//! What makes a command line, or the environment, unusable.

use steadfast::config::ConfigError;

use crate::base_url::UrlError;

/// Why the program cannot begin; no message repeats a value that may be secret
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UsageError {
    #[error("--config takes KEY=VALUE")]
    NotASetting,
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("--base-url {0}")]
    BaseUrl(#[from] UrlError),
    #[error("{provider} needs a key: set {keys}, or name a server without one by --base-url")]
    NoKey { provider: &'static str, keys: String },
    #[error("{0} holds a character that a header cannot carry")]
    UnusableKey(&'static str),
}
