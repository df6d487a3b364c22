//! B: HTTP/1.1 framing.

use http::Method;
use steadfast::call::CloseMode;
use steadfast::dialect::Dialect;
use steadfast::http1::{Http1Error, Limits, MAX_FIELDS, Part, ResponseDecoder, TailState};
use steadfast::outcome::{Billing, ErrorKind, Note, ProtocolError, Truncation};
use steadfast::pool::{Checkout, Decision, Lease, Pool, Settings, Want};
use steadfast::time::Instant;
use steadfast_scenario::Cancel;
use steadfast_tests::corpus::events::{D, c, f};
use steadfast_tests::corpus::{Answer, Case, End, HEAD, Ran};

/// A stream of Chat, answered by exactly these bytes
fn raw(bytes: impl AsRef<[u8]>, end: End) -> Case {
    Case::stream(Dialect::OpenAiChat).answer(Answer::raw(bytes).end(end))
}

/// A unary call of Chat, answered by exactly these bytes
fn raw_unary(bytes: impl AsRef<[u8]>, end: End) -> Case {
    Case::unary(Dialect::OpenAiChat).answer(Answer::raw(bytes).end(end))
}

/// A head that says nothing of the length, and a stream that ends with the connection
fn until_eof(version: &str, fields: &str, body: &str) -> Case {
    raw(format!("HTTP/{version} 200 OK\r\nContent-Type: text/event-stream\r\n{fields}\r\n{body}"), End::Cut)
}

fn chunk(data: &str) -> String {
    format!("{:x}\r\n{data}\r\n", data.len())
}

fn http1(error: Http1Error) -> ErrorKind {
    ErrorKind::Protocol(ProtocolError::Http1(error))
}

fn in_response(reason: &str) -> ErrorKind {
    ErrorKind::Truncated(Truncation::InResponse { reason: reason.to_owned() })
}

/// One attempt that ended at the sentinel, with nothing else to say of it
fn assert_stopped<'a>(ran: &'a Ran, text: &str) -> &'a Ran {
    ran.assert_completed(Some("stop"), text).assert_usage(None).assert_notes(&[]).assert_requests(1)
}

/// One attempt that HTTP/1.1 was broken in, which is not tried again
fn assert_broken(case: Case, error: Http1Error, text: &str) -> Ran {
    let ran = case.config(|config| config.max_attempts(3)).play();
    assert_eq!(ran.kind(), &http1(error));
    ran.assert_failed("protocol", text).assert_usage(None).assert_notes(&[]).assert_requests(1);
    assert_eq!((ran.turn().finish_reason(), ran.closed()), (None, Some(CloseMode::Abort)));
    ran
}

#[test]
fn b01_chunk_extensions_and_a_trailer_section() {
    assert_eq!(f("stop").len(), 0x43);
    let first = format!("{HEAD}43;x=\"a;b\"\r\n{}\r\n", f("stop"));
    let last = format!("e ;y\r\n{D}\r\n");
    let end = "0;last=1\r\nX-Checksum: example\r\nX-Req: 1\r\n\r\n";
    let ran = raw(first.clone() + &last + end, End::Open).play();
    assert_eq!(assert_stopped(&ran, "").events(), 2);
    // Without the sentinel the trailers are read too, and the message ends well.
    let ran = raw(first + end, End::Open).play();
    ran.assert_completed(Some("stop"), "")
        .assert_notes(&[Note::MissingSentinel])
        .assert_times(Some(0.0), 0.0);
    assert_eq!(ran.closed(), Some(CloseMode::Keep));
    let headers = &ran.completion().headers;
    assert!(!headers.contains_key("x-checksum") && !headers.contains_key("x-req"), "{headers:?}");
}

