//! L: connecting, TLS, DNS, headers.

use http::header::LOCATION;
use steadfast::call::{Command, Request, RequestBuilder, RequestError, Timer};
use steadfast::config::Overrides;
use steadfast::dialect::Dialect;
use steadfast::machine::{Event, FailureKind, IoFailure, Stage};
use steadfast::outcome::{Billing, ErrorKind, Outcome};
use steadfast_tests::corpus::events::{D, c, f};
use steadfast_tests::corpus::{Answer, Case, End, HEAD, Ran};
use steadfast_tests::hand::{Hand, Steps};

fn chat() -> Case {
    Case::stream(Dialect::OpenAiChat).config(|overrides| overrides.max_attempts(3))
}

fn whole() -> String {
    c("Hi") + &f("stop") + D
}

#[test]
fn l01_tls_ends_without_close_notify_after_the_terminal_or_the_zero_chunk() {
    let expected = r#"completed "Hi" finish=stop usage=- turn@0 end@0 requests=1"#;
    let tls = |connection| chat().tls().answer(connection).play().told();
    assert_eq!(tls(Answer::stream().send(whole()).bytes("0\r\n\r\n").end(End::Cut)), expected);
    assert_eq!(tls(Answer::stream().send(whole()).end(End::Cut)), expected);
    let with_length =
        |body: &str| Answer::whole("200 OK", "Content-Type: text/event-stream\r\n", body).end(End::Cut);
    assert_eq!(tls(with_length(&whole())), expected);
    // Without a sentinel the framing alone proves that nothing was cut.
    let without_sentinel = format!("{expected} notes=[MissingSentinel]");
    assert_eq!(tls(with_length(&(c("Hi") + &f("stop")))), without_sentinel);
    let answer = Answer::stream().send(c("Hi") + &f("stop")).bytes("0\r\n\r\n").end(End::Cut);
    assert_eq!(tls(answer), without_sentinel);
    let unary = "{\"choices\":[{\"index\":0,\"message\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}";
    let connection = Answer::whole("200 OK", "Content-Type: application/json\r\n", unary).end(End::Cut);
    assert_eq!(Case::unary(Dialect::OpenAiChat).tls().answer(connection).play().told(), expected);
}

fn resolve(kind: FailureKind, message: &str) -> IoFailure {
    IoFailure { stage: Stage::Resolve, kind, message: message.to_owned() }
}

fn request(builder: RequestBuilder) -> Request {
    builder.body("{}").dialect(Dialect::OpenAiChat).stream().build().expect("a request that can be sent")
}

/// Lets the pause pass after which the next attempt begins, and returns its end
fn slept(hand: &mut Hand) -> f64 {
    let (due, timer) = hand.deadline.expect("a pause");
    assert_eq!(timer, Timer::Backoff);
    let steps = hand.feed(due, Event::Elapsed);
    assert!(matches!(steps.commands[..], [Command::Connect(_)]), "{steps:?}");
    due
}

#[test]
fn l03_a_name_look_up_that_fails_for_a_while() {
    let mut hand = Hand::start(request(Request::post("http://api.example/v1")));
    let again = resolve(FailureKind::Other, "api.example: try again");
    let first = hand.connection.expect("a first attempt");
    hand.feed(0.2, Event::Failed(first, again));
    let due = slept(&mut hand);
    assert!(0.2 < due && due < 1.2, "backoff, not {due} s");
    let id = hand.open(due);
    let whole = whole();
    let answer = format!("{HEAD}{:x}\r\n{whole}\r\n", whole.len());
    let outcome = hand.feed(due + 1.0, Event::Received(id, answer.as_bytes())).outcome.expect("the end");
    assert_eq!((outcome.word(), outcome.turn().text()), ("completed", "Hi"));
    assert_eq!(outcome.timeline.attempt_count(), 2);
}

