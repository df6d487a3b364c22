//! Connections that an earlier call left, and those that are left to a later one (rules RTY-6, POOL-1).

use super::play::{Play, ms};
use super::wire::{self, Answer, LAST_CHUNK, STREAM_HEAD, chunk, response};
use crate::call::{CloseMode, Command, Request, Retries, Timer};
use crate::config::Overrides;
use crate::dialect::Dialect;
use crate::http1::{MAX_TAIL_BYTES, TailState};
use crate::machine::{Ended, Event, FailureKind, Machine, Misuse, Stage};
use crate::outcome::{Billing, ErrorKind, Note, Phase, Reason};

const CHAT: Dialect = Dialect::OpenAiChat;

fn with(retries: Retries, overrides: Overrides) -> Play {
    let request = Request::post(wire::URL).body("{}").retries(retries).build().unwrap();
    Play::new(request, overrides).start()
}

/// Ways in which a connection dies
const DEATHS: [fn(&mut Play) -> &mut Play; 4] = [
    |play| play.fin(),
    |play| play.eof(Ended::WithoutCloseNotify),
    |play| play.reset(),
    |play| play.fail(Stage::Write, FailureKind::Reset, "broken pipe").reset(),
];

#[test]
fn one_that_was_dead_before_a_byte_was_written_is_replaced_at_no_cost() {
    for retries in [Retries::Allowed, Retries::UnlessBilled, Retries::Never] {
        for dies in DEATHS {
            let mut play = with(retries, Overrides::new().max_attempts(1));
            dies(play.at(10).reused());
            let stale = crate::call::AttemptId::NONE.next();
            assert_eq!(
                play.record.commands[1..],
                [(ms(10), Command::Close(stale, CloseMode::Abort)), (ms(10), Command::Connect(play.link()))]
            );
            play.at(60).request().at(100).receive(response("200 OK", &[], "fine"));
            let timeline = &play.outcome().timeline;
            assert_eq!((timeline.attempt_count(), &timeline.notes[..]), (1, &[Note::StaleConnection][..]));
            assert!(!timeline.attempts[0].reused);
            assert_eq!(&play.completion().body[..], b"fine");
        }
    }
}

/// The replacement was not asked for yet, so only the dead one is to be closed
#[test]
fn a_call_that_is_given_up_between_two_connections_leaves_neither() {
    let mut play = Play::unary(Overrides::new()).start();
    let link = play.reused().link();
    drop(play.call.handle(super::play::START, Event::Received(link, b"H")).unwrap());
    play.cancel();
    assert_eq!(play.record.opened().len(), 1);
    assert_eq!(*closed(&play), CloseMode::Abort);
    assert_eq!(play.outcome().timeline.attempt_count(), 1);
}

/// The attempt goes on, so its clocks do
#[test]
fn a_replacement_gets_no_time_of_its_own() {
    let overrides = Overrides::new().connect_timeout(1.0).request_timeout(2.0).max_attempts(1);
    let mut play = with(Retries::Allowed, overrides);
    play.at(400).reused().at(700).fin();
    assert_eq!(play.deadline(), Some((ms(1_000), Timer::Connect)));
    play.at(900).connected();
    assert_eq!(play.deadline(), Some((ms(2_000), Timer::Request)));
    play.expire();
    assert_eq!(play.breach(), (Phase::Request, ms(2_000), ms(2_000)));
    assert_eq!(play.outcome().timeline.attempts[0].reason, Reason::Bound("request_timeout"));
}

#[test]
fn one_that_dies_once_something_was_written_costs_an_attempt_but_no_pause() {
    for bytes in [1, usize::MAX] {
        for dies in DEATHS {
            let mut play = with(Retries::Allowed, Overrides::new().max_attempts(2));
            let written = play.reused().outgoing().min(bytes);
            dies(play.sent(written).at(30));
            assert_eq!(play.attempts_at(), [ms(0), ms(30)]);
            // A second failure is one like any other.
            play.at(40).request().at(50).reset();
            assert_eq!((play.attempts_at().len(), play.ended_at()), (2, ms(50)));
            let error = play.outcome().result.as_ref().unwrap_err();
            assert!(matches!(error.kind, ErrorKind::Transport(_)));
            assert_eq!(error.billing, Billing::MaybeBilled);
            let attempts = &play.outcome().timeline.attempts;
            assert_eq!([attempts[0].reused, attempts[1].reused], [true, false]);
            assert_eq!(play.outcome().timeline.notes, []);
        }
    }
}

#[test]
fn what_may_have_been_seen_is_sent_again_only_where_that_is_allowed() {
    for (retries, most) in [(Retries::Never, 3), (Retries::UnlessBilled, 3), (Retries::Allowed, 1)] {
        let mut play = with(retries, Overrides::new().max_attempts(most));
        play.reused().sent_all().at(30).fin();
        assert_eq!((play.attempts_at().len(), play.ended_at()), (1, ms(30)), "{retries:?} {most}");
        assert_eq!(play.outcome().result.as_ref().unwrap_err().billing, Billing::MaybeBilled);
    }
}

