//! Streams: what their clocks watch, how they end (rules STR-1 to STR-9).

use serde_json::json;

use super::play::{Play, ms};
use super::record::Got;
use super::wire::{self, Answer, LAST_CHUNK, OPEN_HEAD, STREAM_HEAD, chunk, event, response};
use crate::call::Timer;
use crate::config::Overrides;
use crate::dialect::Dialect;
use crate::machine::Ended;
use crate::outcome::{Billing, Ending, ErrorKind, Note, Phase, ProtocolError, Reason, Truncation};

const CHAT: Dialect = Dialect::OpenAiChat;

/// A stream whose head came at 100 ms
fn open(overrides: Overrides) -> Play {
    let mut play = Play::stream(CHAT, overrides).start();
    play.at(100).open();
    play
}

/// A stream without chunks, whose head came at 100 ms
fn open_to_the_end() -> Play {
    let mut play = Play::stream(CHAT, Overrides::new()).start();
    play.at(100).request().receive(OPEN_HEAD);
    play
}

#[test]
fn one_json_answer_in_place_of_a_stream() {
    let body =
        json!({"id": "c1", "choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]}).to_string();
    let mut play = Play::stream(CHAT, Overrides::new()).start();
    play.at(100).request().receive(response("200 OK", &["content-type: application/json"], &body));
    assert_eq!(
        (play.completion().turn.text(), play.record.text(), play.ended_at()),
        ("Hi", "Hi".to_owned(), ms(100))
    );
    assert_eq!(play.outcome().timeline.notes, [Note::UnaryAnswerToStream]);
    assert_eq!(play.outcome().timeline.attempts[0].reason, Reason::EndOfBody);

    // Cut where nothing says how long it is, and TLS ended without its close_notify.
    for (ended, sent) in [(Ended::WithoutCloseNotify, &body[..20]), (Ended::Clean, &body[..20])] {
        let mut play = Play::stream(CHAT, Overrides::new().max_attempts(1)).start();
        play.at(100).request().receive("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n");
        play.at(200).receive(sent).eof(ended);
        match (play.error(), ended) {
            (ErrorKind::Truncated(Truncation::InResponse { .. }), Ended::WithoutCloseNotify) => {}
            (ErrorKind::Protocol(ProtocolError::Malformed { .. }), Ended::Clean) => {}
            (other, _) => panic!("{ended:?}: {other:?}"),
        }
    }
}

#[test]
fn a_tail_without_its_blank_line_counts_after_a_proper_end_only() {
    let events = CHAT.opening() + &CHAT.text("Hi") + &CHAT.terminal();
    for (tail, ended, notes) in [
        ("data: [DONE]", Ended::Clean, &[Note::TailTaken][..]),
        ("data: [DO", Ended::Clean, &[Note::MissingSentinel]),
        ("data: [DONE]", Ended::WithoutCloseNotify, &[Note::NoCloseNotify, Note::MissingSentinel]),
    ] {
        let mut play = open_to_the_end();
        play.receive(events.clone() + tail).eof(ended);
        assert_eq!(
            (play.completion().turn.text(), &play.outcome().timeline.notes[..]),
            ("Hi", notes),
            "{tail}"
        );
    }
    let marker = CHAT.terminal();
    for (ended, completes) in [(Ended::Clean, true), (Ended::WithoutCloseNotify, false)] {
        let mut play = open_to_the_end();
        play.receive(CHAT.text("Hi") + marker.trim_end()).eof(ended);
        assert_eq!(play.outcome().result.is_ok(), completes);
    }
}

#[test]
fn payloads_that_say_nothing_are_noted() {
    for payload in [": ping", "null"] {
        let mut play = open(Overrides::new());
        play.receive(chunk(format!("data: {payload}\n\n") + &CHAT.text("Hi") + "data: [DONE]\n\n"));
        assert_eq!(play.outcome().timeline.notes, [Note::PayloadSkipped]);
    }
}