/// A look-up is a transport failure like any other, so it is retried as far as `max_attempts` says
/// (rule RTY-1), with pauses of at most 3 s in all: not once at most, and never for minutes
#[test]
fn l03_a_name_that_does_not_exist() {
    for message in ["api.exmaple: name or service not known", "api.exmaple: the name has no address"] {
        let mut hand = Hand::start(request(Request::post("http://api.exmaple/v1")));
        let mut now = 0.0;
        for attempt in 1.. {
            let id = hand.connection.expect("an attempt");
            let failure = resolve(FailureKind::NotFound, message);
            let Steps { outcome, .. } = hand.feed(now, Event::Failed(id, failure.clone()));
            let Some(Outcome { result, timeline }) = outcome else {
                now = slept(&mut hand);
                continue;
            };
            let error = result.expect_err("a failure");
            assert_eq!((error.kind, error.billing), (ErrorKind::Transport(failure), Billing::NotSent));
            assert_eq!((attempt, timeline.attempt_count()), (3, 3));
            assert!(now < 3.0);
            break;
        }
    }
}

#[test]
fn l03_name_look_up_counts_against_the_connect_limit_and_the_deadline() {
    let overrides = Overrides::new().connect_timeout(2.0).max_attempts(1);
    let hand = Hand::start(request(Request::post("http://api.example/v1").overrides(overrides)));
    assert_eq!(hand.deadline, Some((2.0, Timer::Connect)));
    let overrides = Overrides::new().connect_timeout(2.0).total_deadline(1.0);
    let hand = Hand::start(request(Request::post("http://api.example/v1").overrides(overrides)));
    assert_eq!(hand.deadline, Some((1.0, Timer::Deadline)));
}

#[test]
fn l06_an_api_key_with_a_line_end() {
    let url = "http://api.example/v1";
    let trimmed = Request::post(url).bearer("sk-test\r\n").build().expect("white space around it is trimmed");
    assert_eq!(sent_head(trimmed).matches("authorization: Bearer sk-test\r\n").count(), 1);
    let trimmed = Request::post(url).header("x-api-key", " sk-test\r\n").build().expect("the same");
    assert_eq!(sent_head(trimmed).matches("x-api-key: sk-test\r\n").count(), 1);
    for key in ["sk-te\nX-Evil: 1", "sk-te\0st", "sk-te\rst", ""] {
        let refused = RequestError::HeaderValue { name: "authorization".to_owned() };
        assert_eq!(Request::post(url).bearer(key).build().unwrap_err(), refused, "{key:?}");
        if !key.is_empty() {
            let refused = RequestError::HeaderValue { name: "x-api-key".to_owned() };
            assert_eq!(Request::post(url).header("x-api-key", key).build().unwrap_err(), refused, "{key:?}");
        }
    }
    // The same for whatever else a caller gives: names, the path, the host
    for name in ["X-Evil: 1\r\nx", "x\ny", "x y", ""] {
        assert_eq!(Request::post(url).header(name, "v").build().unwrap_err(), RequestError::HeaderName);
    }
    for url in [
        "http://api.example/v1\r\nX-Evil: 1",
        "http://api.example/v1 HTTP/1.1\r\nX-Evil: 1",
        "http://api.example/\0",
        "http://api.exa\r\nmple/v1",
        "http://api.exa mple/v1",
    ] {
        assert!(Request::post(url).build().is_err(), "{url:?}");
    }
}

/// The head as it goes over the wire
fn sent_head(request: Request) -> String {
    let (_, sent) = Hand::start(request).open_and_read(0.0);
    String::from_utf8(sent).expect("a head of ASCII")
}

const KEY: &str = "sk-test-DO-NOT-PRINT";

/// Everything that is printed of a call and its end
fn printed(ran: &Ran) -> String {
    let outcome = &ran.played.outcome;
    let error = ran.error();
    let json = serde_json::to_string(outcome).expect("an outcome is JSON");
    let source = std::error::Error::source(error).map(ToString::to_string);
    format!("{outcome:?} {json} {error} {error:?} {source:?} {} {:?}", outcome.timeline, ran.kind())
}

