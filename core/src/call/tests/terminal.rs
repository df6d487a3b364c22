//! A terminal state is kept, whatever comes after it (rules STR-4 and STR-7).

use std::time::Duration;

use serde_json::json;

use super::play::{Play, ms};
use super::record::Got;
use super::wire::{self, Answer, LAST_CHUNK, SPOKEN, chunk, event};
use crate::call::{CloseMode, Command, Timer};
use crate::config::Overrides;
use crate::dialect::Dialect;
use crate::machine::{Ended, FailureKind, Stage};
use crate::outcome::{Billing, Ending, ErrorKind, Note, Reason, SpanKind, Truncation};

/// A stream whose answer is whole at 300 ms
fn marked(dialect: Dialect, overrides: Overrides) -> Play {
    let mut play = Play::stream(dialect, overrides).start();
    play.at(100).open();
    play.at(200).receive(chunk(dialect.opening() + &dialect.text("Hi")));
    play.at(300).receive(chunk(dialect.terminal()));
    play
}

/// What follows the terminal state, the name of the case, and when the call then ends
type Teardown = (&'static str, fn(&mut Play) -> &mut Play, u64);

const TEARDOWNS: [Teardown; 6] = [
    ("held open", |play| play, 300 + 2_000),
    ("reset", |play| play.at(400).reset(), 400),
    ("FIN without the last chunk", |play| play.at(400).fin(), 400),
    ("TLS end without close_notify", |play| play.at(400).eof(Ended::WithoutCloseNotify), 400),
    ("bad chunk", |play| play.at(400).receive("zz\r\n"), 400),
    ("cancel", |play| play.at(400).cancel(), 400),
];

#[test]
fn a_turn_that_is_whole_survives_every_teardown() {
    for dialect in SPOKEN {
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
fn what_cannot_be_read_after_the_marker_is_only_noted_and_counted() {
    let mut play = marked(Dialect::OpenAiChat, Overrides::new());
    play.at(400).receive(chunk("data: {\"choices\":[{\"delta\":{\"content\":\"lost\"}}\n\ndata: more\n\n"));
    play.receive(chunk("data: [DONE]\n\n"));
    assert_eq!((play.completion().turn.text(), play.ended_at()), ("Hi", ms(400)));
    assert_eq!(play.outcome().timeline.notes, [Note::NoiseAfterEnd]);
    assert_eq!(play.outcome().timeline.attempts[0].malformed, 2);
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

fn usage() -> String {
    event(&json!({"id": "c1", "choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}}))
}

fn choice(index: u32, member: &serde_json::Value) -> String {
    let mut choice = json!({"index": index, "delta": {}});
    choice.as_object_mut().unwrap().extend(member.as_object().unwrap().clone());
    event(&json!({"id": "c1", "choices": [choice]}))
}

#[test]
fn the_call_is_over_at_the_sentinel() {
    for dialect in [Dialect::OpenAiChat, Dialect::Anthropic] {
        let mut play = marked(dialect, Overrides::new());
        play.at(700).receive(chunk(dialect.sentinel().unwrap()));
        assert_eq!((play.completion().turn.text(), play.ended_at()), ("Hi", ms(700)));
        assert!(
            matches!(play.record.commands[1], (at, Command::Close(_, CloseMode::Finish(_))) if at == ms(700))
        );
        assert_eq!(play.outcome().timeline.notes, []);
        assert_eq!(play.outcome().timeline.attempts[0].reason, Reason::Sentinel);
    }
}

#[test]
fn gemini_ends_with_its_body() {
    let mut play = marked(Dialect::Gemini, Overrides::new());
    play.at(700).receive(LAST_CHUNK);
    assert_eq!((play.completion().turn.text(), play.ended_at()), ("Hi", ms(700)));
    assert_eq!(play.outcome().timeline.notes, []);
    assert_eq!(play.record.commands[1], (ms(700), Command::Close(play.link(), CloseMode::Keep)));
}

#[test]
fn what_a_teardown_was_is_noted() {
    let notes: [&[Note]; 6] = [
        &[Note::MissingSentinel],
        &[Note::UncleanEnd, Note::MissingSentinel],
        &[Note::UncleanEnd, Note::MissingSentinel],
        &[Note::UncleanEnd, Note::MissingSentinel],
        &[Note::NoiseAfterEnd, Note::MissingSentinel],
        &[Note::CancelledAfterEnd, Note::MissingSentinel],
    ];
    for ((name, teardown, _), notes) in TEARDOWNS.into_iter().zip(notes) {
        let mut play = marked(Dialect::OpenAiChat, Overrides::new());
        teardown(&mut play);
        play.end();
        assert_eq!(play.outcome().timeline.notes, notes, "{name}");
    }
}

#[test]
fn every_clock_after_the_marker_is_teardown_noise() {
    for overrides in [
        Overrides::new().stream_idle_timeout(0.5),
        Overrides::new().stream_deadline(0.8),
        Overrides::new().content_idle_timeout(0.6),
    ] {
        let mut play = marked(Dialect::OpenAiChat, overrides);
        play.end();
        assert_eq!(play.completion().turn.text(), "Hi");
        assert!(play.ended_at() <= ms(800));
        assert!(play.outcome().timeline.notes.contains(&Note::HeldOpen));
    }
}

#[test]
fn comments_do_not_extend_after_marker() {
    for dialect in [Dialect::OpenAiChat, Dialect::Anthropic, Dialect::Gemini] {
        let mut play = marked(dialect, Overrides::new());
        for tick in 1..20 {
            play.at(300 + tick * 100).receive(chunk(dialect.ping()));
        }
        play.end();
        assert_eq!((play.completion().turn.text(), play.ended_at()), ("Hi", ms(2_300)), "{dialect:?}");
        assert_eq!(play.outcome().timeline.attempts[0].reason, Reason::AfterMarker);
    }
}

#[test]
fn new_content_starts_after_marker_afresh() {
    // Gemini repeats its STOP.
    let more =
        event(&json!({"candidates": [{"content": {"parts": [{"text": "!"}]}, "finishReason": "STOP"}]}));
    let mut play = marked(Dialect::Gemini, Overrides::new());
    play.at(1_300).receive(chunk(more));
    assert_eq!(play.deadline(), Some((ms(3_300), Timer::AfterMarker)));
    assert_eq!(play.record.finished_at(), [ms(300), ms(1_300)]);
    assert!(matches!(&play.record.items.last().unwrap().1, Got::Finished(turn) if turn.text() == "Hi!"));
    // A STOP without content does not.
    play.at(2_000).receive(chunk(Dialect::Gemini.terminal()));
    play.end();
    assert_eq!((play.completion().turn.text(), play.ended_at()), ("Hi!", ms(3_300)));
}

#[test]
fn an_unfinished_choice_suspends_after_marker() {
    let chat = Dialect::OpenAiChat;
    let mut play = marked(chat, Overrides::new().stream_idle_timeout(10.0));
    play.at(1_000).receive(chunk(choice(1, &json!({"delta": {"content": "Ho"}}))));
    assert_eq!(play.deadline(), Some((ms(11_000), Timer::StreamIdle)));
    play.at(6_000).receive(chunk(choice(1, &json!({"finish_reason": "stop"}))));
    assert_eq!(play.deadline(), Some((ms(8_000), Timer::AfterMarker)));
    assert_eq!(play.record.finished_at(), [ms(300), ms(6_000)]);
    assert_eq!(play.end().turn().choices.len(), 2);
    let kinds: Vec<_> =
        play.outcome().timeline.spans[2..].iter().map(|span| (span.kind, span.reason)).collect();
    assert_eq!(
        kinds,
        [
            (SpanKind::Stream, Reason::Marker),
            (SpanKind::AfterMarker, Reason::Done),
            (SpanKind::Stream, Reason::Marker),
            (SpanKind::AfterMarker, Reason::AfterMarker),
        ]
    );
}

#[test]
fn after_marker_of_zero_does_not_wait() {
    let mut play = marked(Dialect::OpenAiChat, Overrides::new().after_marker(0.0));
    assert_eq!(play.deadline(), Some((ms(300), Timer::AfterMarker)));
    play.expire();
    assert_eq!((play.ended_at(), play.record.finished_at()), (ms(300), vec![ms(300)]));
}

#[test]
fn usage_after_the_marker_is_kept() {
    let mut play = marked(Dialect::OpenAiChat, Overrides::new());
    play.at(400).receive(chunk(usage()));
    assert_eq!(play.deadline(), Some((ms(2_300), Timer::AfterMarker)), "usage is no content");
    play.end();
    let counted = play.completion().turn.usage.as_ref().unwrap();
    assert_eq!((counted.input_tokens, counted.output_tokens), (Some(5), Some(2)));
}

#[test]
fn after_the_sentinel_an_error_cannot_matter() {
    let chat = Dialect::OpenAiChat;
    let mut play = marked(chat, Overrides::new());
    play.at(400).receive(chunk(chat.sentinel().unwrap() + &chat.overload()));
    assert_eq!((play.completion().turn.text(), play.ended_at()), ("Hi", ms(400)));
    // Before it, it beats whatever follows.
    let mut play = marked(chat, Overrides::new());
    play.at(400).receive(chunk(chat.overload() + &chat.sentinel().unwrap()));
    assert!(matches!(play.error(), ErrorKind::InBand(_)));
}

#[test]
fn the_transport_after_the_marker() {
    let mut play = marked(Dialect::OpenAiChat, Overrides::new());
    play.at(400).fail(Stage::Read, FailureKind::Tls, "bad record");
    assert_eq!((play.completion().turn.text(), play.ended_at()), ("Hi", ms(400)));
    // Writing may fail without an end of what is read.
    let mut play = marked(Dialect::OpenAiChat, Overrides::new());
    play.at(400).fail(Stage::Write, FailureKind::Reset, "broken pipe");
    play.at(500).receive(chunk("data: [DONE]\n\n"));
    assert_eq!((play.completion().turn.text(), play.ended_at()), ("Hi", ms(500)));
}

#[test]
fn a_tool_call_left_open_at_a_bare_sentinel_is_truncated() {
    let call = json!({"delta": {"tool_calls": [{"index": 0, "id": "t", "function": {"name": "f", "arguments": "{\"a\""}}]}});
    let mut play = Play::stream(Dialect::OpenAiChat, Overrides::new()).start();
    play.at(100).open().receive(chunk(choice(0, &call) + "data: [DONE]\n\n"));
    assert_eq!(play.error(), &ErrorKind::Truncated(Truncation::InToolCall));
    assert_eq!(play.attempts_at().len(), 1);
}