#[test]
fn no_attempt_follows_where_no_time_is_left() {
    for sent in [0, 1] {
        let mut play = with(Retries::Allowed, Overrides::new().total_deadline(1.0));
        play.reused().sent(sent).late(1_000).reset();
        assert_eq!((play.attempts_at().len(), play.ended_at()), (1, ms(1_000)));
        assert!(matches!(play.error(), ErrorKind::Transport(_)));
    }
    let mut play = with(Retries::Allowed, Overrides::new().total_deadline(1.0));
    play.reused().late(1_000).receive("H").expire();
    assert_eq!((play.record.opened().len(), play.ended_at()), (1, ms(1_000)));
    assert_eq!(play.breach(), (Phase::Deadline, ms(1_000), ms(1_000)));
}

/// Once a byte of the response came the rule has no say
#[test]
fn an_answer_that_began_fails_like_any_other() {
    let mut play = with(Retries::Allowed, Overrides::new().max_attempts(2));
    play.reused().sent_all().receive("H").at(30).reset();
    assert_eq!(play.attempts_at().len(), 1);
    assert!(play.deadline().is_some_and(|(at, timer)| timer == Timer::Backoff && at >= ms(30)));
    // Nor does it where the connection is a new one.
    let mut play = with(Retries::Never, Overrides::new());
    play.request().reset();
    assert_eq!((play.attempts_at().len(), play.ended_at()), (1, ms(0)));
    // Nor where time runs out.
    let mut play = with(Retries::Never, Overrides::new().request_timeout(1.0));
    play.reused().end();
    assert_eq!(play.breach(), (Phase::Request, ms(1_000), ms(1_000)));
    assert_eq!(play.attempts_at().len(), 1);
}

/// A server that closes an idle connection may say so first, by a 408
#[test]
fn words_before_the_question_are_no_answer() {
    let mut play = with(Retries::Never, Overrides::new());
    play.reused().receive("").receive(response("408 Request Timeout", &["connection: close"], ""));
    assert_eq!(play.record.opened().len(), 2);
    play.at(20).request().receive(response("200 OK", &[], "fine"));
    assert_eq!((&play.completion().body[..], play.outcome().timeline.attempt_count()), (&b"fine"[..], 1));
}

#[test]
fn a_call_gives_up_on_reuse_after_its_first_connection() {
    let mut play = with(Retries::Allowed, Overrides::new());
    assert!(play.link().may_be_reused());
    play.reused().fin();
    assert!(!play.link().may_be_reused());
    let misuse = play.try_feed(Event::Reused(play.link())).unwrap_err();
    assert!(matches!(misuse, Misuse::OutOfOrder(text) if text.contains("may_be_reused")));
    play.connected();
}

fn closed(play: &Play) -> &CloseMode {
    match &play.record.commands.last().unwrap().1 {
        Command::Close(_, mode) => mode,
        other => panic!("{other:?}"),
    }
}

/// A stream up to its sentinel, and what is read together with that
fn ended_with(head: &str, rest: &str) -> Play {
    let mut play = Play::stream(CHAT, Overrides::new().after_sentinel(0.25)).start();
    play.request().receive(head);
    let answer = CHAT.text("Hi") + &CHAT.terminal() + "data: [DONE]\n\n";
    let body = if head.contains("chunked") { chunk(&answer) } else { answer };
    play.at(100).receive(body + rest);
    assert_eq!((play.completion().turn.text(), play.ended_at()), ("Hi", ms(100)));
    play
}

#[test]
fn what_comes_with_the_sentinel_decides_about_the_connection() {
    assert_eq!(*closed(&ended_with(STREAM_HEAD, LAST_CHUNK)), CloseMode::Keep);
    assert_eq!(*closed(&ended_with(STREAM_HEAD, "0\r\ntrailer: 1\r\n\r\n")), CloseMode::Keep);
    for rest in ["", "0\r\n", "8\r\n: late\n\n\r\n", "8\r\n: la"] {
        let play = ended_with(STREAM_HEAD, rest);
        let CloseMode::Finish(tail) = closed(&play) else { panic!("{rest:?}: {:?}", closed(&play)) };
        assert_eq!(tail.until(), Some(super::play::START + ms(350)));
    }
    for rest in ["0\r\n\r\nHTTP/1.1 200 OK\r\n", "no chunk\r\n"] {
        assert_eq!(*closed(&ended_with(STREAM_HEAD, rest)), CloseMode::Abort, "{rest:?}");
    }
    // Only the end of the connection ends these.
    assert_eq!(*closed(&ended_with(wire::OPEN_HEAD, "")), CloseMode::Abort);
    let close = STREAM_HEAD.replacen("\r\n", "\r\nconnection: close\r\n", 1);
    assert_eq!(*closed(&ended_with(&close, LAST_CHUNK)), CloseMode::Abort);
}

