//! What passes, and how it looks on either side (rules RLY-1, RLY-5, RLY-7).

use super::rig::{Rig, Takes, post, routes};
use crate::relay::{Closing, Code, Ending, State, Timer};

const EVENTS: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nX-Request-ID: up-1\r\n\
    Transfer-Encoding: chunked\r\n\r\n";

#[test]
fn a_call_goes_through_and_the_next_one_follows_on_the_same_connection() {
    let mut rig = Rig::new();
    rig.app_sends(post("openai", "{}"));
    assert_eq!(rig.commands, ["connect1"]);
    rig.connected();
    assert_eq!(
        rig.up_text(1),
        "POST /v1/chat HTTP/1.1\r\nHost: up.example:8080\r\nAuthorization: Bearer sk-1\r\nX-Odd-Case: a\r\n\
         Content-Length: 2\r\n\r\n{}"
    );
    let answer = "HTTP/1.1 200 Fine\r\nX-Odd-Case: b\r\nContent-Length: 5\r\n\r\nhello";
    rig.up_sends(answer);
    assert_eq!(rig.text(), answer);
    assert_eq!(rig.ending(), Ending::Passed);
    assert_eq!(rig.commands, ["connect1", "keep1"]);
    assert_eq!(rig.state(), State::Idle);
    rig.app_sends(post("openai", "[]"));
    rig.reused();
    rig.up_sends("HTTP/1.1 204 No Content\r\n\r\n");
    assert_eq!(rig.over.len(), 2);
    assert!(rig.text().ends_with("HTTP/1.1 204 No Content\r\n\r\n"), "{}", rig.text());
}

#[test]
fn a_stream_passes_part_by_part_as_it_came_chunk_framing_and_all() {
    let mut rig = Rig::new();
    rig.app_sends(post("openai", "{}"));
    rig.connected();
    rig.up_sends(EVENTS);
    assert_eq!(rig.text(), EVENTS);
    let mut expected = EVENTS.to_owned();
    for part in ["7;a=b\r\ndata: 1\r\n", "4\r\n\r\n\r\n\r\n2\r\nda", "\r\n3\r\nta:\r\n", "0\r\n\r\n"] {
        rig.up_sends(part);
        expected.push_str(part);
        assert_eq!(rig.text(), expected);
    }
    assert_eq!(rig.ending(), Ending::Passed);
    assert_eq!(rig.over[0].answer_bytes, 7 + 4 + 2 + 3);
}

#[test]
fn a_side_is_not_read_while_bytes_for_the_other_wait() {
    let mut rig = Rig::new();
    rig.app_sends(post("openai", "{}"));
    rig.connected();
    rig.up_sends(EVENTS);
    rig.takes = Takes::Nothing;
    assert!(rig.reads.1);
    rig.up_sends("5\r\nhello\r\n");
    assert!(!rig.reads.1, "the app takes nothing");
    assert!(rig.most_held < 1_000);
    rig.takes = Takes::All;
    rig.write();
    assert!(rig.reads.1);
    assert!(rig.text().ends_with("5\r\nhello\r\n"));
}

#[test]
fn an_answer_without_a_length_is_chunked_for_the_app_so_that_a_break_is_seen() {
    for (is_whole, ending) in [(true, Ending::Passed), (false, Ending::Broken)] {
        let mut rig = Rig::new();
        rig.app_sends(post("openai", "{}"));
        rig.connected();
        rig.up_sends("HTTP/1.1 200 OK\r\n\r\n");
        rig.up_sends("abc");
        if is_whole {
            rig.up_ends();
        } else {
            rig.up_fails(crate::machine::Stage::Read);
        }
        assert_eq!(rig.ending(), ending);
        let end = if is_whole { "0\r\n\r\n" } else { "" };
        assert_eq!(
            rig.text(),
            format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n{end}")
        );
        assert_eq!(rig.commands, ["connect1", "abort1"]);
    }
}

#[test]
fn an_old_app_gets_no_chunks_and_a_break_as_a_reset() {
    for (last, closing) in [("0\r\n\r\n", None), ("zz", Some(Closing::Reset))] {
        let mut rig = Rig::new();
        rig.app_sends("GET /openai/v1/models HTTP/1.0\r\nHost: a\r\n\r\n");
        rig.connected();
        rig.up_sends(EVENTS);
        rig.up_sends("3\r\nabc\r\n");
        rig.up_sends(last);
        assert!(rig.text().ends_with("\r\n\r\nabc"), "{}", rig.text());
        assert!(!rig.text().contains("chunked"), "{}", rig.text());
        assert_eq!(rig.done, closing);
        if closing.is_none() {
            assert_eq!(rig.commands.last().unwrap(), "finish");
            rig.app_leaves();
            assert_eq!(rig.done, Some(Closing::Orderly));
        }
    }
}

