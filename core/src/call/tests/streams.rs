//! Streams: what their clocks watch, how they end (rules STR-1 to STR-9).

use serde_json::json;

use super::play::{Play, ms};
use super::record::Got;
use super::wire::{self, Answer, LAST_CHUNK, OPEN_HEAD, SPOKEN, STREAM_HEAD, chunk, event, response};
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
        ("data:  [DONE] ", Ended::Clean, &[Note::TailTaken]),
        ("data: [DONE]\nerror: half", Ended::Clean, &[Note::TailTaken]),
        ("data: [DO", Ended::Clean, &[Note::TailDropped, Note::MissingSentinel]),
        ("{\"half\"", Ended::Clean, &[Note::TailDropped, Note::MissingSentinel]),
        (": comment", Ended::Clean, &[Note::MissingSentinel]),
        (
            "data: [DONE]",
            Ended::WithoutCloseNotify,
            &[Note::NoCloseNotify, Note::TailDropped, Note::MissingSentinel],
        ),
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
    for event in ["data: : ping", "data: null", "event: ping\ndata: 12:00", "event: heartbeat\ndata: alive"] {
        let mut play = open(Overrides::new());
        play.receive(chunk(format!("{event}\n\n") + &CHAT.text("Hi") + "data: [DONE]\n\n"));
        assert_eq!(play.outcome().timeline.notes, [Note::PayloadSkipped]);
    }
}

#[test]
fn a_byte_order_mark_in_front_of_a_payload_is_passed_over() {
    let mut play = open(Overrides::new());
    let marked = (CHAT.text("Hi") + "data: [DONE]\n\n").replace("data: ", "data: \u{FEFF}");
    play.receive(chunk(marked));
    assert_eq!((play.completion().turn.text(), play.record.text()), ("Hi", "Hi".to_owned()));
}

/// The call failed by a bare error, after that text
fn assert_busy(play: &Play, text: &str) {
    match play.error() {
        ErrorKind::InBand(provider) => assert_eq!(provider.message, "busy"),
        other => panic!("{other:?}"),
    }
    assert_eq!(play.outcome().turn().text(), text);
}

#[test]
fn a_bare_line_of_json_is_an_error_where_it_says_so() {
    let error = r#"{"error":{"message":"busy","type":"invalid_request_error"}}"#;
    for end in ["", "\n", "\n\n", "\n\ndata: [DONE]\n\n"] {
        let mut play = open_to_the_end();
        play.receive(format!("{}{error}{end}", CHAT.text("Hi"))).eof(Ended::Clean);
        assert_busy(&play, "Hi");
    }
    // In front of the first event it could be a document.
    for start in [": ping\n\n", "\n", ""] {
        let body = format!("{start}{error}\n\ndata: [DONE]\n\n");
        let mut play = open_to_the_end();
        assert_busy(play.receive(&body).eof(Ended::Clean), "");
        let mut slow = open_to_the_end();
        assert_busy(slow.trickle(&body).eof(Ended::Clean), "");
        let mut cut = open_to_the_end();
        assert_busy(cut.receive(format!("{start}{error}\n{{\"and\"")).eof(Ended::Clean), "");
    }
    let mut noise = open_to_the_end();
    noise.receive(CHAT.text("Hi") + "{\"said\": 1}\n\n" + &CHAT.terminal() + "data: [DONE]\n\n");
    assert_eq!((noise.completion().turn.text(), noise.record.text()), ("Hi", "Hi".to_owned()));
    // A whole document that is called an event stream is one still.
    let mut document = open_to_the_end();
    document.receive(
        "{\"id\":\"c\",\n\"choices\":[\n{\"message\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}\n]}\n",
    );
    document.eof(Ended::Clean);
    assert_eq!(document.completion().turn.text(), "Hi");
    let mut failed = open_to_the_end();
    failed.receive(format!("{error}\n")).eof(Ended::Clean);
    assert!(matches!(failed.error(), ErrorKind::InBand(provider) if provider.message == "busy"));
}

