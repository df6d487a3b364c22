//! The table of limits, with its real values (rule RLY).

use super::rig::{Rig, Takes, post};
use crate::relay::{Closing, Code, Ending, State, Timer};

const EVENTS: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

fn seconds(rig: &Rig) -> f64 {
    rig.now.since_origin().as_secs_f64()
}

#[test]
fn the_first_byte_is_waited_for_610_seconds_from_the_start_of_the_request() {
    let mut rig = Rig::new();
    rig.after(5.0);
    rig.app_sends("POST /openai/v1 HTTP/1.1\r\n");
    rig.after(3.0);
    rig.app_sends("Host: a\r\nContent-Length: 0\r\n\r\n");
    rig.connected();
    assert_eq!(rig.wait(), Timer::FirstByte);
    assert_eq!(seconds(&rig), 615.0);
    assert!(rig.text().starts_with("HTTP/1.1 504 "), "{}", rig.text());
    assert!(rig.text().contains(r#""code":"upstream_timeout""#));
    assert_eq!(rig.commands, ["connect1", "abort1"]);
    assert_eq!(rig.over[0].sends, 1);
}

#[test]
fn an_interim_answer_is_no_first_byte() {
    let mut rig = Rig::new();
    rig.app_sends(post("openai", "{}"));
    rig.connected();
    rig.after(600.0);
    rig.up_sends("HTTP/1.1 102 Processing\r\n\r\n");
    assert_eq!(rig.wait(), Timer::FirstByte);
    assert_eq!(rig.ending(), Ending::Refused(Code::UpstreamTimeout));
}

#[test]
fn silence_of_the_provider_closes_after_fifteen_minutes_and_adds_nothing() {
    let mut rig = Rig::new();
    rig.app_sends(post("openai", "{}"));
    rig.connected();
    rig.up_sends(EVENTS);
    rig.after(899.0);
    rig.up_sends("1\r\na\r\n");
    let got = rig.text();
    assert_eq!(rig.wait(), Timer::Silence);
    assert_eq!(seconds(&rig), 899.0 + 900.0);
    assert_eq!(rig.text(), got);
    assert_eq!(rig.ending(), Ending::Limit(Timer::Silence));
    assert_eq!(rig.done, Some(Closing::Orderly));
    assert_eq!(rig.commands, ["connect1", "abort1"]);
}

#[test]
fn an_app_that_takes_nothing_is_silence_too() {
    let mut rig = Rig::new();
    rig.app_sends(post("openai", "{}"));
    rig.connected();
    rig.up_sends(EVENTS);
    rig.takes = Takes::Nothing;
    rig.after(100.0);
    rig.up_sends("1\r\na\r\n");
    assert!(!rig.reads.1);
    assert_eq!(rig.wait(), Timer::Silence);
    assert_eq!(seconds(&rig), 900.0, "nothing reached the app since the head");
    assert_eq!(rig.ending(), Ending::Limit(Timer::Silence));
}

#[test]
fn an_hour_is_the_longest_that_a_call_runs() {
    let mut rig = Rig::new();
    rig.app_sends(post("openai", "{}"));
    rig.connected();
    rig.up_sends(EVENTS);
    for _ in 0..5 {
        rig.after(700.0);
        rig.up_sends("1\r\na\r\n");
    }
    assert_eq!(rig.wait(), Timer::Total);
    assert_eq!(seconds(&rig), 3_600.0);
    assert_eq!(rig.ending(), Ending::Limit(Timer::Total));
}

#[test]
fn a_total_that_ends_before_any_answer_is_a_timeout_of_the_provider() {
    let total = crate::time::Bound::seconds(5.0).unwrap();
    let mut rig = Rig::with(super::rig::routes(|route| route.limits.total = total), false);
    rig.app_sends(post("openai", "{}"));
    rig.connected();
    assert_eq!(rig.wait(), Timer::Total);
    assert_eq!(rig.ending(), Ending::Refused(Code::UpstreamTimeout));
}

#[test]
fn a_head_that_trickles_is_given_thirty_seconds() {
    let mut rig = Rig::new();
    for byte in "GET /openai/v1 HTTP/1.1\r\nHost".bytes() {
        rig.app_sends([byte]);
        rig.after(1.0);
    }
    assert_eq!(rig.wait(), Timer::RequestHead);
    assert_eq!(seconds(&rig), 30.0);
    assert!(rig.text().starts_with("HTTP/1.1 408 "), "{}", rig.text());
}

#[test]
fn a_connection_that_asks_for_nothing_is_closed() {
    let mut rig = Rig::new();
    assert_eq!(rig.wait(), Timer::KeepAlive);
    assert_eq!(seconds(&rig), 75.0);
    assert!(rig.done.is_some() && rig.over.is_empty());
}

#[test]
fn a_relay_about_to_stop_finishes_what_runs_and_keeps_no_connection() {
    let mut rig = Rig::new();
    rig.app_sends(post("openai", "{}"));
    rig.connected();
    rig.tell(crate::machine::Event::Fact(crate::relay::Fact::Draining));
    rig.up_sends("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na");
    assert!(rig.text().to_lowercase().contains("connection: close"), "{}", rig.text());
    assert_eq!(rig.ending(), Ending::Passed);
    assert_eq!(rig.state(), State::Lingering);
    let mut idle = Rig::new();
    idle.tell(crate::machine::Event::Fact(crate::relay::Fact::Draining));
    assert!(idle.done.is_some());
}

#[test]
fn told_to_stop_between_two_requests_it_takes_no_second() {
    use crate::machine::{Event, Machine, Step};
    use crate::relay::{Fact, Item, Link};
    for fact in [true, false] {
        let mut rig = Rig::new();
        rig.app_sends(post("openai", "{}"));
        rig.connected();
        let id = rig.exchange.last_id;
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na";
        let mut drain = rig.exchange.handle(rig.now, Event::Received(Link::Up(id), answer)).unwrap();
        loop {
            match drain.next() {
                Step::Deliver(Item::Pass { before, bytes, .. }) => {
                    let took = before.len() + bytes.len();
                    drain.took(took);
                }
                Step::Deliver(Item::Over(_)) => break,
                Step::Do(_) | Step::Deliver(Item::Tap(_)) => {}
                Step::Wait(_) | Step::Done(_) => panic!("it is told that it is over"),
            }
        }
        drop(drain);
        rig.tell(if fact { Event::Fact(Fact::Draining) } else { Event::Cancel });
        assert_eq!(rig.done, Some(Closing::Orderly), "{fact}");
        assert!(rig.over.is_empty(), "it was told before");
    }
}

#[test]
fn what_the_relay_serves_too_late_is_dropped() {
    let mut rig = Rig::new();
    rig.app_sends("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!((rig.state(), rig.commands.as_slice()), (State::Serving, &["serve".to_owned()][..]));
    assert_eq!(rig.wait(), Timer::Total);
    let served =
        crate::relay::Served { status: http::StatusCode::OK, fields: Vec::new(), body: b"ok".to_vec() };
    rig.tell(crate::machine::Event::Fact(crate::relay::Fact::Served(Box::new(served))));
    assert!(!rig.text().ends_with("ok"), "{}", rig.text());
    assert_eq!(rig.over.len(), 1);
}

#[test]
fn the_end_of_an_answer_gives_an_app_that_takes_nothing_no_more_time() {
    let mut rig = Rig::new();
    rig.app_sends(post("openai", "{}"));
    rig.connected();
    rig.up_sends(EVENTS);
    rig.takes = Takes::Nothing;
    rig.after(100.0);
    rig.up_sends("1\r\na\r\n0\r\n\r\n");
    assert_eq!(rig.state(), State::Flushing);
    assert_eq!(rig.wait(), Timer::Silence);
    assert_eq!(seconds(&rig), 900.0, "nothing reached the app since the head");
}

#[test]
fn a_body_that_is_not_to_be_sent_again_is_not_held() {
    let mut rig = Rig::new();
    rig.app_sends(post("openai", &"x".repeat(10_000)));
    rig.connected();
    rig.takes = Takes::Nothing;
    rig.up_ends();
    assert_eq!(rig.state(), State::Flushing);
    assert!(rig.exchange.held() < 1_000, "{} bytes are held", rig.exchange.held());
}

#[test]
fn the_app_is_not_read_on_while_the_head_waits() {
    let mut rig = Rig::new();
    rig.takes = Takes::Nothing;
    rig.app_sends(post("openai", "").replace("Content-Length: 0", "Content-Length: 2"));
    rig.connected();
    assert!(!rig.reads.0);
    rig.takes = Takes::All;
    rig.write();
    assert!(rig.reads.0);
}
