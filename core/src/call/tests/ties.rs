//! Every row of the table of ties in `states.md`, in both orders.

use std::collections::BTreeSet;

use serde_json::json;

use super::play::{Play, ms};
use super::states::rows;
use super::wire::{Answer, STREAM_HEAD, chunk, event, response};
use crate::call::{State, Timer};
use crate::config::Overrides;
use crate::dialect::Dialect;
use crate::outcome::{ErrorKind, Phase};

const CHAT: Dialect = Dialect::OpenAiChat;
const DONE: &str = "data: [DONE]\n\n";

const TIES: [(&str, fn()); 16] = [
    ("bytes and `StreamIdle`", bytes_and_stream_idle),
    ("the head of a stream and `Request` or `Deadline`", head_and_request),
    ("the end of a unary answer and `Request` or `Deadline`", unary_answer_and_request),
    ("the end of an error body and `ErrorBody`", error_body),
    ("`Connected` and `Connect`", connected_and_connect),
    ("`Request` and `Deadline`", request_and_deadline),
    ("`Connect` and `Request`", connect_and_request),
    ("`ContentIdle` and `StreamIdle`", content_idle_and_stream_idle),
    ("a sentinel and `StreamIdle` or `StreamDeadline`", sentinel_and_timers),
    ("`AfterMarker` and `StreamIdle`", after_marker_and_stream_idle),
    ("usage and `AfterMarker`", usage_and_after_marker),
    ("`Cancel` and any timer", cancel_and_timers),
    ("`Cancel` and a terminal state", cancel_and_terminal_state),
    ("`Backoff` and the end of `total_deadline`", backoff_and_deadline),
    ("`Taken` and `StreamIdle`", taken_and_stream_idle),
    ("`Taken` and `AfterMarker`", taken_and_after_marker),
];

#[test]
fn each_row_of_the_table_holds_in_both_orders() {
    let table: BTreeSet<String> =
        rows("| at the same instant").into_iter().map(|row| row[0].clone()).collect();
    let played: BTreeSet<String> = TIES.iter().map(|(row, _)| (*row).to_owned()).collect();
    assert_eq!(played, table);
    for (row, play) in TIES {
        println!("{row}");
        play();
    }
}

/// One attempt, with a stream idle bound of 1 s
fn overrides() -> Overrides {
    Overrides::new().max_attempts(1).stream_idle_timeout(1.0)
}

/// A stream whose first text came at 100 ms
fn streaming(overrides: Overrides) -> Play {
    let mut play = Play::stream(CHAT, overrides).start();
    play.at(100).open().receive(chunk(CHAT.text("Hi")));
    play
}

#[track_caller]
fn timed_out(play: &Play, phase: Phase) {
    let (reached, elapsed, limit) = play.breach();
    assert_eq!((reached, elapsed), (phase, limit));
}

fn bytes_and_stream_idle() {
    let mut first = streaming(overrides());
    first.at(1_100).receive("1").elapsed();
    assert_eq!(first.deadline(), Some((ms(2_100), Timer::StreamIdle)));
    let mut second = streaming(overrides());
    second.at(1_100).elapsed().receive("1");
    timed_out(&second, Phase::StreamIdle);
}

fn head_and_request() {
    for (overrides, phase) in [
        (overrides().request_timeout(2.0), Phase::Request),
        (overrides().total_deadline(2.0), Phase::Deadline),
    ] {
        let waiting = || {
            let mut play = Play::stream(CHAT, overrides).start();
            play.at(100).request().at(2_000);
            play
        };
        let mut first = waiting();
        first.receive(STREAM_HEAD).elapsed();
        assert_eq!(
            (first.call.state(), first.deadline()),
            (State::Streaming, Some((ms(3_000), Timer::StreamIdle)))
        );
        let mut second = waiting();
        second.elapsed().receive(STREAM_HEAD);
        timed_out(&second, phase);
    }
}

fn unary_answer_and_request() {
    let answer = response("200 OK", &[], "whole");
    for (overrides, phase) in [
        (overrides().request_timeout(2.0), Phase::Request),
        (overrides().total_deadline(2.0), Phase::Deadline),
    ] {
        for part in [0, 20, answer.len() - 1] {
            let reading = || {
                let mut play = Play::unary(overrides).start();
                play.at(100).request().receive(&answer[..part]).at(2_000);
                play
            };
            let mut first = reading();
            first.receive(&answer[part..]).elapsed();
            assert_eq!((&first.completion().body[..], first.ended_at()), (&b"whole"[..], ms(2_000)));
            let mut second = reading();
            second.elapsed().receive(&answer[part..]);
            timed_out(&second, phase);
        }
    }
}

fn error_body() {
    for whole in [true, false] {
        let mut play = Play::unary(overrides()).start();
        play.at(100).request().receive("HTTP/1.1 400 No\r\ncontent-length: 2\r\n\r\n1").at(5_100);
        if whole {
            play.receive("2").elapsed()
        } else {
            play.elapsed().receive("2")
        };
        match play.error() {
            ErrorKind::Status(error) => assert_eq!((error.whole, error.status.as_u16()), (whole, 400)),
            other => panic!("{other:?}"),
        }
    }
}

