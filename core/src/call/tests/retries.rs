//! Attempts and the pauses between them (rules RTY-1 to RTY-4).

use std::time::Duration;

use serde_json::json;

use super::play::{Play, ms};
use super::wire::{self, Answer, LAST_CHUNK, STREAM_HEAD, chunk, event, response};
use crate::call::{Request, Retries};
use crate::config::Overrides;
use crate::dialect::Dialect;
use crate::machine::{FailureKind, Stage};
use crate::outcome::{Billing, CallError, ErrorKind, Note, Phase, Reason, SpanKind, StatusError};

const CHAT: Dialect = Dialect::OpenAiChat;

#[test]
fn a_word_about_retries_holds_for_whatever_became_of_the_response() {
    let head = |word: &str| STREAM_HEAD.replacen("\r\n", &format!("\r\nx-should-retry: {word}\r\n"), 1);
    let fatal = event(&json!({"error": {"code": 400, "message": "no"}}));
    for (word, body, attempts) in [
        ("false", chunk(CHAT.overload()), 1),
        ("false", LAST_CHUNK.to_owned(), 1),
        ("true", chunk(&fatal), 2),
        ("maybe", chunk(CHAT.overload()), 2),
        ("maybe", LAST_CHUNK.to_owned(), 2),
        ("maybe", chunk(&fatal), 1),
        ("true", chunk("data: {\n\n"), 1),
    ] {
        let mut play = Play::stream(CHAT, Overrides::new()).start();
        play.at(100).request().receive(head(word)).receive(&body);
        assert_eq!(play.attempts_at().len(), 1);
        if play.record.done.is_none() {
            play.expire();
        }
        assert_eq!(play.attempts_at().len(), attempts, "{word}: {body}");
    }
}

#[test]
fn a_call_that_begins_after_its_deadline_makes_no_attempt() {
    let overrides = Overrides::new().total_deadline(2.0).stream_deadline(1.0);
    let mut stream = Play::stream(CHAT, overrides);
    stream.late(1_000).feed(crate::machine::Event::Start);
    assert_eq!(stream.breach(), (Phase::Deadline, ms(1_000), ms(1_000)));
    assert_eq!(stream.attempts_at(), []);
    assert_eq!(stream.outcome().result.as_ref().unwrap_err().billing, Billing::NotSent);
    let mut unary = Play::unary(overrides);
    unary.late(1_999).feed(crate::machine::Event::Start);
    assert_eq!(unary.attempts_at(), [ms(1_999)]);
}
