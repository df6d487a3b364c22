//! A terminal state is kept, whatever comes after it (rules STR-4 and STR-7).

use std::time::Duration;

use serde_json::json;

use super::play::{Play, ms};
use super::record::Got;
use super::wire::{self, Answer, LAST_CHUNK, chunk};
use crate::call::{CloseMode, Command, Timer};
use crate::config::Overrides;
use crate::dialect::Dialect;
use crate::machine::{Ended, Stage};
use crate::outcome::{Billing, Ending, ErrorKind, Note, Reason, SpanKind};

/// A stream whose answer is whole at 300 ms
fn marked(dialect: Dialect, overrides: Overrides) -> Play {
    let mut play = Play::stream(dialect, overrides).start();
    play.at(100).open();
    play.at(200).receive(chunk(dialect.opening() + &dialect.text("Hi")));
    play.at(300).receive(chunk(dialect.terminal()));
    play
}

/// What follows the terminal state, the name of the case, and when the call then ends
type Teardown = (&'static str, fn(&mut Play), u64);

const TEARDOWNS: [Teardown; 6] = [
    ("held open", |_| {}, 300 + 2_000),
    ("reset", |play| drop(play.at(400).reset()), 400),
    ("FIN without the last chunk", |play| drop(play.at(400).fin()), 400),
    ("TLS end without close_notify", |play| drop(play.at(400).eof(Ended::WithoutCloseNotify)), 400),
    ("bad chunk", |play| drop(play.at(400).receive("zz\r\n")), 400),
    ("cancel", |play| drop(play.at(400).cancel()), 400),
];

#[test]
fn a_turn_that_is_whole_survives_every_teardown() {
    for dialect in super::wire::SPOKEN {
        for (name, teardown, ends_at) in TEARDOWNS {
            let mut play = marked(dialect, Overrides::new());
            let has_marker = play.record.done.is_none();
            assert_eq!(has_marker, dialect != Dialect::OpenAiResponses);
            if has_marker {
                teardown(&mut play);
                play.end();
            }
            let case = format!("{dialect:?}, {name}");
            let completion = play.completion();
            assert_eq!((&completion.ending, completion.turn.text()), (&Ending::Completed, "Hi"), "{case}");
            let (finished_at, ended_at) = if has_marker { (vec![ms(300)], ends_at) } else { (vec![], 300) };
            assert_eq!(play.record.finished_at(), finished_at, "{case}");
            assert_eq!(play.ended_at(), ms(ended_at), "{case}");
            assert_eq!(play.attempts_at(), [Duration::ZERO], "{case}");
        }
    }
}

#[test]
fn what_cannot_be_read_after_the_marker_is_only_noted() {
    let mut play = marked(Dialect::OpenAiChat, Overrides::new());
    play.at(400).receive(chunk("data: {\"choices\":[{\"delta\":{\"content\":\"lost\"}}\n\ndata: [DONE]\n\n"));
    assert_eq!((play.completion().turn.text(), play.ended_at()), ("Hi", ms(400)));
    assert_eq!(play.outcome().timeline.notes, [Note::NoiseAfterEnd]);
}

#[test]
fn an_error_after_the_marker_fails_and_is_not_retried() {
    for dialect in [Dialect::OpenAiChat, Dialect::Anthropic, Dialect::Gemini] {
        for text in ["Hi", ""] {
            let mut play = Play::stream(dialect, Overrides::new()).start();
            let said = if text.is_empty() { String::new() } else { dialect.text(text) };
            play.at(100).open().receive(chunk(dialect.opening() + &said + &dialect.terminal()));
            play.at(200).receive(chunk(dialect.overload()));
            assert!(matches!(play.error(), ErrorKind::InBand(_)), "{dialect:?}");
            assert_eq!((play.ended_at(), play.attempts_at().len()), (ms(200), 1), "{dialect:?}");
            assert_eq!(play.outcome().result.as_ref().unwrap_err().billing, Billing::Delivered);
            assert_eq!(play.outcome().turn().text(), text);
        }
    }
}

#[test]
fn a_marker_that_was_taken_back_still_closes_the_gate() {
    let mut play = Play::stream(Dialect::OpenAiChat, Overrides::new()).start();
    play.at(100).open().receive(chunk(Dialect::OpenAiChat.terminal()));
    let another = json!({"id": "c1", "choices": [{"index": 1, "delta": {"role": "assistant"}}]});
    play.at(200).receive(chunk(wire::event(&another)));
    play.at(300).reset();
    assert!(matches!(play.error(), ErrorKind::Transport(_)));
    assert_eq!((play.record.finished_at(), play.attempts_at().len()), (vec![ms(100)], 1));
}