fn connected_and_connect() {
    let overrides = overrides().connect_timeout(2.0).request_timeout(2.0);
    let mut first = Play::unary(overrides).start();
    first.at(2_000).connected();
    assert_eq!((first.call.state(), first.deadline()), (State::Waiting, Some((ms(2_000), Timer::Request))));
    first.elapsed();
    timed_out(&first, Phase::Request);
    let mut second = Play::unary(overrides).start();
    second.at(2_000).elapsed().connected();
    timed_out(&second, Phase::Connect);
}

fn request_and_deadline() {
    let mut play = Play::unary(Overrides::new().request_timeout(2.0).total_deadline(2.0)).start();
    play.at(100).request().expire();
    timed_out(&play, Phase::Deadline);
    assert_eq!(play.ended_at(), ms(2_000));
}

fn connect_and_request() {
    let mut play = Play::unary(overrides().connect_timeout(2.0).request_timeout(2.0)).start();
    play.expire();
    timed_out(&play, Phase::Connect);
}

fn content_idle_and_stream_idle() {
    let mut play = streaming(overrides().content_idle_timeout(1.0));
    play.expire();
    timed_out(&play, Phase::ContentIdle);
}

fn sentinel_and_timers() {
    for (overrides, at, phase) in
        [(overrides(), 1_100, Phase::StreamIdle), (overrides().stream_deadline(0.5), 500, Phase::Deadline)]
    {
        let mut first = streaming(overrides);
        first.at(at).receive(chunk(DONE)).elapsed();
        assert_eq!((first.completion().turn.text(), first.ended_at()), ("Hi", ms(at)));
        let mut second = streaming(overrides);
        second.at(at).elapsed().receive(chunk(DONE));
        timed_out(&second, phase);
    }
}

fn after_marker_and_stream_idle() {
    let mut play = streaming(overrides().after_marker(1.0));
    play.receive(chunk(CHAT.terminal())).expire();
    assert_eq!((play.completion().turn.text(), play.ended_at()), ("Hi", ms(1_100)));
}

fn usage_and_after_marker() {
    let usage = chunk(event(&json!({"id": "c1", "choices": [], "usage": {"prompt_tokens": 5}})));
    for usage_first in [true, false] {
        let mut play = streaming(overrides().after_marker(0.5));
        play.receive(chunk(CHAT.terminal())).at(600);
        if usage_first {
            play.receive(&usage).elapsed()
        } else {
            play.elapsed().receive(&usage)
        };
        assert_eq!((play.completion().turn.usage.is_some(), play.ended_at()), (usage_first, ms(600)));
    }
}

fn cancel_and_timers() {
    let connecting = || Play::unary(overrides()).start();
    let pausing = || {
        let mut play = Play::unary(Overrides::new()).start();
        play.at(100).request().reset();
        play
    };
    for make in [connecting, || streaming(overrides()), pausing] as [fn() -> Play; 3] {
        let mut first = make();
        let (at, _) = first.deadline().unwrap();
        first.at_instant(at).cancel().elapsed();
        assert_eq!((first.error(), first.ended_at()), (&ErrorKind::Cancelled, at));
        let mut second = make();
        let pauses = second.call.state() == State::Pausing;
        second.at_instant(at).elapsed().cancel();
        assert_eq!((*second.error() == ErrorKind::Cancelled, second.ended_at()), (pauses, at));
    }
}

fn cancel_and_terminal_state() {
    let mut first = streaming(overrides());
    first.at(200).receive(chunk(CHAT.terminal())).cancel();
    assert_eq!((first.completion().turn.text(), first.ended_at()), ("Hi", ms(200)));
    let mut second = streaming(overrides());
    second.at(200).cancel().receive(chunk(CHAT.terminal()));
    assert_eq!((second.error(), second.outcome().turn().text()), (&ErrorKind::Cancelled, "Hi"));
}

fn backoff_and_deadline() {
    // A pause always ends before the deadline; only a driver that is late can be told of both.
    for (late, attempts) in [(4_999, 2), (5_000, 1)] {
        let mut play = Play::unary(Overrides::new().total_deadline(5.0)).start();
        play.at(100).request().receive(response("503 Busy", &[], "")).late(late).elapsed();
        assert_eq!(play.attempts_at().len(), attempts);
        if attempts == 1 {
            assert!(matches!(play.error(), ErrorKind::Status(error) if error.status == 503));
        }
    }
}

fn taken_and_stream_idle() {
    for taken_first in [true, false] {
        let mut play = Play::stream(CHAT, overrides()).slow().start();
        play.at(100).open().receive(chunk(CHAT.text("Hi"))).at(1_100);
        if taken_first {
            play.taken().elapsed()
        } else {
            play.elapsed().taken()
        };
        assert_eq!(play.deadline(), Some((ms(2_100), Timer::StreamIdle)));
    }
}

fn taken_and_after_marker() {
    for taken_first in [true, false] {
        let mut play = Play::stream(CHAT, overrides().after_marker(0.5)).slow().start();
        play.at(100).open().receive(chunk(CHAT.text("Hi") + &CHAT.terminal())).at(600);
        if taken_first {
            play.taken()
        } else {
            play.elapsed().taken()
        };
        assert_eq!((play.deadline(), play.reads()), (Some((ms(600), Timer::AfterMarker)), true));
        play.elapsed();
        assert_eq!((play.completion().turn.text(), play.ended_at()), ("Hi", ms(600)));
    }
}
