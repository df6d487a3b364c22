//! The events of a body.

use std::io::{self, Write};

use serde::Serialize;
use serde::de::IgnoredAny;
use steadfast::config::RequestConfig;
use steadfast::framing::{Event, Field, Framer, Framing, FramingError};

use crate::output::json_line;

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
    /// The body ends in the midst of an array or of a line
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    incomplete: bool,
    /// What has come of an event that did not end
    #[serde(skip_serializing_if = "Option::is_none")]
    tail: Option<Tail>,
}

/// An event as far as it came
#[derive(Serialize)]
struct Tail {
    event: String,
    data: String,
}

/// How a body ends
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// Where it may
    Whole,
    /// In the midst of an array or of a line
    Cut,
}

/// Writes a line of JSON for each event, and one at the end
///
/// Errors: those of `out`; within, that the body is not in this framing, which has no last line.
pub(super) fn write<'a>(
    framing: Framing,
    reads: impl Iterator<Item = &'a [u8]>,
    out: &mut impl Write,
) -> io::Result<Result<Ended, FramingError>> {
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
    let (ended, tail) = finish(&mut framer, out)?;
    let last_event_id = &String::from_utf8_lossy(last_event_id(&framer));
    write_line(&Last { last_event_id, bytes, incomplete: ended == Ended::Cut, tail }, out)?;
    Ok(Ok(ended))
}

/// How the body ended, and what it leaves without an end
fn finish(framer: &mut Framer, out: &mut impl Write) -> io::Result<(Ended, Option<Tail>)> {
    if let Framer::JsonArray(framer) = framer {
        let tail = framer.unfinished().map(|data| Tail::of(b"message", data));
        return Ok((if framer.is_whole() { Ended::Whole } else { Ended::Cut }, tail));
    }
    while let Some(event) = framer.tail() {
        let data = framer.bytes(&[], event.data);
        let tail = Tail::of(event.name.map_or(b"message", |name| framer.bytes(&[], name)), data);
        match (&framer, event.field) {
            // To the standard neither is anything.
            (_, Field::Error | Field::Bare) => {}
            // The last line of a file may lack its end.
            (Framer::Ndjson(_), Field::Data) if serde_json::from_slice::<IgnoredAny>(data).is_ok() => {
                write_event(framer, &[], &event, out)?;
            }
            (Framer::Ndjson(_), Field::Data) => return Ok((Ended::Cut, Some(tail))),
            // The standard drops what no blank line ends.
            (Framer::Sse(_) | Framer::JsonArray(_), Field::Data) => return Ok((Ended::Whole, Some(tail))),
        }
    }
    Ok((Ended::Whole, None))
}

impl Tail {
    fn of(event: &[u8], data: &[u8]) -> Self {
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        Self { event: text(event), data: text(data) }
    }
}

fn write_event(framer: &Framer, input: &[u8], event: &Event, out: &mut impl Write) -> io::Result<()> {
    // To the standard neither is anything. and neither is a bare one.
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
    out.write_all(json_line(line)?.as_bytes())
}
