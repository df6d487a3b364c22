//! What a configuration refuses, and the nearest name for one it does not know.

use super::Field;

/// A configuration that cannot be; the text names the field, and what it takes
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// No field has this name
    ///
    /// The value that came with it is not kept: it may belong to something secret.
    #[error("there is no setting {name}{}", suggestion(*nearest))]
    UnknownName {
        /// The name as it was given
        name: String,
        /// The field with the nearest name, where one is near
        nearest: Option<&'static str>,
    },
    /// A field cannot have this value (rule CFG-1)
    #[error("{} cannot be {value}: it takes {}", field.name(), field.takes())]
    OutOfRange {
        /// The field
        field: Field,
        /// The value as it was given
        value: String,
    },
}

fn suggestion(nearest: Option<&'static str>) -> String {
    nearest.map(|nearest| format!("; the nearest is {nearest}")).unwrap_or_default()
}

/// The field name nearest to `name`; the first in the table where several are
///
/// `None` where getting there would change half of the name or more.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    // No field's name is that long, so a longer text is none either: the work stays bounded.
    if name.len() > 64 {
        return None;
    }
    Field::ALL
        .into_iter()
        .map(|field| (distance(name.as_bytes(), field.name().as_bytes()), field.name()))
        .filter(|(distance, candidate)| distance * 2 <= candidate.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// How far `typed` is from `name`: 1 for each byte left out, 2 for each one wrong or too many
///
/// People shorten names more often than they lengthen them, so what was left out weighs less.
fn distance(typed: &[u8], name: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=name.len()).collect();
    for (read, byte) in typed.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = 2 * (read + 1);
        for column in 1..row.len() {
            let replaced = diagonal + if *byte == name[column - 1] { 0 } else { 2 };
            diagonal = row[column];
            row[column] = replaced.min(row[column] + 2).min(row[column - 1] + 1);
        }
    }
    row[name.len()]
}