#[test]
fn l07_the_error_must_not_show_the_key() {
    let url = format!("http://api.example/v1?key={KEY}-query&alt=sse");
    let keyed = |case: Case| {
        case.request(|_| {
            Request::post(&url)
                .bearer(&format!("{KEY}\r"))
                .header("x-api-key", &format!("{KEY}-x"))
                .header("api-key", &format!("{KEY}-azure"))
                .header("proxy-authorization", &format!("Basic {KEY}-proxy"))
                .body("{}")
                .dialect(Dialect::OpenAiChat)
                .stream()
        })
    };
    let echo = format!("bad key: {KEY} {KEY}-query {KEY}-x {KEY}-azure {KEY}-proxy");
    let json = format!("{{\"error\":{{\"message\":\"{echo}\",\"type\":\"{KEY}\",\"code\":\"{KEY}\"}}}}");
    let location = format!("Location: https://api.example/v2?key={KEY}-query\r\nX-Echo: {KEY}\r\n");
    let events = "Content-Type: text/event-stream\r\n";
    let html = "Content-Type: text/html\r\n";
    for answer in [
        Answer::whole("401 Unauthorized", &location, &json),
        Answer::whole("401 Unauthorized", "", &echo),
        Answer::whole("302 Found", &location, ""),
        Answer::whole("200 OK", html, &echo),
        Answer::whole("200 OK", &format!("Content-Type: text/html; x={KEY}\r\n"), ""),
        Answer::whole("200 OK", &format!("Content-Encoding: {KEY}\r\n"), ""),
        Answer::whole("200 OK", events, &format!("data: {json}\n\n")),
        Answer::whole("200 OK", events, &format!("event: error\ndata: {echo}\n\n")),
        Answer::whole("200 OK", events, &format!("data: {echo}\n\n")),
        Answer::whole(&format!("500 {KEY}"), "", ""),
        Answer::raw(format!("HTTP/1.1 200 OK\r\n{KEY}\r\n\r\n")),
        Answer::raw(format!("{KEY}\r\n\r\n")),
        Answer::default(),
    ] {
        let ran = keyed(Case::stream(Dialect::OpenAiChat)).answer(answer.end(End::Cut)).play();
        assert!(!printed(&ran).contains("DO-NOT-PRINT"), "{}", printed(&ran));
        if let ErrorKind::Status(error) = ran.kind() {
            let (headers, body) = (&error.headers, String::from_utf8_lossy(&error.body));
            assert!(!format!("{headers:?} {body}").contains("DO-NOT-PRINT"), "{headers:?} {body}");
        }
    }
    // The request, however it is printed, and what is refused of it
    let builder = Request::post(&url).bearer(KEY).header("x-api-key", KEY);
    assert!(!format!("{builder:?}").contains("DO-NOT-PRINT"));
    let request = builder.build().expect("a request that can be sent");
    assert!(!format!("{request:?}").contains("DO-NOT-PRINT"));
    let refused = Request::post(&url).bearer(&format!("{KEY}\n{KEY}")).build().unwrap_err();
    assert!(!format!("{refused} {refused:?}").contains("DO-NOT-PRINT"));
    let refused = Request::post(&format!("http://user:{KEY}@api.example/")).build().unwrap_err();
    assert!(!format!("{refused} {refused:?}").contains("DO-NOT-PRINT"));
}

#[test]
fn l10_redirects_of_a_post_are_not_followed() {
    for (status, location) in [
        ("301 Moved Permanently", "https://a.example/v1/x"),
        ("308 Permanent Redirect", "https://a.example/v1/x"),
        ("307 Temporary Redirect", "https://b.example/v1/x"),
        ("308 Permanent Redirect", "http://a.example/v1/x"),
        ("302 Found", "http://corpus.invalid/v1"),
        ("303 See Other", "/v1/y"),
    ] {
        let answer = || Answer::whole(status, &format!("Location: {location}\r\n"), "").end(End::Open);
        let ran = chat().answer(answer()).answer(answer()).play();
        assert_eq!(
            ran.told(),
            format!(r#"status({}) "" finish=- usage=- billing=maybe_billed end@0 requests=1"#, &status[..3])
        );
        let ErrorKind::Status(error) = ran.kind() else { unreachable!() };
        assert_eq!(error.headers[LOCATION], location);
        assert_eq!(
            error.to_string(),
            format!(
                "the server answered {status}; redirects are not followed, so correct the URL: it points to {location}"
            )
        );
    }
}
