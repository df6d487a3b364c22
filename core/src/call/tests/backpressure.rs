//! A slow consumer is never blamed on the server (rule STR-3).

use super::play::{Play, ms};
use super::wire::{Answer, LAST_CHUNK, chunk, event};
use crate::call::Timer;
use crate::config::Overrides;
use crate::dialect::Dialect;
use crate::machine::{Event, Machine, Step};
use crate::outcome::Phase;
use serde_json::json;

const CHAT: Dialect = Dialect::OpenAiChat;

#[test]
fn what_came_while_the_consumer_held_the_finished_turn_is_read_first() {
    let mut play = Play::stream(CHAT, Overrides::new()).slow().start();
    play.at(100).open().receive(chunk(CHAT.opening() + &CHAT.terminal()));
    // after_marker is 2 s, and the usage waits in the socket.
    assert_eq!((play.record.finished_at(), play.deadline(), play.reads()), (vec![ms(100)], None, false));
    play.at(5_000).taken();
    assert_eq!((play.deadline(), play.reads()), (Some((ms(2_100), Timer::AfterMarker)), true));
    let usage = json!({"id": "c1", "choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}});
    play.receive(chunk(event(&usage))).elapsed();
    assert_eq!(play.ended_at(), ms(5_000));
    assert_eq!(play.completion().turn.usage.as_ref().unwrap().output_tokens, Some(2));
}

#[test]
fn content_that_is_found_while_the_consumer_is_away_gives_it_no_credit() {
    let overrides = Overrides::new().content_idle_timeout(0.5);
    let unknown = event(&json!({"type": "new.kind"}));
    let mut play = Play::stream(Dialect::OpenAiResponses, overrides).slow().start();
    play.at(100).open().receive(chunk(Dialect::OpenAiResponses.opening() + &unknown));
    // A driver that reads on although an item is out does no harm.
    play.at(5_100).receive(chunk(Dialect::OpenAiResponses.text("Hi")));
    play.at(6_100).taken();
    assert_eq!(play.deadline(), Some((ms(6_600), Timer::ContentIdle)));
    play.end();
    assert_eq!(play.breach(), (Phase::ContentIdle, ms(500), ms(500)));
}

/// However fast they come: at the very instant of the consumer's return from content too
#[test]
fn items_that_extend_nothing_live_on_no_credit_of_content_before_them() {
    let unknown = event(&json!({"type": "new.kind"}));
    let overrides = Overrides::new().content_idle_timeout(0.5);
    let mut play = Play::stream(Dialect::OpenAiResponses, overrides).slow().start();
    play.at(100).open().receive(chunk(Dialect::OpenAiResponses.text("Hi")));
    play.at(200).taken().receive(chunk(&unknown));
    play.at(600).taken();
    assert_eq!(play.deadline(), Some((ms(700), Timer::ContentIdle)));
}

#[test]
fn three_idle_bounds_for_each_delta_breach_nothing() {
    let mut play = Play::stream(CHAT, Overrides::new().stream_idle_timeout(1.0)).slow().start();
    play.at(100).open();
    let mut now = 100;
    for _ in 0..5 {
        play.at(now).receive(chunk(CHAT.text("x")));
        // While the item is out nothing is read and no clock runs.
        assert_eq!((play.deadline(), play.reads()), (None, false));
        now += 3_000;
        play.at(now).taken();
        assert_eq!((play.deadline(), play.reads()), (Some((ms(now + 1_000), Timer::StreamIdle)), true));
    }
    play.expire();
    // The consumer's 15 s are not in it.
    assert_eq!(play.breach(), (Phase::StreamIdle, ms(1_000), ms(1_000)));
    let timeline = &play.outcome().timeline;
    assert_eq!((timeline.attempts[0].largest_gap, timeline.elapsed()), (ms(0), ms(now + 1_000)));
}

#[test]
fn taken_without_an_item_out_moves_no_clock() {
    let mut play = Play::stream(CHAT, Overrides::new().stream_idle_timeout(1.0)).start();
    play.at(100).open().at(600).taken();
    assert_eq!(play.deadline(), Some((ms(1_100), Timer::StreamIdle)));
}

#[test]
fn items_that_were_left_unread_come_one_by_one_without_an_event() {
    let mut play = Play::stream(CHAT, Overrides::new().stream_idle_timeout(1.0)).start();
    play.at(100).request();
    let link = play.link();
    let bytes = wire_of(&["a", "b", "c"]);
    let mut texts = Vec::new();
    let now = super::play::START + ms(200);
    // The consumer pulls: it is asked for more only after three idle bounds each time.
    let mut drain = play.call.handle(now, Event::Received(link, bytes.as_bytes())).unwrap();
    for step in 0.. {
        assert!(step < 100, "the call goes round in circles");
        match drain.next() {
            Step::Deliver(crate::call::Item::Delta(delta)) => texts.push(format!("{delta:?}")),
            Step::Deliver(_) => {}
            Step::Do(_) => panic!("no command is due"),
            Step::Wait(wait) => {
                assert!(wait.taken && wait.deadline.is_none());
                break;
            }
            Step::Done(_) => panic!("not yet"),
        }
        drop(drain);
        drain = play.call.drain();
    }
    drop(drain);
    assert_eq!(texts.len(), 3);
    play.at(9_200).taken();
    assert_eq!(play.deadline(), Some((ms(10_200), Timer::StreamIdle)));
    play.receive(chunk("data: [DONE]\n\n"));
    assert_eq!(play.completion().turn.text(), "abc");
}

fn wire_of(texts: &[&str]) -> String {
    let events: String = texts.iter().map(|text| CHAT.text(text)).collect();
    super::wire::STREAM_HEAD.to_owned() + &chunk(events)
}

#[test]
fn the_end_of_the_stream_does_not_wait_for_the_consumer() {
    for (bytes, completes) in [("data: [DONE]\n\n", true), ("", false)] {
        let mut play = Play::stream(CHAT, Overrides::new()).slow().start();
        play.at(100).open().receive(chunk(CHAT.text("Hi") + bytes) + if completes { "" } else { LAST_CHUNK });
        assert_eq!((play.outcome().result.is_ok(), play.ended_at()), (completes, ms(100)));
    }
}
