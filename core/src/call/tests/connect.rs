//! Opening a connection, and an upload under way.

use std::time::Duration;

use super::play::{Play, ms};
use super::wire::{Answer, STREAM_HEAD, URL, chunk, response};
use crate::call::{CloseMode, Command, Request, Timer};
use crate::config::Overrides;
use crate::dialect::Dialect;
use crate::machine::{FailureKind, Stage};
use crate::outcome::{Billing, ErrorKind, Note, Phase};

const CHAT: Dialect = Dialect::OpenAiChat;

fn one_attempt() -> Overrides {
    Overrides::new().max_attempts(1)
}

#[test]
fn a_black_hole_ends_at_connect_timeout() {
    for mut play in [Play::unary(one_attempt()).start(), Play::stream(CHAT, one_attempt()).start()] {
        assert_eq!(play.deadline(), Some((ms(10_000), Timer::Connect)));
        play.expire();
        assert_eq!(play.breach(), (Phase::Connect, ms(10_000), ms(10_000)));
        assert_eq!(play.outcome().result.as_ref().unwrap_err().billing, Billing::NotSent);
        assert_eq!(play.record.commands[1], (ms(10_000), Command::Close(play.link(), CloseMode::Abort)));
    }
}

#[test]
fn each_attempt_has_its_own_connect_timeout() {
    let mut play = Play::unary(Overrides::new()).start();
    play.end();
    let attempts = play.attempts_at();
    assert_eq!(attempts.len(), 3);
    // A timeout of 10 s, then a pause of less than 1 s, then of less than 2 s.
    for (pair, pause) in attempts.windows(2).zip([1_000, 2_000]) {
        let between = pair[1] - pair[0];
        assert!(between >= ms(10_000) && between < ms(10_000 + pause), "{between:?}");
    }
    assert_eq!(play.ended_at(), attempts[2] + ms(10_000));
    assert_eq!(play.breach(), (Phase::Connect, ms(10_000), ms(10_000)));
}

