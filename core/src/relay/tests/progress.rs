//! What is known of an exchange while it goes on.

use std::time::Duration;

use super::rig::{Rig, post};
use crate::outcome::SpanKind;
use crate::relay::{Ending, Gap, State, Timer};
use crate::time::Instant;

const EVENTS: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

fn at(seconds: u64) -> Instant {
    Instant::ORIGIN + Duration::from_secs(seconds)
}

#[test]
fn an_exchange_can_be_followed_from_its_head_to_its_end() {
    let mut rig = Rig::new();
    assert!(rig.exchange.progress().request.is_none());
    rig.app_sends(post("openai", "{}"));
    let progress = rig.exchange.progress();
    assert_eq!((progress.state, progress.request_bytes), (State::Connecting, 2));
    assert_eq!(progress.request.map(|request| &*request.target), Some("/openai/v1/chat"));
    let (route, limits) = progress.route.expect("a route");
    assert_eq!((&**route, limits.silence.to_string().as_str()), ("openai", "900"));
    rig.after(1.0);
    rig.connected();
    rig.after(2.0);
    rig.up_sends(EVENTS);
    let progress = rig.exchange.progress();
    assert_eq!((progress.state, progress.since, progress.sends), (State::Answering, at(3), 1));
    assert_eq!(progress.status.map(|status| status.as_u16()), Some(200));
    let kinds: Vec<_> = progress.timeline.spans.iter().map(|span| (span.kind, span.ended)).collect();
    assert_eq!(kinds, [(SpanKind::Connect, at(1)), (SpanKind::Request, at(3))]);
    for gap in [5.0, 7.0, 1.0] {
        rig.after(gap);
        rig.up_sends("1\r\na\r\n");
    }
    let progress = rig.exchange.progress();
    assert_eq!((progress.answer_bytes, progress.last_part), (3, at(16)));
    let longest = Gap { began: at(8), lasted: Duration::from_secs(7) };
    assert_eq!(progress.longest_gap, Some(longest));
    rig.after(2.0);
    rig.up_sends("0\r\n\r\n");
    assert_eq!((rig.ending(), rig.over[0].longest_gap), (Ending::Passed, Some(longest)));
    assert_eq!(rig.over[0].timeline.attempts[0].largest_gap, Duration::from_secs(7));
}

#[test]
fn a_gap_lasts_until_the_limit_that_ends_it() {
    let mut rig = Rig::new();
    rig.app_sends(post("openai", "{}"));
    rig.connected();
    rig.up_sends(EVENTS);
    assert_eq!(rig.wait(), Timer::Silence);
    let gap = Gap { began: at(0), lasted: Duration::from_secs(900) };
    assert_eq!(rig.over[0].longest_gap, Some(gap));
    assert_eq!(rig.over[0].timeline.attempts[0].largest_gap, gap.lasted);
}

#[test]
fn there_is_no_gap_before_an_answer_that_passes() {
    let mut rig = Rig::new();
    rig.app_sends(post("openai", "{}"));
    rig.connected();
    assert_eq!(rig.wait(), Timer::FirstByte);
    assert_eq!(rig.over[0].longest_gap, None);
}