#[test]
fn a_bare_error_of_several_lines_beats_the_marker_before_it() {
    let error = "{\n  \"error\": {\n    \"message\": \"busy\",\n    \"code\": 400\n  }\n}";
    for marker in [String::new(), CHAT.terminal()] {
        for end in ["", "\n", "\r\n\r\n", "\n\ndata: [DONE]\n\n"] {
            let body = format!("{}{marker}{error}{end}", CHAT.text("Hi"));
            let mut play = open_to_the_end();
            assert_busy(play.receive(&body).eof(Ended::Clean), "Hi");
            let mut slow = open_to_the_end();
            assert_busy(slow.trickle(&body).eof(Ended::Clean), "Hi");
        }
    }
}

/// Servers that write a character as two escapes may be cut between them
#[test]
fn half_a_character_at_the_end_of_a_stream_is_replaced() {
    let half = CHAT.text("Hi") + &CHAT.text("Q").replace('Q', "\\ud83d");
    assert!(half.contains("\\ud83d"));
    type End = for<'p> fn(&'p mut Play, &str) -> &'p mut Play;
    let ends: [End; 4] = [
        |play, half| play.receive(half).eof(Ended::Clean),
        |play, half| play.receive(half).eof(Ended::WithoutCloseNotify),
        |play, half| play.receive(half).reset(),
        |play, half| play.receive(format!("{half}data: [DONE]\n\n")),
    ];
    for end in ends {
        let mut play = open_to_the_end();
        end(&mut play, &half);
        assert_eq!(
            (play.outcome().turn().text(), play.record.text()),
            ("Hi\u{FFFD}", "Hi\u{FFFD}".to_owned())
        );
    }
    // The other half may come in the tail.
    let mut play = open_to_the_end();
    play.receive(half.clone() + CHAT.text("Q").replace('Q', "\\ude00").trim_end()).eof(Ended::Clean);
    assert_eq!(play.outcome().turn().text(), "Hi\u{1F600}");
    // Cut inside of a chunk.
    let mut play = open(Overrides::new());
    play.receive(chunk(half) + "5\r\nda").eof(Ended::Clean);
    assert!(matches!(play.error(), ErrorKind::Truncated(Truncation::InResponse { .. })));
    assert_eq!((play.outcome().turn().text(), play.record.text()), ("Hi\u{FFFD}", "Hi\u{FFFD}".to_owned()));
}

fn billing(play: &Play) -> Billing {
    play.outcome().result.as_ref().expect_err("the call went well").billing
}

#[test]
fn a_stream_that_falls_silent_ends_at_the_true_gap() {
    let mut play = open(Overrides::new().stream_idle_timeout(1.0));
    play.at(400).receive(chunk(CHAT.text("Hi")));
    assert_eq!(play.deadline(), Some((ms(1_400), Timer::StreamIdle)));
    play.expire();
    assert_eq!(play.breach(), (Phase::StreamIdle, ms(1_000), ms(1_000)));
    assert_eq!((play.outcome().turn().text(), billing(&play)), ("Hi", Billing::Delivered));
    assert_eq!((play.attempts_at().len(), play.ended_at()), (1, ms(1_400)));
    // A late driver reports what really passed.
    let mut late = open(Overrides::new().stream_idle_timeout(1.0));
    late.late(7_100).elapsed();
    assert_eq!(late.breach(), (Phase::StreamIdle, ms(7_000), ms(1_000)));
    assert_eq!(billing(&late), Billing::MaybeBilled);
    assert_eq!(late.attempts_at().len(), 1, "StreamIdle is not retried, even with nothing delivered");
}

