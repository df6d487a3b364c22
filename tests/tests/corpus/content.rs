//! C: content type, encoding, empty or foreign bodies.

use std::io::Write as _;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use steadfast::call::{Call, CloseMode, Command, Env, Request};
use steadfast::config::RequestConfig;
use steadfast::content::{ContentError, Decoder};
use steadfast::dialect::Dialect;
use steadfast::machine::{Event, Machine, Step};
use steadfast::outcome::{Billing, ErrorKind, Note, ProtocolError, StatusError, Truncation};
use steadfast::time::Instant;
use steadfast_scenario::{Cancel, Connection};
use steadfast_tests::corpus::events::{D, U, c, f};
use steadfast_tests::corpus::{Answer, Case, End, Ran};

const JSON: &str =
    r#"{"object":"chat.completion","choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}]}"#;

/// A stream and a unary call of Chat, both answered so
fn both(answer: &Connection) -> [Case; 2] {
    [Case::stream(Dialect::OpenAiChat), Case::unary(Dialect::OpenAiChat)]
        .map(|case| case.answer(answer.clone()))
}

fn stream(body: impl AsRef<[u8]>) -> Case {
    Case::stream(Dialect::OpenAiChat).body(body, End::Clean)
}

/// One attempt that failed without an answer, with none made up
fn assert_no_answer<'a>(ran: &'a Ran, kind: &str) -> &'a Ran {
    ran.assert_failed(kind, "").assert_billing(Billing::MaybeBilled).assert_requests(1);
    assert!(ran.turn().choices.is_empty(), "{:?}", ran.turn());
    assert_eq!((ran.played.turn_at, ran.error().retry_after), (None, None));
    ran
}

fn status(ran: &Ran) -> &StatusError {
    let ErrorKind::Status(error) = ran.kind() else { panic!("no status: {}", ran.error()) };
    error
}

#[test]
fn c01_a_200_with_a_page_of_html() {
    let page = "<html><head><title>502 Bad Gateway</title></head></html>\n";
    assert_eq!(page.len(), 57);
    let whole = |content_type: &str, body: &str| {
        Answer::whole("200 OK", &format!("Content-Type: {content_type}\r\n"), body).end(End::Open)
    };
    for content_type in ["text/html; charset=utf-8", "TEXT/HTML", "application/xhtml+xml", "image/png"] {
        for case in both(&whole(content_type, page)) {
            // Often the base URL is wrong: another attempt would not mend that.
            let ran = case.config(|config| config.max_attempts(3)).play();
            let error = ProtocolError::ContentType {
                content_type: content_type.to_owned(),
                snippet: page.to_owned(),
            };
            assert_eq!(ran.kind(), &ErrorKind::Protocol(error));
            assert_no_answer(&ran, "protocol").assert_notes(&[]).assert_times(None, 0.0);
        }
    }
    // What is quoted is bounded, and cut between characters.
    for case in both(&whole("text/html", &"é".repeat(300).replacen('é', "a", 1))) {
        let ran = case.play();
        let ErrorKind::Protocol(ProtocolError::ContentType { snippet, .. }) = ran.kind() else {
            panic!("{}", ran.error())
        };
        assert_eq!(*snippet, "a".to_owned() + &"é".repeat(99));
    }
}