#[test]
fn b03_chunks_cut_at_awkward_places() {
    let (finish, head) = (f("stop"), HEAD.to_owned());
    let reads = |sentinel: &str| {
        [
            head.clone() + "4",
            "3\r".to_owned(),
            format!("\n{finish}\r"),
            format!("\n{sentinel}0\r"),
            "\n\r".to_owned(),
            "\n".to_owned(),
        ]
    };
    let play = |reads: &[String]| {
        let case = Case::stream(Dialect::OpenAiChat);
        case.answer(Answer::default().reads(reads).end(End::Open)).play()
    };
    let ran = play(&reads(&format!("e\r\n{D}\r\n")));
    assert_stopped(&ran, "").assert_times(Some(0.002), 0.003);
    // Without the sentinel it is the last LF that ends it.
    let ran = play(&reads(""));
    ran.assert_completed(Some("stop"), "").assert_notes(&[Note::MissingSentinel]);
    ran.assert_times(Some(0.002), 0.005);
    assert_eq!(ran.closed(), Some(CloseMode::Keep));

    // Nothing more at any place is no end and no error.
    let whole = reads(&format!("e\r\n{D}\r\n")).concat();
    for cut in 0..whole.len() {
        let mut decoder = ResponseDecoder::new(&Method::POST, Limits::default());
        let mut rest = &whole.as_bytes()[..cut];
        while let (consumed, Some(part)) = decoder.next(rest).unwrap() {
            assert!(!matches!(part, Part::End(_)), "at {cut}");
            rest = &rest[consumed..];
        }
        assert_eq!(decoder.next(b""), Ok((0, None)), "at {cut}");
    }
}

#[test]
fn b05_a_proxy_writes_an_error_into_a_chunked_body() {
    let proxy = "HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\n\r\n<html>502</html>";
    let begun = format!("{HEAD}4f\r\n{}\r\n", c("Hi"));
    let ran = assert_broken(raw(begun.clone() + proxy, End::Cut), Http1Error::BadChunkSize, "Hi");
    ran.assert_billing(Billing::Delivered).assert_times(None, 0.0);
    assert_eq!(ran.played.outcome.timeline.attempts[0].status, Some(200));
    // Behind the completion marker it is noise.
    let ran = raw(begun + &chunk(&f("stop")) + proxy, End::Cut).play();
    ran.assert_completed(Some("stop"), "Hi").assert_requests(1);
    ran.assert_notes(&[Note::NoiseAfterEnd, Note::MissingSentinel]);
}

#[test]
fn b07_no_zero_chunk_and_no_terminal_event() {
    let half = format!("{HEAD}54\r\n{}\r\n", c("Half an"));
    let case = raw(half, End::Cut).config(|config| config.max_attempts(3));
    let ran = case.play();
    assert_eq!(ran.kind(), &in_response("the connection ended inside the chunked body, 84 bytes into it"));
    ran.assert_failed("truncated", "Half an").assert_billing(Billing::Delivered).assert_usage(None);
    ran.assert_notes(&[]).assert_times(None, 0.0).assert_requests(1);
    assert_eq!((ran.turn().finish_reason(), ran.closed()), (None, Some(CloseMode::Abort)));
}

/// The call is done at the sentinel (`after_sentinel` is the pool's), so the unclean end behind it is
/// not even seen; where the marker has to do, it is noted (rule STR-4)
#[test]
fn b08_no_zero_chunk_but_a_terminal_event() {
    let said = HEAD.to_owned() + &chunk(&c("Hi")) + &chunk(&f("stop"));
    let ran = raw(said.clone() + &chunk(D), End::Cut).play();
    assert_stopped(&ran, "Hi").assert_times(Some(0.0), 0.0);
    // It never ends its message, so nothing else is sent on it.
    assert!(matches!(ran.closed(), Some(CloseMode::Finish(_))));
    for end in [End::Cut, End::Reset] {
        let ran = raw(said.clone(), end).play();
        ran.assert_completed(Some("stop"), "Hi").assert_usage(None).assert_requests(1);
        ran.assert_notes(&[Note::UncleanEnd, Note::MissingSentinel]).assert_times(Some(0.0), 0.0);
        assert_eq!(ran.closed(), Some(CloseMode::Abort));
    }
}

