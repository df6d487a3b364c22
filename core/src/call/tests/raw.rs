//! A body that is handed out as it comes.

use http::StatusCode;

use super::play::{Play, ms};
use super::wire::{LAST_CHUNK, URL, response};
use crate::call::{Request, RequestBuilder, Timer};
use crate::config::Overrides;
use crate::dialect::Dialect;
use crate::machine::Ended;
use crate::outcome::{Billing, ErrorKind, Phase, Truncation};

const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: audio/mpeg\r\nTransfer-Encoding: chunked\r\n\r\n";

fn request() -> RequestBuilder {
    Request::post(URL).body("{}").raw()
}

fn raw(overrides: Overrides) -> Play {
    Play::new(request().build().unwrap(), overrides)
}

/// Bytes that are no text, no event, and no JSON
fn binary(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 % 256) as u8).collect()
}

fn chunk(bytes: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

fn billing(play: &Play) -> Billing {
    play.outcome().result.as_ref().unwrap_err().billing
}

#[test]
fn every_byte_comes_once_and_unchanged_however_it_is_read() {
    let body = binary(3000);
    let message =
        [HEAD.as_bytes(), &chunk(&body[..1000]), &chunk(&body[1000..]), LAST_CHUNK.as_bytes()].concat();
    for size in [1, 7, 1024, message.len()] {
        let mut play = raw(Overrides::new()).start();
        play.at(100).request();
        for part in message.chunks(size) {
            play.receive(part);
        }
        assert!(play.record.bytes() == body, "read by {size}");
        let completion = play.completion();
        assert_eq!((completion.status, completion.body.len()), (StatusCode::OK, 0));
        assert_eq!(completion.headers["content-type"], "audio/mpeg");
        assert_eq!(completion.turn.choices.len(), 0);
    }
}

#[test]
fn the_head_is_there_with_the_first_bytes() {
    let mut play = raw(Overrides::new()).slow().start();
    play.at(100).request().receive(HEAD);
    assert_eq!(play.call.response().map(|(status, _)| status), Some(StatusCode::OK));
    play.receive(chunk(b"abc"));
    assert_eq!(play.call.response().unwrap().1["content-type"], "audio/mpeg");
}

#[test]
fn no_cap_is_on_what_is_not_held() {
    let mut play = raw(Overrides::new().max_body_bytes(1000).max_event_bytes(1000)).start();
    play.at(100).request().receive(HEAD);
    for _ in 0..100 {
        play.receive(chunk(&binary(500)));
    }
    play.receive(LAST_CHUNK);
    assert_eq!((play.record.bytes().len(), play.completion().status), (50_000, StatusCode::OK));
}

#[test]
fn an_empty_body_is_an_answer() {
    let mut play = raw(Overrides::new()).start();
    play.at(100).request().receive("HTTP/1.1 204 No Content\r\n\r\n");
    assert_eq!(play.completion().status, StatusCode::NO_CONTENT);
    assert_eq!(play.record.items.len(), 0);
}

#[test]
fn silence_is_bounded_and_the_consumers_own_time_is_not_silence() {
    let mut play = raw(Overrides::new().stream_idle_timeout(1.0)).slow().start();
    play.at(100).request().receive(HEAD);
    assert_eq!(play.deadline(), Some((ms(1100), Timer::StreamIdle)));
    play.at(500).receive(chunk(b"abc"));
    assert_eq!((play.deadline(), play.reads()), (None, false));
    play.at(60_000).taken();
    assert_eq!((play.deadline(), play.reads()), (Some((ms(61_000), Timer::StreamIdle)), true));
    play.end();
    assert_eq!(play.breach(), (Phase::StreamIdle, ms(1000), ms(1000)));
    assert_eq!(billing(&play), Billing::Delivered);
}

#[test]
fn the_deadline_of_a_stream_holds_for_it() {
    let mut play = raw(Overrides::new().stream_deadline(3.0)).start();
    play.at(100).request().receive(HEAD);
    for at in [1000, 2000, 2900] {
        play.at(at).receive(chunk(b"abc"));
    }
    assert_eq!(play.deadline(), Some((ms(3000), Timer::StreamDeadline)));
    play.end();
    assert_eq!(play.breach(), (Phase::Deadline, ms(3000), ms(3000)));
}

#[test]
fn what_breaks_before_the_first_byte_is_tried_again_and_never_after() {
    let mut play = raw(Overrides::new()).start();
    play.at(100).request().receive(HEAD).fin();
    let again = play.expire().attempts_at()[1].as_millis() as u64;
    play.at(again + 1).request().receive(HEAD).receive(chunk(b"abc")).fin();
    assert_eq!(play.attempts_at().len(), 2);
    assert!(
        matches!(play.error(), ErrorKind::Truncated(Truncation::InResponse { .. })),
        "{:?}",
        play.error()
    );
    assert_eq!((play.record.bytes(), billing(&play)), (b"abc".to_vec(), Billing::Delivered));
}

/// Without a length only the end of the connection tells that it is whole, and that only where it is said
#[test]
fn a_body_without_a_length_is_whole_where_the_connection_ends_properly() {
    const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: audio/mpeg\r\n\r\n";
    let mut play = raw(Overrides::new()).start();
    play.at(100).request().receive(HEAD).receive("abc").eof(Ended::Clean);
    assert_eq!((play.record.bytes(), play.completion().status), (b"abc".to_vec(), StatusCode::OK));

    let mut play = raw(Overrides::new()).start();
    play.at(100).request().receive(HEAD).receive("abc").eof(Ended::WithoutCloseNotify);
    assert!(
        matches!(play.error(), ErrorKind::Truncated(Truncation::InResponse { .. })),
        "{:?}",
        play.error()
    );
    assert_eq!((play.record.bytes(), billing(&play)), (b"abc".to_vec(), Billing::Delivered));
}

#[test]
fn an_answer_that_is_no_success_is_read_as_for_any_call() {
    let mut play = raw(Overrides::new()).start();
    play.at(100).request().receive(response("404 Not Found", &[], r#"{"error":{"message":"no such file"}}"#));
    let ErrorKind::Status(error) = play.error() else { panic!("{:?}", play.error()) };
    assert_eq!(error.provider.as_ref().unwrap().message, "no such file");
    assert_eq!(play.record.items.len(), 0);

    let mut play = raw(Overrides::new()).start();
    play.at(100).request().receive(response("503 Busy", &["retry-after: 0"], "busy"));
    let again = play.expire().attempts_at()[1].as_millis() as u64;
    play.at(again + 1).request().receive(response("200 OK", &[], "abc"));
    assert_eq!((play.record.bytes(), play.completion().status), (b"abc".to_vec(), StatusCode::OK));
}

#[test]
fn a_dialect_that_a_verb_brings_is_left_aside() {
    let request = request().dialect(Dialect::OpenAiChat).build().unwrap();
    assert_eq!(request.dialect(), None);
    let mut play = Play::new(request, Overrides::new()).start();
    let error = "data: {\"error\":{\"message\":\"x\"}}\n\n";
    play.at(100).request().receive(response("200 OK", &["content-type: text/html"], error));
    assert_eq!(play.record.bytes(), error.as_bytes());
    assert_eq!(play.outcome().word(), "completed");
}

#[cfg(feature = "content-decoding")]
#[test]
fn a_content_coding_is_undone_as_it_comes() {
    use std::io::Write;
    let body = binary(100_000);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&body).unwrap();
    let packed = gzip.finish().unwrap();
    let head =
        format!("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n", packed.len());
    let message = [head.as_bytes(), &packed].concat();
    for size in [11, 4096, message.len()] {
        let mut play = raw(Overrides::new()).start();
        play.at(100).request();
        for part in message.chunks(size) {
            play.receive(part);
        }
        assert!(play.record.bytes() == body, "read by {size}");
        assert_eq!(play.outcome().word(), "completed");
    }
    let mut play = raw(Overrides::new()).start();
    play.at(100).request().receive(&message[..message.len() - 100]).fin();
    assert!(matches!(play.error(), ErrorKind::Truncated(_)), "{:?}", play.error());
}
