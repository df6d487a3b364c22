//! `steadfast config`: the settings in force, and where each came from.

use std::fmt::Write;
use std::path::Path;

use serde::{Serialize, Serializer};
use serde_json::Value;
use steadfast::config::{EffectiveConfig, Field, Origin, RequestConfig, Source};

use crate::args::ConfigArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{is_read, print, print_json};
use crate::usage::UsageError;

/// Runs the command; `file` is the settings file that was read
pub(crate) fn run(args: &ConfigArgs, file: Option<&Path>) -> Result<Exit, Failure> {
    let in_force = RequestConfig::current().with(&args.overrides()?).map_err(UsageError::from)?;
    let settings = Settings { in_force, file };
    is_read(if args.json { print_json(&settings) } else { print(&settings.table()) })?;
    Ok(Exit::Completed)
}

struct Settings<'a> {
    in_force: EffectiveConfig,
    file: Option<&'a Path>,
}

/// A setting, for programs
#[derive(Serialize)]
struct Setting<'a> {
    value: &'a Value,
    source: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
}

impl Settings<'_> {
    /// A row for each setting
    fn table(&self) -> String {
        let mut table = String::new();
        for field in Field::ALL {
            let value = self.in_force.config().get(field);
            let source = self.in_force.source(field);
            // Writing to a string cannot fail.
            _ = match self.from(field) {
                Some(from) => writeln!(table, "{:<22} {value:>10}  {source} {from}", field.name()),
                None => writeln!(table, "{:<22} {value:>10}  {source}", field.name()),
            };
        }
        table
    }

    /// What gave a setting its value, if anything did
    fn from(&self, field: Field) -> Option<String> {
        match self.in_force.source(field) {
            Source::Call => Some("--config".to_owned()),
            Source::Default(Origin::Environment) => Some(field.variable()),
            Source::Default(Origin::File) => self.file.map(|file| file.display().to_string()),
            Source::Scope | Source::Default(Origin::Program) | Source::BuiltIn => None,
        }
    }
}

impl Serialize for Settings<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let values = serde_json::to_value(self.in_force.config()).map_err(serde::ser::Error::custom)?;
        serializer.collect_map(Field::ALL.into_iter().map(|field| {
            let source = self.in_force.source(field).to_string();
            (field.name(), Setting { value: &values[field.name()], source, from: self.from(field) })
        }))
    }
}