#[test]
fn refused_is_an_error_at_once_and_retried() {
    let mut play = Play::stream(CHAT, Overrides::new().max_attempts(2)).start();
    play.at(3).fail(Stage::Connect, FailureKind::Refused, "connection refused");
    assert_eq!(play.deadline().unwrap().1, Timer::Backoff);
    play.expire().fail(Stage::Connect, FailureKind::Refused, "connection refused");
    match play.error() {
        ErrorKind::Transport(failure) => {
            assert_eq!((failure.stage, failure.kind), (Stage::Connect, FailureKind::Refused));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(play.outcome().result.as_ref().unwrap_err().billing, Billing::NotSent);
    assert_eq!(play.ended_at(), play.attempts_at()[1]);
}

#[test]
fn the_request_bound_holds_while_connecting_too() {
    let overrides = one_attempt().request_timeout(2.0).connect_timeout(10.0);
    let mut play = Play::unary(overrides).start();
    play.expire();
    assert_eq!(play.breach(), (Phase::Request, ms(2_000), ms(2_000)));
    let mut play = Play::unary(one_attempt().total_deadline(1.0)).start();
    play.expire();
    assert_eq!(play.breach(), (Phase::Deadline, ms(1_000), ms(1_000)));
}

#[test]
fn a_mute_server_ends_at_request_timeout() {
    let overrides = one_attempt().request_timeout(30.0).stream_idle_timeout(1.0);
    for mut play in [Play::unary(overrides).start(), Play::stream(CHAT, overrides).start()] {
        // Time spent on connecting is the attempt's own.
        play.at(4_000).request().expire();
        assert_eq!(play.breach(), (Phase::Request, ms(30_000), ms(30_000)));
        assert_eq!(play.ended_at(), ms(30_000));
        assert_eq!(play.outcome().result.as_ref().unwrap_err().billing, Billing::MaybeBilled);
    }
}

#[test]
fn interim_responses_and_a_trickled_head_gain_nothing() {
    let overrides = one_attempt().request_timeout(30.0).stream_idle_timeout(1.0);
    for bytes in ["HTTP/1.1 102 Processing\r\n\r\n".repeat(100), STREAM_HEAD[..50].to_owned()] {
        let mut play = Play::stream(CHAT, overrides).start();
        play.at(100).request();
        for (second, piece) in (1..30).zip(bytes.as_bytes().chunks(2)) {
            play.at(second * 1_000).receive(piece);
        }
        play.end();
        assert_eq!(play.breach(), (Phase::Request, ms(30_000), ms(30_000)));
    }
}

#[test]
fn unbounded_waits_have_no_deadline() {
    let never = f64::INFINITY;
    let overrides = Overrides::new().connect_timeout(never).request_timeout(never).total_deadline(never);
    let mut play = Play::stream(CHAT, overrides.stream_idle_timeout(never)).start();
    assert_eq!(play.deadline(), None);
    play.at(1_000_000).request();
    assert_eq!(play.deadline(), None);
    play.at(2_000_000).receive(STREAM_HEAD);
    assert_eq!(play.deadline(), None);
    play.at(900_000_000).receive(chunk(CHAT.text("Hi") + "data: [DONE]\n\n"));
    assert_eq!(play.ended_at(), Duration::from_secs(900_000));
}

/// An upload of 10 MB of which 1 MB has gone out
fn uploading() -> Play {
    let request = Request::post(URL).body(vec![b'x'; 10_000_000]).dialect(CHAT).stream().build().unwrap();
    let mut play = Play::new(request, one_attempt().request_timeout(30.0)).start();
    play.at(100).connected().sent(1_000_000);
    play
}

#[test]
fn an_answer_during_the_upload_is_read_and_a_reset_does_not_hide_it() {
    for (status, whole) in [("413 Too Large", true), ("429 Slow Down", false)] {
        let mut play = uploading();
        let answer = response(status, &[], "no more");
        let cut = if whole { answer.len() } else { answer.len() - 3 };
        play.at(200).receive(&answer[..cut]);
        if !whole {
            play.at(300).reset();
        }
        match play.error() {
            ErrorKind::Status(error) => {
                assert_eq!((error.status.as_str(), error.whole), (&status[..3], whole));
                assert_eq!(error.body, "no more".as_bytes()[..if whole { 7 } else { 4 }]);
            }
            other => panic!("{other:?}"),
        }
        assert!(play.outcome().timeline.notes.contains(&Note::ResponseBeforeRequestEnd));
        // A connection with half a request on it is not used again.
        assert!(matches!(play.record.commands[1].1, Command::Close(_, CloseMode::Abort)));
    }
}

#[test]
fn a_write_that_fails_may_have_an_answer_behind_it() {
    let mut play = uploading();
    play.at(200).fail(Stage::Write, FailureKind::Reset, "broken pipe");
    // Nothing more is written, and reading goes on.
    assert_eq!((play.outgoing(), play.reads(), play.record.done.is_none()), (0, true, true));
    play.at(300).receive(response("413 Too Large", &[], ""));
    assert!(matches!(play.error(), ErrorKind::Status(error) if error.status == 413));
}

#[test]
fn a_write_that_fails_is_the_cause_where_no_answer_comes() {
    for end in [Play::reset as fn(&mut Play) -> &mut Play, Play::fin] {
        let mut play = uploading();
        play.at(200).fail(Stage::Write, FailureKind::Reset, "broken pipe");
        end(play.at(300));
        match play.error() {
            ErrorKind::Transport(failure) => assert_eq!(failure.stage, Stage::Write),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_server_that_never_reads_ends_at_request_timeout() {
    let mut play = uploading();
    for second in 1..29 {
        play.at(second * 1_000).sent(1);
    }
    play.end();
    assert_eq!(play.breach(), (Phase::Request, ms(30_000), ms(30_000)));
}

#[test]
fn a_connection_that_ended_well_is_kept() {
    let answer = response("200 OK", &[], "fine");
    for (bytes, mode) in [
        (answer.clone(), CloseMode::Keep),
        (answer.clone() + "surplus", CloseMode::Abort),
        (answer.replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n"), CloseMode::Abort),
        (response("503 Busy", &[], "no"), CloseMode::Keep),
    ] {
        let mut play = Play::unary(one_attempt()).start();
        play.at(100).request().at(200).receive(&bytes);
        assert_eq!(play.record.commands[1], (ms(200), Command::Close(play.link(), mode)), "{bytes}");
    }
}
