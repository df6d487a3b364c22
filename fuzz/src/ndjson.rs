//! Bytes into the NDJSON framer.

use steadfast::framing::TooLarge;
use steadfast::framing::ndjson::Framer;

use crate::reads::{choice, splits};

const MARK: &[u8] = b"\xEF\xBB\xBF";

/// All that a body tells
#[derive(Debug, Default, PartialEq, Eq)]
struct Told {
    lines: Vec<Vec<u8>>,
    tail: Option<Vec<u8>>,
    failure: Option<TooLarge>,
}

/// Lines of JSON: the first byte sets the limit on a line, the rest is the body
///
/// Any split gives the same lines, tail and error, and they are those of [`expected`].
pub fn ndjson(data: &[u8]) {
    let (limit, body) = choice(data);
    let limit = if limit % 2 == 0 { 16 << 20 } else { usize::from(limit) };
    let expected = expected(limit, body);
    assert_eq!(read(limit, &[body]), expected, "read whole");
    for reads in splits(body) {
        assert_eq!(read(limit, &reads), expected, "read in {reads:?}");
    }
}

fn read(limit: usize, reads: &[&[u8]]) -> Told {
    let mut framer = Framer::new(limit);
    let mut told = Told::default();
    for read in reads {
        let mut input = *read;
        loop {
            match framer.next(input) {
                Ok((consumed, Some(event))) => {
                    told.lines.push(framer.bytes(input, event.data).to_vec());
                    input = &input[consumed..];
                }
                Ok((consumed, None)) => {
                    assert_eq!(consumed, input.len(), "without an event all of the input is used");
                    break;
                }
                Err(error) => {
                    assert_eq!(framer.next(input), Err(error), "a framer that has failed stays so");
                    told.failure = Some(error);
                    return told;
                }
            }
        }
    }
    told.tail = framer.tail().map(|tail| framer.bytes(&[], tail.data).to_vec());
    assert_eq!(framer.tail(), None, "a tail is told once");
    told
}

/// What the framer's rules make of the whole body at once
fn expected(limit: usize, body: &[u8]) -> Told {
    let mut told = Told::default();
    let mut lines: Vec<&[u8]> =
        body.strip_prefix(MARK).unwrap_or(body).split(|byte| *byte == b'\n').collect();
    let tail = lines.pop();
    // Until the mark's next byte has come, its beginning is of no line.
    let tail = tail.filter(|_| !(body.len() < MARK.len() && MARK.starts_with(body)));
    for line in lines {
        if line.len() > limit {
            told.failure = Some(TooLarge { limit });
            return told;
        }
        told.lines.extend(said(line));
    }
    match tail {
        Some(tail) if tail.len() > limit => told.failure = Some(TooLarge { limit }),
        Some(tail) => told.tail = said(tail),
        None => {}
    }
    told
}

/// A line without its CR, if it is not blank
fn said(line: &[u8]) -> Option<Vec<u8>> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    line.iter().any(|byte| !b" \t\r".contains(byte)).then(|| line.to_vec())
}
