//! Peers without measure: whatever they send, the memory held stays within what the caps allow.
//!
//! Counted by the allocator, so one test after the other, and without the test harness, whose own
//! thread allocates. What counts is what the call holds at every read and at every item; the bytes
//! that it is fed are lent to it, from buffers that were there before. Text that grows doubles its
//! room, so a cap is met up to twice over.

use std::alloc::System;
use std::cell::Cell;
use std::time::Duration;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use steadfast::call::{AttemptId, Call, Env, Request, Shape};
use steadfast::config::{Overrides, RequestConfig};
use steadfast::dialect::Dialect;
use steadfast::http1::{Http1Error, MAX_CHUNK_LINE_BYTES, MAX_TRAILER_BYTES};
use steadfast::machine::Ended;
use steadfast::outcome::{ErrorKind, Outcome, ProtocolError};
use steadfast::time::Instant;
use steadfast_sim::{Arrival, Source, replay};
use steadfast_tests::corpus::events::{AP, AS, D, c, f};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// What is held at once, without the caps' doing: the call, and its layers
const MACHINE: usize = 8 * 1024;
/// About the bytes of one read
const READ: usize = 16 * 1024;
/// A peer that may send so much did not meet a cap
const ENDLESS: u64 = 256 << 20;
/// Of the long streams; the debug build takes twenty times as long for each byte
const LONG: u64 = if cfg!(debug_assertions) { 16 << 20 } else { 1 << 30 };

const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
const NDJSON: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\n\r\n";
const JSON: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n";
const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

/// What a server sends: a beginning, a middle again and again, and an end
struct Flood {
    beginning: Vec<u8>,
    /// About a read of it
    middle: Vec<u8>,
    times: u64,
    end: Vec<u8>,
    /// The most bytes of one read
    most: usize,
}

impl Flood {
    /// `unit` without end, after `beginning`
    fn endless(beginning: &str, unit: &str) -> Self {
        let middle = unit.repeat(READ.div_ceil(unit.len()));
        let times = ENDLESS / middle.len() as u64;
        Self { beginning: beginning.into(), middle: middle.into(), times, end: Vec::new(), most: usize::MAX }
    }

    /// `event` for about so many bytes, cut anew in each read; and how often it is there
    fn long(beginning: &str, event: &str, bytes: u64, end: &str) -> (Self, u64) {
        let per_read = READ.div_ceil(event.len());
        let times = bytes / (per_read * event.len()) as u64;
        let (first, rest) = event.split_at(event.len() / 3);
        let flood = Self {
            beginning: format!("{beginning}{first}").into(),
            middle: format!("{rest}{first}").repeat(per_read).into(),
            times,
            end: format!("{rest}{end}").into(),
            most: usize::MAX,
        };
        (flood, times * per_read as u64 + 1)
    }

    /// Plays a call that makes one attempt
    fn play(self, dialect: Dialect, shape: Shape, overrides: Overrides) -> Played {
        let before = live();
        let peak = Cell::new(before);
        let observe = || peak.set(peak.get().max(live()));
        let request = Request::post("http://extremes.invalid").dialect(dialect);
        let request = match shape {
            Shape::Stream => request.stream(),
            Shape::Raw => request.raw(),
            Shape::Unary => request,
        };
        let config = RequestConfig::default().with(&overrides.max_attempts(1)).unwrap();
        let env = Env { seed: 1, unix_at_origin: Duration::ZERO };
        let call = Call::new(request.build().unwrap(), config, env, Instant::ORIGIN);
        let mut sending = Sending { flood: &self, turn: 0, at: 0, sent: 0, observe: &observe };
        let outcome = replay(call, &mut sending, |_| observe()).expect("all comes at once");
        observe();
        Played { outcome, sent: sending.sent, peak: peak.get() - before }
    }
}

/// Bytes that live on the heap
fn live() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

struct Sending<'a> {
    flood: &'a Flood,
    /// Which part it is at
    turn: u64,
    /// Where in that part
    at: usize,
    sent: u64,
    observe: &'a dyn Fn(),
}

impl Source for Sending<'_> {
    fn next(&mut self, _: AttemptId) -> Arrival<'_> {
        (self.observe)();
        let Flood { beginning, middle, times, end, most } = self.flood;
        let part = match self.turn {
            0 => beginning,
            turn if turn <= *times => middle,
            turn if turn == times + 1 && !end.is_empty() => end,
            _ => return Arrival::Eof(Ended::Clean),
        };
        let read = &part[self.at..part.len().min(self.at.saturating_add(*most))];
        self.at += read.len();
        if self.at == part.len() {
            (self.turn, self.at) = (self.turn + 1, 0);
        }
        self.sent += read.len() as u64;
        Arrival::Bytes(read)
    }
}