#[test]
fn any_bytes_keep_a_stream_alive() {
    let last = CHAT.terminal() + "data: [DONE]\n\n";
    let comments: fn(&mut Play, u64) -> &mut Play = |play, at| play.at(at).receive(chunk(": ping\n\n"));
    let content: fn(&mut Play, u64) -> &mut Play = |play, at| play.at(at).receive(chunk(CHAT.text("x")));
    for piece in [comments, content] {
        let mut play = open(Overrides::new().stream_idle_timeout(1.0));
        for gap in 1..=10 {
            piece(&mut play, 100 + gap * 900);
        }
        play.at(10_000).receive(chunk(CHAT.text("Hi") + &last));
        assert!(play.completion().turn.text().ends_with("Hi"));
        assert_eq!(play.outcome().timeline.attempts[0].largest_gap, ms(900));
    }
    // One byte at a time, each just within the bound.
    let mut play = open(Overrides::new().stream_idle_timeout(1.0));
    for (at, byte) in chunk(CHAT.text("Hi") + &last).bytes().enumerate() {
        play.at(100 + (at as u64 + 1) * 999).receive([byte]);
    }
    assert_eq!(play.end().turn().text(), "Hi");
    assert!(play.outcome().result.is_ok());
}

#[test]
fn the_idle_bound_does_not_run_before_the_head() {
    let mut play = Play::stream(CHAT, Overrides::new().stream_idle_timeout(1.0)).start();
    play.at(100).request().at(60_000).receive(STREAM_HEAD);
    assert_eq!(play.deadline(), Some((ms(61_000), Timer::StreamIdle)));
}

#[test]
fn after_the_head_neither_request_timeout_nor_total_deadline_runs() {
    let mut play = open(Overrides::new().request_timeout(1.0).total_deadline(2.0));
    play.at(100_000).receive(chunk(CHAT.text("Hi") + "data: [DONE]\n\n"));
    assert_eq!(play.completion().turn.text(), "Hi");
}

#[test]
fn stream_deadline_bounds_all_of_it() {
    let mut play = open(Overrides::new().stream_deadline(5.0));
    for second in 1..5 {
        play.at(second * 1_000).receive(chunk(CHAT.text("x")));
    }
    assert_eq!(play.deadline(), Some((ms(5_000), Timer::StreamDeadline)));
    play.expire();
    assert_eq!(play.breach(), (Phase::Deadline, ms(5_000), ms(5_000)));
    assert!(play.error().to_string().contains("stream_deadline"), "{}", play.error());
    // It bounds the attempts before the head too, and leaves no room for a pause past it.
    let mut play = Play::stream(CHAT, Overrides::new().stream_deadline(0.5)).start();
    play.at(100).request().receive(response("503 x", &["retry-after: 1"], ""));
    assert!(matches!(play.error(), ErrorKind::Status(_)));
    // A unary call has none.
    let play = Play::unary(Overrides::new().stream_deadline(0.5)).start();
    assert_eq!(play.deadline(), Some((ms(10_000), Timer::Connect)));
}

#[test]
fn content_idle_timeout_watches_the_answer_only() {
    for dialect in SPOKEN {
        let overrides = Overrides::new().stream_idle_timeout(1.0).content_idle_timeout(2.5);
        let mut play = Play::stream(dialect, overrides).start();
        play.at(100).open().at(500).receive(chunk(dialect.opening() + &dialect.text("Hi")));
        let unknown = event(&json!({"type": "keep.alive"}));
        for (at, keep_alive) in [(1_400, dialect.ping()), (2_300, unknown)] {
            play.at(at).receive(chunk(keep_alive));
        }
        assert_eq!(play.deadline(), Some((ms(3_000), Timer::ContentIdle)), "{dialect:?}");
        play.expire();
        assert_eq!(play.breach(), (Phase::ContentIdle, ms(2_500), ms(2_500)));
        assert!(play.error().to_string().contains("content_idle_timeout"));
        assert_eq!(play.outcome().turn().text(), "Hi");
    }
    // From the head, where no content came yet.
    let mut play = open(Overrides::new().content_idle_timeout(1.0));
    play.at(900).receive(chunk(CHAT.opening())).expire();
    assert_eq!((play.breach().1, play.ended_at()), (ms(1_000), ms(1_100)));
}