#[test]
fn b09_content_length_and_real_length_differ() {
    let short = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 65\r\n\r\n{\"choices\":[{\"message\":{\"content\":\"Hi\"},\"finish_reason\":\"st";
    for case in [raw(short, End::Cut), raw_unary(short, End::Cut)] {
        let ran = case.play();
        assert_eq!(ran.kind(), &in_response("the connection ended inside the body: 59 of 65 bytes came"));
        ran.assert_failed("truncated", "").assert_billing(Billing::MaybeBilled).assert_requests(1);
        assert!(ran.turn().choices.is_empty() && ran.usage().is_none());
        // Nothing was delivered, so another attempt may be made (rule RTY-1).
        let ran = case.config(|config| config.max_attempts(2)).play();
        ran.assert_failed("truncated", "").assert_requests(2);
    }
    let long = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 14\r\n\r\ndata: [DONE]\n\nEXTRA BYTES";
    let ran = raw(long, End::Open).play();
    ran.assert_failed("empty", "").assert_billing(Billing::MaybeBilled).assert_times(None, 0.0);
    assert_eq!((ran.events(), ran.closed()), (1, Some(CloseMode::Abort)));
    // Surplus behind a whole answer changes nothing about it, and spoils the connection.
    let body = r#"{"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}]}"#;
    let whole = Answer::whole("200 OK", "Content-Type: application/json\r\n", body);
    let case = Case::unary(Dialect::OpenAiChat);
    let ran = case.clone().answer(whole.clone().end(End::Open)).play();
    assert_eq!(assert_stopped(&ran, "Hi").closed(), Some(CloseMode::Keep));
    let ran = case.answer(whole.bytes("EXTRA BYTES").end(End::Open)).play_whole();
    assert_eq!(assert_stopped(&ran, "Hi").completion().body, body);
    assert_eq!(ran.closed(), Some(CloseMode::Abort));
}

#[test]
fn b10_early_hints_before_the_answer() {
    let early =
        "HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\nContent-Length: 999\r\n\r\n".to_owned();
    let answer = HEAD.to_owned() + &chunk(&f("stop")) + &chunk(D) + "0\r\n\r\n";
    let ran = raw(early.clone() + &answer, End::Open).play();
    assert_stopped(&ran, "").assert_times(Some(0.0), 0.0);
    let completion = ran.completion();
    assert_eq!(completion.status, 200);
    let names: Vec<_> = completion.headers.keys().map(|name| name.as_str()).collect();
    assert_eq!(names, ["content-type", "transfer-encoding"]);
    // Nor do they stop the clock of the head (rule STR-1).
    let hints = Answer::raw(&early).at(3.0).bytes(&early).at(6.0).bytes(&early).at(9.0).bytes(answer);
    let ran = Case::stream(Dialect::OpenAiChat)
        .config(|config| config.request_timeout(8.0))
        .answer(hints.end(End::Open))
        .play();
    ran.assert_failed("timeout", "").assert_times(None, 8.0).assert_billing(Billing::MaybeBilled);
}

#[test]
fn b12_a_body_that_ends_with_the_connection() {
    let half = c("Half an answ");
    let case = until_eof("1.1", "Connection: close\r\n", &half).config(|config| config.max_attempts(3));
    let ran = case.play();
    assert_eq!(ran.kind(), &ErrorKind::Truncated(Truncation::NoTerminalState));
    ran.assert_failed("truncated", "Half an answ").assert_billing(Billing::Delivered).assert_usage(None);
    ran.assert_notes(&[]).assert_requests(1);
    assert_eq!(ran.turn().finish_reason(), None);
    let ran = until_eof("1.1", "Connection: close\r\n", &(half + &f("stop") + D)).play();
    assert_stopped(&ran, "Half an answ");
}

#[test]
fn b13_answers_of_http_1_0() {
    let head = "HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
    let answer = Answer::default().reads([head.to_owned() + &c("Hi"), f("stop") + D]);
    let ran = Case::stream(Dialect::OpenAiChat).answer(answer.end(End::Cut)).play();
    assert_stopped(&ran, "Hi").assert_times(Some(0.001), 0.001);
    assert_eq!(ran.closed(), Some(CloseMode::Abort));
    // Without the sentinel the FIN is the end.
    let ran = until_eof("1.0", "", &(c("Hi") + &f("stop"))).play();
    ran.assert_completed(Some("stop"), "Hi").assert_notes(&[Note::MissingSentinel]);
    assert_eq!(ran.closed(), Some(CloseMode::Abort));

    // Chunks in HTTP/1.0 are decoded, and the connection is not used again (RFC 9112 6.1).
    let hello = "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    let ran = raw_unary(hello, End::Open).play();
    let error = ProtocolError::Malformed {
        reason: "not JSON, at line 1 column 1".to_owned(),
        snippet: "hello".to_owned(),
    };
    assert_eq!(ran.kind(), &ErrorKind::Protocol(error));
    ran.assert_times(None, 0.0);
    assert_eq!(ran.closed(), Some(CloseMode::Abort));
    let json = chunk(r#"{"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}]}"#) + "0\r\n\r\n";
    for (version, connection, mode) in [
        ("1.0", "", CloseMode::Abort),
        ("1.0", "Connection: keep-alive\r\n", CloseMode::Abort),
        ("1.1", "", CloseMode::Keep),
        ("1.1", "Connection: close\r\n", CloseMode::Abort),
    ] {
        let head = format!("HTTP/{version} 200 OK\r\n{connection}Transfer-Encoding: chunked\r\n\r\n");
        let ran = raw_unary(head + &json, End::Open).play();
        assert_eq!(assert_stopped(&ran, "Hi").closed(), Some(mode), "{version} {connection}");
    }
}

/// Rule STR-10 decides: refused, for the response may have been tampered with
#[test]
fn b14_content_length_and_chunked_together() {
    let body = chunk(&f("stop")) + &chunk(D) + "0\r\n\r\n";
    for fields in [
        "Content-Length: 10\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 10\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 98\r\n",
    ] {
        let bytes = format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n{fields}\r\n{body}");
        for case in [raw(&bytes, End::Open), raw_unary(&bytes, End::Open)] {
            let ran = assert_broken(case, Http1Error::LengthAndTransferEncoding, "");
            ran.assert_billing(Billing::MaybeBilled).assert_times(None, 0.0);
            assert_eq!(ran.events(), 0);
        }
    }
}

#[test]
fn b16_more_header_fields_than_a_fixed_array() {
    let head = |fields: usize| {
        let many: String = (0..fields).map(|n| format!("X-H-{n}: v\r\n")).collect();
        format!(
            "HTTP/1.1 200 OK\r\n{many}Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
    };
    let ran = raw(head(300) + &chunk(D) + "0\r\n\r\n", End::Open).play();
    ran.assert_failed("empty", "").assert_requests(1);
    assert_eq!(ran.played.outcome.timeline.attempts[0].status, Some(200));
    let ran = raw(head(300) + &chunk(&(c("Hi") + &f("stop") + D)), End::Open).play();
    assert_eq!(assert_stopped(&ran, "Hi").completion().headers.len(), 302);
    assert_eq!(ran.completion().headers["x-h-299"], "v");
    // The cap, and one more: an error of its own, which is not that of a bad line.
    let ran = raw(head(MAX_FIELDS - 2) + &chunk(&(f("stop") + D)), End::Open).play();
    assert_stopped(&ran, "");
    assert_broken(raw(head(MAX_FIELDS - 1), End::Open), Http1Error::TooManyFields, "");
    let case = raw(head(300), End::Open).config(|config| config.max_head_bytes(1024));
    assert_broken(case, Http1Error::HeadTooLarge { limit: 1024 }, "");
}

/// What the pool does with the sockets is shown where they are: `adapters/tokio/tests/sockets/reuse.rs`
#[test]
fn b18_the_unread_rest_of_a_body() {
    let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
    let said = HEAD.to_owned() + &chunk(&f("stop")) + &chunk(D);
    let late = chunk(": late\n\n") + "0\r\n\r\n";
    let answer = Answer::raw(said).at(0.2).bytes(&late).end(End::Open);
    let ran = Case::stream(Dialect::OpenAiChat).answer(answer).play();
    assert_stopped(&ran, "").assert_times(Some(0.0), 0.0);
    assert_eq!(ran.events(), 2);
    let Some(CloseMode::Finish(tail)) = ran.closed() else { panic!("{:?}", ran.closed()) };
    assert_eq!(tail.until(), Some(at(500)));
    // Request 2 at 0.1 s goes out on another connection, for this one has yet to end its message.
    for rest in [&late[..], &late[..late.len() - 1], &(late.clone() + "H")] {
        let mut pool = Pool::new(Settings::default());
        let Checkout::Now(Lease::Open(first)) = pool.checkout(at(0), &(), Want::Any) else { panic!("a cap") };
        assert!(pool.finish(first, tail.until()));
        let Checkout::Now(Lease::Open(second)) = pool.checkout(at(100), &(), Want::Any) else {
            panic!("reused")
        };
        pool.closed(second);
        // The late bytes are dropped. It is used again if they end the message, and closed if not.
        match tail.clone().receive(rest.as_bytes()) {
            TailState::Ended => {
                assert!(rest == late && pool.ended(at(200), first));
                assert_eq!(pool.checkout(at(300), &(), Want::Any), Checkout::Now(Lease::Reuse(first)));
            }
            TailState::Open => {
                assert!(rest.len() < late.len());
                pool.elapsed(at(500));
                assert_eq!(pool.next_decision(), Some(Decision::Close(first)));
            }
            TailState::Broken => assert!(rest.len() > late.len()),
        }
    }
    // By length too, and where the rest is there already.
    let long = "Content-Length: 112\r\n\r\n".to_owned() + &f("stop") + D + ": late, and never read by us  \n";
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n";
    let ran = raw(head.to_owned() + &long, End::Open).play_whole();
    assert_eq!(assert_stopped(&ran, "").closed(), Some(CloseMode::Keep));
    let ran = raw(head.to_owned() + &long + "HTTP/1.1 200 OK\r\n", End::Open).play_whole();
    assert_eq!(assert_stopped(&ran, "").closed(), Some(CloseMode::Abort));
    // A caller that stops leaves nothing to reuse.
    let answer = Answer::stream().send(c("Hi")).end(End::Open);
    let ran = Case::stream(Dialect::OpenAiChat).cancel(Cancel::AfterDeltas(1)).answer(answer).play();
    assert_eq!(ran.closed(), Some(CloseMode::Abort));
}

/// The table in [`steadfast::http1`] decides
#[test]
fn b19_old_style_heads() {
    let empty = "Content-Length: 0\r\n\r\n";
    let json = r#"{"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}]}"#;
    let whole = format!("Content-Length: {}\r\n\r\n{json}", json.len());
    for (head, field) in [
        ("HTTP/1.1 200\r\n", None),
        ("HTTP/1.1 200 \r\n", None),
        ("HTTP/1.1 200 OK\r\nX-Long: a\r\n b\r\n", Some("a b")),
    ] {
        let ran = raw_unary(head.to_owned() + empty, End::Open).play();
        ran.assert_failed("empty", "").assert_times(None, 0.0);
        let ran = raw_unary(head.to_owned() + &whole, End::Open).play();
        let completion = assert_stopped(&ran, "Hi").completion();
        assert_eq!(completion.status, 200);
        assert_eq!(completion.headers.get("x-long").map(|value| value.to_str().unwrap()), field);
    }
    for line in ["Content-Type : text/event-stream", "no colon here", ": no name", "X\u{e9}: a"] {
        for rest in [empty, &whole] {
            let bytes = format!("HTTP/1.1 200 OK\r\n{line}\r\n{rest}");
            assert_broken(raw_unary(&bytes, End::Open), Http1Error::BadField, "");
            assert_broken(raw(&bytes, End::Open), Http1Error::BadField, "");
        }
    }
    for line in ["HTTP/1.1", "HTTP/1.1 ", "HTTP/1.1 2", "HTTP/3 200 OK", "ICY 200 OK", "<html>"] {
        let case = raw_unary(format!("{line}\r\n{empty}"), End::Open);
        assert_broken(case, Http1Error::BadStatusLine, "");
    }
}
