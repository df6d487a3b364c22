//! The caller gives up, or fails: the call is over at that instant.

use super::play::{Play, START, ms};
use super::wire::{Answer, chunk, request, response};
use crate::call::{CloseMode, Command, Fact, State};
use crate::config::Overrides;
use crate::dialect::Dialect;
use crate::machine::{Event, Machine};
use crate::outcome::{Billing, Ending, ErrorKind, Note, Reason};

const CHAT: Dialect = Dialect::OpenAiChat;

/// A call in each state but the last two, and what a cancel then says of the cost
fn states() -> [(Play, State, Billing); 7] {
    let began = || Play::stream(CHAT, Overrides::new()).start();
    let idle = Play::new(request(CHAT).stream().build().unwrap(), Overrides::new());
    let connecting = began();
    let mut waiting = began();
    waiting.at(100).request();
    let mut streaming = began();
    streaming.at(100).open().receive(chunk(CHAT.text("Hi")));
    let mut reading = Play::unary(Overrides::new()).start();
    reading.at(100).request().receive(&response("200 OK", &[], "whole")[..38]);
    let mut refused = began();
    refused.at(100).request().receive("HTTP/1.1 400 No\r\ncontent-length: 9\r\n\r\n");
    let mut pausing = began();
    pausing.at(100).request().reset();
    [
        (idle, State::Idle, Billing::NotSent),
        (connecting, State::Connecting, Billing::NotSent),
        (waiting, State::Waiting, Billing::MaybeBilled),
        (streaming, State::Streaming, Billing::Delivered),
        (reading, State::Reading, Billing::MaybeBilled),
        (refused, State::Refused, Billing::MaybeBilled),
        (pausing, State::Pausing, Billing::MaybeBilled),
    ]
}

#[test]
fn a_cancel_ends_the_call_at_once_in_every_state() {
    for (mut play, state, billing) in states() {
        assert_eq!(play.call.state(), state);
        let connections = play.record.opened().len();
        play.at(150).cancel();
        assert_eq!((play.error(), play.ended_at()), (&ErrorKind::Cancelled, ms(150)), "{state:?}");
        assert_eq!(play.outcome().result.as_ref().unwrap_err().billing, billing, "{state:?}");
        // The record has checked that every connection is closed.
        assert_eq!(play.record.opened().len(), connections);
    }
}

#[test]
fn a_callers_failure_is_its_own_and_not_retried() {
    for (mut play, state, _) in states().into_iter().skip(1) {
        play.at(150).fact(Fact::ConsumerFailed("disk full"));
        assert_eq!(play.error(), &ErrorKind::Consumer("disk full".to_owned()), "{state:?}");
        assert_eq!(play.ended_at(), ms(150));
    }
    // A turn that is whole does not excuse it (rule STR-4).
    let mut play = Play::stream(CHAT, Overrides::new()).start();
    play.at(100).open().receive(chunk(CHAT.text("Hi") + &CHAT.terminal()));
    play.at(150).fact(Fact::ConsumerFailed("disk full"));
    assert_eq!(play.error(), &ErrorKind::Consumer("disk full".to_owned()));
    assert_eq!(play.outcome().turn().text(), "Hi");
}

#[test]
fn a_cancel_before_the_connection_is_asked_for_opens_none() {
    let mut play = Play::stream(CHAT, Overrides::new());
    drop(play.call.handle(START, Event::Start).unwrap());
    play.at(5).cancel();
    assert_eq!((play.error(), play.record.commands.len()), (&ErrorKind::Cancelled, 0));
}

#[test]
fn a_cancel_after_the_terminal_state_is_a_success() {
    let mut play = Play::stream(CHAT, Overrides::new()).start();
    play.at(100).open().receive(chunk(CHAT.text("Hi") + &CHAT.terminal()));
    play.at(150).cancel();
    assert_eq!((&play.completion().ending, play.ended_at()), (&Ending::Completed, ms(150)));
    let timeline = &play.outcome().timeline;
    assert!(timeline.notes.contains(&Note::CancelledAfterEnd));
    assert_eq!(timeline.attempts[0].reason, Reason::Cancelled);
    assert_eq!(play.record.commands[1].1, Command::Close(play.link(), CloseMode::Abort));
}

#[test]
fn done_comes_once_and_nothing_after_it() {
    for (mut play, ..) in states().into_iter().skip(1) {
        let link = play.link();
        play.at(150).cancel();
        // The record refuses every step but a wait without a deadline.
        play.at(200).cancel().taken().feed(Event::Elapsed);
        play.feed(Event::Received(link, b"late")).feed(Event::Connected(link)).reset();
        assert_eq!((play.deadline(), play.reads(), play.call.state()), (None, false, State::Over));
        assert_eq!(play.ended_at(), ms(150));
    }
}
