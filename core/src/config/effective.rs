//! What is in force, and which channel each value came from.

use std::fmt;

use super::process_default::process_default;
use super::{ConfigError, Field, Overrides, RequestConfig, Scope};

/// A configuration in force, with the channel that each value came from (rule CFG-2)
///
/// A copy, which nothing changes afterwards: a call makes one when it is made, and keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EffectiveConfig {
    config: RequestConfig,
    sources: [Source; Field::ALL.len()],
}

/// The channel that a value came from, the first of them before the others
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// The call itself, or the client that made it
    Call,
    /// The innermost scope that gives the field
    Scope,
    /// The process default
    Default(Origin),
    /// The table of rule CFG
    BuiltIn,
}

/// Where a value of the process default came from
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The program's own code
    Program,
    /// A variable of the environment
    Environment,
    /// A file
    File,
}

impl EffectiveConfig {
    pub(super) const BUILT_IN: Self =
        Self { config: RequestConfig::BUILT_IN, sources: [Source::BuiltIn; Field::ALL.len()] };

    /// A process default that is this configuration, whole
    pub(super) const fn program(config: RequestConfig) -> Self {
        Self { config, sources: [Source::Default(Origin::Program); Field::ALL.len()] }
    }

    /// The configuration
    pub const fn config(&self) -> RequestConfig {
        self.config
    }

    /// The channel that the value of `field` came from
    pub const fn source(&self, field: Field) -> Source {
        self.sources[field as usize]
    }

    /// What is in force for a call that has these overrides
    ///
    /// A whole configuration for the call is `&config.into()`.
    ///
    /// Errors: [`ConfigError::OutOfRange`], as in [`RequestConfig::with`].
    pub fn with(&self, overrides: &Overrides) -> Result<Self, ConfigError> {
        self.merge(overrides, Source::Call)
    }

    /// This with `overrides`, which came from `source`, merged over it
    pub(super) fn merge(&self, overrides: &Overrides, source: Source) -> Result<Self, ConfigError> {
        let mut merged = Self { config: self.config.with(overrides)?, sources: self.sources };
        for field in Field::ALL.into_iter().filter(|field| overrides.gives(*field)) {
            merged.sources[field as usize] = source;
        }
        Ok(merged)
    }
}

impl RequestConfig {
    /// What is in force here and now for a call that has no overrides of its own (rule CFG-2)
    ///
    /// The innermost scope around the caller; where there is none, the process default.
    pub fn current() -> EffectiveConfig {
        Scope::current().effective().unwrap_or_else(process_default)
    }
}

/// `call`, `scope`, `built-in`, or the origin of the default
impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call => f.write_str("call"),
            Self::Scope => f.write_str("scope"),
            Self::Default(origin) => origin.fmt(f),
            Self::BuiltIn => f.write_str("built-in"),
        }
    }
}

/// `default`, `environment` or `file`
impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Program => "default",
            Self::Environment => "environment",
            Self::File => "file",
        })
    }
}
