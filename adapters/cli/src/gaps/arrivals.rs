//! When bytes came, read off the trace of a call while it is written.
//!
//! A call already tells a recorder of each read, with its time. So nothing is measured here that the call
//! does not know: the gaps are those that its idle clock saw.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The lower bound of each row of a histogram, in milliseconds
pub(super) const ROWS_FROM_MS: [u64; 8] = [0, 10, 100, 1_000, 5_000, 15_000, 30_000, 60_000];

/// The longest line of a trace that is looked at, in bytes; no line about an arrival is nearly so long
const MAX_LINE_BYTES: usize = 4 << 10;

/// A writer of a trace, of which it keeps the arrivals; its clones are one
#[derive(Clone, Debug, Default)]
pub(super) struct Arrivals(Arc<Mutex<Watch>>);

/// The arrivals of one call
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Seen {
    /// Reads that brought bytes
    pub(super) chunks: u64,
    /// Bytes that they brought, of heads too
    pub(super) bytes: u64,
    /// From the beginning of the call to the first byte
    pub(super) first_byte: Option<Duration>,
    /// The largest gap between two reads, without the time for which the reader was away
    pub(super) largest: Option<Gap>,
    /// How many gaps there were in each row
    pub(super) histogram: [u64; ROWS_FROM_MS.len()],
}

/// A gap between two reads, and where it lay
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Gap {
    /// How long it was
    pub(super) length: Duration,
    /// When it began, since the call did
    pub(super) at: Duration,
    /// How many chunks had come
    pub(super) after_chunks: u64,
    /// How many bytes had come
    pub(super) after_bytes: u64,
    /// What the last piece of the answer had been, if there was one
    pub(super) after: Option<String>,
}

#[derive(Debug, Default)]
struct Watch {
    /// What came of a line so far
    line: Vec<u8>,
    /// In nanoseconds, as the trace has it
    began: u64,
    /// Since when the reader waits for bytes
    since: Option<u64>,
    piece: Option<String>,
    seen: Seen,
}

/// What lines of a trace have in common with each other
#[derive(Deserialize)]
struct Line {
    #[serde(default)]
    began: Option<u64>,
    #[serde(default)]
    at: u64,
    #[serde(default)]
    event: Option<Event>,
    #[serde(default)]
    bytes: u64,
    #[serde(default)]
    step: Option<String>,
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Event {
    Received,
    Taken,
    #[serde(other)]
    Other,
}

impl Arrivals {
    /// What came so far
    pub(super) fn seen(&self) -> Seen {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).seen.clone()
    }

    /// Counts the silence at the end of a call that its idle bound ended: no byte came to end it
    pub(super) fn ended_in_silence(&self, length: Duration) {
        let mut watch = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(since) = watch.since {
            watch.gap(since, length);
        }
    }
}

