//! Bodies that are read as they go out (rules RTY-9, STR-6).

use std::io::Cursor;

use super::play::{Play, ms};
use super::wire::{self, response};
use crate::body::{Body, Form, Part, Ready, WINDOW_BYTES};
use crate::call::{Request, State};
use crate::config::Overrides;
use crate::machine::{Event, FailureKind, Machine, Misuse, Stage, Supply};
use crate::outcome::{Billing, ErrorKind, Note};

fn again(text: &'static str) -> Body {
    Body::source(move || Ok(Ready(Cursor::new(text))))
}

fn once(text: &'static str) -> Body {
    Body::once(Ready(Cursor::new(text)))
}

fn play(body: Body, overrides: Overrides) -> Play {
    Play::new(Request::post(wire::URL).body(body).build().unwrap(), overrides).start()
}

impl Play {
    /// How many more bytes of the body are wanted
    fn wants(&self) -> usize {
        self.record.wait.as_ref().and_then(|wait| wait.io).map_or(0, |io| io.supply)
    }

    fn supply(&mut self, supply: Supply<'_>) -> &mut Self {
        self.feed(Event::Supplied(self.link(), supply))
    }

    fn bytes(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        self.supply(Supply::Bytes(bytes.as_ref()))
    }

    /// Takes all that is to be written
    fn take_all(&mut self) -> String {
        let outgoing = self.call.outgoing(self.link()).concat();
        self.sent(outgoing.len());
        String::from_utf8(outgoing).unwrap()
    }
}

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

#[test]
fn one_of_known_length_goes_out_as_it_comes() {
    let mut play = play(again("").length(5), Overrides::new());
    play.connected();
    assert_eq!(play.wants(), 0, "not before the head is out");
    assert!(play.take_all().ends_with("\r\ncontent-length: 5\r\n\r\n"));
    assert_eq!(play.wants(), WINDOW_BYTES);
    play.bytes("abc").bytes("de");
    assert_eq!(play.take_all(), "abcde");
    play.supply(Supply::End);
    assert_eq!((play.wants(), play.outgoing()), (0, 0));
    play.receive(OK);
    assert_eq!(play.completion().body, "ok");
    assert!(play.record.trace.last().is_some() && format!("{:?}", play.record.commands).contains("Keep"));
}

#[test]
fn one_of_unknown_length_goes_out_in_chunks() {
    let mut play = play(again(""), Overrides::new());
    play.connected();
    assert!(play.take_all().ends_with("\r\ntransfer-encoding: chunked\r\n\r\n"));
    play.bytes("abc").bytes("").bytes("0123456789abcdef");
    assert_eq!(play.take_all(), "3\r\nabc\r\n10\r\n0123456789abcdef\r\n");
    play.supply(Supply::End);
    assert_eq!(play.take_all(), "0\r\n\r\n");
    play.receive(OK);
    assert!(play.outcome().result.is_ok());
}

#[test]
fn no_more_than_a_window_of_it_is_held() {
    for body in [again(""), again("").length(1 << 30)] {
        let mut play = play(body, Overrides::new());
        play.request();
        let mut supplied = 0;
        while supplied < 1 << 20 {
            match play.wants() {
                0 => {
                    let outgoing = play.outgoing();
                    assert!(outgoing > WINDOW_BYTES / 2 && outgoing < WINDOW_BYTES + 1_000, "{outgoing}");
                    play.sent(outgoing / 3);
                }
                wanted => {
                    let bytes = wanted.min(10_000);
                    play.bytes(vec![b'x'; bytes]);
                    supplied += bytes;
                }
            }
        }
    }
}

