//! Recorded streams of real providers through the framings that are no event streams.

use std::fs;

use serde::Deserialize;
use serde_json::value::RawValue;
use steadfast::framing::{Field, Framer, Framing};
use steadfast_tests::shared;

const LIMIT: usize = 16 << 20;

#[derive(Deserialize)]
struct Streams {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    framing: String,
    body_file: String,
}

/// The recorded bodies of one framing, with the names of their cases
fn bodies(framing: &str) -> Vec<(String, Vec<u8>)> {
    let Some(path) = shared::path("conformance/streams.json") else { return Vec::new() };
    let folder = path.parent().expect("a file is in a folder");
    let streams: Streams = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let cases = streams.cases.into_iter().filter(|case| case.framing == framing);
    let bodies: Vec<_> =
        cases.map(|case| (case.name, fs::read(folder.join(case.body_file)).unwrap())).collect();
    assert!(!bodies.is_empty(), "{framing}");
    bodies
}

/// The data of each event, with that of an unterminated last one behind it
fn read<'a>(framing: Framing, reads: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
    let mut framer = Framer::new(framing, LIMIT);
    let mut events = Vec::new();
    for mut input in reads {
        while let (consumed, Some(event)) = framer.next(input).expect("whole and below the limit") {
            if event.field == Field::Data {
                events.push(String::from_utf8(framer.bytes(input, event.data).to_vec()).unwrap());
            }
            input = &input[consumed..];
        }
    }
    let tail = framer.tail();
    events.extend(tail.map(|event| String::from_utf8(framer.bytes(&[], event.data).to_vec()).unwrap()));
    events
}

fn pieces<'a>(mut body: &'a [u8], rng: &mut fastrand::Rng) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    while !body.is_empty() {
        let (piece, rest) = body.split_at(rng.usize(0..=body.len().min(40)));
        pieces.push(piece);
        body = rest;
    }
    pieces
}

/// The events of `body`, which must be the same whole, byte by byte, at cuts in two and in pieces
///
/// A long body is cut in two at 50 places only.
fn events(framing: Framing, name: &str, body: &[u8]) -> Vec<String> {
    let whole = read(framing, [body]);
    assert_eq!(read(framing, body.chunks(1)), whole, "{name}, byte by byte");
    for cut in (0..=body.len()).step_by(1 + body.len() / 50) {
        assert_eq!(read(framing, [&body[..cut], &body[cut..]]), whole, "{name}, cut at {cut}");
    }
    for seed in 0..5 {
        let pieces = pieces(body, &mut fastrand::Rng::with_seed(seed));
        assert_eq!(read(framing, pieces), whole, "{name}, in pieces with seed {seed}");
    }
    whole
}

#[test]
fn every_recorded_ndjson_stream_gives_its_lines_however_it_is_split() {
    let bodies = bodies("ndjson");
    for (name, body) in &bodies {
        let lines: Vec<&str> = std::str::from_utf8(body).unwrap().lines().collect();
        assert!(lines.len() > 1, "{name}");
        assert_eq!(events(Framing::Ndjson, name, body), lines, "{name}");
    }
    println!("conformance ndjson: {0}/{0}", bodies.len());
}

/// What a recorded event stream holds, sent in the other two framings instead
#[test]
fn every_recorded_event_stream_holds_the_same_in_the_other_framings() {
    let bodies = bodies("sse");
    for (name, body) in &bodies {
        let mut values = read(Framing::Sse, [&body[..]]);
        values.retain(|data| serde_json::from_str::<&RawValue>(data).is_ok());
        // An event of several lines holds line ends, which are white space to JSON and end a line.
        let lines: Vec<String> = values.iter().map(|value| value.replace(['\r', '\n'], " ")).collect();
        assert_eq!(events(Framing::Ndjson, name, lines.join("\r\n").as_bytes()), lines, "{name}");
        let array = format!("[{}\n]\n", values.join("\n,\r\n"));
        assert_eq!(events(Framing::JsonArray, name, array.as_bytes()), values, "{name}");
    }
    println!("conformance framing: {0}/{0} event streams in two other framings", bodies.len());
}