struct Played {
    outcome: Outcome,
    /// Bytes that the server got rid of
    sent: u64,
    /// The most bytes that the call held
    peak: usize,
}

impl Played {
    fn text(&self) -> &str {
        self.outcome.turn().text()
    }

    fn events(&self) -> u64 {
        self.outcome.timeline.attempts[0].events
    }

    fn say(&self, name: &str) {
        println!(
            "extremes: {name}: {} KiB held at the most, of {} KiB sent",
            self.peak >> 10,
            self.sent >> 10
        );
    }
}

fn main() {
    let tests: [(&str, fn()); 6] = [
        (
            "a_long_stream_of_tiny_events_holds_its_text_and_nothing_else",
            a_long_stream_of_tiny_events_holds_its_text_and_nothing_else,
        ),
        ("a_long_stream_of_pings_holds_nothing", a_long_stream_of_pings_holds_nothing),
        ("a_large_event_is_held_once_and_its_text_once", a_large_event_is_held_once_and_its_text_once),
        ("endless_events_meet_max_event_bytes", endless_events_meet_max_event_bytes),
        ("endless_heads_and_chunk_lines_meet_their_bounds", endless_heads_and_chunk_lines_meet_their_bounds),
        ("endless_answers_meet_max_body_bytes", endless_answers_meet_max_body_bytes),
    ];
    for (name, test) in tests {
        println!("{name}");
        test();
    }
}

fn a_long_stream_of_tiny_events_holds_its_text_and_nothing_else() {
    let (flood, count) = Flood::long(HEAD, &c("a"), LONG, &(f("stop") + D));
    let played = flood.play(Dialect::OpenAiChat, Shape::Stream, Overrides::new());
    played.say("a long stream of tiny deltas");
    assert!(played.outcome.result.is_ok());
    assert!(played.sent > LONG - (1 << 20), "{}", played.sent);
    assert_eq!(played.events(), count + 2);
    assert_eq!(played.text().len() as u64, count);
    assert!(played.text().bytes().all(|byte| byte == b'a'));
    assert!(played.peak <= 2 * played.text().len() + MACHINE, "{}", played.peak);
}

fn a_long_stream_of_pings_holds_nothing() {
    for (name, ping, events) in [("comments", ": ping\n\n", false), ("pings", AP, true)] {
        let (flood, count) = Flood::long(&format!("{HEAD}{AS}"), ping, LONG, "");
        let played = flood.play(Dialect::Anthropic, Shape::Stream, Overrides::new());
        played.say(&format!("a long stream of {name}"));
        assert!(played.outcome.result.is_err());
        assert_eq!(played.events(), if events { count + 1 } else { 1 });
        assert!(played.peak <= MACHINE, "{}", played.peak);
    }
}

fn a_large_event_is_held_once_and_its_text_once() {
    let text = "0123456789 \u{e9}\u{4e2d}".repeat(600_000 / 16);
    assert_eq!(text.len(), 600_000);
    let body = c(&text) + &f("stop") + D;
    // In one read nothing of the event is held; in many the event as it came, in room that doubles.
    for (name, most, copies) in [("one read", usize::MAX, 1), ("many reads", READ, 3)] {
        let beginning = format!("{HEAD}{body}").into();
        let flood = Flood { beginning, middle: Vec::new(), times: 0, end: Vec::new(), most };
        let played = flood.play(Dialect::OpenAiChat, Shape::Stream, Overrides::new());
        played.say(&format!("a large event in {name}"));
        assert!(played.outcome.result.is_ok());
        assert_eq!((played.text(), played.events()), (text.as_str(), 3));
        assert!(played.peak <= copies * text.len() + MACHINE, "{name}: {}", played.peak);
    }
}

const MAX_EVENT: usize = 16 << 20;
const MAX_HEAD: usize = 64 << 10;
const MAX_BODY: usize = 3_000_000;

/// Plays a peer that goes on for ever, and checks how the call ends, and that it held no more than
/// `held` and read no more than `read`
fn assert_ends(name: &str, played: &Played, kind: ErrorKind, held: usize, read: usize) {
    played.say(name);
    let error = played.outcome.result.as_ref().expect_err("what never ends is no answer");
    assert_eq!(error.kind, kind, "{name}");
    assert!(played.peak <= held + MACHINE, "{name}: {} held", played.peak);
    // The read that passes the cap, and the one before it, which may have begun anywhere
    assert!(played.sent as usize <= read + 3 * READ, "{name}: {} read", played.sent);
}

