//! Overrides from the environment.

use std::collections::BTreeMap;
use std::ffi::OsStr;

use super::error::nearest;
use super::{ConfigError, Field, Overrides};

/// What the names of all our variables begin with
const PREFIX: &str = "STEADFAST_";

/// The variable that tells the programs where their settings file is
pub const CONFIG_FILE_VARIABLE: &str = "STEADFAST_CONFIG_FILE";

/// Variables that are no settings, without the prefix and in lower case
///
/// The one list of them: a name that is missing here is an error wherever the environment is read.
const OTHERS: [&str; 1] = ["config_file"];

/// A variable of the environment that cannot be used; the text names it
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvironmentError {
    /// It begins as ours do, and is none of them; its value is not kept, for it may be secret
    #[error("there is no variable {name}; the nearest is {nearest}")]
    UnknownName {
        /// Its name
        name: String,
        /// The variable with the nearest name (rule CFG-6)
        nearest: String,
    },
    /// Its field cannot have that value (rule CFG-1)
    #[error("{name}: {source}")]
    Refused {
        /// Its name
        name: String,
        /// Why
        source: ConfigError,
    },
}

impl Field {
    /// The environment variable that gives the field, such as `STEADFAST_REQUEST_TIMEOUT`
    pub fn variable(self) -> String {
        variable(self.name())
    }
}

impl Overrides {
    /// What the variables of an environment give, each as [`Overrides::set`] takes it (rule CFG-6)
    ///
    /// There is a variable for every field, see [`Field::variable`]. An empty one is as good as
    /// none. All variables are to be handed in, since one whose name begins with `STEADFAST_` and
    /// is not known is an error.
    ///
    /// ```
    /// use steadfast::config::{Origin, Overrides, RequestConfig};
    ///
    /// let overrides = Overrides::from_environment(std::env::vars_os())?;
    /// RequestConfig::set_default_overrides_from(Origin::Environment, &overrides)?;
    ///
    /// let variables = [("STEADFAST_REQUEST_TIMEOUT", "30"), ("STEADFAST_TOTAL_DEADLINE", "inf")];
    /// let overrides = Overrides::from_environment(variables)?;
    /// assert_eq!(overrides, Overrides::new().request_timeout(30.0).total_deadline(f64::INFINITY));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Errors: [`EnvironmentError`], of the first name in alphabetical order.
    pub fn from_environment<N: AsRef<OsStr>, V: AsRef<OsStr>>(
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Self, EnvironmentError> {
        // An environment has no order, and the error must not depend on the one it comes in.
        let mut ours = BTreeMap::new();
        for (name, value) in variables {
            if let Some(name) = name.as_ref().to_string_lossy().strip_prefix(PREFIX) {
                ours.insert(name.to_owned(), value.as_ref().to_string_lossy().into_owned());
            }
        }
        let mut overrides = Self::new();
        for (name, value) in ours {
            let known = known().find(|known| known.to_ascii_uppercase() == name).ok_or_else(|| {
                EnvironmentError::UnknownName {
                    name: format!("{PREFIX}{name}"),
                    nearest: variable(nearest(&name, known())),
                }
            })?;
            if value.trim().is_empty() || OTHERS.contains(&known) {
                continue;
            }
            overrides
                .set(known, &value)
                .map_err(|source| EnvironmentError::Refused { name: variable(known), source })?;
        }
        Ok(overrides)
    }
}

fn known() -> impl Iterator<Item = &'static str> {
    Field::ALL.into_iter().map(Field::name).chain(OTHERS)
}

fn variable(name: &str) -> String {
    format!("{PREFIX}{}", name.to_ascii_uppercase())
}
