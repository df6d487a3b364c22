//! A drain may be dropped at any point, and bytes may be split anywhere: nothing is lost.

use std::io::Write;

use proptest::prelude::*;
use serde_json::json;

use super::play::Play;
use super::record::Got;
use super::wire::{Answer, LAST_CHUNK, SPOKEN, STREAM_HEAD, chunk, event, response};
use crate::config::Overrides;
use crate::dialect::Dialect;

/// A call with all that can happen in one: a refusal, a retry, deltas of every kind, a marker, usage
fn eventful(interrupt: impl FnMut(usize) -> bool + 'static) -> Play {
    let chat = Dialect::OpenAiChat;
    let tool = json!({"id": "c1", "choices": [{"delta": {"reasoning": "hm", "tool_calls": [
        {"index": 0, "id": "t", "function": {"name": "f", "arguments": "{\"a\":"}},
        {"index": 0, "function": {"arguments": " \"\u{e9}\n\"}"}},
    ]}}]});
    let usage = json!({"id": "c1", "choices": [], "usage": {"prompt_tokens": 5}});
    let unknown = "event: odd\r\ndata: {\"object\":\"odd\",\r\ndata: \"x\":1}\r\n\r\n";
    let mut play = Play::stream(chat, Overrides::new()).interrupted(interrupt).start();
    play.at(100).request().receive(response("503 Busy", &["retry-after: 0"], "busy")).expire();
    let second = play.attempts_at()[1].as_millis() as u64 + 1;
    let body = chunk(chat.opening() + unknown + &chat.text("Hello, ") + &event(&tool))
        + &chunk(": ping\n\n".to_owned() + &chat.text("wor\"ld") + &chat.terminal() + &event(&usage));
    play.at(second).request().receive(STREAM_HEAD.to_owned() + &body);
    play.at(second + 100).receive(chunk("data: [DONE]\n\n") + LAST_CHUNK);
    play
}

/// All that the consumer and the driver saw
fn seen(play: &Play) -> String {
    let outcome = serde_json::to_string_pretty(play.outcome()).unwrap();
    format!("{:#?}\n{:?}\n{outcome}", play.record.items, play.record.commands)
}

#[test]
fn a_drain_that_is_dropped_at_any_point_loses_nothing() {
    let whole = eventful(|_| false);
    let expected = seen(&whole);
    assert!(whole.record.items.len() >= 8 && whole.points > 20, "{} points: {expected}", whole.points);
    for dropped in 0..whole.points {
        assert_eq!(seen(&eventful(move |point| point == dropped)), expected, "dropped at {dropped}");
    }
    assert_eq!(seen(&eventful(|_| true)), expected);
    assert_eq!(seen(&eventful(|point| point % 2 == 0)), expected);
}

/// The body of a stream of `dialect`, in events
fn body(dialect: Dialect) -> String {
    let sentinel = dialect.sentinel().unwrap_or_default();
    let unknown = "event: odd\r\ndata: {\"type\":\"odd\",\"object\":\"odd\"}\r\n\r\n";
    dialect.opening()
        + &dialect.text("Gr\u{fc}\u{df}e, \u{1F980}")
        + unknown
        + &dialect.ping()
        + &dialect.text("\"quoted\"\n")
        + &dialect.terminal()
        + &sentinel
}

/// Plays a stream whose body is put in chunks of the given sizes and comes in pieces of the given sizes
fn split(dialect: Dialect, is_packed: bool, chunks: &[usize], pieces: &[usize], drops: Vec<bool>) -> Play {
    let mut body = body(dialect).into_bytes();
    let mut wire = STREAM_HEAD.as_bytes().to_vec();
    if is_packed {
        wire = STREAM_HEAD.replacen("\r\n", "\r\ncontent-encoding: gzip\r\n", 1).into_bytes();
        body = packed(&body);
    }
    for data in sizes(&body, chunks) {
        wire.extend_from_slice(format!("{:X};ext=1\r\n", data.len()).as_bytes());
        wire.extend_from_slice(data);
        wire.extend_from_slice(b"\r\n");
    }
    wire.extend_from_slice(LAST_CHUNK.as_bytes());
    let mut play = Play::stream(dialect, Overrides::new());
    play = play.interrupted(move |point| !drops.is_empty() && drops[point % drops.len()]).start();
    play.at(100).request();
    for piece in sizes(&wire, pieces) {
        if play.record.done.is_none() {
            play.receive(piece);
        }
    }
    play.end();
    play
}

/// `bytes` compressed, each part flushed, as servers do with a stream
fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    for part in bytes.chunks(300) {
        packer.write_all(part).unwrap();
        packer.flush().unwrap();
    }
    packer.finish().unwrap()
}

/// `bytes` in pieces of the given sizes, which are gone through again and again
fn sizes<'a>(mut bytes: &'a [u8], sizes: &[usize]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    for size in sizes.iter().cycle() {
        if bytes.is_empty() {
            break;
        }
        let (piece, rest) = bytes.split_at((*size).min(bytes.len()));
        pieces.push(piece);
        bytes = rest;
    }
    pieces
}

fn result(play: &Play) -> (Vec<Got>, String, Vec<(u64, u64)>) {
    let items = play.record.items.iter().map(|(_, item)| item.clone()).collect();
    let outcome = play.outcome();
    let records = outcome.timeline.attempts.iter().map(|record| (record.events, record.deltas)).collect();
    (items, format!("{:?} {:?}", outcome.result, outcome.timeline.notes), records)
}

proptest! {
    #[test]
    fn any_split_and_any_drops_give_the_same_items_and_outcome(
        dialect in prop::sample::select(&SPOKEN[..]),
        is_packed in prop::sample::select(if cfg!(feature = "content-decoding") { &[false, true][..] } else { &[false] }),
        chunks in prop::collection::vec(1..200_usize, 1..8),
        pieces in prop::collection::vec(1..120_usize, 1..8),
        drops in prop::collection::vec(any::<bool>(), 0..16),
    ) {
        let whole = split(dialect, false, &[usize::MAX], &[usize::MAX], Vec::new());
        prop_assert_eq!(whole.completion().turn.text(), "Gr\u{fc}\u{df}e, \u{1F980}\"quoted\"\n");
        let play = split(dialect, is_packed, &chunks, &pieces, drops);
        prop_assert_eq!(result(&play), result(&whole));
    }
}
