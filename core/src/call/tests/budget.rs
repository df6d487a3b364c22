//! A retry budget, as a call asks for it (rule RTY-9).

use std::time::Duration;

use super::play::{Play, ms};
use super::wire::response;
use crate::call::{AttemptId, Command, Fact, State};
use crate::config::Overrides;
use crate::machine::{Event, FailureKind, Misuse, Stage};
use crate::outcome::{Billing, ErrorKind, Note, Reason, SpanKind};

fn asked(play: &Play) -> Vec<(Duration, AttemptId)> {
    let retries = play.record.commands.iter().filter_map(|(at, command)| match command {
        Command::Retry(id) => Some((*at, *id)),
        Command::Connect(_) | Command::Close(..) => None,
    });
    retries.collect()
}

fn overloaded(play: &mut Play) -> AttemptId {
    play.request().receive(response("503 Busy", &["retry-after: 1"], "busy"));
    play.link()
}

#[test]
fn a_retry_is_announced_before_its_pause_and_goes_on_where_nothing_is_said() {
    let mut play = Play::with_budget(Overrides::new().max_attempts(3)).start();
    let first = overloaded(play.at(100));
    assert_eq!((asked(&play), play.call.state()), (vec![(ms(100), first)], State::Pausing));
    play.expire();
    let second = overloaded(&mut play);
    assert_eq!(asked(&play).iter().map(|(_, id)| *id).collect::<Vec<_>>(), [first, second]);
    play.expire();
    // The last attempt plans none.
    overloaded(&mut play);
    assert_eq!((asked(&play).len(), play.outcome().timeline.attempt_count()), (2, 3));
    assert!(!play.outcome().timeline.notes.contains(&Note::RetryBudgetUsedUp));
}

#[test]
fn a_budget_that_is_used_up_leaves_the_last_real_response_at_once() {
    let mut play = Play::with_budget(Overrides::new().max_attempts(3)).start();
    let id = overloaded(play.at(100));
    play.fact(Fact::RetryRefused(id));
    assert_eq!(play.ended_at(), ms(100));
    let outcome = play.outcome();
    let error = outcome.result.as_ref().unwrap_err();
    let ErrorKind::Status(status) = &error.kind else { panic!("{error}") };
    assert_eq!((status.status.as_u16(), &status.body[..]), (503, &b"busy"[..]));
    assert_eq!((error.retry_after, error.billing), (Some(Duration::from_secs(1)), Billing::MaybeBilled));
    assert_eq!(
        (outcome.timeline.attempt_count(), &outcome.timeline.notes[..]),
        (1, &[Note::RetryBudgetUsedUp][..])
    );
    let pause = outcome.timeline.spans.last().unwrap();
    assert_eq!(
        (pause.kind, pause.reason, pause.began),
        (SpanKind::Backoff, Reason::RetryBudget, pause.ended)
    );
}

#[test]
fn a_refusal_that_comes_too_late_is_ignored() {
    let mut play = Play::with_budget(Overrides::new().max_attempts(3)).start();
    let id = overloaded(play.at(100));
    play.expire().fact(Fact::RetryRefused(id));
    let second = overloaded(&mut play);
    play.fact(Fact::RetryRefused(id));
    assert_eq!(play.call.state(), State::Pausing);
    play.fact(Fact::RetryRefused(second));
    assert_eq!((play.outcome().timeline.attempt_count(), play.outcome().timeline.stale_events), (2, 2));
}

#[test]
fn what_is_never_tried_again_is_not_asked_for_and_neither_is_another_connection() {
    let mut refused = Play::with_budget(Overrides::new()).start();
    refused.at(100).request().receive(response("400 No", &[], "no"));
    assert_eq!(asked(&refused), []);
    // Not one byte was written, so this is no retry.
    let mut stale = Play::with_budget(Overrides::new().max_attempts(2)).start();
    stale.at(100).reused().reset();
    assert_eq!((asked(&stale), stale.call.state()), (vec![], State::Connecting));
    stale.cancel();
    let mut without = Play::unary(Overrides::new().max_attempts(2)).start();
    overloaded(without.at(100));
    assert_eq!((asked(&without), without.call.state()), (vec![], State::Pausing));
}

#[test]
fn a_stale_connection_that_was_written_to_is_replaced_by_a_retry_that_is_asked_for() {
    for bytes in [1, usize::MAX] {
        let written_to = || {
            let mut play = Play::with_budget(Overrides::new().max_attempts(2)).start();
            let (written, id) = (play.at(100).reused().outgoing().min(bytes), play.link());
            play.sent(written).at(130).reset();
            assert_eq!((asked(&play), play.call.state()), (vec![(ms(130), id)], State::Pausing));
            (play, id)
        };
        let (mut granted, _) = written_to();
        granted.expire();
        assert_eq!(granted.attempts_at(), [ms(0), ms(130)], "without a pause");
        granted.request().receive(response("200 OK", &[], "fine"));
        assert_eq!(&granted.completion().body[..], b"fine");

        let (mut used_up, id) = written_to();
        used_up.fact(Fact::RetryRefused(id));
        assert_eq!((used_up.attempts_at().len(), used_up.ended_at()), (1, ms(130)));
        assert!(matches!(used_up.error(), ErrorKind::Transport(_)), "{:?}", used_up.error());
        assert_eq!(used_up.outcome().timeline.notes, [Note::RetryBudgetUsedUp]);
    }
}

#[test]
fn a_call_that_is_cancelled_in_its_pause_is_over() {
    let mut play = Play::with_budget(Overrides::new()).start();
    let id = overloaded(play.at(100));
    play.cancel().fact(Fact::RetryRefused(id));
    assert_eq!(play.error(), &ErrorKind::Cancelled);
}

#[test]
fn misuse_names_the_fix() {
    let mut play = Play::unary(Overrides::new()).start();
    play.fail(Stage::Connect, FailureKind::Refused, "refused");
    let id = play.link();
    for (id, fix) in [(id, "call ask_before_retries first"), (id.next(), "never asked for")] {
        let misuse = play.try_feed(Event::Fact(Fact::RetryRefused(id))).unwrap_err();
        assert!(misuse.to_string().contains(fix), "{misuse}");
    }
    let misuse: Misuse = play.call.ask_before_retries().unwrap_err();
    assert!(misuse.to_string().contains("too late"), "{misuse}");
}