#[test]
fn c02_a_stream_answered_with_one_json_body() {
    assert_eq!(JSON.len(), 92);
    let whole = |body: &str| Answer::whole("200 OK", "Content-Type: application/json\r\n", body);
    let case = || Case::stream(Dialect::OpenAiChat).config(|config| config.max_attempts(3));
    let ran = case().answer(whole(JSON).end(End::Open)).play();
    ran.assert_completed(Some("stop"), "Hi").assert_usage(None).assert_requests(1);
    ran.assert_notes(&[Note::UnaryAnswerToStream]).assert_times(Some(0.0), 0.0);
    assert_eq!(ran.played.outcome.timeline.attempts[0].deltas, 1);
    assert_eq!(ran.closed(), Some(CloseMode::Keep));
    // An error in it is one, although the status is 200.
    let ran =
        case().answer(whole(r#"{"error":{"message":"no","type":"invalid_request_error"}}"#).end(End::Open));
    let ran = ran.play();
    assert_no_answer(&ran, "in_band").assert_notes(&[Note::UnaryAnswerToStream]);
    let told = ran.provider_error();
    assert_eq!((told.kind.as_deref(), &*told.message), (Some("invalid_request_error"), "no"));
    // And nothing in it is no answer.
    for (body, kind) in [("", "empty"), (" \n", "empty"), ("{}", "empty"), ("Hi", "protocol")] {
        let ran = case().config(|config| config.max_attempts(1)).answer(whole(body).end(End::Open)).play();
        assert_no_answer(&ran, kind);
    }
}

#[test]
fn c02_a_json_body_with_a_byte_order_mark_or_cut() {
    let marked = format!("\u{FEFF}{JSON}");
    let answer = Answer::whole("200 OK", "Content-Type: application/json\r\n", &marked).end(End::Open);
    for case in both(&answer) {
        case.play().assert_completed(Some("stop"), "Hi").assert_requests(1);
    }
    // A body that ends with the connection: over TLS without `close_notify`, what is not whole was
    // cut, and what is whole stands (rule STR-10).
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n";
    for case in both(&Answer::raw(head).send(&JSON[..80]).end(End::Cut)) {
        let ran = case.tls().play();
        let reason = "no TLS close_notify".to_owned();
        assert_eq!(ran.kind(), &ErrorKind::Truncated(Truncation::InResponse { reason }));
        assert_no_answer(&ran, "truncated");
    }
    let notes = [[Note::UnaryAnswerToStream], [Note::NoCloseNotify]];
    for (case, notes) in both(&Answer::raw(head).send(JSON).end(End::Cut)).into_iter().zip(notes) {
        let ran = case.tls().play();
        ran.assert_completed(Some("stop"), "Hi").assert_requests(1).assert_notes(&notes);
    }
}

#[test]
fn c02_a_json_body_in_place_of_a_stream_on_a_connection_held_open() {
    for content_type in ["application/json", "text/event-stream"] {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\n");
        let until_eof = Answer::raw(format!("{head}\r\n")).send(JSON);
        let chunked = Answer::raw(format!("{head}Transfer-Encoding: chunked\r\n\r\n")).chunked().send(JSON);
        for answer in [until_eof, chunked] {
            let ran = Case::stream(Dialect::OpenAiChat).answer(answer.end(End::Open)).play();
            ran.assert_completed(Some("stop"), "Hi").assert_requests(1).assert_times(Some(0.0), 0.0);
            ran.assert_notes(&[Note::UnaryAnswerToStream]);
        }
    }
}

/// The pieces as one gzip body, each flushed by itself, and with the last one the end
fn gzip_flushed(pieces: &[&str]) -> Vec<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    let mut flushed = Vec::new();
    for (place, piece) in pieces.iter().enumerate() {
        encoder.write_all(piece.as_bytes()).unwrap();
        encoder.flush().unwrap();
        if place + 1 == pieces.len() {
            encoder.try_finish().unwrap();
        }
        flushed.push(std::mem::take(encoder.get_mut()));
    }
    flushed
}

fn encoded(encoding: &str) -> Answer {
    Answer::raw(format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: {encoding}\r\nTransfer-Encoding: chunked\r\n\r\n"
    ))
    .chunked()
}

