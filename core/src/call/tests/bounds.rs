//! What a peer can make a call hold (INV-8).

use serde_json::json;

use super::play::{Play, ms};
use super::wire::{Answer, STREAM_HEAD, chunk, event, request, response};
use crate::call::Held;
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

/// Whatever kind of word it is
#[test]
fn every_kind_of_word_counts() {
    let x = "x".repeat(1_000);
    let call = |id: &str| json!([{"index": 0, "id": id, "function": {"name": "f", "arguments": x}}]);
    let in_a_delta = [json!({"reasoning": x}), json!({"refusal": x}), json!({"tool_calls": call("t")})];
    let mut events: Vec<_> =
        in_a_delta.iter().map(|delta| json!({"choices": [{"index": 0, "delta": delta}]})).collect();
    // A provider's own words, of many choices: no delta brings them.
    let open = json!({"index": 99, "delta": {}});
    events.push(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": x}, open]}));
    for event_of in &events {
        let mut play = Play::stream(CHAT, Overrides::new().max_body_bytes(10_000)).start();
        play.at(100).open();
        for index in 0..12 {
            let mut data = event_of.clone();
            if data["choices"][0]["finish_reason"].is_string() {
                data["choices"][0]["index"] = index.into();
            }
            if play.record.done.is_none() {
                play.receive(chunk(event(&data)));
                assert!(play.call.held().turn <= 10_000, "{event_of}");
            }
        }
        assert_eq!(broken(&play), &ProtocolError::BodyTooLarge { limit: 10_000 }, "{event_of}");
    }
}

/// A short text of JSON can be a large answer: each call takes room
#[test]
fn the_answer_that_a_unary_body_makes() {
    let call = json!({"function": {"name": "f"}});
    let body = json!({"choices": [{"message": {"tool_calls": vec![call; 1_000]}}]}).to_string();
    for (most, fits) in [(1_000_000, true), (body.len(), false)] {
        let mut play =
            Play::new(request(CHAT).build().unwrap(), Overrides::new().max_body_bytes(most)).start();
        play.at(100).request().receive(response("200 OK", &[], &body));
        match fits {
            true => assert_eq!(play.completion().turn.choices[0].tool_calls.len(), 1_000),
            false => assert_eq!(broken(&play), &ProtocolError::BodyTooLarge { limit: most }),
        }
    }
}

#[test]
fn arguments_that_a_decoder_keeps() {
    let dialect = Dialect::Gemini;
    let mut play = Play::stream(dialect, Overrides::new().max_body_bytes(10_000)).start();
    play.at(100).open();
    for index in 0..12 {
        let call = json!({
            "name": "f",
            "partialArgs": [{"jsonPath": "$.a", "stringValue": "x".repeat(1_000), "willContinue": true}],
            "willContinue": true,
        });
        let candidate = json!({"index": index, "content": {"parts": [{"functionCall": call}]}});
        if play.record.done.is_none() {
            play.receive(chunk(event(&json!({"candidates": [candidate]}))));
            assert!(play.record.done.is_some() || play.call.held().turn > 1_000 * index);
        }
    }
    assert_eq!(broken(&play), &ProtocolError::BodyTooLarge { limit: 10_000 });
}

/// Each part of what is held, where there is some
#[test]
fn what_is_held_is_told() {
    let held = |play: &Play| play.call.held();
    let mut play = Play::unary(Overrides::new()).start();
    assert_eq!(held(&play), Held::default());
    play.at(100).request().receive("HTTP/1.1 200 OK\r\nx: yz");
    assert_eq!(held(&play), Held { head: 22, ..Held::default() });
    play.receive("\r\ncontent-length: 9\r\n\r\nhello");
    assert_eq!(held(&play), Held { head: 18, body: 5, ..Held::default() });
    play.receive("----");
    assert_eq!(held(&play).total(), 0);

    let mut play = Play::stream(CHAT, Overrides::new()).start();
    play.at(100).open().receive(chunk("data: {\"id\":\"c1\"}\n\ndata: half"));
    let Held { head, event, body, turn, .. } = held(&play);
    assert_eq!((head, body, turn), (STREAM_HEAD.len() - "HTTP/1.1 200 OK\r\n: \r\n: \r\n\r\n".len(), 0, 2));
    assert!((10..400).contains(&event), "{event}");

    let mut play = Play::unary(Overrides::new()).start();
    play.at(100).request().receive(response("503 Busy", &["x: y"], r#"{"error":{"message":"busy"}}"#));
    let expected = Held { head: 18, body: 28, failure: 4, ..Held::default() };
    assert_eq!(held(&play), expected);
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
