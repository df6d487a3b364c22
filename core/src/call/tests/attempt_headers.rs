//! Header fields that are made for each attempt (rule RTY-9).

use http::{HeaderMap, HeaderName, HeaderValue};

use super::play::Play;
use super::wire::{self, response};
use crate::body::{Feed, waker};
use crate::call::{AttemptId, HeaderSource, Request};
use crate::config::Overrides;
use crate::machine::{Event, Machine, Misuse, Supply};
use crate::outcome::ErrorKind;

fn fields(token: &str) -> HeaderMap {
    let value = HeaderValue::try_from(format!("Bearer {token}")).unwrap();
    HeaderMap::from_iter([
        (http::header::AUTHORIZATION, value),
        (HeaderName::from_static("x-date"), HeaderValue::from_static("20260101")),
    ])
}

fn request() -> Request {
    Request::post(wire::URL)
        .bearer("sk-static")
        .header("x-other", "kept")
        .attempt_headers(|request, attempt| {
            assert_eq!((request.method().as_str(), request.target().path()), ("POST", "/v1/answers"));
            Ok::<_, String>(fields(&format!("token-{}", attempt.number())))
        })
        .body("{}")
        .build()
        .unwrap()
}

fn play(overrides: Overrides) -> Play {
    Play::new(request(), overrides).start()
}

/// Lets a driver's feed make the fields
fn made(feed: &mut Feed, play: &mut Play) -> String {
    let wanted = play.record.wait.as_ref().and_then(|wait| wait.io).map_or(0, |io| io.supply);
    assert!(wanted > 0 && play.outgoing() == 0, "nothing goes out before the head is whole");
    let mut buffer = [0; 16];
    let supply = feed.supply(&play.call.request().clone(), play.link(), &waker(|| {}), &mut buffer);
    play.feed(Event::Supplied(play.link(), supply.expect("they are there at once")));
    let outgoing = String::from_utf8(play.call.outgoing(play.link()).concat()).unwrap();
    play.sent_all();
    outgoing
}

#[test]
fn each_attempt_has_its_own() {
    let (mut play, mut feed) = (play(Overrides::new()), Feed::default());
    play.connected();
    let first = made(&mut feed, &mut play);
    assert!(first.contains("\r\nauthorization: Bearer token-1\r\n"), "{first}");
    assert!(first.contains("\r\nx-other: kept\r\n") && first.ends_with("\r\n\r\n{}"), "{first}");
    assert!(!first.contains("sk-static"), "{first}");
    play.receive(response("503 Service Unavailable", &[], "")).expire();
    play.connected();
    let second = made(&mut feed, &mut play);
    assert!(second.contains("\r\nauthorization: Bearer token-2\r\n"), "{second}");
    play.receive(response("200 OK", &[], "ok"));
    assert_eq!(play.completion().body, "ok");
}

#[test]
fn a_connection_that_is_replaced_gets_them_anew() {
    let (mut play, mut feed) = (play(Overrides::new()), Feed::default());
    play.reused();
    play.feed(Event::Supplied(play.link(), Supply::Head(fields("token-0")))).reset();
    play.connected();
    assert!(made(&mut feed, &mut play).contains("Bearer token-2"));
    assert_eq!(play.call.progress().attempt, 1);
}

#[test]
fn what_fails_to_make_them_ends_the_call() {
    for (supply, words) in [
        (Supply::Failed("the headers cannot be made: no token".to_owned()), "no token"),
        (
            Supply::Head(HeaderMap::from_iter([(http::header::HOST, HeaderValue::from_static("x"))])),
            "`host` is not the caller's to set",
        ),
    ] {
        let mut play = play(Overrides::new());
        play.connected();
        play.feed(Event::Supplied(play.link(), supply));
        assert!(matches!(play.error(), ErrorKind::Consumer(message) if message.contains(words)));
        assert_eq!(play.record.opened().len(), 1);
    }
}

#[test]
fn they_come_once_and_before_the_body() {
    let mut play = play(Overrides::new());
    play.connected();
    let link = play.link();
    assert!(matches!(play.try_feed(Event::Supplied(link, Supply::End)), Err(Misuse::OutOfOrder(_))));
    play.feed(Event::Supplied(link, Supply::Head(fields("token-1"))));
    let again = Event::Supplied(link, Supply::Head(fields("token-1")));
    assert!(matches!(play.try_feed(again), Err(Misuse::OutOfOrder(_))));
}

#[test]
fn no_echo_of_them_reaches_an_error_or_a_trace() {
    let mut play = play(Overrides::new().max_attempts(1));
    play.connected();
    play.feed(Event::Supplied(play.link(), Supply::Head(fields("token-s3cret")))).sent_all();
    play.receive(response("401 Unauthorized", &[], "bad token-s3cret on 20260101"));
    let shown = format!("{:?} {}", play.outcome(), play.trace());
    assert!(!shown.contains("s3cret"), "{shown}");
    assert!(matches!(play.error(), ErrorKind::Status(error) if error.body == "bad [credential] on 20260101"));
    let trace = play.trace();
    let fields = r#""fields":[["authorization","xxxxxx ~x~x~x~x~x~x"],["x-date","xxxxxxxx"]]"#;
    assert!(trace.contains(fields), "{trace}");
}

#[test]
fn what_takes_its_time_is_waited_for() {
    struct Slow(u32);
    impl HeaderSource for Slow {
        fn make(&mut self, waker: &crate::body::Waker) -> Option<Result<HeaderMap, String>> {
            self.0 += 1;
            waker.wake_by_ref();
            (self.0 > 2).then(|| Ok(HeaderMap::new()))
        }
    }
    let slow = |_: &Request, _: AttemptId| Slow(0);
    let request = Request::post(wire::URL).attempt_header_source(slow).build().unwrap();
    let mut play = Play::new(request.clone(), Overrides::new()).start();
    play.connected();
    let (mut feed, mut buffer, mut looks) = (Feed::default(), [0; 16], 0);
    let supply = loop {
        looks += 1;
        if let Some(supply) = feed.supply(&request, play.link(), &waker(|| {}), &mut buffer) {
            break supply;
        }
    };
    assert_eq!((looks, &supply), (3, &Supply::Head(HeaderMap::new())));
    play.feed(Event::Supplied(play.link(), supply)).sent_all().receive(response("200 OK", &[], ""));
    assert!(play.outcome().result.is_ok());
}
