//! The default of the whole process, swapped atomically.

use std::sync::{PoisonError, RwLock};

use super::{ConfigError, EffectiveConfig, Origin, Overrides, RequestConfig, Source};

/// What is in force where there is no scope
///
/// Its lock is held for a copy or a merge, never while foreign code runs.
pub(super) static PROCESS_DEFAULT: RwLock<EffectiveConfig> = RwLock::new(EffectiveConfig::BUILT_IN);

impl RequestConfig {
    /// Puts a whole configuration in the place of the process default; returns the one before
    ///
    /// Calls under way and scopes that are made already keep what they have (rules CFG-3 to CFG-5).
    pub fn set_default(config: Self) -> Self {
        let mut default = PROCESS_DEFAULT.write().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *default, EffectiveConfig::program(config)).config()
    }

    /// Merges overrides over the process default, never over a scope; returns the default before
    ///
    /// No change of another thread comes between (rule CFG-4).
    ///
    /// Errors: [`ConfigError::OutOfRange`], as in [`RequestConfig::with`]; nothing is then changed.
    pub fn set_default_overrides(overrides: &Overrides) -> Result<Self, ConfigError> {
        Self::set_default_overrides_from(Origin::Program, overrides)
    }

    /// As [`RequestConfig::set_default_overrides`], for what a program read somewhere: [`Source`] tells where
    ///
    /// Errors: [`ConfigError::OutOfRange`]; nothing is then changed.
    pub fn set_default_overrides_from(origin: Origin, overrides: &Overrides) -> Result<Self, ConfigError> {
        let mut default = PROCESS_DEFAULT.write().unwrap_or_else(PoisonError::into_inner);
        let merged = default.merge(overrides, Source::Default(origin))?;
        Ok(std::mem::replace(&mut *default, merged).config())
    }
}

pub(super) fn process_default() -> EffectiveConfig {
    *PROCESS_DEFAULT.read().unwrap_or_else(PoisonError::into_inner)
}
