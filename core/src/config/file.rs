//! Overrides from a settings file.

use toml::de::{DeTable, DeValue};

use super::{ConfigError, Overrides};

/// A settings file that cannot be used; to follow the file's name, as in `{path}:{error}`
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}: {reason}")]
pub struct FileError {
    /// The line, from 1
    pub line: usize,
    /// What is wrong there
    pub reason: FileErrorReason,
}

/// What is wrong in a settings file
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileErrorReason {
    /// It is not TOML
    #[error("{0}")]
    Syntax(String),
    /// A name that no field has, or a value that its field cannot have
    #[error(transparent)]
    Setting(#[from] ConfigError),
    /// A value that is neither a number nor a text
    #[error("{0} takes a number, or \"inf\"")]
    NotAScalar(&'static str),
}

impl Overrides {
    /// What a settings file gives: TOML, field names to values (rule CFG-6)
    ///
    /// Values are numbers, or texts as [`Overrides::set`] takes them; `inf` may stand in quotes or
    /// without.
    ///
    /// ```
    /// use steadfast::config::Overrides;
    ///
    /// let file = "request_timeout = 30\nstream_idle_timeout = 7.5\ntotal_deadline = \"inf\"\n";
    /// let expected =
    ///     Overrides::new().request_timeout(30.0).stream_idle_timeout(7.5).total_deadline(f64::INFINITY);
    /// assert_eq!(Overrides::from_toml(file)?, expected);
    ///
    /// let refused = Overrides::from_toml("max_attempts = 2\nrequest_timout = 30\n").unwrap_err();
    /// assert_eq!(
    ///     refused.to_string(),
    ///     "2: there is no setting request_timout; the nearest is request_timeout"
    /// );
    /// # Ok::<(), steadfast::config::FileError>(())
    /// ```
    ///
    /// Errors: [`FileError`], of the first line that is wrong.
    pub fn from_toml(text: &str) -> Result<Self, FileError> {
        let at = |offset: usize, reason| {
            let line = text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1;
            FileError { line, reason }
        };
        let table = DeTable::parse(text).map_err(|error| {
            let offset = error.span().map_or(0, |span| span.start);
            at(offset, FileErrorReason::Syntax(error.message().to_owned()))
        })?;
        let mut settings: Vec<_> = table.get_ref().iter().collect();
        settings.sort_by_key(|(name, _)| name.span().start);
        let mut overrides = Self::new();
        for (name, value) in settings {
            set(&mut overrides, name.get_ref(), value.get_ref())
                .map_err(|reason| at(name.span().start, reason))?;
        }
        Ok(overrides)
    }
}

fn set(overrides: &mut Overrides, name: &str, value: &DeValue<'_>) -> Result<(), FileErrorReason> {
    let field = super::Field::named(name)?;
    let text = match value {
        DeValue::String(text) => text.clone().into_owned(),
        // One too large for any field is refused by the field, as it was written.
        DeValue::Integer(number) => u128::from_str_radix(number.as_str(), number.radix())
            .map_or_else(|_| number.to_string(), |number| number.to_string()),
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(_) | DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => {
            return Err(FileErrorReason::NotAScalar(field.name()));
        }
    };
    Ok(overrides.set(name, &text)?)
}
