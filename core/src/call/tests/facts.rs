//! The same call over a transport that parses HTTP itself.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, StatusCode, Version};

use super::play::{Play, ms};
use super::wire::Answer;
use crate::call::{AttemptId, Fact};
use crate::config::Overrides;
use crate::dialect::Dialect;
use crate::http1::ResponseHead;
use crate::machine::{Ended, Event};
use crate::outcome::{Billing, ErrorKind, Phase, Truncation};

const CHAT: Dialect = Dialect::OpenAiChat;

fn head(id: AttemptId, status: u16, content_type: &'static str) -> Fact<'static> {
    let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(content_type))]);
    let status = StatusCode::from_u16(status).unwrap();
    Fact::Head(id, ResponseHead { version: Version::HTTP_2, status, reason: Bytes::new(), headers })
}

fn open() -> Play {
    let mut play = Play::stream(CHAT, Overrides::new()).start();
    play.at(100).connected();
    let link = play.link();
    play.at(200).fact(head(link, 200, "text/event-stream"));
    play
}

#[test]
fn a_stream_to_its_end() {
    let mut play = open();
    let link = play.link();
    let events = CHAT.opening() + &CHAT.text("Hello, ") + &CHAT.text("world") + &CHAT.terminal();
    for (at, piece) in events.as_bytes().chunks(30).enumerate() {
        play.at(300 + at as u64).fact(Fact::Body(link, piece));
    }
    assert_eq!(play.record.finished_at().len(), 1);
    play.at(1_000).fact(Fact::End(link));
    assert_eq!((play.completion().turn.text(), play.ended_at()), ("Hello, world", ms(1_000)));
    let record = &play.outcome().timeline.attempts[0];
    assert_eq!((record.status, record.bytes_received), (Some(200), events.len() as u64));
}

/// Such a transport need not tell what it has sent
#[test]
fn an_answer_on_a_connection_that_was_left_open_is_one() {
    let mut play = Play::stream(CHAT, Overrides::new()).start();
    play.at(100).reused();
    let link = play.link();
    play.at(200).fact(head(link, 200, "text/event-stream"));
    play.at(300).fact(Fact::Body(link, (CHAT.text("Hi") + &CHAT.terminal()).as_bytes()));
    play.fact(Fact::End(link));
    assert_eq!((play.completion().turn.text(), play.record.opened().len()), ("Hi", 1));
}

#[test]
fn ends_that_are_too_early() {
    let mut play = open();
    let link = play.link();
    play.at(300).fact(Fact::Body(link, CHAT.text("Hi").as_bytes()));
    play.at(400).fact(Fact::End(link));
    assert_eq!(play.error(), &ErrorKind::Truncated(Truncation::NoTerminalState));

    let mut play = open();
    let link = play.link();
    play.at(300).fact(Fact::Body(link, CHAT.text("Hi").as_bytes()));
    play.at(400).eof(Ended::Clean);
    assert!(matches!(play.error(), ErrorKind::Truncated(Truncation::InResponse { .. })));
    assert_eq!(play.outcome().result.as_ref().unwrap_err().billing, Billing::Delivered);

    let mut play = open();
    let link = play.link();
    play.at(300).fact(Fact::Body(link, CHAT.text("Hi").as_bytes()));
    assert_eq!(play.end().turn().text(), "Hi");
    assert_eq!(play.breach().0, Phase::StreamIdle);
}

#[test]
fn a_refusal() {
    let mut play = Play::stream(CHAT, Overrides::new().max_attempts(1)).start();
    play.at(100).connected();
    let link = play.link();
    play.at(200).fact(head(link, 503, "text/plain")).fact(Fact::Body(link, b"busy")).fact(Fact::End(link));
    match play.error() {
        ErrorKind::Status(error) => assert_eq!((&error.body[..], error.whole), (&b"busy"[..], true)),
        other => panic!("{other:?}"),
    }
    assert_eq!(play.outcome().result.as_ref().unwrap_err().billing, Billing::MaybeBilled);
}

#[test]
fn facts_about_a_connection_that_is_closed_are_counted_once() {
    let mut play = Play::stream(CHAT, Overrides::new()).start();
    play.at(100).connected();
    let first = play.link();
    play.at(200).reset().expire();
    assert_ne!(play.link(), first);
    play.fact(Fact::Body(first, b"late")).fact(Fact::End(first)).fact(head(first, 200, "text/plain"));
    play.feed(Event::Received(first, b"late")).feed(Event::Sent(first, 10_000)).cancel();
    assert_eq!(play.outcome().timeline.stale_events, 5);
}

/// A line that is whole and the last, though its line end is missing (rule STR-9)
#[test]
fn a_reset_after_the_last_line_of_a_stream_is_teardown_noise() {
    let mut play = Play::stream(Dialect::Ollama, Overrides::new()).start();
    play.at(100).connected();
    let link = play.link();
    play.at(200).fact(head(link, 200, "application/x-ndjson"));
    let last = r#"{"message":{"content":"Hi"},"done":true,"done_reason":"stop"}"#;
    play.fact(Fact::Body(link, last.as_bytes())).reset();
    assert_eq!(play.completion().turn.text(), "Hi");
}
