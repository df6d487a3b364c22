//! Answers that are no success: read as a unary body, within bounds, and the status wins (STR-6).

use super::play::{Play, ms};
use super::wire::{STREAM_HEAD, request, response};
use crate::call::Timer;
use crate::config::Overrides;
use crate::content::Decoder;
use crate::dialect::Dialect;
use crate::machine::Ended;
use crate::outcome::{ErrorKind, Note, ProtocolError, StatusError};

const CHAT: Dialect = Dialect::OpenAiChat;

fn refused(overrides: Overrides, head: &str) -> Play {
    let mut play = Play::stream(CHAT, overrides.max_attempts(1)).start();
    play.at(100).request().at(1_000).receive(format!("HTTP/1.1 {head}\r\n\r\n"));
    play
}

#[track_caller]
fn status(play: &Play) -> &StatusError {
    match play.error() {
        ErrorKind::Status(error) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_body_that_stalls_or_trickles_ends_after_five_seconds() {
    let mut play = refused(Overrides::new(), "400 Bad Request\r\ncontent-length: 100");
    assert_eq!(play.deadline(), Some((ms(6_000), Timer::ErrorBody)));
    for tick in 1..100 {
        if play.record.done.is_none() {
            play.at(1_000 + tick * 100).receive("x");
        }
        if tick == 49 {
            play.expire();
        }
    }
    assert_eq!((status(&play).body.len(), status(&play).whole, play.ended_at()), (49, false, ms(6_000)));
    assert_eq!(play.outcome().timeline.notes, [Note::ErrorBodyCut]);
}

#[test]
fn the_attempts_own_bounds_end_it_sooner_and_the_status_still_wins() {
    for (overrides, timer) in [
        (Overrides::new().request_timeout(3.0), Timer::Request),
        (Overrides::new().total_deadline(3.0), Timer::Deadline),
        (Overrides::new().stream_deadline(3.0), Timer::StreamDeadline),
    ] {
        let mut play = refused(overrides, "400 Bad Request\r\ncontent-length: 100");
        assert_eq!(play.deadline(), Some((ms(3_000), timer)));
        play.receive("part").expire();
        assert_eq!((&status(&play).body[..], play.ended_at()), (&b"part"[..], ms(3_000)));
    }
}

#[test]
fn whatever_ends_the_body_the_status_wins() {
    type End = fn(&mut Play) -> &mut Play;
    let ends: [(&str, &str, End, bool); 6] = [
        ("whole", "content-length: 4", |play| play, true),
        ("reset", "content-length: 9", Play::reset, false),
        ("early FIN", "content-length: 9", Play::fin, false),
        ("FIN that delimits it", "x: y", Play::fin, true),
        ("FIN without close_notify", "x: y", |play| play.eof(Ended::WithoutCloseNotify), true),
        ("bad chunk", "transfer-encoding: chunked", |play| play, false),
    ];
    for (case, field, end, whole) in ends {
        let mut play = refused(Overrides::new(), &format!("418 Teapot\r\n{field}"));
        let chunked = field.ends_with("chunked");
        play.at(2_000).receive(if chunked { "4\r\npart\r\nzz\r\n" } else { "part" });
        if play.record.done.is_none() {
            end(&mut play);
        }
        assert_eq!((&status(&play).body[..], status(&play).whole), (&b"part"[..], whole), "{case}");
        assert_eq!(play.ended_at(), ms(2_000), "{case}");
    }
}

#[test]
fn the_body_is_capped() {
    for (length, whole) in [(10, true), (11, false)] {
        let overrides = Overrides::new().max_body_bytes(10);
        let mut play = refused(overrides, &format!("400 No\r\ncontent-length: {length}"));
        play.receive("x".repeat(length));
        assert_eq!((status(&play).body.len(), status(&play).whole), (10, whole));
    }
}

#[test]
fn statuses_without_a_body() {
    for head in ["204 No Content", "304 Not Modified", "302 Found\r\nlocation: /\r\ncontent-length: 0"] {
        let play = refused(Overrides::new(), head);
        assert_eq!((status(&play).status.as_str(), status(&play).body.len()), (&head[..3], 0));
    }
    // Where nothing is said of what the body means, 204 is a success like any other.
    let mut play = Play::unary(Overrides::new()).start();
    play.at(100).request().receive("HTTP/1.1 204 No Content\r\n\r\n");
    assert_eq!(play.completion().status, 204);
}

#[test]
fn a_type_that_cannot_hold_an_answer() {
    let page = response("200 OK", &["content-type: text/html; charset=utf-8"], "<h1>Sign in</h1>");
    let mut unary = Play::new(request(CHAT).build().unwrap(), Overrides::new()).start();
    unary.at(100).request().receive(&page);
    let mut stream = Play::stream(CHAT, Overrides::new()).start();
    stream.at(100).request().receive(&page);
    for play in [unary, stream] {
        let expected = ProtocolError::ContentType {
            content_type: "text/html; charset=utf-8".to_owned(),
            snippet: "<h1>Sign in</h1>".to_owned(),
        };
        assert_eq!(play.error(), &ErrorKind::Protocol(expected));
        assert_eq!(play.attempts_at().len(), 1);
    }
}

#[test]
fn an_encoding_that_was_not_asked_for() {
    for (encoding, refused) in [("br", true), ("identity", false), ("Identity", false)] {
        let mut play = Play::stream(CHAT, Overrides::new()).start();
        let head = STREAM_HEAD.replacen("\r\n", &format!("\r\ncontent-encoding: {encoding}\r\n"), 1);
        play.at(100).request().receive(head);
        assert_eq!(play.record.done.is_some(), refused);
        if let Err(unsupported) = Decoder::new(encoding) {
            let expected = ErrorKind::Protocol(ProtocolError::ContentEncoding(unsupported));
            assert_eq!(play.error(), &expected);
        }
    }
}

#[test]
fn http_that_is_broken_is_not_retried() {
    for bytes in ["SSH-2.0-OpenSSH\r\n", "HTTP/1.1 101 Switching Protocols\r\n\r\n"] {
        let mut play = Play::stream(CHAT, Overrides::new()).start();
        play.at(100).request().receive(bytes);
        assert!(matches!(play.error(), ErrorKind::Protocol(ProtocolError::Http1(_))));
        assert_eq!((play.attempts_at().len(), play.ended_at()), (1, ms(100)));
    }
}
