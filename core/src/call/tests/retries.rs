//! Attempts and the pauses between them (rules RTY-1 to RTY-4).

use serde_json::json;

use super::play::{Play, ms};
use super::wire::{self, Answer, LAST_CHUNK, SPOKEN, STREAM_HEAD, chunk, event, response};
use crate::call::{Request, Retries, Timer};
use crate::config::Overrides;
use crate::dialect::Dialect;
use crate::machine::{CertificateFault, ClientCertificateFault, FailureKind, Stage};
use crate::outcome::{Billing, CallError, ErrorKind, Note, Phase, Reason, SpanKind, StatusError};

const CHAT: Dialect = Dialect::OpenAiChat;

#[test]
fn a_word_about_retries_holds_for_whatever_became_of_the_response() {
    let head = |word: &str| STREAM_HEAD.replacen("\r\n", &format!("\r\nx-should-retry: {word}\r\n"), 1);
    let fatal = event(&json!({"error": {"code": 400, "message": "no"}}));
    for (word, body, attempts) in [
        ("false", chunk(CHAT.overload()), 1),
        ("false", LAST_CHUNK.to_owned(), 1),
        ("true", chunk(&fatal), 2),
        ("maybe", chunk(CHAT.overload()), 2),
        ("maybe", LAST_CHUNK.to_owned(), 2),
        ("maybe", chunk(&fatal), 1),
        ("true", chunk("data: {\n\n"), 1),
    ] {
        let mut play = Play::stream(CHAT, Overrides::new()).start();
        play.at(100).request().receive(head(word)).receive(&body);
        assert_eq!(play.attempts_at().len(), 1);
        if play.record.done.is_none() {
            play.expire();
        }
        assert_eq!(play.attempts_at().len(), attempts, "{word}: {body}");
    }
}

#[test]
fn a_call_that_begins_after_its_deadline_makes_no_attempt() {
    let overrides = Overrides::new().total_deadline(2.0).stream_deadline(1.0);
    let mut stream = Play::stream(CHAT, overrides);
    stream.late(1_000).feed(crate::machine::Event::Start);
    assert_eq!(stream.breach(), (Phase::Deadline, ms(1_000), ms(1_000)));
    assert_eq!(stream.attempts_at(), []);
    assert_eq!(stream.outcome().result.as_ref().unwrap_err().billing, Billing::NotSent);
    let mut unary = Play::unary(overrides);
    unary.late(1_999).feed(crate::machine::Event::Start);
    assert_eq!(unary.attempts_at(), [ms(1_999)]);
}

const ANSWER: &str = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nfine";

fn busy(fields: &[&str]) -> String {
    response("503 Service Unavailable", fields, "busy")
}

