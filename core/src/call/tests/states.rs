//! Every transition of the table in `states.md`, and no other.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;

use super::play::Play;
use super::wire::{Answer, LAST_CHUNK, STREAM_HEAD, chunk, event, response};
use crate::call::{AttemptId, Call, Env, Request, State};
use crate::config::{Overrides, RequestConfig};
use crate::dialect::Dialect;
use crate::machine::{Drain, Ended, Event, FailureKind, Machine, Stage, Step};
use crate::time::Instant;

const CHAT: Dialect = Dialect::OpenAiChat;

/// The first cells of the rows of the table whose head begins with `head`
pub(super) fn rows(head: &str) -> Vec<Vec<String>> {
    let text = include_str!("../states.md");
    let mut lines = text.lines().skip_while(|line| !line.starts_with(head)).skip(2);
    let mut rows = Vec::new();
    while let Some(line) = lines.next().filter(|line| line.starts_with('|')) {
        rows.push(line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect());
    }
    assert!(!rows.is_empty(), "no table with the head {head}");
    rows
}

/// What is played from one state on; bytes go in one by one, so that no step passes two edges
type Script = fn(&mut Play) -> &mut Play;

/// From `Connecting`, with every other attempt still allowed or none at all
const FROM_CONNECTING: &[Script] = &[
    |play| play.fail(Stage::Connect, FailureKind::Refused, "refused").at(50_000),
    |play| play.at(50).cancel(),
    |play| play.at(200_000),
];

/// From `Waiting`
const FROM_WAITING: &[Script] = &[
    |play| play.reset().at(50_000),
    |play| play.fin(),
    |play| play.trickle("SSH-2.0\r\n"),
    |play| play.at(50).cancel(),
    |play| play.at(200_000),
    |play| play.trickle(response("503 Busy", &[], "busy")).at(50_000),
    |play| play.trickle(response("400 Bad", &[], "bad")),
    |play| play.trickle(&response("400 Bad", &[], "bad")[..40]).cancel(),
];

/// From `Waiting`, for a unary answer
const UNARY: &[Script] = &[
    |play| play.trickle(response("200 OK", &[], "whole")),
    |play| play.trickle("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n").fin(),
    |play| play.trickle("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n").cancel(),
    |play| play.trickle("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n").at(200_000),
];

/// From `Streaming`
const STREAM: &[Script] = &[
    |play| play.trickle(chunk(CHAT.overload())),
    |play| play.trickle(LAST_CHUNK),
    |play| play.eof(Ended::WithoutCloseNotify),
    |play| play.at(200_000),
    |play| play.cancel(),
    |play| play.trickle(chunk(CHAT.text("Hi") + "data: [DONE]\n\n")),
    |play| play.trickle(chunk(CHAT.text("Hi") + &CHAT.terminal())).at(200_000),
    |play| play.trickle(chunk(CHAT.terminal() + "data: [DONE]\n\n")),
    |play| play.trickle(chunk(CHAT.terminal() + &CHAT.overload())),
    |play| play.trickle(chunk(CHAT.terminal())).cancel(),
    |play| {
        let another = json!({"id": "c1", "choices": [{"index": 1, "delta": {"content": "more"}}]});
        play.trickle(chunk(CHAT.terminal() + &event(&another))).reset()
    },
];

/// Plays `script` in a new call that `prepare` has brought to a state, with and without retries
fn play(edges: &mut BTreeSet<(State, State)>, stream: bool, prepare: Script, script: Script) {
    for attempts in [1, 2] {
        let overrides = Overrides::new().max_attempts(attempts).request_timeout(20.0).total_deadline(35.0);
        let play = if stream { Play::stream(CHAT, overrides) } else { Play::unary(overrides) };
        let mut play = play.interrupted(|_| true).start();
        prepare(&mut play);
        script(&mut play);
        edges.extend(play.record.edges.iter().copied());
    }
}

/// One read brings a whole answer, and each state that the call passes can be seen
#[test]
fn a_drain_shows_the_machine_between_its_steps() {
    let request = Request::post("http://a.invalid/").body("{}").dialect(CHAT).stream().build().unwrap();
    let env = Env { seed: 1, unix_at_origin: Duration::ZERO };
    let mut call = Call::new(request, RequestConfig::default(), env, Instant::ORIGIN);
    let states = |mut drain: Drain<'_, Call>| {
        let mut states = vec![drain.machine().state()];
        while !matches!(drain.next(), Step::Wait(_) | Step::Done(_)) {
            states.push(drain.machine().state());
        }
        states
    };
    let started = states(call.handle(Instant::ORIGIN, Event::Start).unwrap());
    assert_eq!(started, [State::Connecting; 2]);
    let id = AttemptId::NONE.next();
    let connected = states(call.handle(Instant::ORIGIN, Event::Connected(id)).unwrap());
    assert_eq!(connected, [State::Waiting]);
    let outgoing = call.outgoing(id).concat().len();
    assert_eq!(states(call.handle(Instant::ORIGIN, Event::Sent(id, outgoing)).unwrap()), [State::Waiting]);
    let answer = STREAM_HEAD.to_owned() + &chunk(CHAT.text("Hi") + &CHAT.terminal() + "data: [DONE]\n\n");
    let event = Event::Received(id, answer.as_bytes());
    let passed = states(call.handle(Instant::ORIGIN, event).unwrap());
    assert_eq!(passed, [State::Waiting, State::Streaming, State::Finished, State::Over]);
}

#[test]
fn the_table_of_transitions_is_what_calls_do() {
    let mut edges = BTreeSet::new();
    for stream in [false, true] {
        for script in FROM_CONNECTING {
            play(&mut edges, stream, |play| play, *script);
        }
        for script in FROM_WAITING.iter().chain(if stream { &[] } else { UNARY }) {
            play(&mut edges, stream, |play| play.at(10).request(), *script);
        }
    }
    for script in STREAM {
        play(&mut edges, true, |play| play.at(10).request().trickle(STREAM_HEAD), *script);
    }
    let mut never_begun = Play::stream(CHAT, Overrides::new());
    never_begun.cancel();
    edges.extend(never_begun.record.edges);
    // A pause that a late driver lets run past the deadline.
    let mut late = Play::unary(Overrides::new().total_deadline(5.0)).start();
    late.at(10).request().reset().late(5_000).elapsed();
    edges.extend(late.record.edges);
    let mut stale = Play::unary(Overrides::new()).start();
    stale.reused().fin();
    edges.extend(stale.record.edges);
    let mut cancelled = Play::unary(Overrides::new()).start();
    cancelled.at(10).request().reset().cancel();
    edges.extend(cancelled.record.edges);

    let seen: BTreeSet<String> = edges.iter().map(|(from, to)| format!("{from:?} {to:?}")).collect();
    let table: BTreeSet<String> =
        rows("| from | to |").iter().map(|row| format!("{} {}", row[0], row[1])).collect();
    assert_eq!(seen, table);
    let listed = State::TRANSITIONS.map(|(from, to)| format!("{from:?} {to:?}"));
    let rows = rows("| from | to |");
    let rows: Vec<String> = rows.iter().map(|row| format!("{} {}", row[0], row[1])).collect();
    assert_eq!(listed.as_slice(), rows);
}
