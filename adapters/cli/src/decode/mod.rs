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

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use steadfast::config::RequestConfig;

use crate::args::DecodeArgs;
use crate::decode::events::Ended;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::read_all;
use crate::message::say;
use crate::output::{is_read, print_json, stdout};
use crate::usage::UsageError;

/// Runs the command
pub(crate) fn run(args: &DecodeArgs) -> Result<Exit, Failure> {
    let settings = RequestConfig::default().with(&args.overrides()?).map_err(UsageError::from)?;
    let recorded = read(&args.file)?;
    if !args.http && recorded.starts_with(b"HTTP/") {
        say("the file begins with a status line, and is read as a body: --http would read a whole response");
    }
    if let Some(dialect) = args.dialect {
        let answer = answer::decode(args, dialect, settings, recorded)?;
        is_read(print_json(&answer))?;
        return Ok(answer.exit());
    }
    let reads = recorded.chunks(args.split.0.get());
    let Some(framing) = args.framing else {
        let message = raw::decode(&args.method, reads);
        is_read(print_json(&message))?;
        return Ok(message.exit());
    };
    let mut out = BufWriter::new(stdout().map_err(Failure::Output)?);
    let mut ended = Ok(Ended::Whole);
    let written = events::write(framing, reads, &mut out).and_then(|told| {
        ended = told;
        out.flush()
    });
    is_read(written)?;
    Ok(match ended {
        Ok(Ended::Whole) => Exit::Completed,
        Ok(Ended::Cut) => {
            say("truncated: the body ends in the midst of an array or of a line");
            Exit::Truncated
        }
        Err(error) => {
            say(format_args!("protocol: {error}"));
            Exit::Protocol
        }
    })
}

/// The most bytes of a recorded response: 1 GiB
const MAX_RECORDED_BYTES: usize = 1 << 30;

/// All of a file, or of stdin where its name is `-`
fn read(path: &Path) -> Result<Vec<u8>, UsageError> {
    let read = if path == Path::new("-") {
        read_all(io::stdin().lock(), MAX_RECORDED_BYTES)
    } else {
        File::open(path).and_then(|file| read_all(file, MAX_RECORDED_BYTES))
    };
    read.map_err(|error| UsageError::Unreadable {
        path: path.display().to_string(),
        error: error.to_string(),
    })
}