#[test]
fn the_provider_breaks_off_and_so_does_the_answer() {
    let mut rig = Rig::new();
    rig.app_sends(post("openai", "{}"));
    rig.connected();
    rig.up_sends(EVENTS);
    rig.up_sends("5\r\nhel");
    rig.up_ends();
    assert_eq!(rig.ending(), Ending::Broken);
    assert!(rig.text().ends_with("5\r\nhel"));
    assert_eq!(rig.done, Some(Closing::Orderly));
}

#[test]
fn the_app_leaves_and_the_provider_is_cancelled_at_once() {
    for stage in 0..3 {
        let mut rig = Rig::new();
        rig.app_sends(post("openai", "{}"));
        if stage > 0 {
            rig.connected();
        }
        if stage > 1 {
            rig.up_sends(EVENTS);
        }
        assert!(!rig.reads.0, "what is pipelined is not read");
        rig.app_leaves();
        assert_eq!(rig.commands, ["connect1", "abort1"]);
        assert_eq!(rig.ending(), Ending::AppLeft);
        assert!(rig.done.is_some());
    }
}

#[test]
fn what_is_pipelined_waits_its_turn() {
    let mut rig = Rig::new();
    let both = format!("{}{}", post("openai", "1"), post("openai", "22"));
    rig.app_sends(&both);
    assert_eq!(rig.commands, ["connect1"]);
    rig.connected();
    rig.up_sends("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na");
    assert_eq!(rig.commands, ["connect1", "keep1", "connect2"]);
    rig.reused();
    assert!(rig.up_text(2).ends_with("\r\n\r\n22"), "{}", rig.up_text(2));
    rig.up_sends("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nb");
    assert_eq!(rig.over.len(), 2);
    assert_eq!(rig.over[1].request_bytes, 2);
}

#[test]
fn surplus_bytes_of_the_provider_mean_no_reuse() {
    let mut rig = Rig::new();
    rig.app_sends(post("openai", "{}"));
    rig.connected();
    rig.up_sends("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\naHTTP/1.1 200 OK\r\n");
    assert_eq!(rig.commands, ["connect1", "abort1"]);
    assert!(rig.text().ends_with("\r\n\r\na"));
    assert_eq!(rig.ending(), Ending::Passed);
}

#[test]
fn a_body_is_taken_as_it_comes_once_the_provider_is_there() {
    let mut rig = Rig::new();
    rig.app_sends("POST /openai/v1/files HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n");
    assert!(!rig.reads.0, "there is no connection yet");
    rig.connected();
    assert_eq!(rig.text(), "HTTP/1.1 100 Continue\r\n\r\n");
    assert!(rig.reads.0);
    rig.app_sends("3;x\r\nabc\r\n");
    rig.app_sends("0\r\nTrailer: x\r\n\r\n");
    assert!(
        rig.up_text(1).ends_with("Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"),
        "{}",
        rig.up_text(1)
    );
    assert!(!rig.reads.0);
}