#[test]
fn a_keep_alive_that_the_consumer_takes_its_time_with_gives_no_credit() {
    let overrides = Overrides::new().content_idle_timeout(2.0);
    let mut play = Play::stream(CHAT, overrides).slow().start();
    play.at(100).open().receive(chunk(CHAT.text("Hi"))).taken();
    let unknown = event(&json!({"object": "keep.alive"}));
    play.at(1_000).receive(chunk(unknown));
    assert!(matches!(play.record.items[1].1, Got::Unknown(..)));
    play.at(1_300).taken();
    assert_eq!(play.deadline(), Some((ms(2_100), Timer::ContentIdle)));
    play.expire();
    assert_eq!(play.breach(), (Phase::ContentIdle, ms(2_000), ms(2_000)));
}

#[test]
fn first_content_timeout_runs_from_the_head_and_the_idle_bound_after_it() {
    let overrides =
        Overrides::new().first_content_timeout(30.0).stream_idle_timeout(1.0).content_idle_timeout(2.0);
    let mut play = open(overrides);
    play.at(20_000).receive(chunk(CHAT.opening() + &event(&json!({"object": "keep.alive"}))));
    assert_eq!(play.deadline(), Some((ms(30_100), Timer::FirstContent)));
    let mut mute = open(overrides);
    mute.expire();
    assert_eq!(mute.breach(), (Phase::FirstContent, ms(30_000), ms(30_000)));
    assert_eq!(mute.attempts_at().len(), 1);
    play.at(25_000).receive(chunk(CHAT.text("Hi")));
    assert_eq!(play.deadline(), Some((ms(26_000), Timer::StreamIdle)));
    play.at(25_900).receive(chunk(": ping\n\n")).at(26_800).receive(chunk(": ping\n\n"));
    assert_eq!(play.deadline(), Some((ms(27_000), Timer::ContentIdle)));
}

#[test]
fn the_end_without_a_terminal_state_is_truncated_and_never_a_success() {
    for dialect in SPOKEN {
        let mut play = Play::stream(dialect, Overrides::new()).start();
        play.at(100).open().receive(chunk(dialect.opening() + &dialect.text("Hi")) + LAST_CHUNK);
        assert_eq!(play.error(), &ErrorKind::Truncated(Truncation::NoTerminalState), "{dialect:?}");
        assert_eq!((play.outcome().turn().text(), play.outcome().turn().finish_reason()), ("Hi", None));
        assert_eq!((billing(&play), play.attempts_at().len()), (Billing::Delivered, 1));
    }
    let mut cut = open(Overrides::new());
    cut.receive(chunk(CHAT.text("Hi"))).at(200).fin();
    assert!(matches!(cut.error(), ErrorKind::Truncated(Truncation::InResponse { .. })));
    let mut reset = open(Overrides::new());
    reset.receive(chunk(CHAT.text("Hi"))).at(200).reset();
    assert!(matches!(reset.error(), ErrorKind::Transport(_)));
    assert_eq!((reset.outcome().turn().text(), reset.attempts_at().len()), ("Hi", 1));
}

#[test]
fn no_event_at_all_is_empty() {
    for bytes in [LAST_CHUNK.to_owned(), chunk(": ping\n\n") + LAST_CHUNK, chunk("data: [DONE]\n\n")] {
        let mut play = Play::stream(CHAT, Overrides::new().max_attempts(1)).start();
        play.at(100).open().receive(&bytes);
        assert_eq!(play.error(), &ErrorKind::Empty, "{bytes}");
    }
    let mut unary = Play::new(wire::request(CHAT).build().unwrap(), Overrides::new().max_attempts(1)).start();
    unary.at(100).request().receive(response("200 OK", &[], " "));
    assert_eq!(unary.error(), &ErrorKind::Empty);
}

