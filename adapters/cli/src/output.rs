//! What goes to stdout.

use std::io::{self, Write};

use serde::Serialize;

use crate::failure::Failure;

/// Prints a text
///
/// Errors: those of stdout.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// Prints a value as one line of JSON
///
/// Errors: those of stdout.
pub(crate) fn print_json(value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_string(value)?;
    line.push('\n');
    print(&line)
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
