//! `steadfast decode`: what the core makes of a recorded response.
//!
//! | file | subject |
//! |---|---|
//! | `answer` | the answer to a call: the call machine, driven over the recorded bytes |
//! | `response` | the recorded bytes as what a server sends, in reads and with an end |
//! | `events` | the events of a body |
//! | `raw` | the HTTP response itself |

mod answer;
mod events;
mod raw;

mod response;

use std::fs;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

use steadfast::config::RequestConfig;

use crate::args::DecodeArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::message::say;
use crate::output::{is_read, print_json};
use crate::usage::UsageError;

/// Runs the command
pub(crate) fn run(args: &DecodeArgs) -> Result<Exit, Failure> {
    if let Some(dialect) = args.dialect {
        let settings = RequestConfig::default().with(&args.overrides()?).map_err(UsageError::from)?;
        let answer = answer::decode(args, dialect, settings, read(&args.file)?)?;
        is_read(print_json(&answer))?;
        return Ok(answer.exit());
    }
    let recorded = read(&args.file)?;
    let reads = recorded.chunks(args.split.0.get());
    let Some(framing) = args.framing else {
        let message = raw::decode(&args.method, reads);
        is_read(print_json(&message))?;
        return Ok(message.exit());
    };
    let mut out = BufWriter::new(io::stdout().lock());
    let mut broken = None;
    let written = events::write(framing, reads, &mut out).and_then(|framed| {
        broken = framed.err();
        out.flush()
    });
    is_read(written)?;
    let Some(error) = broken else { return Ok(Exit::Completed) };
    say(format_args!("protocol: {error}"));
    Ok(Exit::Protocol)
}

/// All of a file, or of stdin where its name is `-`
fn read(path: &Path) -> Result<Vec<u8>, UsageError> {
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        fs::read(path)
    };
    read.map_err(|error| UsageError::Unreadable {
        path: path.display().to_string(),
        error: error.to_string(),
    })
}