impl io::Write for Arrivals {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut watch = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = MAX_LINE_BYTES.saturating_sub(watch.line.len());
            watch.line.extend_from_slice(&part[..part.len().min(room)]);
            if part.ends_with(b"\n") {
                watch.end_line();
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Watch {
    fn end_line(&mut self) {
        let line = serde_json::from_slice::<Line>(&self.line);
        self.line.clear();
        // One that is too long is cut, and no JSON any more; it is about no arrival.
        let Ok(line) = line else { return };
        if let Some(began) = line.began {
            self.began = began;
        }
        match (line.event, line.step) {
            (Some(Event::Received), _) => self.received(line.at, line.bytes),
            (Some(Event::Taken), _) => self.since = self.since.map(|since| since.max(line.at)),
            (None, Some(step)) if PIECES.contains(&step.as_str()) => self.piece = Some(step),
            (Some(Event::Other) | None, _) => {}
        }
    }

    fn received(&mut self, at: u64, bytes: u64) {
        match self.since {
            Some(since) => self.gap(since, Duration::from_nanos(at.saturating_sub(since))),
            None => self.seen.first_byte = Some(Duration::from_nanos(at.saturating_sub(self.began))),
        }
        self.since = Some(at);
        self.seen.chunks += 1;
        self.seen.bytes += bytes;
    }

    fn gap(&mut self, since: u64, length: Duration) {
        let row = ROWS_FROM_MS.iter().rposition(|from| length >= Duration::from_millis(*from));
        self.seen.histogram[row.expect("the first row begins at nothing")] += 1;
        if self.seen.largest.as_ref().is_none_or(|largest| length > largest.length) {
            self.seen.largest = Some(Gap {
                length,
                at: Duration::from_nanos(since.saturating_sub(self.began)),
                after_chunks: self.seen.chunks,
                after_bytes: self.seen.bytes,
                after: self.piece.clone(),
            });
        }
    }
}

/// The steps that bring a piece of the answer
const PIECES: [&str; 5] = ["text", "reasoning", "refusal", "tool_call", "tool_arguments"];

impl Serialize for Gap {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let mut fields = serializer.serialize_struct("Gap", 5)?;
        fields.serialize_field("seconds", &self.length.as_secs_f64())?;
        fields.serialize_field("at", &self.at.as_secs_f64())?;
        fields.serialize_field("after_chunks", &self.after_chunks)?;
        fields.serialize_field("after_bytes", &self.after_bytes)?;
        fields.serialize_field("after", &self.after)?;
        fields.end()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const TRACE: &str = r#"{"trace":1,"bodies":"lengths","began":1000000}
{"at":1000000,"event":"start"}
{"at":501000000,"event":"received","link":1,"bytes":100}
{"step":"reasoning","choice":0,"bytes":2}
{"at":503000000,"event":"taken"}
{"at":506000000,"event":"received","link":1,"bytes":50}
{"at":70506000000,"event":"received","link":1,"bytes":7}
{"step":"text","choice":0,"bytes":2}
{"at":70606000000,"event":"received","link":1,"bytes":7}
"#;

    fn of(trace: &str, size: usize) -> Arrivals {
        let mut arrivals = Arrivals::default();
        for part in trace.as_bytes().chunks(size) {
            arrivals.write_all(part).expect("it takes all");
        }
        arrivals
    }

    #[test]
    fn gaps_lie_between_reads_without_the_readers_own_time() {
        for size in [1, 7, TRACE.len()] {
            let seen = of(TRACE, size).seen();
            assert_eq!((seen.chunks, seen.bytes), (4, 164));
            assert_eq!(seen.first_byte, Some(Duration::from_millis(500)));
            // 3 ms after it was taken, 70 s, 100 ms
            assert_eq!(seen.histogram, [1, 0, 1, 0, 0, 0, 0, 1]);
            let expected = Gap {
                length: Duration::from_secs(70),
                at: Duration::from_millis(505),
                after_chunks: 2,
                after_bytes: 150,
                after: Some("reasoning".to_owned()),
            };
            assert_eq!(seen.largest, Some(expected));
        }
    }

    #[test]
    fn silence_that_the_bound_ended_is_a_gap_too() {
        let arrivals = of(TRACE, 64);
        arrivals.ended_in_silence(Duration::from_secs(120));
        let seen = arrivals.seen();
        assert_eq!(seen.histogram[7], 2);
        let largest = seen.largest.expect("a gap");
        assert_eq!((largest.length, largest.after_chunks), (Duration::from_secs(120), 4));
        assert_eq!(largest.after.as_deref(), Some("text"));
    }

    #[test]
    fn a_line_of_any_length_costs_no_more_than_its_bound() {
        let long = format!("{{\"step\":\"done\",\"text\":\"{}\"}}\n", "x".repeat(1 << 20));
        let mut arrivals = of(&long, 1 << 16);
        assert!(arrivals.0.lock().unwrap().line.capacity() <= 2 * MAX_LINE_BYTES);
        arrivals
            .write_all(b"{\"at\":5,\"event\":\"received\",\"link\":1,\"bytes\":3}\n")
            .expect("it takes all");
        assert_eq!(arrivals.seen().bytes, 3);
    }
}