#[test]
fn data_that_cannot_be_read_is_a_fault() {
    let mut play = open(Overrides::new());
    play.receive(chunk(CHAT.text("Hi") + "data: {\"choices\": [\n\n"));
    match play.error() {
        ErrorKind::Protocol(ProtocolError::Malformed { snippet, .. }) => {
            assert_eq!(snippet, "{\"choices\": [")
        }
        other => panic!("{other:?}"),
    }
    assert_eq!((play.outcome().turn().text(), play.attempts_at().len()), ("Hi", 1));
    let attempt = &play.outcome().timeline.attempts[0];
    assert_eq!((attempt.events, attempt.malformed), (1, 1));
}

#[test]
fn a_provider_that_stops_early_is_a_result() {
    let mut play = open(Overrides::new());
    let length = json!({"id": "c1", "choices": [{"delta": {"content": "Hi"}, "finish_reason": "length"}]});
    play.receive(chunk(event(&length) + "data: [DONE]\n\n"));
    assert_eq!(play.completion().ending, Ending::Incomplete("length".to_owned()));
}

#[test]
fn a_refused_prompt_is_blocked() {
    let mut play = Play::stream(Dialect::Gemini, Overrides::new()).start();
    play.at(100).open().receive(chunk(event(&json!({"promptFeedback": {"blockReason": "SAFETY"}}))));
    assert_eq!(play.error(), &ErrorKind::Blocked { reason: "SAFETY".to_owned() });
    assert_eq!(play.attempts_at().len(), 1);
}

#[test]
fn an_error_field_is_an_error() {
    let mut play = open(Overrides::new().max_attempts(1));
    play.receive(chunk("error: {\"code\":500,\"message\":\"slot\",\"type\":\"server_error\"}\n\n"));
    assert!(matches!(play.error(), ErrorKind::InBand(error) if error.message == "slot"));
}

#[test]
fn unknown_events_pass_as_they_came() {
    let mut play = Play::stream(Dialect::OpenAiResponses, Overrides::new()).start();
    play.at(100).open().receive(chunk("event: new.kind\ndata: {\"type\":\"new.kind\",\"x\":1}\n\n"));
    let unknown = Got::Unknown("new.kind".to_owned(), "{\"type\":\"new.kind\",\"x\":1}".to_owned());
    assert_eq!(play.record.items, [(ms(100), unknown)]);
    play.at(200).reset();
    assert!(play.deadline().is_some(), "it is no delta: another attempt may follow");
}

