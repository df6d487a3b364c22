//! A slow consumer is never blamed on the server (rule STR-3).

use super::play::{Play, ms};
use super::wire::{Answer, LAST_CHUNK, chunk, event};
use crate::call::Timer;
use crate::config::Overrides;
use crate::dialect::Dialect;
use crate::machine::{Event, Machine, Step};
use crate::outcome::{Note, Phase};
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
