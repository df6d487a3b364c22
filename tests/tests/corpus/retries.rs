//! J: retries and `Retry-After`.

use std::collections::BTreeSet;

use steadfast::call::{AttemptId, Call, CloseMode, Command, Request, Retries, Timer};
use steadfast::config::Overrides;
use steadfast::dialect::Dialect;
use steadfast::machine::{Ended, Event, FailureKind, IoFailure, Stage};
use steadfast::outcome::{Billing, ErrorKind};
use steadfast::retry::{Class, class};
use steadfast_scenario::Connection;
use steadfast_tests::corpus::events::{D, c, f};
use steadfast_tests::corpus::{Answer, Case, End, Ran};
use steadfast_tests::hand::Hand;

/// Wed, 21 Oct 2026 07:28:00 GMT
const UNIX: u64 = 1_792_567_680;

/// A stream that may be tried `attempts` times; the answer that is added last answers the rest
fn chat(attempts: u32) -> Case {
    Case::stream(Dialect::OpenAiChat).config(|overrides| overrides.max_attempts(attempts))
}

fn whole() -> Connection {
    Answer::stream().send(c("Hi") + &f("stop") + D).end(End::Clean)
}

const WHOLE: &str = r#"completed "Hi" finish=stop usage=- requests=2"#;

/// An answer without a body
fn refusal(status: &str, fields: &str) -> Connection {
    Answer::whole(status, fields, "").end(End::Open)
}

/// The pause in seconds after one refusal
fn pause(ran: &Ran) -> f64 {
    assert_eq!(ran.told_without_times(), WHOLE);
    ran.pause_after(1).as_secs_f64()
}

#[test]
fn j01_retry_after_seconds_jitter_only_upwards() {
    let mut pauses = BTreeSet::new();
    for seed in 0..200 {
        let ran = chat(2)
            .env(seed, UNIX)
            .answer(refusal("429 Too Many Requests", "Retry-After: 7\r\n"))
            .answer(whole())
            .play_whole();
        let pause = pause(&ran);
        assert!((7.0..8.0).contains(&pause), "{pause} s with seed {seed}");
        pauses.insert(ran.pause_after(1));
    }
    assert_eq!(pauses.len(), 200, "all differ");
}

#[test]
fn j02_retry_after_as_an_http_date() {
    for (date, floor) in [
        ("Wed, 21 Oct 2026 07:28:30 GMT", 30.0),
        ("Wed, 21 Oct 2026 07:27:00 GMT", 0.0),
        ("Wednesday, 21-Oct-26 07:28:30 GMT", 30.0),
        ("Wed Oct 21 07:28:30 2026", 30.0),
    ] {
        let dated = || {
            chat(2).env(1, UNIX).answer(refusal("429 Too Many Requests", &format!("Retry-After: {date}\r\n")))
        };
        let ran = dated().config(|overrides| overrides.max_attempts(1)).play();
        assert_eq!(
            ran.told(),
            format!(
                r#"status(429) "" finish=- usage=- billing=maybe_billed retry_after={floor} end@0 requests=1"#
            ),
            "{date}"
        );
        let pause = pause(&dated().answer(whole()).play());
        assert!((floor..floor + 1.0).contains(&pause), "{date}: {pause} s");
    }
    // The wall clock is an input, and goes on: a part of the time until the date has passed.
    let late = Answer::default()
        .at(10.0)
        .send("HTTP/1.1 429 Too Many Requests\r\nRetry-After: Wed, 21 Oct 2026 07:28:30 GMT\r\nContent-Length: 0\r\n\r\n")
        .end(End::Open);
    assert_eq!(
        chat(1).env(1, UNIX).answer(late).play().told(),
        r#"status(429) "" finish=- usage=- billing=maybe_billed retry_after=20 end@10 requests=1"#
    );
}

