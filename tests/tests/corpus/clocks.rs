//! K: timeouts, teardown, the clock, backpressure, cancel.

use steadfast::call::{CloseMode, Command, Request, Timer};
use steadfast::config::{ConfigError, Overrides, RequestConfig};
use steadfast::dialect::Dialect;
use steadfast::machine::Event;
use steadfast::outcome::{Billing, ErrorKind, Phase};
use steadfast::time::Bound;
use steadfast_scenario::{Cancel, Connection, Listen};
use steadfast_tests::corpus::events::{D, RC, RX, c, f, rt};
use steadfast_tests::corpus::{Answer, Case, End, HEAD};
use steadfast_tests::hand::{Hand, Steps};

/// A stream with three attempts, most of which no case of this area may use, and these bounds
fn stream(dialect: Dialect, bounds: &[(&str, f64)]) -> Case {
    let mut case = Case::stream(dialect).config(|overrides| overrides.max_attempts(3));
    for (name, seconds) in bounds {
        case = case.config(|mut overrides| {
            overrides.set(name, &seconds.to_string()).expect("a setting");
            overrides
        });
    }
    case
}

fn chat(bounds: &[(&str, f64)]) -> Case {
    stream(Dialect::OpenAiChat, bounds)
}

/// The answer of a second attempt, which no call may ask for without reason
fn whole() -> Connection {
    Answer::stream().send(c("Whole") + &f("stop") + D).end(End::Clean)
}

/// A request for the machine alone
fn request(overrides: Overrides) -> Request {
    Request::post("http://corpus.invalid/v1")
        .body("{}")
        .dialect(Dialect::OpenAiChat)
        .stream()
        .overrides(overrides)
        .build()
        .expect("a request that can be sent")
}

fn chunk(bytes: impl AsRef<str>) -> String {
    let bytes = bytes.as_ref();
    format!("{:x}\r\n{bytes}\r\n", bytes.len())
}