#[track_caller]
fn status(play: &Play) -> &StatusError {
    match play.error() {
        ErrorKind::Status(error) => error,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn failure(play: &Play) -> &CallError {
    play.outcome().result.as_ref().expect_err("the call went well")
}

#[test]
fn the_last_real_answer_is_returned_after_the_last_attempt() {
    let mut play = Play::unary(Overrides::new().max_attempts(3)).start();
    for attempt in 1..=3 {
        assert_eq!(play.attempts_at().len(), attempt);
        play.request().receive(response("503 Busy", &[], &format!("busy {attempt}")));
        if attempt < 3 {
            play.expire();
        }
    }
    assert_eq!((&status(&play).body[..], status(&play).whole), (&b"busy 3"[..], true));
    assert_eq!(play.outcome().timeline.attempt_count(), 3);
}

#[test]
fn an_answer_after_a_failure() {
    let mut play = Play::unary(Overrides::new()).start();
    play.at(100).request().receive(busy(&[])).expire();
    play.request().receive(ANSWER);
    assert_eq!((&play.completion().body[..], play.attempts_at().len()), (&b"fine"[..], 2));
}

#[test]
fn one_attempt_means_one() {
    type Failure = fn(&mut Play) -> &mut Play;
    let failures: [Failure; 3] =
        [|play| play.request().receive(busy(&[])), |play| play.request().reset(), |play| play.expire()];
    for fail in failures {
        for (overrides, retries) in [(1, Retries::Allowed), (3, Retries::Never)] {
            let request = Request::post(wire::URL).retries(retries).build().unwrap();
            let mut play = Play::new(request, Overrides::new().max_attempts(overrides)).start();
            fail(play.at(100));
            assert!(play.outcome().result.is_err());
            assert_eq!(play.attempts_at().len(), 1);
        }
    }
}

#[test]
fn unless_billed_retries_only_what_cost_nothing() {
    let request = || Request::post(wire::URL).retries(Retries::UnlessBilled).build().unwrap();
    let mut refused = Play::new(request(), Overrides::new()).start();
    refused.at(1).fail(Stage::Connect, FailureKind::Refused, "refused").expire();
    refused.connected().reset().expire();
    assert_eq!(refused.attempts_at().len(), 3);
    refused.connected().sent(1).reset();
    assert_eq!(failure(&refused).billing, Billing::MaybeBilled);
    let mut sent = Play::new(request(), Overrides::new()).start();
    sent.at(1).connected().sent(1).reset();
    assert_eq!((failure(&sent).billing, sent.attempts_at().len()), (Billing::MaybeBilled, 1));
}

#[test]
fn what_is_retried_and_what_is_not() {
    for (status, attempts) in [
        ("408 x", 2),
        ("409 x", 1),
        ("425 x", 2),
        ("429 x", 2),
        ("500 x", 2),
        ("501 x", 1),
        ("529 x", 2),
        ("400 x", 1),
        ("404 x", 1),
    ] {
        let mut play = Play::unary(Overrides::new()).start();
        play.at(100).request().receive(response(status, &[], ""));
        if play.record.done.is_none() {
            play.expire();
        }
        assert_eq!(play.attempts_at().len(), attempts, "{status}");
    }
}

#[test]
fn a_quota_is_never_retried_whatever_the_header_says() {
    let body = json!({"error": {"code": "insufficient_quota", "message": "pay"}}).to_string();
    let mut play = Play::unary(Overrides::new()).start();
    play.at(100).request().receive(response("429 x", &["x-should-retry: true"], &body));
    assert_eq!(status(&play).provider.as_ref().unwrap().code.as_deref(), Some("insufficient_quota"));
    for (word, status, attempts) in [("false", "503 x", 1), ("true", "400 x", 2)] {
        let mut play = Play::unary(Overrides::new()).start();
        play.at(100).request().receive(response(status, &[&format!("x-should-retry: {word}")], ""));
        if play.record.done.is_none() {
            play.expire();
        }
        assert_eq!(play.attempts_at().len(), attempts, "{word}");
    }
}

#[test]
fn what_the_server_asks_for_is_a_floor_in_every_form() {
    // The head comes at 100 ms, so the wall clock shows 08:49:30.1.
    for (field, floor) in [
        ("retry-after: 7", 7_000),
        ("retry-after: 0.5", 500),
        ("retry-after-ms: 1500", 1_500),
        ("x-ms-retry-after-ms: 250\r\nretry-after: 60", 250),
        ("retry-after: Sun, 06 Nov 1994 08:49:37 GMT", 6_900),
        ("retry-after: Sunday, 06-Nov-94 08:49:37 GMT", 6_900),
        ("retry-after: Sun Nov  6 08:49:37 1994", 6_900),
        ("retry-after: Sun, 06 Nov 1994 08:49:00 GMT", 0),
        ("retry-after: soon", 0),
    ] {
        let mut play = Play::unary(Overrides::new()).start();
        play.at(100).request().receive(busy(&[field]));
        let (until, timer) = play.deadline().unwrap();
        assert_eq!(timer, Timer::Backoff);
        let pause = until - ms(100);
        assert!(pause >= ms(floor) && pause < ms(floor + 1_000), "{field}: {pause:?}");
        play.expire();
        assert_eq!(play.attempts_at()[1], until);
    }
}

#[test]
fn a_pause_that_does_not_fit_is_not_slept() {
    let overrides = Overrides::new().total_deadline(5.0);
    for (field, fits) in [("retry-after: 60", false), ("retry-after: 4.9", false), ("retry-after: 4", true)] {
        let mut play = Play::unary(overrides).start();
        play.at(100).request().receive(response("429 x", &[field], "slow down"));
        assert_eq!(play.record.done.is_none(), fits, "{field}");
        if !fits {
            assert_eq!((status(&play).status.as_u16(), &status(&play).body[..]), (429, &b"slow down"[..]));
            assert_eq!((play.ended_at(), play.attempts_at().len()), (ms(100), 1));
            assert_eq!(play.outcome().timeline.notes, [Note::PauseDidNotFit]);
            assert!(failure(&play).retry_after.is_some());
        }
    }
}

#[test]
fn more_than_max_retry_after_is_surfaced_at_once() {
    let overrides = Overrides::new().max_retry_after(5.0);
    for (asked, waits) in [("5", true), ("5.001", false)] {
        let mut play = Play::unary(overrides).start();
        play.at(100).request().receive(busy(&[&format!("retry-after: {asked}")]));
        assert_eq!(play.record.done.is_none(), waits);
        if !waits {
            assert_eq!((status(&play).status.as_u16(), play.ended_at()), (503, ms(100)));
            assert_eq!(failure(&play).retry_after, Some(ms(5_001)));
            assert_eq!(play.outcome().timeline.notes, [Note::RetryAfterTooLong]);
        }
    }
}

#[test]
fn the_attempts_share_one_deadline() {
    for mut play in [
        Play::unary(Overrides::new().request_timeout(4.0).total_deadline(10.0)).start(),
        Play::stream(CHAT, Overrides::new().request_timeout(4.0).total_deadline(10.0)).start(),
    ] {
        // Twice: a timeout of 4 s, and a pause that this seed draws short enough.
        play.request().expire().expire();
        play.request().expire().expire();
        let third = play.attempts_at()[2];
        assert!(third > ms(8_000) && third < ms(10_000));
        assert_eq!(play.request().deadline(), Some((ms(10_000), Timer::Deadline)));
        play.expire();
        assert_eq!(play.breach(), (Phase::Deadline, ms(10_000), ms(10_000)));
        assert_eq!(play.ended_at(), ms(10_000));
        let record = play.outcome().timeline.attempts[2].clone();
        assert_eq!(record.ended - record.began, ms(10_000) - third);
        assert_eq!(play.outcome().timeline.attempts[0].reason, Reason::Bound("request_timeout"));
    }
}

#[test]
fn overload_in_the_stream_before_any_delta_is_retried_and_after_one_is_not() {
    for dialect in SPOKEN {
        let mut before = Play::stream(dialect, Overrides::new()).start();
        before.at(100).open().receive(chunk(dialect.opening() + &dialect.overload())).expire();
        before.open().receive(chunk(dialect.opening() + &dialect.text("Hi") + &dialect.terminal()));
        before.end();
        assert_eq!((before.completion().turn.text(), before.attempts_at().len()), ("Hi", 2), "{dialect:?}");

        let mut after = Play::stream(dialect, Overrides::new()).start();
        after.at(100).open();
        after.at(200).receive(chunk(dialect.opening() + &dialect.text("Hi") + &dialect.overload()));
        assert!(matches!(after.error(), ErrorKind::InBand(error) if error.message == "overloaded"));
        assert_eq!((after.ended_at(), after.attempts_at().len()), (ms(200), 1), "{dialect:?}");
        assert_eq!((after.outcome().turn().text(), failure(&after).billing), ("Hi", Billing::Delivered));
    }
}

#[test]
fn the_turn_of_a_failed_attempt_is_forgotten() {
    let mut play = Play::stream(CHAT, Overrides::new()).start();
    let first = event(
        &json!({"id": "old", "model": "old", "choices": [{"index": 3, "delta": {}}], "usage": {"prompt_tokens": 1}}),
    );
    play.at(100).open().receive(chunk(first + &CHAT.overload())).expire();
    play.open().receive(chunk(CHAT.text("Hi") + "data: [DONE]\n\n"));
    let turn = &play.completion().turn;
    assert_eq!(
        (turn.id.as_deref(), turn.model.as_deref(), turn.choices.len(), &turn.usage),
        (Some("c1"), None, 1, &None)
    );
}

#[test]
fn a_failure_that_stands_keeps_what_came_though_another_attempt_was_planned() {
    let first = event(&json!({"id": "c1", "choices": [], "usage": {"prompt_tokens": 1}}));
    for late in [false, true] {
        let mut play = Play::stream(CHAT, Overrides::new().total_deadline(5.0)).start();
        play.at(100).open().receive(chunk(first.clone() + &CHAT.overload()));
        assert_eq!(play.deadline().map(|(_, timer)| timer), Some(Timer::Backoff));
        if late {
            play.late(60_000).elapsed();
            assert!(matches!(play.error(), ErrorKind::InBand(_)));
        } else {
            play.cancel();
            assert_eq!(play.error(), &ErrorKind::Cancelled);
        }
        let turn = play.outcome().turn();
        assert_eq!((turn.id.as_deref(), turn.usage.is_some()), (Some("c1"), true), "late: {late}");
    }
}

#[test]
fn an_empty_or_cut_answer_is_retried_while_nothing_was_delivered() {
    let opening = chunk(CHAT.opening());
    for (bytes, end) in [(LAST_CHUNK, false), (opening.as_str(), true), ("", true)] {
        let mut play = Play::stream(CHAT, Overrides::new().max_attempts(2)).start();
        play.at(100).open().receive(bytes);
        if end {
            play.fin();
        }
        assert_eq!(play.deadline().map(|(_, timer)| timer), Some(Timer::Backoff));
        play.expire().open().receive(LAST_CHUNK);
        assert_eq!((play.error(), failure(&play).billing), (&ErrorKind::Empty, Billing::MaybeBilled));
    }
}

#[test]
fn a_late_backoff_starts_nothing_without_time_left() {
    let mut play = Play::unary(Overrides::new().total_deadline(5.0)).start();
    play.at(100).request().receive(busy(&["retry-after: 1"])).late(60_000).elapsed();
    assert_eq!((status(&play).status.as_u16(), play.attempts_at().len()), (503, 1));
    assert_eq!(failure(&play).retry_after, Some(ms(1_000)));
    assert_eq!(play.outcome().timeline.notes, [Note::PauseDidNotFit]);
}

#[test]
fn each_span_says_why_it_ended() {
    let mut play = Play::stream(CHAT, Overrides::new()).start();
    play.at(100).request().at(300).receive(busy(&["retry-after: 2"]));
    let (until, _) = play.deadline().unwrap();
    play.expire();
    let second = until.as_millis() as u64 + 1;
    play.at(second).request().at(second + 50).receive(STREAM_HEAD);
    play.at(second + 100).receive(chunk(CHAT.text("Hi") + &CHAT.terminal()));
    play.at(second + 200).receive(chunk("data: [DONE]\n\n"));
    let timeline = &play.outcome().timeline;
    let spans: Vec<_> = timeline.spans.iter().map(|span| (span.attempt, span.kind, span.reason)).collect();
    assert_eq!(
        spans,
        [
            (1, SpanKind::Connect, Reason::Done),
            (1, SpanKind::Request, Reason::Done),
            (1, SpanKind::Body, Reason::Status(503)),
            (1, SpanKind::Backoff, Reason::Slept),
            (2, SpanKind::Connect, Reason::Done),
            (2, SpanKind::Request, Reason::Done),
            (2, SpanKind::Stream, Reason::Marker),
            (2, SpanKind::AfterMarker, Reason::Sentinel),
        ]
    );
    assert!(
        timeline.spans.windows(2).all(|pair| pair[0].ended == pair[1].began),
        "no time is unaccounted for"
    );
    assert_eq!(timeline.elapsed(), ms(second + 200));
    let records: Vec<_> =
        timeline.attempts.iter().map(|record| (record.status, record.deltas, record.reason)).collect();
    assert_eq!(records, [(Some(503), 0, Reason::Status(503)), (Some(200), 1, Reason::Sentinel)]);
}

#[test]
fn the_same_seed_gives_the_same_steps() {
    let run = || {
        let mut play = Play::stream(CHAT, Overrides::new()).start();
        play.at(100).request().receive(busy(&[])).expire();
        play.request().reset().expire();
        play.open().receive(chunk(CHAT.opening() + &CHAT.text("Hi") + &CHAT.terminal()));
        play.end();
        play.record.trace
    };
    let trace = run();
    assert!(trace.len() > 20);
    assert_eq!(trace, run());
}

#[test]
fn time_that_steps_back_is_held_still_and_counted() {
    let mut play = Play::stream(CHAT, Overrides::new()).start();
    play.at(500).open();
    play.late(100).receive(chunk(CHAT.text("Hi"))).late(200).taken();
    assert_eq!(play.deadline(), Some((ms(500 + 120_000), Timer::StreamIdle)));
    play.at(600).receive(chunk("data: [DONE]\n\n"));
    let timeline = &play.outcome().timeline;
    // The bytes, the consumer at once, and the consumer again.
    assert_eq!((timeline.clock_steps_back, timeline.elapsed()), (3, ms(600)));
    assert_eq!(timeline.attempts[0].largest_gap, ms(100));
}

#[test]
fn a_failure_says_what_it_may_have_cost() {
    let mut connected = Play::unary(Overrides::new().max_attempts(1)).start();
    connected.at(100).connected().reset();
    assert_eq!(failure(&connected).billing, Billing::NotSent);
    // What an earlier attempt sent still counts.
    let mut second = Play::unary(Overrides::new().max_attempts(2)).start();
    second.at(100).connected().sent(1).reset().expire();
    second.fail(Stage::Connect, FailureKind::Refused, "refused");
    assert_eq!(failure(&second).billing, Billing::MaybeBilled);
    assert_eq!(second.ended_at(), second.attempts_at()[1]);
}

#[test]
fn a_certificate_that_was_not_accepted_is_not_tried_again() {
    for (kind, attempts) in [
        (FailureKind::Certificate(CertificateFault::Expired), 1),
        (FailureKind::ClientCertificate(ClientCertificateFault::Required), 1),
        (FailureKind::Tls, 3),
    ] {
        let mut play = Play::unary(Overrides::new().max_attempts(3)).start();
        play.fail(Stage::Tls, kind, "expired");
        while play.record.done.is_none() {
            assert!(matches!(play.deadline(), Some((_, Timer::Backoff))), "{kind:?}");
            play.expire();
            play.fail(Stage::Tls, kind, "expired");
        }
        assert_eq!(play.attempts_at().len(), attempts, "{kind:?}");
    }
}
