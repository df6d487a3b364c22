//! L: connecting, TLS, DNS, headers.

use std::net::SocketAddr;
use std::time::Duration;

use http::header::LOCATION;
use steadfast::call::{Command, Request, RequestBuilder, RequestError, Timer};
use steadfast::config::{Overrides, RequestConfig};
use steadfast::connect::{HappyEyeballs, Next, Proxy, Tunnel};
use steadfast::dialect::Dialect;
use steadfast::machine::{Event, FailureKind, IoFailure, ProxyRefusal, Stage};
use steadfast::outcome::{Billing, ErrorKind, Outcome};
use steadfast::time::Instant;
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
            let Some(Outcome { result, timeline, .. }) = outcome else {
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

/// The race as a driver runs it, in virtual time: connected when, and to which address
///
/// `answers` tells for each address after how many milliseconds it answers or fails, if ever.
fn race(answers: &[(&str, Option<(u64, bool)>)], limit: u64) -> Option<(u64, SocketAddr)> {
    let answers = answers.iter().map(|(text, answer)| (text.parse().expect("an address"), *answer));
    let answers: Vec<(SocketAddr, _)> = answers.collect();
    let mut race = HappyEyeballs::new(answers.iter().map(|(address, _)| *address));
    let at = |ms: u64| Instant::ORIGIN + Duration::from_millis(ms);
    let mut running: Vec<(u64, SocketAddr, bool)> = Vec::new();
    for now in 0..limit {
        while let Some(first) = running.iter().position(|(due, ..)| *due == now) {
            let (_, address, is_open) = running.swap_remove(first);
            if is_open {
                return Some((now, address));
            }
            let (kind, message) = (FailureKind::Refused, "refused".to_owned());
            race.failed(address, IoFailure { stage: Stage::Connect, kind, message });
        }
        loop {
            match race.next(at(now)) {
                Next::Wait(_) => break,
                Next::Failed(_) => return None,
                Next::Connect(address) => {
                    let (_, answer) =
                        answers.iter().find(|(known, _)| *known == address).expect("one of them");
                    running.extend(answer.map(|(after, is_open)| (now + after, address, is_open)));
                }
            }
        }
    }
    None
}

#[test]
fn l04_ipv6_path_swallows_packets() {
    let (ipv6, ipv4) = ("[2001:db8::1]:443", "203.0.113.5:443");
    let connected = |at: u64, address: &str| Some((at, address.parse().expect("an address")));
    let lost = None;
    let in_90_ms = Some((90, true));
    assert_eq!(race(&[(ipv6, lost), (ipv4, in_90_ms)], 10_000), connected(340, ipv4));
    assert_eq!(race(&[(ipv4, in_90_ms), (ipv6, lost)], 10_000), connected(90, ipv4));
    // The first one kept: a slower IPv6 that still answers first wins.
    assert_eq!(race(&[(ipv6, Some((300, true))), (ipv4, in_90_ms)], 10_000), connected(300, ipv6));
    // A failure is not waited out.
    assert_eq!(race(&[(ipv6, Some((5, false))), (ipv4, in_90_ms)], 10_000), connected(95, ipv4));
    // Many lost IPv6 addresses do not put IPv4 off.
    let many: Vec<String> = (1..=9).map(|n| format!("[2001:db8::{n}]:443")).collect();
    let mut many: Vec<(&str, Option<(u64, bool)>)> = many.iter().map(|text| (text.as_str(), lost)).collect();
    many.push((ipv4, in_90_ms));
    assert_eq!(race(&many, 10_000), connected(340, ipv4));
    assert_eq!(race(&[(ipv6, lost), (ipv4, lost)], 10_000), None);
}

/// What a proxy's answer to CONNECT makes of a call: its end, after how many attempts, or the bytes
/// of the tunnel
fn connect(answer: &str) -> Result<String, (ErrorKind, Billing, usize)> {
    let url = "https://api.example.com/v1";
    let proxy = Proxy::new("http://proxy.example:3128").expect("a proxy");
    let mut hand = Hand::start(request(Request::post(url)));
    for _ in 0..RequestConfig::default().max_attempts().get() {
        let id = hand.connection.expect("an attempt");
        let now =
            hand.deadline.map_or(0.0, |(due, timer)| if timer == Timer::Connect { due - 9.0 } else { 0.0 });
        let mut tunnel = Tunnel::new(&proxy, request(Request::post(url)).origin()).expect("a tunnel");
        assert!(tunnel.outgoing().starts_with(b"CONNECT api.example.com:443 HTTP/1.1\r\n"));
        tunnel.sent(tunnel.outgoing().len());
        match tunnel.received(answer.as_bytes()) {
            Ok(used) => {
                assert!(tunnel.is_open());
                return Ok(answer[used..].to_owned());
            }
            Err(failure) => {
                if let Some(outcome) = hand.feed(now, Event::Failed(id, failure)).outcome {
                    let attempts = outcome.timeline.attempt_count();
                    let error = outcome.result.expect_err("a failure");
                    return Err((error.kind, error.billing, attempts as usize));
                }
                slept(&mut hand);
            }
        }
    }
    panic!("more attempts than are allowed")
}

#[test]
fn l08_a_proxy_refuses_connect() {
    let proxy = |refusal, message: &str| {
        let kind = FailureKind::Proxy(refusal);
        ErrorKind::Proxy(IoFailure { stage: Stage::Proxy, kind, message: message.to_owned() })
    };
    let asked = proxy(
        ProxyRefusal::AuthenticationRequired,
        "the proxy answered CONNECT with 407 Proxy Authentication Required",
    );
    let answer = "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(connect(answer), Err((asked, Billing::NotSent, 1)));
    let gateway = proxy(ProxyRefusal::Status(502), "the proxy answered CONNECT with 502 Bad Gateway");
    let answer =
        "HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\nContent-Length: 15\r\n\r\n<html>x</html>\n";
    assert_eq!(connect(answer), Err((gateway, Billing::NotSent, 3)));
    let answer = "HTTP/1.1 200 Connection established\r\nContent-Length: 5\r\n\r\n\x16\x03\x03 and more";
    assert_eq!(connect(answer), Ok("\x16\x03\x03 and more".to_owned()));
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