fn endless_events_meet_max_event_bytes() {
    let huge_chunk = CHUNKED.to_owned() + "ffffffffffffffff\r\ndata: ";
    let cases = [
        ("an endless line", Dialect::OpenAiChat, HEAD.to_owned() + "data: ", "a"),
        ("an endless line in an endless chunk", Dialect::OpenAiChat, huge_chunk, "a"),
        ("endless lines of one event", Dialect::OpenAiChat, HEAD.to_owned(), "data: aaaaaaaaa\n"),
        ("an endless comment", Dialect::OpenAiChat, HEAD.to_owned() + ":", "a"),
        ("an endless event name", Dialect::Anthropic, HEAD.to_owned() + "event: ", "a"),
        ("an endless event id", Dialect::OpenAiChat, HEAD.to_owned() + "id: ", "a"),
        ("an endless unknown field", Dialect::OpenAiChat, HEAD.to_owned(), "a"),
        ("an endless line of NDJSON", Dialect::Ollama, NDJSON.to_owned() + "{\"a\":\"", "a"),
        ("an endless element of an array", Dialect::Gemini, JSON.to_owned() + "[\"", "a"),
        ("an array without a bottom", Dialect::Gemini, JSON.to_owned(), "["),
    ];
    for (name, dialect, beginning, unit) in cases {
        let played = Flood::endless(&beginning, unit).play(dialect, Shape::Stream, Overrides::new());
        let ends = ProtocolError::EventTooLarge { limit: MAX_EVENT };
        // Of 16 bytes of a line of data 10 are held.
        let read = if unit.len() == 16 { MAX_EVENT / 10 * 16 } else { MAX_EVENT };
        assert_ends(name, &played, ends.into(), MAX_EVENT, read);
    }
}

fn endless_heads_and_chunk_lines_meet_their_bounds() {
    let too_large = Http1Error::HeadTooLarge { limit: MAX_HEAD };
    let line = usize::from(MAX_CHUNK_LINE_BYTES);
    let continues = "HTTP/1.1 100 Continue\r\n\r\n";
    let body = CHUNKED.to_owned() + "2\r\n{}\r\n0\r\n";
    let cases = [
        ("an endless head line", "HTTP/1.1 200 OK\r\nA: ".to_owned(), "a", too_large, MAX_HEAD),
        ("endless head lines", "HTTP/1.1 200 OK\r\n".to_owned(), "A: b\r\n", too_large, MAX_HEAD),
        ("an endless reason", "HTTP/1.1 200 ".to_owned(), "a", too_large, MAX_HEAD),
        ("endless lines before a head", String::new(), "\r\n", too_large, MAX_HEAD),
        ("endless interim responses", String::new(), continues, Http1Error::TooManyInterimResponses, 0),
        ("a chunk size that overflows", CHUNKED.to_owned(), "1", Http1Error::ChunkSizeOverflow, 0),
        ("an endless chunk size of 0", CHUNKED.to_owned(), "0", Http1Error::ChunkLineTooLong, line),
        ("an endless chunk extension", CHUNKED.to_owned() + "1;", "a", Http1Error::ChunkLineTooLong, line),
        ("endless trailers", body, "A: b\r\n", Http1Error::TrailersTooLarge, MAX_TRAILER_BYTES),
    ];
    for (name, beginning, unit, ends, cap) in cases {
        let flood = Flood::endless(&beginning, unit);
        let played = flood.play(Dialect::OpenAiChat, Shape::Unary, Overrides::new());
        assert_ends(name, &played, ProtocolError::from(ends).into(), cap, cap);
    }
}

fn endless_answers_meet_max_body_bytes() {
    let cap = || Overrides::new().max_body_bytes(MAX_BODY);
    let ends = || ErrorKind::from(ProtocolError::BodyTooLarge { limit: MAX_BODY });
    let tool = "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"aaaaaaaaaaaaaaaa\"}}]}}]}\n\n";
    let delta = c("aaaaaaaaaaaaaaaa");
    for (name, shape, beginning, unit) in [
        ("an endless unary answer", Shape::Unary, JSON, "a"),
        ("an endless unary answer to a stream", Shape::Stream, JSON, "a"),
        ("endless deltas of text", Shape::Stream, HEAD, delta.as_str()),
        ("endless deltas of arguments", Shape::Stream, HEAD, tool),
    ] {
        let played = Flood::endless(beginning, unit).play(Dialect::OpenAiChat, shape, cap());
        // A delta takes a line of its own around each of its 16 bytes.
        assert_ends(name, &played, ends(), 2 * MAX_BODY, MAX_BODY * unit.len().div_ceil(16));
    }
    let beginning = "HTTP/1.1 500 No\r\n\r\n";
    let played = Flood::endless(beginning, "a").play(Dialect::OpenAiChat, Shape::Stream, cap());
    played.say("an endless error body");
    let error = played.outcome.result.as_ref().unwrap_err();
    let ErrorKind::Status(status) = &error.kind else { panic!("{error}") };
    assert_eq!((status.status.as_u16(), status.body.len(), status.whole), (500, MAX_BODY, false));
    assert!(played.peak <= 2 * MAX_BODY + MACHINE, "{} held", played.peak);
}