#[test]
fn j03_millisecond_variants_and_precedence() {
    for (fields, asked) in [
        ("retry-after-ms: 1500\r\nRetry-After: 2\r\n", 1.5),
        ("x-ms-retry-after-ms: 800\r\n", 0.8),
        ("retry-after-ms: abc\r\nRetry-After: 2\r\n", 2.0),
        ("retry-after-ms: 0.5\r\n", 0.0005),
    ] {
        let refusal = || refusal("429 Too Many Requests", fields);
        let ran = chat(1).answer(refusal()).play();
        assert_eq!(ran.error().retry_after.map(|pause| pause.as_secs_f64()), Some(asked), "{fields}");
        let pause = pause(&chat(2).answer(refusal()).answer(whole()).play());
        assert!((asked..asked + 1.0).contains(&pause), "{fields}: {pause} s");
    }
}

#[test]
fn j04_negative_and_garbage_retry_after() {
    let answered = |fields: &str| refusal("429 Too Many Requests", fields);
    let without = pause(&chat(2).answer(answered("")).answer(whole()).play());
    for value in [
        "-1",
        "-0",
        "",
        "soon",
        "5 seconds",
        "0x10",
        "1_000",
        "Wed, 99 Foo 99999 99:99:99 GMT",
        "1,2",
        "nan",
        "1e999",
    ] {
        let fields = format!("Retry-After: {value}\r\n");
        assert_eq!(
            chat(1).answer(answered(&fields)).play().told(),
            r#"status(429) "" finish=- usage=- billing=maybe_billed end@0 requests=1"#,
            "{value:?}"
        );
        let pause = pause(&chat(2).answer(answered(&fields)).answer(whole()).play());
        assert_eq!(pause, without, "{value:?}: the usual backoff");
    }
    for lines in ["Retry-After: 3\r\nRetry-After: 5\r\n", "Retry-After: 5\r\nRetry-After: 3\r\n"] {
        let ran = chat(1).answer(answered(lines)).play();
        assert_eq!(ran.error().retry_after.map(|pause| pause.as_secs()), Some(5), "the larger of two lines");
    }
}

#[test]
fn j06_very_long_retry_after() {
    let answer = |end| {
        Answer::raw("HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1382400\r\n\r\n{\"error\":{\"message\":\"plan used up, next reset in 16 days\"}}").end(end)
    };
    let unbounded = |end| {
        chat(3)
            .config(|overrides| overrides.total_deadline(f64::INFINITY).max_retry_after(120.0))
            .answer(answer(end))
            .answer(whole())
            .play()
    };
    let ran = unbounded(End::Clean);
    assert_eq!(
        ran.told(),
        r#"status(429) "" finish=- usage=- billing=maybe_billed retry_after=1382400 end@0 requests=1 notes=[RetryAfterTooLong]"#
    );
    assert_eq!(ran.provider_error().message, "plan used up, next reset in 16 days");
    // The body ends with the connection. Where that is held open the status is not awaited for
    // longer than rule STR-6 says, and what came of the body is kept.
    let ran = unbounded(End::Open);
    assert_eq!(
        ran.told(),
        r#"status(429 cut) "" finish=- usage=- billing=maybe_billed retry_after=1382400 end@5 requests=1 notes=[ErrorBodyCut, RetryAfterTooLong]"#
    );
    assert_eq!(ran.provider_error().message, "plan used up, next reset in 16 days");
}

#[test]
fn j06_without_a_cap_a_deadline_is_what_ends_it() {
    let ran =
        chat(3).answer(refusal("429 Too Many Requests", "Retry-After: 1382400\r\n")).answer(whole()).play();
    assert_eq!(
        ran.told(),
        r#"status(429) "" finish=- usage=- billing=maybe_billed retry_after=1382400 end@0 requests=1 notes=[PauseDidNotFit]"#
    );
}

#[test]
fn j07_retry_after_beyond_the_deadline() {
    let refused = |at: f64, fields: &str| {
        let head = format!("HTTP/1.1 503 Service Unavailable\r\n{fields}\r\n");
        chat(3)
            .config(|overrides| overrides.total_deadline(30.0))
            .answer(Answer::default().at(at).send(head).end(End::Clean))
            .answer(whole())
            .play()
    };
    assert_eq!(
        refused(2.0, "Retry-After: 45\r\n").told(),
        r#"status(503) "" finish=- usage=- billing=maybe_billed retry_after=45 end@2 requests=1 notes=[PauseDidNotFit]"#
    );
    // The same where the backoff would pass the deadline
    assert_eq!(
        refused(29.999, "").told(),
        r#"status(503) "" finish=- usage=- billing=maybe_billed end@29.999 requests=1 notes=[PauseDidNotFit]"#
    );
}

