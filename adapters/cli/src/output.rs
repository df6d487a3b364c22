//! What goes to stdout.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Write};

use serde::Serialize;

use crate::failure::Failure;

/// Stdout, of which no fault is hidden
///
/// The standard library's own takes what is written for said where stdout is not open for writing.
///
/// Errors: the system refuses another handle of it.
#[cfg(unix)]
pub(crate) fn stdout() -> io::Result<File> {
    use std::os::fd::AsFd;
    io::stdout().as_fd().try_clone_to_owned().map(File::from)
}

/// Stdout, of which no fault is hidden
///
/// Errors: the system refuses another handle of it.
#[cfg(windows)]
pub(crate) fn stdout() -> io::Result<File> {
    use std::os::windows::io::AsHandle;
    io::stdout().as_handle().try_clone_to_owned().map(File::from)
}

/// Prints a text
///
/// Errors: those of stdout.
pub(crate) fn print(text: &str) -> io::Result<()> {
    stdout()?.write_all(text.as_bytes())
}

/// Prints a value as one line of JSON
///
/// Errors: those of stdout.
pub(crate) fn print_json(value: &impl Serialize) -> io::Result<()> {
    print(&json_line(value)?)
}

/// A value as one line of JSON, which commands no terminal
///
/// Errors: the value cannot be JSON.
pub(crate) fn json_line(value: &impl Serialize) -> serde_json::Result<String> {
    let mut line = serde_json::to_string(value)?;
    // JSON itself escapes the control characters below the blank alone.
    if line.contains(char::is_control) {
        let escape = |character: char| match character.is_control() {
            true => format!("\\u{:04x}", u32::from(character)),
            false => character.to_string(),
        };
        line = line.chars().map(escape).collect();
    }
    line.push('\n');
    Ok(line)
}

/// A text that a terminal shows and does not obey: control characters other than line feed and tab are
/// replaced by their pictures
pub(crate) fn for_terminal(text: &str) -> Cow<'_, str> {
    let is_harmful = |character: char| character.is_control() && !matches!(character, '\n' | '\t');
    if !text.contains(is_harmful) {
        return Cow::Borrowed(text);
    }
    let picture = |character: char| match u32::from(character) {
        _ if !is_harmful(character) => character,
        0x7F => '\u{2421}',
        code @ ..0x20 => char::from_u32(0x2400 + code).unwrap_or(char::REPLACEMENT_CHARACTER),
        _ => char::REPLACEMENT_CHARACTER,
    };
    Cow::Owned(text.chars().map(picture).collect())
}

/// Whether what was printed has a reader; one that closed the pipe knows that it did, and is told
/// nothing
pub(crate) fn is_read(printed: io::Result<()>) -> Result<bool, Failure> {
    match printed {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::Output(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_become_pictures() {
        assert!(matches!(for_terminal("a\tb\n\u{e9}\u{2028}"), Cow::Borrowed(_)));
        assert_eq!(
            for_terminal("\u{1b}[2J\u{9b}1m\u{7f}\r\n\0\u{8}"),
            "\u{241b}[2J\u{fffd}1m\u{2421}\u{240d}\n\u{2400}\u{2408}"
        );
        let every: String = (0..=0x10_FFFF).filter_map(char::from_u32).collect();
        assert!(
            !for_terminal(&every)
                .contains(|character: char| { character.is_control() && !matches!(character, '\n' | '\t') })
        );
    }

    #[test]
    fn json_holds_no_control_character_and_means_the_same() {
        let text = "\u{1b}[2J\u{9b}\u{7f}\u{85}\r\n\u{e9}";
        let line = json_line(&text).unwrap();
        assert_eq!(line, "\"\\u001b[2J\\u009b\\u007f\\u0085\\r\\n\u{e9}\"\n");
        assert_eq!(serde_json::from_str::<String>(&line).unwrap(), text);
    }
}
