//! Mistakes of a driver are typed, name their fix, and change nothing.

use bytes::Bytes;
use http::{HeaderMap, StatusCode, Version};

use super::play::{Play, START, ms};
use super::wire::{self, Answer, chunk};
use crate::call::{AttemptId, Call, Env, Fact, State};
use crate::config::{Overrides, RequestConfig};
use crate::dialect::Dialect;
use crate::http1::ResponseHead;
use crate::machine::{Ended, Event, Machine, Misuse, Step};

const CHAT: Dialect = Dialect::OpenAiChat;

fn waiting() -> Play {
    let mut play = Play::stream(CHAT, Overrides::new()).start();
    play.at(100).connected();
    play
}

#[track_caller]
fn refused(play: &mut Play, event: Event<'_, Call>) -> String {
    let (before, deadline) = (play.call.state(), play.call.progress().deadline);
    let misuse = play.try_feed(event).unwrap_err();
    assert_eq!((play.call.state(), play.call.progress().deadline), (before, deadline));
    misuse.to_string()
}

#[test]
fn a_call_begins_once() {
    let request = wire::request(CHAT).stream().build().unwrap();
    let env = Env { seed: 0, unix_at_origin: ms(0) };
    let mut call = Call::new(request, RequestConfig::default(), env, START);
    for early in [Event::Elapsed, Event::Taken, Event::Fact(Fact::ConsumerFailed("x"))] {
        assert_eq!(call.handle(START, early).map(drop), Err(Misuse::NotStarted));
    }
    assert_eq!(call.state(), State::Idle);
    drop(call.handle(START, Event::Start).unwrap());
    assert_eq!(call.handle(START, Event::Start).map(drop), Err(Misuse::StartedTwice));
    assert_eq!(call.state(), State::Connecting);
}

#[test]
fn connections_that_are_not_there() {
    let mut play = Play::stream(CHAT, Overrides::new()).start();
    let link = play.link();
    for id in [AttemptId::NONE, link.next()] {
        assert_eq!(play.try_feed(Event::Connected(id)), Err(Misuse::UnknownLink));
    }
    assert_eq!(play.try_feed(Event::Sent(link, 1)), Err(Misuse::NotConnected));
    assert_eq!(play.try_feed(Event::Received(link, b"x")), Err(Misuse::NotConnected));
    assert_eq!(play.try_feed(Event::Eof(link, Ended::Clean)), Err(Misuse::NotConnected));
    play.connected();
    let text = refused(&mut play, Event::Connected(link));
    assert!(text.contains("feed Event::Connected or Reused once"), "{text}");
}

#[test]
fn more_sent_than_there_was() {
    let mut play = waiting();
    let outgoing = play.outgoing();
    let too_much = Err(Misuse::SentTooMuch { sent: outgoing + 1, outgoing });
    assert_eq!(play.try_feed(Event::Sent(play.link(), outgoing + 1)), too_much);
    play.sent(outgoing - 1);
    assert_eq!(play.outgoing(), 1);
    assert_eq!(play.try_feed(Event::Sent(play.link(), 2)), Err(Misuse::SentTooMuch { sent: 2, outgoing: 1 }));
}

#[test]
fn bytes_after_the_end() {
    let mut play = Play::stream(CHAT, Overrides::new()).slow().start();
    play.at(100).connected();
    let link = play.link();
    // Only a drain that was dropped leaves an end that has not been acted on.
    drop(play.call.handle(START + ms(200), Event::Eof(link, Ended::Clean)).unwrap());
    let text = refused(&mut play, Event::Received(link, b"x"));
    assert!(text.contains("feed Eof and Failed last"), "{text}");
}

#[test]
fn bytes_or_a_deadline_before_the_earlier_bytes_are_parsed() {
    let mut play = waiting();
    let link = play.link();
    drop(play.call.handle(START + ms(200), Event::Received(link, b"HTTP/1.1 ")).unwrap());
    for event in [Event::Received(link, b"200 OK"), Event::Elapsed] {
        assert_eq!(play.try_feed(event), Err(Misuse::Undrained));
    }
    assert!(Misuse::Undrained.to_string().contains("drain() to Step::Wait"));
}

#[test]
fn a_forgotten_drain_is_caught_whatever_is_done_next() {
    for drain_again in [false, true] {
        let mut play = waiting();
        let link = play.link();
        std::mem::forget(play.call.handle(START + ms(200), Event::Received(link, b"HTTP/1.1 ")).unwrap());
        if drain_again {
            assert!(matches!(play.call.drain().next(), Step::Wait(_)));
        }
        assert_eq!(play.try_feed(Event::Elapsed), Err(Misuse::ForgottenDrain));
    }
}

#[test]
fn facts_out_of_order() {
    let head = || ResponseHead {
        version: Version::HTTP_2,
        status: StatusCode::OK,
        reason: Bytes::new(),
        headers: HeaderMap::new(),
    };
    let mut play = waiting();
    let link = play.link();
    assert!(refused(&mut play, Event::Fact(Fact::Body(link, b"x"))).contains("feed Fact::Head first"));
    assert!(refused(&mut play, Event::Fact(Fact::End(link))).contains("feed Fact::Head first"));
    play.fact(Fact::Head(link, head()));
    assert!(refused(&mut play, Event::Fact(Fact::Head(link, head()))).contains("feed Fact::Head once"));
    assert!(refused(&mut play, Event::Received(link, b"x")).contains("feed Fact::Body instead"));
    drop(play.call.handle(START + ms(300), Event::Fact(Fact::Body(link, b"data: "))).unwrap());
    assert_eq!(play.try_feed(Event::Fact(Fact::Body(link, b"x"))), Err(Misuse::Undrained));

    let mut play = waiting();
    let link = play.link();
    play.receive("HTTP/1.1 ");
    assert!(refused(&mut play, Event::Fact(Fact::Head(link, head()))).contains("not both"));
}

#[test]
fn a_mistake_moves_no_clock() {
    let mut play = waiting();
    play.receive(wire::STREAM_HEAD).receive(chunk(CHAT.opening()));
    let link = play.link();
    assert_eq!(
        play.call.handle(START + ms(90_000), Event::Received(link.next(), b"")).map(drop),
        Err(Misuse::UnknownLink)
    );
    play.at(200).receive(chunk(CHAT.text("Hi")));
    assert_eq!(play.deadline().unwrap().0, ms(200 + 120_000));
    play.cancel();
    assert_eq!(play.outcome().timeline.clock_steps_back, 0);
}