#[test]
fn j09_insufficient_quota() {
    let head = "HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\n\r\n";
    let body = "{\"error\":{\"message\":\"quota used up\",\"type\":\"insufficient_quota\",\"param\":null,\"code\":\"insufficient_quota\"}}";
    // The body comes later than the head: it is read before anything is decided.
    let ran = chat(3).answer(Answer::raw(head).at(0.5).send(body).end(End::Clean)).answer(whole()).play();
    assert_eq!(ran.told(), r#"status(429) "" finish=- usage=- billing=maybe_billed end@0.5 requests=1"#);
    assert_eq!(class::error_class(ran.provider_error()), Class::Quota);
}

#[test]
fn j11_x_should_retry() {
    let refused = |status: &str, fields: &str, body: &str| {
        let answer = Answer::whole(status, fields, body).end(End::Open);
        chat(2).answer(answer).answer(whole()).play().tally.requests
    };
    // (a) honoured
    assert_eq!(refused("503 Service Unavailable", "x-should-retry: false\r\n", ""), 1);
    // (b) honoured from anyone (rule RTY-1), and only as far as the budget allows
    assert_eq!(refused("400 Bad Request", "x-should-retry: true\r\n", ""), 2);
    let ran = chat(2).answer(refusal("400 Bad Request", "x-should-retry: true\r\n")).play();
    assert_eq!(
        ran.told_without_times(),
        r#"status(400) "" finish=- usage=- billing=maybe_billed requests=2"#
    );
    // (c) a hard quota goes before it
    let quota = "{\"error\":{\"message\":\"m\",\"code\":\"insufficient_quota\"}}";
    assert_eq!(refused("429 Too Many Requests", "x-should-retry: true\r\n", quota), 1);
    // (d) only the two words, in any case of letters
    assert_eq!(refused("400 Bad Request", "x-should-retry: TRUE\r\n", ""), 2);
    assert_eq!(refused("503 Service Unavailable", "x-should-retry: False\r\n", ""), 1);
    for word in ["1", "yes", "", "0", "no"] {
        let fields = format!("x-should-retry: {word}\r\n");
        assert_eq!(refused("400 Bad Request", &fields, ""), 1, "{word:?} says nothing");
        assert_eq!(refused("503 Service Unavailable", &fields, ""), 2, "{word:?} says nothing");
    }
}

#[test]
fn j12_status_table() {
    for status in [400, 401, 403, 404, 405, 413, 415, 422, 451] {
        let ran = chat(3).answer(refusal(&format!("{status} No"), "")).answer(whole()).play();
        assert_eq!(
            ran.told(),
            format!(r#"status({status}) "" finish=- usage=- billing=maybe_billed end@0 requests=1"#)
        );
    }
    for status in [408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529] {
        let ran = chat(3).answer(refusal(&format!("{status} Later"), "")).answer(whole()).play();
        let pause = pause(&ran);
        assert!(0.0 < pause && pause < 1.0, "{status}: {pause} s");
        // What ran and may have been billed stays in the report.
        assert_eq!(ran.played.outcome.timeline.attempts[0].status, Some(status));
        let ran = chat(2).answer(refusal(&format!("{status} Later"), "")).play();
        assert_eq!(
            ran.told_without_times(),
            format!(r#"status({status}) "" finish=- usage=- billing=maybe_billed requests=2"#)
        );
    }
}

fn once_more(retries: Retries) -> Hand {
    let request = Request::post("http://api.example/v1").body("{}").dialect(Dialect::OpenAiChat);
    let overrides = Overrides::new().max_attempts(2);
    Hand::start(
        request.retries(retries).overrides(overrides).stream().build().expect("a request that can be sent"),
    )
}

#[test]
fn j14_a_reset_on_a_reused_connection_before_any_response_byte() {
    let reset = |id| {
        let message = "connection reset by peer".to_owned();
        Event::Failed(id, IoFailure { stage: Stage::Read, kind: FailureKind::Reset, message })
    };
    let ends: [fn(AttemptId) -> Event<'static, Call>; 2] = [reset, |id| Event::Eof(id, Ended::Clean)];
    for end in ends {
        // Written: one retry at once, which counts.
        let mut hand = once_more(Retries::Allowed);
        let first = hand.reuse(0.0);
        let steps = hand.feed(0.03, end(first));
        let second = hand.connection.expect("a connection asked for");
        assert_eq!(steps.commands, [Command::Close(first, CloseMode::Abort), Command::Connect(second)]);
        assert!(!second.may_be_reused(), "on a fresh connection");
        // A second failure is a transport failure like any other, and here the last that is allowed.
        hand.open(0.04);
        let outcome = hand.feed(0.05, end(second)).outcome.expect("no attempt is left");
        let error = outcome.result.expect_err("a failure");
        assert!(matches!(error.kind, ErrorKind::Transport(_)), "{error}");
        assert_eq!((error.billing, outcome.timeline.attempt_count()), (Billing::MaybeBilled, 2));
        // Where it may have run already, and must not run twice, it is the end.
        for retries in [Retries::Never, Retries::UnlessBilled] {
            let mut hand = once_more(retries);
            let first = hand.reuse(0.0);
            let outcome = hand.feed(0.03, end(first)).outcome.expect("no attempt is left");
            assert_eq!(outcome.result.expect_err("a failure").billing, Billing::MaybeBilled);
        }
        // Not one byte written: free.
        let mut hand = once_more(Retries::Never);
        let first = hand.connection.expect("a connection asked for");
        hand.feed(0.0, Event::Reused(first));
        assert_eq!(hand.feed(0.03, end(first)).commands.len(), 2);
        let second = hand.open(0.04);
        let body = r#"{"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}]}"#;
        let whole = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let outcome = hand.feed(0.05, Event::Received(second, whole.as_bytes())).outcome.expect("the end");
        assert_eq!((outcome.turn().text(), outcome.timeline.attempt_count()), ("Hi", 1));
        // After any byte of the response the rule has no say: there is a pause.
        let mut hand = once_more(Retries::Allowed);
        let first = hand.reuse(0.0);
        hand.feed(0.02, Event::Received(first, b"H"));
        hand.feed(0.03, end(first));
        assert_eq!(hand.deadline.map(|(_, timer)| timer), Some(Timer::Backoff));
    }
}

#[test]
fn j16_first_byte_timeout_times_attempts() {
    let mute = || Answer::default().end(End::Open);
    let case =
        || chat(3).config(|overrides| overrides.request_timeout(30.0).total_deadline(40.0)).answer(mute());
    let ran = case().play();
    assert_eq!(
        ran.told(),
        r#"timeout(deadline 40/40) "" finish=- usage=- billing=maybe_billed end@40 requests=2"#
    );
    let attempts = &ran.played.outcome.timeline.attempts;
    assert_eq!((attempts[0].ended - attempts[0].began).as_secs_f64(), 30.0);
    for retries in [Retries::Never, Retries::UnlessBilled] {
        let ran = case().request(|request| request.retries(retries)).play();
        assert_eq!(
            ran.told(),
            r#"timeout(request 30/30) "" finish=- usage=- billing=maybe_billed end@30 requests=1"#,
            "{retries:?}"
        );
    }
}

#[test]
fn j17_failure_after_partial_output() {
    let ran = chat(3).body(c("Hello wor"), End::Reset).answer(whole()).play();
    assert_eq!(
        ran.told(),
        r#"transport(read Reset) "Hello wor" finish=- usage=- billing=delivered end@0 requests=1"#
    );
}

#[test]
fn j19_no_event_source_reconnection() {
    let control = "retry: 10\nid: 5\n\n";
    let ran = chat(3).body([control, &c("Hi"), &f("stop"), D].concat(), End::Clean).answer(whole()).play();
    assert_eq!(ran.told(), r#"completed "Hi" finish=stop usage=- turn@0 end@0 requests=1"#);
    let ran = chat(3).body([control, &c("Hi")].concat(), End::Reset).answer(whole()).play();
    assert_eq!(
        ran.told(),
        r#"transport(read Reset) "Hi" finish=- usage=- billing=delivered end@0 requests=1"#
    );
    // A retry for another reason repeats the request as it was: `id` and `retry` leave no trace in
    // it or in the pause.
    let retried = |first: &str| {
        let ran = chat(2).body(first, End::Reset).answer(whole()).play();
        let sent = ran.played.outcome.timeline.attempts.iter().map(|attempt| attempt.bytes_sent).collect();
        (pause(&ran), sent)
    };
    let (with, sent): (f64, Vec<u64>) = retried("retry: 10\nid: 5\n\n: x\n\n");
    let (without, sent_without): (f64, Vec<u64>) = retried(": x\n\n");
    assert_eq!((with, &sent), (without, &sent_without));
    assert_eq!(sent[0], sent[1], "no Last-Event-ID");
}

/// The curve is that of rule RTY-3: base 1 s, cap 60 s
#[test]
fn j20_backoff_has_real_jitter() {
    let mut pauses: [Vec<f64>; 4] = Default::default();
    let run = |seed| {
        let unavailable = Connection { times: 4, ..refusal("503 Service Unavailable", "") };
        let ran = chat(5).env(seed, UNIX).answer(unavailable).answer(whole()).play_whole();
        assert_eq!(ran.told_without_times(), r#"completed "Hi" finish=stop usage=- requests=5"#);
        [1, 2, 3, 4].map(|number| ran.pause_after(number).as_secs_f64())
    };
    for seed in 0..1000 {
        let of_seed = run(seed);
        for (all, pause) in pauses.iter_mut().zip(of_seed) {
            all.push(pause);
        }
        if seed < 10 {
            assert_eq!(run(seed), of_seed, "the same seed gives the same pauses");
        }
    }
    for (pauses, ceiling) in pauses.iter().zip([1.0, 2.0, 4.0, 8.0]) {
        assert!(pauses.iter().all(|pause| (0.0..ceiling).contains(pause)));
        let distinct: BTreeSet<u64> = pauses.iter().map(|pause| pause.to_bits()).collect();
        assert_eq!(distinct.len(), 1000);
        let mean = pauses.iter().sum::<f64>() / 1000.0 / ceiling;
        assert!((0.47..0.53).contains(&mean), "the mean of U(0,1) is a half, not {mean}");
    }
}

#[test]
fn j22_permanent_error_inside_a_200_stream() {
    let error = "data: {\"error\":{\"code\":400,\"type\":\"invalid_request_error\",\"message\":\"input of 200001 tokens, limit 200000\"}}\n\n";
    let ran = chat(3).body(error, End::Clean).answer(whole()).play();
    assert_eq!(
        ran.told(),
        r#"in_band(invalid_request_error 400 400 "input of 200001 tokens, limit 200000") "" finish=- usage=- billing=maybe_billed end@0 requests=1"#
    );
}

#[test]
fn j24_429_first_then_success() {
    let body = format!("{{\"error\":{{\"message\":\"{}\",\"type\":\"tokens\"}}}}", "slow down ".repeat(204));
    assert!(body.len() > 2048);
    let head = format!(
        "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: keep-alive\r\n\r\n",
        body.len()
    );
    let third = body.len() / 3;
    let refused = Answer::raw(head)
        .send(&body[..third])
        .at(0.1)
        .send(&body[third..2 * third])
        .at(0.2)
        .send(&body[2 * third..])
        .end(End::Open);
    let ran = chat(3).answer(refused).answer(whole()).play();
    assert_eq!(ran.told_without_times(), WHOLE);
    let pause = ran.pause_after(1).as_secs_f64();
    assert!((1.0..2.0).contains(&pause), "{pause} s");
    // Its body was read to the end, so that connection may serve another request.
    assert_eq!(ran.played.outcome.timeline.attempts[0].status, Some(429));
    assert_eq!(ran.aborts(), [0.0; 0], "and so may the one that is left at the sentinel");
    // And one that is not read to its end is broken off before the next attempt.
    let stalled =
        Answer::raw("HTTP/1.1 429 Too Many Requests\r\nContent-Length: 2048\r\n\r\n{").end(End::Open);
    let ran = chat(3).answer(stalled).answer(whole()).play();
    assert_eq!(ran.told_without_times(), format!("{WHOLE} notes=[ErrorBodyCut]"));
    assert_eq!(ran.aborts()[0], 5.0);
}