#[test]
fn it_is_read_anew_for_each_attempt() {
    let mut play = play(again("").length(3), Overrides::new());
    play.request().bytes("a").sent_all().receive(response("503 Service Unavailable", &[], ""));
    assert_eq!(play.call.state(), State::Pausing);
    play.expire();
    play.connected();
    assert!(play.take_all().starts_with("POST "));
    play.bytes("abc");
    assert_eq!(play.take_all(), "abc");
    play.supply(Supply::End).receive(OK);
    assert_eq!(play.outcome().timeline.attempts.len(), 2);
    assert!(play.outcome().result.is_ok());
}

#[test]
fn what_can_be_read_once_makes_a_call_single_attempt_once_it_was_read() {
    let mut unread = play(once(""), Overrides::new());
    unread.fail(Stage::Connect, FailureKind::Refused, "refused").expire();
    unread.request().receive(response("503 Service Unavailable", &[], ""));
    assert_eq!(unread.call.state(), State::Pausing, "nothing was read of it yet");

    for supply in [Supply::Bytes(b"a"), Supply::End] {
        let mut read = play(once(""), Overrides::new());
        read.request().supply(supply).sent_all().receive(response("503 Service Unavailable", &[], ""));
        assert!(matches!(read.error(), ErrorKind::Status(error) if error.status == 503));
        assert_eq!(read.outcome().timeline.attempts.len(), 1);
    }
}

#[test]
fn a_connection_that_was_dead_costs_nothing_of_a_body_that_is_read_once() {
    let mut play = play(once("").length(1), Overrides::new());
    play.reused().reset();
    play.request().bytes("a").sent_all().supply(Supply::End).receive(OK);
    assert!(play.outcome().result.is_ok());
    assert_eq!(play.outcome().timeline.attempts.len(), 1);
    assert!(play.outcome().timeline.notes.contains(&Note::StaleConnection));
}

#[test]
fn a_source_that_fails_or_lies_about_its_length_is_the_callers() {
    for (supplies, words) in [
        (vec![Supply::Bytes(b"ab"), Supply::Failed("disk gone".to_owned())], "disk gone"),
        (vec![Supply::Bytes(b"ab"), Supply::End], "ended after 2 of the 3 bytes"),
        (vec![Supply::Bytes(b"ab"), Supply::Bytes(b"cd")], "more than the 3 bytes"),
    ] {
        let mut play = play(again("").length(3), Overrides::new());
        play.request();
        for supply in supplies {
            play.supply(supply).sent_all_if_open();
        }
        assert!(matches!(play.error(), ErrorKind::Consumer(message) if message.contains(words)));
        let error = play.outcome().result.as_ref().unwrap_err();
        assert_eq!((error.billing, play.record.opened().len()), (Billing::MaybeBilled, 1));
        assert!(format!("{:?}", play.record.commands).contains("Abort"), "the message was not ended");
    }
}

impl Play {
    fn sent_all_if_open(&mut self) -> &mut Self {
        if self.record.done.is_none() { self.sent_all() } else { self }
    }
}

#[test]
fn an_early_refusal_is_read_and_the_rest_of_the_body_is_not() {
    let mut play = play(again(""), Overrides::new().max_attempts(1));
    play.request().bytes(vec![b'x'; 50_000]).sent(10);
    play.receive("HTTP/1.1 413 Content Too Large\r\ncontent-length: 9\r\n\r\ntoo ");
    assert_eq!(play.wants(), 0);
    assert!(play.outgoing() > 0, "what was read already may go out");
    play.receive("large").reset_if_open();
    assert!(matches!(play.error(), ErrorKind::Status(error) if error.body == "too large"));
    assert!(play.outcome().timeline.notes.contains(&Note::ResponseBeforeRequestEnd));
    assert!(format!("{:?}", play.record.commands).contains("Abort"));
}

impl Play {
    fn reset_if_open(&mut self) -> &mut Self {
        if self.record.done.is_none() { self.reset() } else { self }
    }
}