#[test]
fn c05_a_compressed_event_stream() {
    let flushed = gzip_flushed(&[&c("He"), &c("y"), &f("stop"), D]);
    assert!(flushed[0].starts_with(b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00"));
    let answer = |pieces: &[Vec<u8>], end| {
        let times = [1.0, 2.0, 3.0, 4.0];
        let answer =
            pieces.iter().zip(times).fold(encoded("gzip"), |answer, (piece, at)| answer.at(at).send(piece));
        Case::stream(Dialect::OpenAiChat).answer(answer.end(end)).config(|config| config.max_attempts(3))
    };
    let ran = answer(&flushed, End::Clean).play();
    ran.assert_completed(Some("stop"), "Hey").assert_usage(None).assert_requests(1);
    ran.assert_notes(&[]).assert_times(Some(3.0), 4.0);
    // Each block gives its events as soon as it is flushed.
    for (seconds, text) in [(0.5, ""), (1.5, "He"), (2.5, "Hey")] {
        let cancel = Cancel::At(Duration::from_secs_f64(seconds));
        let ran = answer(&flushed, End::Clean).cancel(cancel).play();
        ran.assert_failed("cancelled", text).assert_times(None, seconds);
    }
    // The end of the body in the middle of the data is a cut, whatever HTTP says of it.
    for (pieces, text) in [(&flushed[..2], "Hey"), (&[flushed[0][..10].to_vec()], "")] {
        let ran = answer(pieces, End::Clean).config(|config| config.max_attempts(1)).play();
        let got: usize = pieces.iter().map(Vec::len).sum();
        let reason = format!("the compressed body ended early, {got} bytes into it");
        assert_eq!(ran.kind(), &ErrorKind::Truncated(Truncation::InResponse { reason }));
        ran.assert_failed("truncated", text).assert_requests(1);
    }
}

#[test]
fn c05_a_content_coding_that_cannot_be_decoded() {
    for encoding in ["br", "zstd", "gzip, br", "gzip, gzip"] {
        // At the head: what is behind it is not waited for.
        for case in both(&encoded(encoding).at(10.0).send("what is it?").end(End::Clean)) {
            let ran = case.config(|config| config.max_attempts(3)).play();
            let unsupported = Decoder::new(encoding).unwrap_err();
            assert_eq!(ran.kind(), &ErrorKind::Protocol(ProtocolError::ContentEncoding(unsupported)));
            assert_no_answer(&ran, "protocol").assert_times(None, 0.0).assert_notes(&[]);
            assert!(ran.error().to_string().contains(encoding));
            assert_eq!(ran.closed(), Some(CloseMode::Abort));
        }
    }
    for encoding in ["identity", "Identity"] {
        let ran = encoded(encoding).send(c("Hi") + &f("stop") + D).end(End::Clean);
        let ran = Case::stream(Dialect::OpenAiChat).answer(ran).play();
        ran.assert_completed(Some("stop"), "Hi").assert_notes(&[]);
    }
    // What claims to be gzip and is not is refused too.
    let ran = Case::stream(Dialect::OpenAiChat)
        .answer(encoded("gzip").send(c("Hi") + &f("stop") + D).end(End::Clean))
        .config(|config| config.max_attempts(3))
        .play();
    assert!(matches!(ran.kind(), ErrorKind::Protocol(ProtocolError::Content(ContentError::Corrupt(_)))));
    assert_no_answer(&ran, "protocol");
}

#[test]
fn c05_a_stream_asks_for_no_compression() {
    let request = Request::post("http://corpus.invalid/v1").dialect(Dialect::OpenAiChat).stream();
    let env = Env { seed: 1, unix_at_origin: Duration::ZERO };
    let mut call = Call::new(request.build().unwrap(), RequestConfig::default(), env, Instant::ORIGIN);
    let mut drain = call.handle(Instant::ORIGIN, Event::Start).unwrap();
    let Step::Do(Command::Connect(id)) = drain.next() else { panic!("a connection is asked for first") };
    drop(drain);
    drop(call.handle(Instant::ORIGIN, Event::Connected(id)).unwrap());
    let head = String::from_utf8(call.outgoing(id).concat()).unwrap();
    assert_eq!(head.matches("accept-encoding").count(), 1);
    assert!(head.contains("\r\naccept-encoding: identity\r\n"), "{head}");
}

#[test]
fn c07_a_200_and_no_byte() {
    let events = "Content-Type: text/event-stream\r\n";
    let empty = [
        Answer::stream().end(End::Clean),
        Answer::whole("200 OK", events, "").end(End::Open),
        Answer::raw(format!("HTTP/1.1 200 OK\r\n{events}Connection: close\r\n\r\n")).end(End::Cut),
        Answer::raw("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n").end(End::Cut),
        Answer::whole("200 OK", "Content-Type: application/json\r\n", "").end(End::Open),
    ];
    for answer in &empty {
        for case in both(answer) {
            let ran = case.clone().play();
            assert_no_answer(&ran, "empty").assert_usage(None).assert_times(None, 0.0);
            // Nothing was delivered, so it is tried again within the budget.
            case.clone().config(|config| config.max_attempts(3)).play().assert_requests(3);
        }
        let case = Case::stream(Dialect::OpenAiChat).config(|config| config.max_attempts(3));
        let whole = Answer::stream().send(c("Hi") + &f("stop") + D).end(End::Open);
        let ran = case.answer(answer.clone()).answer(whole).play();
        ran.assert_completed(Some("stop"), "Hi").assert_requests(2);
    }
}

#[test]
fn c08_only_the_sentinel_and_a_legitimately_empty_answer() {
    let ran = stream(D).play();
    assert_no_answer(&ran, "empty").assert_usage(None).assert_times(None, 0.0);
    let ran = stream(U.to_owned() + D).play();
    assert_no_answer(&ran, "empty").assert_usage(Some([5, 2, 7])).assert_times(None, 0.0);
    stream(D).config(|config| config.max_attempts(3)).play().assert_requests(3);
    let role =
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\"},\"finish_reason\":null}]}\n\n";
    let ran = stream(role.to_owned() + &f("stop") + D).config(|config| config.max_attempts(3)).play();
    ran.assert_completed(Some("stop"), "").assert_usage(None).assert_notes(&[]).assert_requests(1);
    // Without the finish reason nothing says that it is meant.
    let ran = stream(role.to_owned() + D).play();
    ran.assert_failed("empty", "").assert_usage(None).assert_requests(1);
}

#[test]
fn c09_a_gateway_error_with_a_body_that_tells_nothing() {
    let page = "<html><h1>502</h1></html>\r\n\n";
    assert_eq!(page.len(), 28);
    let bad_gateway = Answer::whole("502 Bad Gateway", "Content-Type: text/html\r\n", page).end(End::Open);
    let unknown = Answer::whole("520 ", "", "").end(End::Open);
    for (answer, code, body) in [(&bad_gateway, 502, page), (&unknown, 520, "")] {
        for case in both(answer) {
            let ran = case.clone().play();
            assert_no_answer(&ran, "status").assert_notes(&[]).assert_times(None, 0.0);
            let error = status(&ran);
            assert_eq!((error.status.as_u16(), &error.body[..], error.whole), (code, body.as_bytes(), true));
            assert_eq!(error.provider, None);
            let text = ran.error().to_string();
            assert!(
                text.starts_with(&format!("the server answered {code}")) && !text.contains("JSON"),
                "{text}"
            );
            // It may be tried again; the last one stands.
            let ran = case.config(|config| config.max_attempts(3)).play();
            ran.assert_failed("status", "").assert_requests(3);
        }
    }
    // The body is bounded, and the status stands where it is cut.
    for case in both(&bad_gateway) {
        let ran = case.config(|config| config.max_body_bytes(10)).play();
        assert_no_answer(&ran, "status").assert_notes(&[Note::ErrorBodyCut]);
        assert_eq!((&status(&ran).body[..], status(&ran).whole), (&b"<html><h1>"[..], false));
    }
}

#[test]
fn c10_an_error_status_whose_body_is_an_event_stream() {
    let answer = |status: &str, body: &str| {
        let head =
            format!("HTTP/1.1 {status}\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n");
        Answer::raw(head + body).end(End::Cut)
    };
    let body = "data: {\"error\":{\"message\":\"input larger than context\",\"type\":\"invalid_request_error\"}}\n\n";
    for case in both(&answer("400 Bad Request", body)) {
        let ran = case.config(|config| config.max_attempts(3)).play();
        assert_no_answer(&ran, "status").assert_notes(&[]).assert_times(None, 0.0);
        assert_eq!((status(&ran).status.as_u16(), &status(&ran).body[..]), (400, body.as_bytes()));
        let told = ran.provider_error();
        assert_eq!(told.kind.as_deref(), Some("invalid_request_error"));
        assert_eq!((&*told.message, &told.code), ("input larger than context", &None));
    }
    // What it says counts: a quota that waiting does not refill is not tried again, whatever the status.
    let body = "data: {\"error\":{\"message\":\"pay\",\"code\":\"insufficient_quota\"}}\n\n";
    for (body, requests) in [(body, 1), ("data: busy\n\n", 3)] {
        for case in both(&answer("503 Service Unavailable", body)) {
            let ran = case.config(|config| config.max_attempts(3)).play();
            ran.assert_failed("status", "").assert_requests(requests);
        }
    }
}

#[test]
fn c11_blank_keep_alives_before_a_json_body() {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
    let json = r#"{"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}]}"#;
    let drip = Answer::raw(head).chunked().at(10.0).send("\n").at(20.0).send("\n").at(30.0).send("\n");
    let answer = drip.clone().at(41.0).send(json).end(End::Clean);
    for (case, notes) in both(&answer).into_iter().zip([&[Note::UnaryAnswerToStream][..], &[]]) {
        let ran = case.config(|config| config.stream_idle_timeout(15.0)).play();
        ran.assert_completed(Some("stop"), "Hi").assert_usage(None).assert_requests(1);
        ran.assert_notes(notes).assert_times(Some(41.0), 41.0);
    }
    // Without them the stream would have been idle for too long: it is they that keep it alive.
    let silent = Answer::raw(head).chunked().at(41.0).send(json).end(End::Clean);
    let case = Case::stream(Dialect::OpenAiChat).config(|config| config.stream_idle_timeout(15.0));
    case.answer(silent).play().assert_failed("timeout", "").assert_times(None, 15.0);
}