#[test]
fn a_large_body_is_held_no_longer_than_it_may_be_sent_again() {
    for takes in [Takes::All, Takes::Some(1_000)] {
        let mut rig = Rig::with(routes(|route| route.limits.retries.max_body_bytes = 10_000), false);
        rig.app_sends("POST /openai/v1/files HTTP/1.1\r\nHost: a\r\nContent-Length: 10000000\r\n\r\n");
        rig.connected();
        rig.takes = takes;
        let piece = vec![b'x'; 5_000];
        for _ in 0..2_000 {
            assert!(rig.reads.0);
            rig.app_sends(&piece);
        }
        assert!(rig.most_held <= 20_000, "{}", rig.most_held);
        assert_eq!(rig.up[0].len() - rig.up_text(1).find("\r\n\r\n").unwrap() - 4, 10_000_000);
        rig.up_sends("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(rig.ending(), Ending::Passed);
        assert_eq!(rig.over[0].request_bytes, 10_000_000);
    }
}

#[test]
fn taps_see_the_bodies_without_their_framing() {
    let mut rig = Rig::with(routes(|_| {}), true);
    rig.app_sends("POST /openai/v1/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
    rig.connected();
    rig.app_sends("2\r\nde\r\n0\r\n\r\n");
    rig.up_sends(format!("{EVENTS}2\r\n12\r\n1\r\n"));
    rig.up_sends("3\r\n2\r\n45\r\n0\r\n\r\n");
    assert_eq!(rig.tapped_request, b"abcde");
    assert_eq!(rig.tapped_answer, b"12345");
    assert_eq!(rig.text(), format!("{EVENTS}2\r\n12\r\n1\r\n3\r\n2\r\n45\r\n0\r\n\r\n"));
}

#[test]
fn a_bad_request_is_refused_and_never_sent() {
    let mut rig = Rig::new();
    rig.app_sends("POST /openai/v1 HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 5\r\n\r\nhello");
    assert!(rig.commands.iter().all(|command| !command.starts_with("connect")), "{:?}", rig.commands);
    assert!(rig.text().starts_with("HTTP/1.1 400 "), "{}", rig.text());
    assert!(matches!(rig.ending(), Ending::Refused(Code::BadRequest(_))));
    assert_eq!(rig.state(), State::Lingering);
    assert_eq!(rig.wait(), Timer::Linger);
    assert_eq!(rig.done, Some(Closing::Orderly));
}

#[test]
fn a_fault_in_a_body_is_told_once_whenever_it_comes() {
    let head = "POST /openai/v1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    for together in [true, false] {
        let mut rig = Rig::new();
        match together {
            true => rig.app_sends(format!("{head}2\r\n{{}}\r\nx\r\nhello")),
            false => {
                rig.app_sends(head);
                rig.connected();
                rig.app_sends("2\r\n{}\r\n");
                rig.app_sends("x\r\n");
                rig.app_sends("hello");
            }
        }
        assert!(rig.text().starts_with("HTTP/1.1 400 "), "{}", rig.text());
        assert_eq!(rig.text().matches("HTTP/1.1 400 ").count(), 1);
        assert_eq!(rig.commands, ["connect1", "abort1", "finish"]);
        assert_eq!(rig.state(), State::Lingering);
        assert_eq!(rig.over.len(), 1);
    }
}

#[test]
fn a_fault_behind_a_refusal_does_not_take_it_back() {
    let mut rig = Rig::new();
    let head = "POST /nowhere HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    rig.app_sends(format!("{head}x\r\nhello"));
    assert!(rig.text().starts_with("HTTP/1.1 404 "), "{}", rig.text());
    assert_eq!(rig.text().matches("HTTP/1.1 ").count(), 1);
    assert_eq!((rig.ending(), rig.state()), (Ending::Refused(Code::NotFound), State::Lingering));
}

#[test]
fn a_path_of_no_route_is_not_found_and_the_connection_stays() {
    let mut rig = Rig::new();
    rig.app_sends("GET /v1/models HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(rig.text().starts_with("HTTP/1.1 404 Not Found\r\n"), "{}", rig.text());
    assert!(rig.text().contains("x-should-retry: false"));
    assert_eq!(rig.state(), State::Idle);
    rig.app_sends("GET /openai/v1/models HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(rig.commands, ["connect1"]);
}

#[test]
fn a_full_relay_says_so_and_when_to_come_back() {
    let mut rig = Rig::new();
    rig.app_sends(post("openai", "{}"));
    rig.refused(Code::GatewayOverloaded);
    assert!(rig.text().starts_with("HTTP/1.1 503 "), "{}", rig.text());
    assert!(rig.text().contains("retry-after: 1\r\n"));
    assert_eq!(rig.over[0].sends, 0);
    assert_eq!(rig.state(), State::Idle);
}

#[test]
fn a_key_of_the_route_takes_the_place_of_the_apps() {
    let key = (http::header::AUTHORIZATION, http::HeaderValue::from_static("Bearer sk-ours"));
    let mut rig = Rig::with(routes(|route| route.key = Some(key)), false);
    rig.app_sends(post("openai", "{}"));
    rig.connected();
    assert!(!rig.up_text(1).contains("sk-1"), "{}", rig.up_text(1));
    assert!(
        rig.up_text(1).to_lowercase().contains("authorization: bearer sk-ours\r\n"),
        "{}",
        rig.up_text(1)
    );
}
