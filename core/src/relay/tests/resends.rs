//! What is sent again, and what never is (rule RLY-2).

use std::time::Duration;

use super::rig::{Rig, post, routes};
use crate::machine::Stage;
use crate::relay::{Code, Ending, State, Timer};

const BUSY: &str = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nbusy";
const FINE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[test]
fn a_connection_that_cannot_be_opened_is_tried_once_more_and_nothing_was_sent() {
    let mut rig = Rig::new();
    rig.app_sends(post("openai", "{}"));
    rig.up_fails(Stage::Connect);
    assert_eq!(rig.commands, ["connect1", "abort1", "connect2 new"]);
    rig.up_fails(Stage::Tls);
    assert!(rig.text().starts_with("HTTP/1.1 502 "), "{}", rig.text());
    assert!(rig.text().contains(r#""code":"upstream_unreachable""#), "{}", rig.text());
    assert!(!rig.text().contains("x-should-retry"));
    assert_eq!((rig.over[0].sends, rig.ending()), (0, Ending::Refused(Code::UpstreamUnreachable)));
    assert_eq!(rig.state(), State::Idle);
}

#[test]
fn each_try_to_connect_has_its_own_ten_seconds() {
    let mut rig = Rig::new();
    rig.app_sends(post("openai", "{}"));
    assert_eq!(rig.wait(), Timer::Connect);
    assert_eq!(rig.wait(), Timer::Connect);
    assert_eq!(rig.now.since_origin(), Duration::from_secs(20));
    assert_eq!(rig.ending(), Ending::Refused(Code::UpstreamUnreachable));
}

#[test]
fn an_overloaded_provider_is_asked_three_times_in_all() {
    let mut rig = Rig::new();
    rig.app_sends(post("openai", "{}"));
    rig.connected();
    let mut pauses = Vec::new();
    for _ in 0..2 {
        rig.up_sends(BUSY);
        assert_eq!(rig.text(), "", "no part of it reaches the app");
        let from = rig.now;
        assert_eq!(rig.wait(), Timer::Pause);
        pauses.push((rig.now - from).as_millis());
        rig.connected();
    }
    assert!((180..=220).contains(&pauses[0]) && (360..=440).contains(&pauses[1]), "{pauses:?}");
    rig.up_sends(FINE);
    assert_eq!(rig.text(), FINE);
    assert_eq!(rig.over[0].sends, 3);
    for number in 1..=3 {
        assert!(rig.up_text(number).ends_with("\r\n\r\n{}"), "{number}");
    }
    assert_eq!(rig.over[0].timeline.attempts.len(), 3);
}

#[test]
fn the_third_refusal_passes_as_it_is() {
    let mut rig = Rig::new();
    rig.app_sends(post("openai", "{}"));
    rig.connected();
    for _ in 0..2 {
        rig.up_sends(BUSY);
        rig.wait();
        rig.connected();
    }
    rig.up_sends(BUSY);
    assert_eq!(rig.text(), BUSY);
    assert_eq!(rig.over[0].sends, 3);
}

#[test]
fn no_other_status_is_sent_again_and_529_only_to_anthropic() {
    for (route, status, sends_again) in [
        ("openai", "429 Too Many Requests", false),
        ("openai", "500 Internal Server Error", false),
        ("openai", "502 Bad Gateway", false),
        ("openai", "504 Gateway Timeout", false),
        ("openai", "529 ", false),
        ("anthropic", "529 ", true),
        ("anthropic", "503 Service Unavailable", true),
        ("anthropic", "400 Bad Request", false),
    ] {
        let mut rig = Rig::new();
        rig.app_sends(post(route, "{}"));
        rig.connected();
        rig.up_sends(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n"));
        assert_eq!(rig.state() == State::Pausing, sends_again, "{route} {status}");
    }
}

#[test]
fn a_body_past_the_cap_is_sent_once() {
    for (length, sends_again) in [(100, true), (101, false)] {
        let mut rig = Rig::with(routes(|route| route.limits.retries.max_body_bytes = 100), false);
        rig.app_sends(post("openai", &"x".repeat(length)));
        rig.connected();
        rig.up_sends(BUSY);
        assert_eq!(rig.state() == State::Pausing, sends_again, "{length}");
        if !sends_again {
            assert_eq!(rig.text(), BUSY);
        }
    }
}

#[test]
fn a_call_that_began_to_go_out_and_broke_is_never_sent_again() {
    for stage in [Stage::Read, Stage::Write] {
        let mut rig = Rig::new();
        rig.app_sends(post("openai", "{}"));
        rig.connected();
        rig.up_fails(stage);
        if stage == Stage::Write {
            assert_eq!(rig.state(), State::Waiting, "the answer may be there already");
            rig.up_ends();
        }
        assert!(rig.text().contains(r#""code":"upstream_failed""#), "{}", rig.text());
        assert!(rig.text().contains("x-should-retry: false\r\n"));
        assert_eq!(rig.over[0].sends, 1);
        assert_eq!(rig.commands, ["connect1", "abort1"]);
    }
}

#[test]
fn an_answer_behind_a_failed_write_is_passed() {
    let mut rig = Rig::new();
    rig.app_sends(post("openai", "{}"));
    rig.connected();
    rig.up_fails(Stage::Write);
    rig.up_sends("HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n");
    assert!(rig.text().starts_with("HTTP/1.1 413 "), "{}", rig.text());
    assert_eq!(rig.commands, ["connect1", "abort1"]);
}

#[test]
fn a_stale_connection_is_replaced_only_if_nothing_was_written_to_it() {
    let mut rig = Rig::new();
    rig.app_sends(post("openai", "{}"));
    rig.takes = super::rig::Takes::Nothing;
    rig.reused();
    rig.up_ends();
    assert_eq!(rig.commands, ["connect1", "abort1", "connect2 new"]);
    // It cost no try: a new one may still fail once.
    rig.up_fails(Stage::Connect);
    assert_eq!(rig.commands.last().unwrap(), "connect3 new");
    let mut written = Rig::new();
    written.app_sends(post("openai", "{}"));
    written.reused();
    written.up_ends();
    assert_eq!(written.ending(), Ending::Refused(Code::UpstreamFailed));
}

#[test]
fn what_comes_before_a_byte_is_written_is_no_answer() {
    let mut rig = Rig::new();
    rig.app_sends(post("openai", "{}"));
    rig.takes = super::rig::Takes::Nothing;
    rig.reused();
    rig.up_sends("HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(rig.commands, ["connect1", "abort1", "connect2 new"]);
    rig.takes = super::rig::Takes::All;
    rig.connected();
    rig.up_sends(FINE);
    assert_eq!((rig.text(), rig.over[0].sends), (FINE.to_owned(), 1));
}

#[test]
fn a_body_is_asked_for_once_however_often_it_is_sent() {
    let mut rig = Rig::new();
    let head = post("openai", "").replace("Content-Length: 0", "Expect: 100-continue\r\nContent-Length: 2");
    rig.app_sends(head);
    rig.connected();
    rig.up_sends(BUSY);
    rig.wait();
    rig.connected();
    assert_eq!(rig.text(), "HTTP/1.1 100 Continue\r\n\r\n");
}

#[test]
fn the_framing_of_a_body_counts_against_its_cap() {
    let mut rig = Rig::with(routes(|route| route.limits.retries.max_body_bytes = 100), false);
    rig.app_sends(post("openai", "").replace("Content-Length: 0", "Transfer-Encoding: chunked"));
    rig.connected();
    for _ in 0..50 {
        rig.app_sends("1\r\nx\r\n");
    }
    rig.app_sends("0\r\n\r\n");
    assert!(rig.exchange.held() <= 100 + 6, "{} bytes are held", rig.exchange.held());
    rig.up_sends(BUSY);
    assert_eq!(rig.text(), BUSY);
}