#[test]
fn the_pool_hears_for_how_long_the_server_keeps_a_connection() {
    let head = STREAM_HEAD.replacen("\r\n", "\r\nkeep-alive: timeout=5, max=100\r\n", 1);
    assert_eq!(*closed(&ended_with(&head, LAST_CHUNK)), CloseMode::KeepFor(ms(5_000)));
    let play = ended_with(&head, "");
    let CloseMode::Finish(tail) = closed(&play) else { panic!("{:?}", closed(&play)) };
    assert_eq!(tail.keep_for(), Some(ms(5_000)));
    let mut unary = Play::unary(Overrides::new()).start();
    unary.request().receive(wire::response("200 OK", &["Keep-Alive: timeout=7"], "{}"));
    assert_eq!(*closed(&unary), CloseMode::KeepFor(ms(7_000)));
}

#[test]
fn a_tail_takes_what_is_left_of_the_message_and_no_more() {
    let length = (CHAT.text("Hi") + &CHAT.terminal() + "data: [DONE]\n\n").len();
    let head = |more: usize| {
        format!("{}content-length: {}\r\n\r\n", &wire::OPEN_HEAD[..wire::OPEN_HEAD.len() - 2], length + more)
    };
    assert_eq!(*closed(&ended_with(&head(0), "")), CloseMode::Keep);
    for (head, left, rest) in
        [(STREAM_HEAD.to_owned(), "8\r\n: la", "te\n\n\r\n0\r\n\r\n"), (head(8), ": la", "te\n\n")]
    {
        let play = ended_with(&head, left);
        let CloseMode::Finish(tail) = closed(&play) else { panic!("{:?}", closed(&play)) };
        let mut whole = tail.clone();
        assert_eq!(whole.receive(rest.as_bytes()), TailState::Ended);
        assert_eq!(whole.receive(b""), TailState::Ended);
        assert_eq!(whole.receive(b"H"), TailState::Broken);
        let mut pieces = tail.clone();
        for at in 0..rest.len() {
            let state = pieces.receive(&rest.as_bytes()[at..=at]);
            let expected = if at + 1 == rest.len() { TailState::Ended } else { TailState::Open };
            assert_eq!(state, expected, "{at}");
        }
        let mut too_much = tail.clone();
        assert_eq!(too_much.receive((rest.to_owned() + "H").as_bytes()), TailState::Broken);
    }
}

#[test]
fn an_endless_tail_is_given_up() {
    let play = ended_with(STREAM_HEAD, "");
    let CloseMode::Finish(tail) = closed(&play) else { panic!("{:?}", closed(&play)) };
    let mut tail = tail.clone();
    let ping = chunk(": ping\n\n");
    let mut taken = 0;
    while tail.receive(ping.as_bytes()) == TailState::Open {
        taken += ping.len();
        assert!(taken <= MAX_TAIL_BYTES);
    }
    assert!(taken > MAX_TAIL_BYTES - ping.len());
}

#[test]
fn what_broke_or_was_broken_off_is_left_to_nobody() {
    let begun = || {
        let mut play = Play::stream(CHAT, Overrides::new().stream_idle_timeout(1.0)).start();
        play.request().receive(STREAM_HEAD).receive(chunk(CHAT.text("Hi")));
        play
    };
    let mut cancelled = begun();
    cancelled.cancel();
    let mut timed_out = begun();
    timed_out.end();
    // The turn is kept, the connection is not.
    let mut cancelled_after_the_end = begun();
    cancelled_after_the_end.receive(chunk(CHAT.terminal())).cancel();
    let mut held_open = begun();
    held_open.receive(chunk(CHAT.terminal())).reset();
    // The request was still going out.
    let mut early = Play::stream(CHAT, Overrides::new()).start();
    early.connected().sent(10).receive(STREAM_HEAD).receive(chunk(CHAT.terminal() + "data: [DONE]\n\n"));
    early.outcome();
    for play in [cancelled, timed_out, cancelled_after_the_end, held_open, early] {
        assert_eq!(*closed(&play), CloseMode::Abort);
    }
    // It has had its time to end.
    let mut marked = Play::stream(CHAT, Overrides::new()).start();
    marked.request().receive(STREAM_HEAD).receive(chunk(CHAT.terminal())).end();
    assert_eq!(*closed(&marked), CloseMode::Abort);
}

/// The line was taken though its line end is missing, and nothing can follow it
#[test]
fn one_whose_end_brought_the_last_line_of_a_stream_is_not_left() {
    let last = r#"{"message":{"content":"Hi"},"done":true,"done_reason":"stop"}"#;
    for framing in [String::new(), format!("content-length: {}\r\n", last.len() + 1)] {
        for dies in DEATHS {
            let mut play = Play::stream(Dialect::Ollama, Overrides::new()).start();
            let head = format!("HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\n{framing}\r\n");
            dies(play.at(10).request().receive(head + last));
            assert_eq!(play.completion().turn.text(), "Hi");
            assert_eq!(*closed(&play), CloseMode::Abort, "{framing}");
        }
    }
}