#[test]
fn k01_idle_limit_counts_received_bytes_pings_included() {
    let mut answer = Answer::stream().send(RC);
    for time in (30..=330).step_by(30) {
        answer = answer.at(f64::from(time)).send("event: keepalive\ndata: {\"type\":\"keepalive\"}\n\n");
    }
    let answer = answer.at(331.0).send(rt("Hi") + RX).end(End::Open);
    let ran = stream(Dialect::OpenAiResponses, &[("stream_idle_timeout", 60.0)]).answer(answer).play();
    assert_eq!(ran.told(), r#"completed "Hi" finish=completed usage=5/2 turn@331 end@331 requests=1"#);
}

#[test]
fn k02_true_silence() {
    let played = |idle: f64| {
        let answer = Answer::stream().send(RC).at(250.0).send(rt("Hi") + RX).end(End::Open);
        stream(Dialect::OpenAiResponses, &[("stream_idle_timeout", idle)]).answer(answer).play()
    };
    let completed = r#"completed "Hi" finish=completed usage=5/2 turn@250 end@250 requests=1"#;
    assert_eq!(played(300.0).told(), completed);
    assert_eq!(
        played(45.0).told(),
        r#"timeout(stream_idle 45/45) "" finish=- usage=- billing=maybe_billed end@45 requests=1"#
    );
    assert_eq!(played(f64::INFINITY).told(), completed);
    let default = RequestConfig::default().stream_idle_timeout().limit().expect("a default that ends");
    assert_eq!(default.as_secs(), 120, "minutes, not seconds");
}

#[test]
fn k03_first_token_wait_is_not_a_gap() {
    let bounds = [("request_timeout", 30.0), ("first_content_timeout", 600.0), ("stream_idle_timeout", 60.0)];
    let answer = || Answer::default().at(0.3).bytes(HEAD).chunked().at(200.0).send(c("Hi"));
    let ran = chat(&bounds).answer(answer().at(201.0).send(f("stop") + D).end(End::Open)).play();
    assert_eq!(ran.told(), r#"completed "Hi" finish=stop usage=- turn@201 end@201 requests=1"#);
    let ran =
        chat(&bounds).answer(answer().at(290.0).send(f("stop") + D).end(End::Open)).answer(whole()).play();
    assert_eq!(
        ran.told(),
        r#"timeout(stream_idle 60/60) "Hi" finish=- usage=- billing=delivered end@260 requests=1"#
    );
    // The wait for the first token has its own limit, from the head.
    let ran = chat(&[("first_content_timeout", 100.0), ("stream_idle_timeout", 60.0)])
        .answer(answer().end(End::Open))
        .answer(whole())
        .play();
    assert_eq!(
        ran.told(),
        r#"timeout(first_content 100/100) "" finish=- usage=- billing=maybe_billed end@100.3 requests=1"#
    );
}

#[test]
fn k05_half_open_connection() {
    let bounds = [("stream_idle_timeout", 60.0)];
    let ran = chat(&bounds).answer(Answer::stream().send(c("Hi")).end(End::Open)).answer(whole()).play();
    assert_eq!(
        ran.told(),
        r#"timeout(stream_idle 60/60) "Hi" finish=- usage=- billing=delivered end@60 requests=1"#
    );
    assert_eq!(ran.aborts(), [60.0]);
}

#[test]
fn k05_the_timer_alone_ends_it() {
    let (mut hand, id) = Hand::waiting(request(Overrides::new().stream_idle_timeout(60.0)));
    let steps = hand.feed(0.0, Event::Received(id, (HEAD.to_owned() + &chunk(c("Hi"))).as_bytes()));
    assert_eq!(steps.text, "Hi");
    hand.feed(0.0, Event::Taken);
    assert_eq!(hand.deadline, Some((60.0, Timer::StreamIdle)));
    let early = hand.feed(59.999, Event::Elapsed);
    assert!(early.outcome.is_none() && early.commands.is_empty());
    assert_eq!(hand.deadline, Some((60.0, Timer::StreamIdle)), "too early changes nothing");
    let Steps { commands, outcome, .. } = hand.feed(60.0, Event::Elapsed);
    assert_eq!(commands, [Command::Close(id, CloseMode::Abort)]);
    let error = outcome.expect("the end").result.expect_err("a timeout");
    let ErrorKind::Timeout(timeout) = error.kind else { panic!("{error}") };
    assert_eq!((timeout.phase, timeout.elapsed.as_secs_f64()), (Phase::StreamIdle, 60.0));
    assert_eq!(error.billing, Billing::Delivered);
    assert_eq!(hand.deadline, None);
}

#[test]
fn k06_a_total_limit_must_not_be_the_stream_default() {
    let played = |deadline: f64| {
        let mut answer = Answer::stream();
        for time in (3..900).step_by(2) {
            answer = answer.at(f64::from(time)).send(c("x"));
        }
        let answer = answer.at(900.0).send(f("stop") + D).end(End::Open);
        chat(&[("stream_idle_timeout", 60.0), ("stream_deadline", deadline)])
            .answer(answer)
            .answer(whole())
            .play()
    };
    let text = |chunks: usize| "x".repeat(chunks);
    // (a) The bound is off by default, and the total deadline, which is 900 s, ends with the head.
    assert_eq!(RequestConfig::default().stream_deadline(), Bound::Unbounded);
    assert_eq!(
        played(f64::INFINITY).told(),
        format!(r#"completed "{}" finish=stop usage=- turn@900 end@900 requests=1"#, text(449))
    );
    // (b)
    assert_eq!(
        played(90.0).told(),
        format!(
            r#"timeout(deadline 90/90) "{}" finish=- usage=- billing=delivered end@90 requests=1"#,
            text(44)
        )
    );
}

#[test]
fn k07_keep_alives_without_progress() {
    let played = |bounds: &[(&str, f64)]| {
        let answer = Answer::stream().send(c("Hi")).for_ever(10.0, ": ping\n\n").end(End::Open);
        chat(&[&[("stream_idle_timeout", 60.0)], bounds].concat()).answer(answer).answer(whole()).play()
    };
    assert_eq!(
        played(&[("content_idle_timeout", 300.0)]).told(),
        r#"timeout(content_idle 300/300) "Hi" finish=- usage=- billing=delivered end@300 requests=1"#
    );
    assert_eq!(
        played(&[("stream_deadline", 1000.0)]).told(),
        r#"timeout(deadline 1000/1000) "Hi" finish=- usage=- billing=delivered end@1000 requests=1"#
    );
}

#[test]
fn k07_progress_starts_its_limit_afresh() {
    let answer = Answer::stream()
        .send(c("Hi"))
        .at(50.0)
        .send(": ping\n\n")
        .at(100.0)
        .send(c("!"))
        .at(150.0)
        .send(": ping\n\n")
        .end(End::Open);
    let ran = chat(&[("stream_idle_timeout", 300.0), ("content_idle_timeout", 120.0)])
        .answer(answer)
        .answer(whole())
        .play();
    assert_eq!(
        ran.told(),
        r#"timeout(content_idle 120/120) "Hi!" finish=- usage=- billing=delivered end@220 requests=1"#
    );
}

#[test]
fn k09_slow_consumer_is_not_an_idle_server() {
    let first = HEAD.to_owned() + &chunk(c("a"));
    let rest = chunk(c("b") + &f("stop") + D);
    let bounds = Overrides::new().stream_idle_timeout(60.0);
    let (mut hand, id) = Hand::waiting(request(bounds));
    assert_eq!(hand.feed(0.0, Event::Received(id, first.as_bytes())).text, "a");
    assert!(!hand.reads && hand.waits_for_consumer, "what the server sends at 2 s stays in the socket");
    assert_eq!(hand.deadline, None, "the idle clock stands still");
    hand.feed(100.0, Event::Taken);
    assert!(hand.reads);
    assert_eq!(hand.deadline, Some((160.0, Timer::StreamIdle)), "and starts afresh");
    let Steps { text, outcome, .. } = hand.feed(100.0, Event::Received(id, rest.as_bytes()));
    assert_eq!(text, "b");
    let outcome = outcome.expect("the end");
    assert_eq!((outcome.word(), outcome.turn().text()), ("completed", "ab"));
    assert_eq!(outcome.timeline.elapsed().as_secs_f64(), 100.0);
    // The overall deadline keeps running.
    let (mut hand, id) = Hand::waiting(request(bounds.stream_deadline(50.0)));
    hand.feed(0.0, Event::Received(id, first.as_bytes()));
    assert!(hand.waits_for_consumer);
    assert_eq!(hand.deadline, Some((50.0, Timer::StreamDeadline)));
}

#[test]
fn k09_a_consumer_that_takes_longer_than_the_idle_bound_for_each_delta() {
    let answer =
        Answer::stream().send(c("a")).at(2.0).send(c("b")).at(250.0).send(f("stop") + D).end(End::Open);
    let ran = chat(&[("stream_idle_timeout", 60.0)]).answer(answer).slow_consumer(100.0).play();
    assert_eq!(ran.told(), r#"completed "ab" finish=stop usage=- turn@250 end@250 requests=1"#);
}

#[test]
fn k11_limits_switched_off() {
    let idle = |overrides: Overrides| {
        RequestConfig::default().with(&overrides).map(|config| config.stream_idle_timeout())
    };
    let set = |text: &str| {
        let mut overrides = Overrides::new();
        overrides.set("stream_idle_timeout", text)?;
        idle(overrides)
    };
    assert_eq!(idle(Overrides::new().stream_idle_timeout(Bound::Unbounded)), Ok(Bound::Unbounded));
    assert_eq!(idle(Overrides::new().stream_idle_timeout(f64::INFINITY)), Ok(Bound::Unbounded));
    assert_eq!(set("inf"), Ok(Bound::Unbounded));
    // Off has one spelling (rule CFG-1): the largest duration is refused as any value over 1e9 s is,
    // and never added to an instant.
    let refused = [
        idle(Overrides::new().stream_idle_timeout(std::time::Duration::MAX)),
        idle(Overrides::new().stream_idle_timeout(std::time::Duration::ZERO)),
        idle(Overrides::new().stream_idle_timeout(-1.0)),
        set("0"),
        set("-1"),
    ];
    for result in refused {
        let Err(ConfigError::OutOfRange { field, .. }) = &result else { panic!("{result:?}") };
        assert_eq!(field.name(), "stream_idle_timeout");
    }
    // With everything off nothing is armed, in any state.
    let off = Overrides::new()
        .connect_timeout(f64::INFINITY)
        .request_timeout(f64::INFINITY)
        .stream_idle_timeout(f64::INFINITY)
        .total_deadline(f64::INFINITY);
    let mut hand = Hand::start(request(off));
    assert_eq!(hand.deadline, None);
    let id = hand.open(0.0);
    assert_eq!(hand.deadline, None);
    hand.feed(1.0, Event::Received(id, (HEAD.to_owned() + &chunk(c("a"))).as_bytes()));
    hand.feed(2.0, Event::Taken);
    assert_eq!(hand.deadline, None);
    let late = chunk(f("stop") + D);
    let outcome = hand.feed(1e9, Event::Received(id, late.as_bytes())).outcome.expect("the end");
    assert_eq!(outcome.word(), "completed");
}

#[test]
fn k13_cancel_in_mid_stream() {
    let answer =
        Answer::stream().send(c("a") + &c("b")).at(1.01).send(c("c") + &f("stop") + D).end(End::Open);
    let at = Cancel::At(std::time::Duration::from_secs(1));
    let ran = chat(&[]).answer(answer).answer(whole()).cancel(at).play();
    assert_eq!(ran.told(), r#"cancelled "ab" finish=- usage=- billing=delivered end@1 requests=1"#);
    assert_eq!(ran.aborts(), [1.0], "closed at once, and not to be used again");
}

#[test]
fn k13_bytes_after_a_cancel_are_ignored() {
    let (mut hand, id) = Hand::waiting(request(Overrides::new()));
    let first = HEAD.to_owned() + &chunk(c("a") + &c("b"));
    assert_eq!(hand.feed(0.0, Event::Received(id, first.as_bytes())).text, "ab");
    let Steps { commands, outcome, .. } = hand.feed(1.0, Event::Cancel);
    assert_eq!(commands, [Command::Close(id, CloseMode::Abort)]);
    let error = outcome.expect("the end").result.expect_err("cancelled");
    assert_eq!((error.kind, error.turn.text()), (ErrorKind::Cancelled, "ab"));
    assert_eq!(error.turn.usage, None);
    let late = chunk(c("c") + &f("stop") + D);
    let after = hand.feed(1.01, Event::Received(id, late.as_bytes()));
    assert!(after.text.is_empty() && after.commands.is_empty() && after.outcome.is_none(), "{after:?}");
    let again = hand.feed(2.0, Event::Cancel);
    assert!(again.commands.is_empty() && again.outcome.is_none());
    assert!(!hand.reads && hand.deadline.is_none());
}

#[test]
fn k14_cancel_while_waiting_to_retry_or_connecting() {
    let unavailable = || Answer::whole("503 Service Unavailable", "Retry-After: 20\r\n", "").end(End::Open);
    let cancelled = |case: Case, seconds: f64| {
        case.cancel(Cancel::At(std::time::Duration::from_secs_f64(seconds))).play()
    };
    let retrying = || chat(&[]).answer(unavailable()).answer(whole());
    let ran = cancelled(retrying(), 5.0);
    assert_eq!(ran.told(), r#"cancelled "" finish=- usage=- billing=maybe_billed end@5 requests=1"#);
    assert_eq!(ran.connects(), [0.0], "nothing was begun for a second request");
    // While connecting
    let ran = cancelled(chat(&[]).listen(Listen::FullBacklog), 2.0);
    assert_eq!(ran.told(), r#"cancelled "" finish=- usage=- billing=not_sent end@2 requests=0"#);
    assert_eq!(ran.aborts(), [2.0]);
    // At the very instant at which the next attempt is due
    let due = retrying().play().connects()[1];
    assert!(due > 20.0);
    let ran = cancelled(retrying(), due);
    assert_eq!(
        ran.told(),
        format!(r#"cancelled "" finish=- usage=- billing=maybe_billed end@{due} requests=1"#)
    );
    assert_eq!(ran.connects(), [0.0]);
}

#[test]
fn k14_no_deadline_is_left_after_a_cancel() {
    let (mut hand, id) = Hand::waiting(request(Overrides::new()));
    let refusal = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 20\r\nContent-Length: 0\r\n\r\n";
    assert!(hand.feed(0.0, Event::Received(id, refusal.as_bytes())).outcome.is_none());
    let (due, timer) = hand.deadline.expect("a pause");
    assert!(due >= 20.0 && timer == Timer::Backoff);
    let outcome = hand.feed(5.0, Event::Cancel).outcome.expect("the end");
    assert_eq!(outcome.result.expect_err("cancelled").kind, ErrorKind::Cancelled);
    assert_eq!(hand.deadline, None);
    let late = hand.feed(60.0, Event::Elapsed);
    assert!(late.commands.is_empty() && late.outcome.is_none());
}

#[test]
fn k16_fin_is_an_answer() {
    let once = || chat(&[("max_attempts", 1.0)]);
    let ran = once().answer(Answer::default().at(3.0).end(End::Cut)).play();
    assert_eq!(
        ran.told(),
        r#"transport(read Reset) "" finish=- usage=- billing=maybe_billed end@3 requests=1"#
    );
    let ran = once().answer(Answer::raw("HTTP/1.1 200 OK\r\nContent-T").at(3.0).end(End::Cut)).play();
    assert_eq!(
        ran.told(),
        r#"transport(read Reset) "" finish=- usage=- billing=maybe_billed end@3 requests=1"#
    );
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 10\r\n\r\n";
    let ran = once().answer(Answer::raw(head).at(3.0).end(End::Cut)).play();
    assert_eq!(
        ran.told(),
        r#"truncated(in response) "" finish=- usage=- billing=maybe_billed end@3 requests=1"#
    );
    // Nothing was delivered, so each may be tried again, at once but for the backoff.
    for connection in [
        Answer::default().at(3.0).end(End::Cut),
        Answer::raw("HTTP/1.1 200 OK\r\nContent-T").at(3.0).end(End::Cut),
        Answer::raw(head).at(3.0).end(End::Cut),
    ] {
        let ran = chat(&[]).answer(connection).answer(whole()).play();
        assert_eq!(ran.told_without_times(), r#"completed "Whole" finish=stop usage=- requests=2"#);
        assert!(ran.seconds() < 4.0);
    }
}

#[test]
fn k18_after_success_nothing_can_fail() {
    let answer = || Answer::stream().send(c("Hi") + &f("stop") + D);
    let with = |connection: Connection| {
        chat(&[("stream_idle_timeout", 60.0)]).answer(connection).answer(whole()).play()
    };
    let expected = r#"completed "Hi" finish=stop usage=- turn@0 end@0 requests=1"#;
    for connection in
        [answer().end(End::Reset), answer().bytes("zz\r\n").end(End::Open), answer().at(70.0).end(End::Clean)]
    {
        let ran = with(connection);
        assert_eq!(ran.told(), expected);
        assert_ne!(ran.closed(), Some(CloseMode::Keep), "its connection is not used again");
    }
    let ran = chat(&[]).tls().answer(answer().end(End::Cut)).answer(whole()).play();
    assert_eq!(ran.told(), expected);
}

/// The same where the provider never sends its sentinel: the marker alone keeps the turn
#[test]
fn k18_after_the_marker_nothing_can_fail() {
    let answer = || Answer::stream().send(c("Hi") + &f("stop"));
    let told = |connection: Connection| {
        chat(&[("stream_idle_timeout", 1.0)]).answer(connection).answer(whole()).play().told()
    };
    assert_eq!(
        told(answer().end(End::Reset)),
        r#"completed "Hi" finish=stop usage=- turn@0 end@0 requests=1 notes=[UncleanEnd, MissingSentinel]"#
    );
    assert_eq!(
        told(answer().bytes("zz\r\n").end(End::Open)),
        r#"completed "Hi" finish=stop usage=- turn@0 end@0 requests=1 notes=[NoiseAfterEnd, MissingSentinel]"#
    );
    assert_eq!(
        told(answer().end(End::Open)),
        r#"completed "Hi" finish=stop usage=- turn@0 end@1 requests=1 notes=[HeldOpen, MissingSentinel]"#
    );
    let ran = chat(&[]).tls().answer(answer().end(End::Cut)).answer(whole()).play();
    assert_eq!(
        ran.told(),
        r#"completed "Hi" finish=stop usage=- turn@0 end@0 requests=1 notes=[UncleanEnd, MissingSentinel]"#
    );
}