#[test]
fn an_early_answer_takes_the_rest_of_the_body() {
    let mut play = play(again(""), Overrides::new());
    play.request().bytes("ab").receive("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\no");
    assert_eq!(play.wants(), WINDOW_BYTES - "2\r\nab\r\n".len());
    play.supply(Supply::End).sent_all().receive("k");
    assert_eq!(play.completion().body, "ok");
    assert!(format!("{:?}", play.record.commands).contains("Keep"));
}

#[test]
fn a_failed_write_ends_the_reading_and_the_answer_is_awaited() {
    let mut play = play(again(""), Overrides::new().max_attempts(1));
    play.request().bytes("ab").fail(Stage::Write, FailureKind::Reset, "broken pipe");
    assert_eq!((play.wants(), play.reads()), (0, true));
    play.receive(response("413 Content Too Large", &[], "no"));
    assert!(matches!(play.error(), ErrorKind::Status(error) if error.status == 413));
}

#[test]
fn a_source_that_waits_is_within_the_attempts_bound() {
    let mut play = play(again(""), Overrides::new().request_timeout(3.0).max_attempts(1));
    play.request().bytes("ab").sent_all();
    play.expire();
    assert!(matches!(play.error(), ErrorKind::Timeout(_)));
    assert_eq!(play.ended_at(), ms(3_000));
}

#[test]
fn more_than_was_asked_for_is_misuse() {
    let mut play = play(again(""), Overrides::new());
    play.connected();
    let link = play.link();
    let more = Misuse::OutOfOrder(
        "more of the body came than was asked for: supply no more than Interest::supply says",
    );
    assert_eq!(play.try_feed(Event::Supplied(link, Supply::Bytes(b"a"))), Err(more));
    play.sent_all();
    let bytes = vec![0; WINDOW_BYTES + 1];
    assert_eq!(play.try_feed(Event::Supplied(link, Supply::Bytes(&bytes))), Err(more));
    play.supply(Supply::End);
    assert_eq!(play.try_feed(Event::Supplied(link, Supply::End)), Err(more));
    let mut whole = Play::unary(Overrides::new()).start();
    whole.request();
    assert_eq!(whole.try_feed(Event::Supplied(whole.link(), Supply::End)), Err(more));
}

#[test]
fn a_form_has_the_boundary_of_its_call() {
    let form = Form::new().part(Part::new("file", again("abc").length(3)).file_name("a.txt"));
    let request = Request::post(wire::URL).form(form).build().unwrap();
    let mut play = Play::new(request, Overrides::new()).start();
    play.connected();
    let head = play.take_all();
    let boundary = head.split("boundary=").nth(1).and_then(|rest| rest.split("\r\n").next()).unwrap();
    assert_ne!(boundary, "steadfast-0000000000000000");
    let (mut feed, mut buffer) = (crate::body::Feed::default(), [0; 4_096]);
    let (mut sent, mut ended) = (String::new(), false);
    while !ended {
        let waker = crate::body::waker(|| {});
        let request = play.call.request().clone();
        let supply = feed.supply(&request, play.link(), &waker, &mut buffer).unwrap();
        ended = supply == Supply::End;
        play.supply(supply);
        sent.push_str(&play.take_all());
    }
    assert!(sent.starts_with(&format!("--{boundary}\r\n")), "{sent}");
    assert!(sent.ends_with(&format!("\r\n\r\nabc\r\n--{boundary}--\r\n")), "{sent}");
    assert!(head.contains(&format!("content-length: {}\r\n", sent.len())), "{head}");
}

#[test]
fn a_trace_has_no_byte_of_it() {
    let mut play = play(again("").length(6), Overrides::new());
    play.request().bytes("s3cret").sent_all().supply(Supply::End).receive(OK);
    let trace = play.trace();
    assert!(
        !trace.contains("s3cret") && trace.contains(r#""event":"supplied","link":1,"bytes":6"#),
        "{trace}"
    );
    assert!(trace.contains(r#""streamed":{"of_known_length":true,"once":false}"#), "{trace}");
}
