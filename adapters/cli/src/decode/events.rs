//! The events of a body.

use std::io::{self, Write};

use serde::Serialize;
use serde::de::IgnoredAny;
use steadfast::config::RequestConfig;
use steadfast::framing::{Event, Field, Framer, Framing, FramingError};

/// One event
#[derive(Serialize)]
struct Line<'a> {
    event: &'a str,
    data: &'a str,
    /// The last event id when it was dispatched
    id: &'a str,
    /// The reconnection time then, in milliseconds
    retry: Option<u128>,
}

/// What is known at the end
#[derive(Serialize)]
struct Last<'a> {
    last_event_id: &'a str,
    bytes: usize,
}

/// Writes a line of JSON for each event, and one at the end
///
/// Errors: those of `out`; within, that the body is not in this framing, which has no last line.
pub(super) fn write<'a>(
    framing: Framing,
    reads: impl Iterator<Item = &'a [u8]>,
    out: &mut impl Write,
) -> io::Result<Result<(), FramingError>> {
    let mut framer = Framer::new(framing, RequestConfig::default().max_event_bytes());
    let mut bytes = 0;
    for read in reads {
        bytes += read.len();
        let mut rest = read;
        loop {
            let (consumed, event) = match framer.next(rest) {
                Ok(next) => next,
                Err(error) => return Ok(Err(error)),
            };
            let Some(event) = event else { break };
            write_event(&framer, rest, &event, out)?;
            rest = &rest[consumed..];
        }
    }
    // The last line of a file may lack its end. An event stream drops what no blank line ends.
    if framing == Framing::Ndjson
        && let Some(tail) = framer.tail()
        && serde_json::from_slice::<IgnoredAny>(framer.bytes(&[], tail.data)).is_ok()
    {
        write_event(&framer, &[], &tail, out)?;
    }
    let last = Last { last_event_id: &String::from_utf8_lossy(last_event_id(&framer)), bytes };
    write_line(&last, out)?;
    Ok(Ok(()))
}

fn write_event(framer: &Framer, input: &[u8], event: &Event, out: &mut impl Write) -> io::Result<()> {
    // To the standard an `error` line is nothing, and neither is a bare one.
    if event.field != Field::Data {
        return Ok(());
    }
    let name = event.name.map_or(&b"message"[..], |name| framer.bytes(input, name));
    let retry = if let Framer::Sse(framer) = framer { framer.retry() } else { None };
    let line = Line {
        event: &String::from_utf8_lossy(name),
        data: &String::from_utf8_lossy(framer.bytes(input, event.data)),
        id: &String::from_utf8_lossy(last_event_id(framer)),
        retry: retry.map(|retry| retry.as_millis()),
    };
    write_line(&line, out)
}

fn last_event_id(framer: &Framer) -> &[u8] {
    if let Framer::Sse(framer) = framer { framer.last_event_id() } else { &[] }
}

fn write_line(line: &impl Serialize, out: &mut impl Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, line)?;
    out.write_all(b"\n")
}
