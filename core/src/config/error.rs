//! What a configuration refuses, and the nearest name for one it does not know.

use super::Field;

/// A configuration that cannot be; the text names the field, and what it takes
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// No field has this name
    ///
    /// The value that came with it is not kept: it may belong to something secret.
    #[error("there is no setting {name}; the nearest is {nearest}")]
    UnknownName {
        /// The name as it was given
        name: String,
        /// The field with the nearest name (rule CFG-6)
        nearest: &'static str,
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

/// The one of `names` nearest to `name`: one that contains it before any other, and the first of them
/// where several are as near
///
/// # Panics
///
/// Where there are no names.
pub fn nearest(name: &str, names: impl IntoIterator<Item = &'static str>) -> &'static str {
    // No known name is that long, so what follows does not matter: the work stays bounded.
    let name: String = name.chars().take(64).collect::<String>().to_ascii_lowercase();
    names
        .into_iter()
        .min_by_key(|known| (!known.contains(&name), distance(name.as_bytes(), known.as_bytes())))
        .expect("there are names")
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
