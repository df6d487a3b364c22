//! What a peer can make a call hold (INV-8).

use serde_json::json;

use super::play::{Play, ms};
use super::wire::{Answer, STREAM_HEAD, chunk, event, request, response};
use crate::config::Overrides;
use crate::dialect::Dialect;
use crate::http1::Http1Error;
use crate::outcome::{ErrorKind, ProtocolError};

const CHAT: Dialect = Dialect::OpenAiChat;

#[track_caller]
fn broken(play: &Play) -> &ProtocolError {
    assert_eq!(play.attempts_at().len(), 1, "not retried");
    match play.error() {
        ErrorKind::Protocol(error) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_unary_body() {
    for (length, fits) in [(100, true), (101, false)] {
        let mut play = Play::unary(Overrides::new().max_body_bytes(100)).start();
        play.at(100).request().trickle(response("200 OK", &[], &"x".repeat(length)));
        match fits {
            true => assert_eq!(play.completion().body.len(), length),
            false => assert_eq!(broken(&play), &ProtocolError::BodyTooLarge { limit: 100 }),
        }
    }
}

#[test]
fn a_json_answer_in_place_of_a_stream() {
    let mut play = Play::stream(CHAT, Overrides::new().max_body_bytes(100)).start();
    let head = STREAM_HEAD.replace("text/event-stream", "application/json");
    play.at(100).request().receive(head).receive(chunk("x".repeat(100)));
    assert!(play.record.done.is_none());
    play.receive(chunk("x"));
    assert_eq!(broken(&play), &ProtocolError::BodyTooLarge { limit: 100 });
}

#[test]
fn the_answer_put_together_from_a_stream() {
    let mut play = Play::stream(CHAT, Overrides::new().max_body_bytes(10_000)).start();
    play.at(100).open();
    for at in 0..11 {
        if play.record.done.is_none() {
            play.at(200 + at).receive(chunk(CHAT.text(&"x".repeat(1_000))));
        }
    }
    assert_eq!(broken(&play), &ProtocolError::BodyTooLarge { limit: 10_000 });
    // What was delivered before is kept, and no more than the cap.
    assert_eq!((play.outcome().turn().text().len(), play.ended_at()), (9_000, ms(209)));
}

#[test]
fn empty_tool_calls_and_choices_weigh_something() {
    let call = |index: u32| {
        let call = json!({"index": index, "id": "", "function": {"name": "f"}});
        json!({"id": "c", "choices": [{"index": 0, "delta": {"tool_calls": [call]}}]})
    };
    let choice = |index: u32| json!({"id": "c", "choices": [{"index": index, "delta": {}}]});
    for make in [&call as &dyn Fn(u32) -> serde_json::Value, &choice] {
        let mut play = Play::stream(CHAT, Overrides::new().max_body_bytes(10_000)).start();
        play.at(100).open();
        for index in 0..1_000 {
            if play.record.done.is_none() {
                play.receive(chunk(event(&make(index))));
            }
        }
        assert_eq!(broken(&play), &ProtocolError::BodyTooLarge { limit: 10_000 });
    }
}

#[test]
fn one_event() {
    let mut play = Play::stream(CHAT, Overrides::new().max_event_bytes(1_000)).start();
    play.at(100).open().receive(chunk(CHAT.text("Hi")));
    play.trickle(chunk("data: ".to_owned() + &"x".repeat(1_000)));
    assert_eq!(broken(&play), &ProtocolError::EventTooLarge { limit: 1_000 });
    assert_eq!(play.outcome().turn().text(), "Hi");
}

#[test]
fn a_head() {
    let mut play = Play::new(request(CHAT).build().unwrap(), Overrides::new().max_head_bytes(1_000)).start();
    play.at(100).request().trickle(format!("HTTP/1.1 200 OK\r\nx: {}", "x".repeat(1_000)));
    assert_eq!(broken(&play), &ProtocolError::Http1(Http1Error::HeadTooLarge { limit: 1_000 }));
}

#[test]
fn interim_responses_are_bounded_in_number() {
    let mut play = Play::stream(CHAT, Overrides::new()).start();
    play.at(100).request().receive("HTTP/1.1 102 Processing\r\n\r\n".repeat(200));
    assert_eq!(broken(&play), &ProtocolError::Http1(Http1Error::TooManyInterimResponses));
}
