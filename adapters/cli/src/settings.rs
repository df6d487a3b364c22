//! The settings in force: those of a file, over them those of the environment.
//!
//! What the command line says goes with the calls themselves, and so before both.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};

use steadfast::config::{CONFIG_FILE_VARIABLE, Origin, Overrides, RequestConfig};

use crate::input::read_all;
use crate::usage::UsageError;

/// The most bytes of a settings file, many times what all settings take: 1 MiB
const MAX_FILE_BYTES: usize = 1 << 20;

/// The settings file: the one given, else the one that the environment names
pub(crate) fn config_file(given: Option<&Path>) -> Option<PathBuf> {
    let named = || std::env::var_os(CONFIG_FILE_VARIABLE).filter(|name| !name.is_empty()).map(PathBuf::from);
    given.map(Path::to_owned).or_else(named)
}

/// Makes the settings of the file and of the environment the default of the process
pub(crate) fn take_effect(
    config_file: Option<&Path>,
    environment: impl Iterator<Item = (OsString, OsString)>,
) -> Result<(), UsageError> {
    let of_file = config_file.map_or(Ok(Overrides::new()), read)?;
    let of_environment = Overrides::from_environment(environment)?;
    RequestConfig::set_default_overrides_from(Origin::File, &of_file)?;
    RequestConfig::set_default_overrides_from(Origin::Environment, &of_environment)?;
    Ok(())
}

/// What a settings file says
///
/// Errors: it cannot be read, is too long, or is no UTF-8.
pub(crate) fn read_text(path: &Path) -> Result<String, UsageError> {
    String::from_utf8(read_bytes(path)?).map_err(|_| unreadable(path, "not UTF-8".to_owned()))
}

/// What is in a file
///
/// Errors: it cannot be read, or is too long.
pub(crate) fn read_bytes(path: &Path) -> Result<Vec<u8>, UsageError> {
    let bytes = File::open(path).and_then(|file| read_all(file, MAX_FILE_BYTES));
    bytes.map_err(|error| unreadable(path, error.to_string()))
}

fn unreadable(path: &Path, error: String) -> UsageError {
    UsageError::Unreadable { path: path.display().to_string(), error }
}

fn read(path: &Path) -> Result<Overrides, UsageError> {
    let text = read_text(path)?;
    let path = || path.display().to_string();
    Overrides::from_toml(&text).map_err(|error| UsageError::ConfigFile { path: path(), error })
}
