//! Third-party event streams through the SSE framer (rule STR-9), and a second parser as an oracle.

use std::fs;
use std::num::NonZeroUsize;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use proptest::prelude::*;
use proptest::sample::Index;
use serde::Deserialize;
use sse_core::{SseDecoder, SseEvent};
use steadfast::framing::sse::{Field, Framer};
use steadfast_tests::shared;

const LIMIT: usize = 16 << 20;

#[derive(Deserialize)]
struct Cases {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    chunks_b64: Vec<String>,
    expected_events: Vec<Message>,
    expected_last_event_id: String,
    expected_retry_ms: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
struct Message {
    event: String,
    data: String,
    id: String,
}

/// All that a stream tells
#[derive(Debug, Default, PartialEq, Eq)]
struct Told {
    messages: Vec<Message>,
    last_event_id: String,
    retry: Option<Duration>,
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn read<'a>(reads: impl IntoIterator<Item = &'a [u8]>) -> Told {
    let mut framer = Framer::new(LIMIT);
    let mut messages = Vec::new();
    for mut input in reads {
        loop {
            let (consumed, event) = framer.next(input).expect("below the limit");
            let Some(event) = event else {
                assert_eq!(consumed, input.len(), "without an event all of the input is used");
                break;
            };
            if event.field == Field::Data {
                messages.push(Message {
                    event: event.name.map_or("message".into(), |name| text(framer.bytes(input, name))),
                    data: text(framer.bytes(input, event.data)),
                    id: text(framer.last_event_id()),
                });
            }
            input = &input[consumed..];
        }
    }
    Told { messages, last_event_id: text(framer.last_event_id()), retry: framer.retry() }
}

fn pieces(mut body: &[u8], rng: &mut fastrand::Rng) -> Vec<Vec<u8>> {
    let mut pieces = Vec::new();
    while !body.is_empty() {
        let (piece, rest) = body.split_at(rng.usize(0..=body.len().min(40)));
        pieces.push(piece.to_vec());
        body = rest;
    }
    pieces
}

/// What `body` tells, which must be the same whole, byte by byte, at cuts in two and in pieces
///
/// A long body, which consists of one line almost whole, is cut in two at 2,000 places only.
fn told(name: &str, body: &[u8]) -> Told {
    let whole = read([body]);
    assert_eq!(read(body.chunks(1)), whole, "{name}, byte by byte");
    for cut in (0..=body.len()).step_by(1 + body.len() / 2000) {
        assert_eq!(read([&body[..cut], &body[cut..]]), whole, "{name}, cut at {cut}");
    }
    for seed in 0..20 {
        let pieces = pieces(body, &mut fastrand::Rng::with_seed(seed));
        assert_eq!(read(pieces.iter().map(Vec::as_slice)), whole, "{name}, in pieces with seed {seed}");
    }
    whole
}

#[test]
fn every_case_gives_its_events_however_it_is_split() {
    let Some(path) = shared::path("conformance/sse.json") else { return };
    let cases: Cases = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    for case in &cases.cases {
        let chunks: Vec<Vec<u8>> =
            case.chunks_b64.iter().map(|chunk| BASE64_STANDARD.decode(chunk).unwrap()).collect();
        let told = told(&case.name, &chunks.concat());
        assert_eq!(told.messages, case.expected_events, "{}", case.name);
        assert_eq!(told.last_event_id, case.expected_last_event_id, "{}", case.name);
        assert_eq!(told.retry, case.expected_retry_ms.map(Duration::from_millis), "{}", case.name);
        assert_eq!(read(chunks.iter().map(Vec::as_slice)), told, "{}, in its own chunks", case.name);
    }
    let count = cases.cases.len();
    assert!(count > 0);
    println!("conformance sse: {count}/{count}");
}

/// What another implementation makes of `body`
fn oracle(mut body: &[u8]) -> Told {
    let mut decoder = SseDecoder::with_limit(NonZeroUsize::new(LIMIT).unwrap());
    let mut told = Told::default();
    while let Some(event) = decoder.next(&mut body) {
        match event.expect("below the limit") {
            SseEvent::Message(message) => told.messages.push(Message {
                event: message.event.into_owned(),
                data: message.data,
                id: message.last_event_id.as_deref().unwrap_or_default().to_owned(),
            }),
            SseEvent::Retry(milliseconds) => told.retry = Some(Duration::from_millis(milliseconds.into())),
        }
    }
    told.last_event_id = decoder.last_event_id().map(|id| id.to_string()).unwrap_or_default();
    told
}

fn stream() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => Just(&b"\n"[..]),
        2 => Just(&b"\r"[..]),
        2 => Just(&b"\r\n"[..]),
        4 => Just(&b"data"[..]),
        4 => Just(&b"data: "[..]),
        2 => Just(&b"event:"[..]),
        2 => Just(&b"id: "[..]),
        1 => Just(&b"retry: "[..]),
        1 => Just(&b"error: "[..]),
        2 => Just(&b":"[..]),
        1 => Just(&b" "[..]),
        1 => Just(&b"\0"[..]),
        1 => Just(&b"\xEF\xBB\xBF"[..]),
        1 => Just(&b"\xEF"[..]),
        1 => Just(&b"dat"[..]),
        2 => Just(&b"120"[..]),
        2 => Just("é\u{2028}\u{85}".as_bytes()),
        2 => Just(&b"{\"a\":\"b\"}"[..]),
        2 => Just(&b"data: {}\n\n"[..]),
        1 => Just(&b"event: x\n"[..]),
        1 => Just(&b"event: \n"[..]),
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn agrees_with_another_parser(body in stream(), cuts in proptest::collection::vec(any::<Index>(), 0..8)) {
        // The oracle holds retry times in 32 bits.
        prop_assume!(!body.windows(10).any(|run| run.iter().all(u8::is_ascii_digit)));
        let expected = oracle(&body);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(body.len() + 1)).collect();
        cuts.extend([0, body.len()]);
        cuts.sort_unstable();
        let cut = read(cuts.windows(2).map(|cut| &body[cut[0]..cut[1]]));
        prop_assert_eq!(&cut.messages, &expected.messages);
        let told = told("a random stream", &body);
        prop_assert_eq!(&told, &cut);
        prop_assert_eq!(&told.messages, &expected.messages);
        prop_assert_eq!(&told.last_event_id, &expected.last_event_id);
        prop_assert_eq!(told.retry, expected.retry);
    }
}