/// An answer or an error that has the type of the stream which was asked for
#[test]
fn one_json_document_in_place_of_events() {
    let answer =
        json!({"id": "c1", "choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]}).to_string();
    for body in [answer.clone(), format!("\u{FEFF} \r\n{answer}\n\n"), format!("[{answer}]")] {
        let whole = [OPEN_HEAD, &body].concat();
        for size in [whole.len(), 1, 7] {
            let mut play = Play::stream(CHAT, Overrides::new()).start();
            play.at(100).request();
            for read in whole.as_bytes().chunks(size) {
                play.receive(read);
            }
            play.fin();
            assert_eq!(
                (play.completion().turn.text(), play.record.text()),
                ("Hi", "Hi".to_owned()),
                "{body}"
            );
            assert_eq!(play.outcome().timeline.notes, [Note::UnaryAnswerToStream]);
        }
    }
    let mut play = open_to_the_end();
    play.receive(json!({"error": {"message": "busy"}}).to_string()).fin();
    assert!(matches!(play.error(), ErrorKind::InBand(error) if error.message == "busy"));
    // What is no JSON, or is cut, or comes after an event is none.
    for body in ["{\"choices\":[", "[ERROR] no\n", "{\"choices\":[]} no"] {
        let mut play = Play::stream(CHAT, Overrides::new().max_attempts(1)).start();
        play.at(100).request().receive([OPEN_HEAD, body].concat()).fin();
        assert!(matches!(play.error(), ErrorKind::Empty), "{body}");
    }
    let mut play = open_to_the_end();
    play.receive(CHAT.text("Hi")).receive(&answer).fin();
    assert!(matches!(play.error(), ErrorKind::Truncated(_)));
}

/// A server may hold its connection open behind an answer or an error in place of the stream
#[test]
fn a_document_that_says_that_it_is_all_is_not_waited_behind() {
    let answer = json!({"id": "c1", "choices": [{"message": {"content": "}]"}, "finish_reason": "stop"}]});
    let error = json!({"error": {"message": "busy"}});
    let json = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n";
    for head in [OPEN_HEAD, json] {
        for (document, word) in [(&answer, "completed"), (&json!([answer]), "completed"), (&error, "error")] {
            for behind in ["", "\n\n", " no", "data: [DONE]\n\n"] {
                let whole = [head, "\u{FEFF}\r\n", &document.to_string(), behind].concat();
                for size in [whole.len(), 1, 7] {
                    let mut play = Play::stream(CHAT, Overrides::new().max_attempts(1)).start();
                    play.at(100).request();
                    for read in whole.as_bytes().chunks(size) {
                        if play.record.done.is_none() {
                            play.receive(read);
                        }
                    }
                    let case = format!("{document} {behind:?} {size}");
                    assert_eq!((play.outcome().word(), play.ended_at()), (word, ms(100)), "{case}");
                    assert_eq!(play.outcome().timeline.notes, [Note::UnaryAnswerToStream], "{case}");
                    assert_eq!(play.outcome().timeline.attempts[0].events, 0, "{case}");
                }
            }
        }
    }
    // One that does not say so may be a line that a proxy put before the events,
    for size in [usize::MAX, 1] {
        let events =
            [OPEN_HEAD, "{\"x\":1}\n\n", &CHAT.text("Hi"), &CHAT.terminal(), "data: [DONE]\n\n"].concat();
        let mut play = Play::stream(CHAT, Overrides::new()).start();
        play.at(100).request();
        for read in events.as_bytes().chunks(size.min(events.len())) {
            play.receive(read);
        }
        assert_eq!((play.completion().turn.text(), play.ended_at()), ("Hi", ms(100)));
    }
    // or the first of many: only the end of the body tells.
    let open = json!({"id": "c1", "choices": [{"message": {"content": "Hi"}}]}).to_string();
    let mut play = open_to_the_end();
    play.receive(&open);
    assert_eq!(play.deadline().map(|(_, timer)| timer), Some(Timer::StreamIdle));
    play.fin();
    assert_eq!((play.completion().turn.text(), play.ended_at()), ("Hi", ms(100)));
}

/// Rule STR-9: a line that is whole and ends the turn counts after every kind of cut
#[test]
fn the_last_line_of_ollama_without_its_end() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\n\r\n";
    let text = json!({"message": {"content": "Hi"}, "done": false}).to_string() + "\n";
    let play = |last: &str, cut: fn(&mut Play)| {
        let mut play = Play::stream(Dialect::Ollama, Overrides::new()).start();
        play.at(100).request().receive([head, &text, last].concat());
        cut(&mut play);
        play
    };
    let cuts: [fn(&mut Play); 3] = [
        |play| {
            play.reset();
        },
        |play| {
            play.eof(Ended::WithoutCloseNotify);
        },
        |play| {
            play.fin();
        },
    ];
    for cut in cuts {
        let done = play(r#"{"message":{"content":"!"},"done":true,"done_reason":"stop"}"#, cut);
        assert_eq!(done.completion().turn.text(), "Hi!");
        let failed = play(r#"{"error":"boom"}"#, cut);
        assert!(matches!(failed.error(), ErrorKind::InBand(error) if error.message == "boom"));
    }
    for cut in &cuts[..2] {
        let half = play(r#"{"message":{"content":"!"},"done":false}"#, *cut);
        assert!(!matches!(half.error(), ErrorKind::InBand(_)));
    }
}
