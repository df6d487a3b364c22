//! Requests that are taken, those that are refused, and the bounds; however they are cut.

use http::{Method, StatusCode, Version};
use proptest::prelude::*;

use super::*;
use crate::http1::lines::tests::SEARCHED;
use crate::http1::{MAX_CHUNK_LINE_BYTES, RequestFault as Fault};

/// One request of a connection
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Request {
    pub(super) head: IncomingRequest,
    pub(super) body: Vec<u8>,
    pub(super) ended: bool,
}

/// All that a decoder said of one connection
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Told {
    pub(super) requests: Vec<Request>,
    pub(super) end: Result<(), Fault>,
}

/// Feeds the pieces and then the end of the connection
pub(super) fn decode<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, limits: RequestLimits) -> Told {
    let mut decoder = RequestDecoder::new(limits);
    let mut requests: Vec<Request> = Vec::new();
    for mut piece in pieces {
        loop {
            let (consumed, part) = match decoder.next(piece) {
                Ok(next) => next,
                Err(fault) => {
                    decoder.again();
                    assert_eq!(decoder.next(piece), Err(fault), "a fault stays");
                    assert_eq!(decoder.eof(), Err(fault), "a fault stays");
                    assert_eq!(decoder.held(), 0, "nothing is kept of it");
                    return Told { requests, end: Err(fault) };
                }
            };
            match part {
                Some(RequestPart::Head(head)) => {
                    requests.push(Request { head, body: Vec::new(), ended: false });
                }
                Some(RequestPart::Body(range)) => {
                    assert!(!range.is_empty() && range.end == consumed, "{range:?} of {consumed}");
                    requests.last_mut().unwrap().body.extend_from_slice(&piece[range]);
                }
                Some(RequestPart::End) => {
                    requests.last_mut().unwrap().ended = true;
                    assert_eq!(decoder.next(&piece[consumed..]), Ok((0, None)), "the rest is the next one's");
                    decoder.again();
                }
                None => {
                    assert_eq!(consumed, piece.len(), "no part, so all is consumed");
                    break;
                }
            }
            piece = &piece[consumed..];
        }
    }
    Told { requests, end: decoder.eof() }
}

/// What a connection says, the same for the bytes whole, one by one, and cut in two anywhere
pub(super) fn told(text: &str) -> Told {
    let (bytes, limits) = (text.as_bytes(), RequestLimits::default());
    let whole = decode([bytes], limits);
    assert_eq!(decode(bytes.chunks(1), limits), whole, "byte by byte");
    for cut in 0..=bytes.len() {
        let (first, second) = bytes.split_at(cut);
        assert_eq!(decode([first, second], limits), whole, "cut at {cut}");
    }
    whole
}

/// Why the first request of a connection is refused
pub(super) fn refused(text: &str) -> Fault {
    let told = told(text);
    assert!(!told.requests.iter().any(|request| request.ended), "{told:?}");
    told.end.expect_err(text)
}

/// The only request of a connection
fn request(text: &str) -> Request {
    let told = told(text);
    assert_eq!((told.requests.len(), told.end), (1, Ok(())), "{text:?}");
    assert!(told.requests[0].ended, "{text:?}");
    told.requests.into_iter().next().unwrap()
}

/// A GET with these fields
fn get(fields: &str) -> Request {
    request(&format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n"))
}

#[test]
fn a_request_as_it_came() {
    let Request { head, body, .. } = request(
        "POST /v1/chat?x=%20&y=[1] HTTP/1.1\r\nhOsT: api.test:443\r\nX-b: 1\r\nx-A:\t\u{e9}  \r\nX-B: 2\r\n\
         Content-Length: 11\r\n\r\n{\"a\":\r\n\r\n1}",
    );
    assert_eq!((&head.method, head.version), (&Method::POST, Version::HTTP_11));
    assert_eq!((&head.target[..], head.path()), ("/v1/chat?x=%20&y=[1]", "/v1/chat"));
    assert_eq!((head.host(), head.body), (Some("api.test:443"), BodyLength::Length(11)));
    assert!(head.keeps_alive && !head.expects_continue);
    let expected: [(&str, &[u8]); 5] = [
        ("hOsT", b"api.test:443"),
        ("X-b", b"1"),
        ("x-A", "\u{e9}".as_bytes()),
        ("X-B", b"2"),
        ("Content-Length", b"11"),
    ];
    assert_eq!(head.fields.iter().collect::<Vec<_>>(), expected);
    assert_eq!(body, b"{\"a\":\r\n\r\n1}");
}

#[test]
fn chunks_come_without_their_framing_and_trailers_are_dropped() {
    let Request { head, body, .. } = request(
        "PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n\
         3;a=\"b;c\"\r\nabc\r\n0A ;x\r\n0123456789\r\n0;last\r\nX: y\r\nContent-Length: 9\r\n\r\n",
    );
    assert_eq!((head.body, &body[..]), (BodyLength::Chunked, &b"abc0123456789"[..]));
    assert_eq!(head.fields.len(), 2);
}

#[test]
fn pipelined_requests_are_one_behind_the_other() {
    let told = told(
        "\r\nPOST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx\r\n\r\n\
         POST /2 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\ny\r\n0\r\n\r\n\
         GET /3 HTTP/1.1\r\nHost: a\r\n\r\n\r\n",
    );
    let heard: Vec<_> =
        told.requests.iter().map(|request| (&request.head.target[..], &request.body[..])).collect();
    assert_eq!(heard, [("/1", &b"x"[..]), ("/2", b"y"), ("/3", b"")]);
    assert_eq!(told.end, Ok(()));
}

#[test]
fn bodies_are_there_where_the_head_says_so() {
    assert_eq!(get("").head.body, BodyLength::None);
    assert_eq!(get("Content-Length: 0\r\n").head.body, BodyLength::Length(0));
    let zeros = request("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 00000000000000000000003\r\n\r\nabc");
    assert_eq!((zeros.head.body, &zeros.body[..]), (BodyLength::Length(3), &b"abc"[..]));
    let longest = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551615\r\n\r\nabc";
    assert_eq!(told(longest).end, Err(Fault::CutBody { got: 3 }));
}

#[test]
fn keep_alive_follows_the_version_and_the_connection_options() {
    for (version, connection, keeps) in [
        ("1.1", "", true),
        ("1.1", "x-close", true),
        ("1.1", "Keep-Alive, CLOSE", false),
        ("1.1", "upgrade\r\nConnection: close", false),
        ("1.0", "", false),
        ("1.0", "Keep-Alive", true),
        ("1.0", "keep-alive, close", false),
    ] {
        let text = format!("GET / HTTP/{version}\r\nHost: a\r\nConnection: {connection}\r\n\r\n");
        assert_eq!(request(&text).head.keeps_alive, keeps, "{version} {connection}");
    }
}

#[test]
fn an_interim_100_is_expected_where_a_body_waits_for_it() {
    let expects = |version: &str, fields: &str, body: &str| {
        let text = format!("POST / HTTP/{version}\r\nHost: a\r\n{fields}\r\n\r\n{body}");
        request(&text).head.expects_continue
    };
    assert!(expects("1.1", "Expect: 100-Continue\r\nContent-Length: 1", "x"));
    assert!(expects("1.1", "Expect: 100-continue\r\nTransfer-Encoding: chunked", "0\r\n\r\n"));
    assert!(!expects("1.1", "Expect: 100-continue\r\nContent-Length: 0", ""));
    assert!(!expects("1.1", "Expect: 100-continue", ""));
    assert!(!expects("1.0", "Expect: 100-continue\r\nContent-Length: 1", "x"));
}

#[test]
fn http_1_0_has_at_most_one_host() {
    assert_eq!(request("GET / HTTP/1.0\r\n\r\n").head.host(), None);
    assert_eq!(request("GET / HTTP/1.0\r\nHost: a\r\n\r\n").head.host(), Some("a"));
}

#[test]
fn each_refusal_has_its_status() {
    let fields = |fields: &str| format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n");
    let chunked = |body: &str| fields("Transfer-Encoding: chunked") + body;
    let line = |line: &str| format!("{line}\r\nHost: a\r\n\r\n");
    let default = RequestLimits::default();
    let long = |length: usize| "x".repeat(length);
    let table = [
        ("\x16\x03\x01\x02\0\x01".to_owned(), Fault::TlsHandshake, 400),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(), Fault::Http2, 505),
        (line("GET / HTTP/2.0"), Fault::UnsupportedVersion, 505),
        (line("GET / HTTP/1.2"), Fault::UnsupportedVersion, 505),
        (line("GET / HTTP/0.9"), Fault::UnsupportedVersion, 505),
        (line("GET /"), Fault::BadRequestLine, 400),
        (line("GET"), Fault::BadRequestLine, 400),
        (line("GET  HTTP/1.1"), Fault::BadRequestLine, 400),
        (line("GET / http/1.1"), Fault::BadRequestLine, 400),
        (line("GET / HTTP/1.1 "), Fault::BadRequestLine, 400),
        (line("GET / HTTP/1.10"), Fault::BadRequestLine, 400),
        (line("GET / HTTP/01.1"), Fault::BadRequestLine, 400),
        (line("G(T / HTTP/1.1"), Fault::BadRequestLine, 400),
        (line(" GET / HTTP/1.1"), Fault::BadRequestLine, 400),
        (line("\0GET / HTTP/1.1"), Fault::BadRequestLine, 400),
        ("\r\n".repeat(5) + &line("GET / HTTP/1.1"), Fault::TooManyEmptyLines, 400),
        (line("CONNECT a:443 HTTP/1.1"), Fault::UnsupportedMethod, 501),
        (line("TRACE / HTTP/1.1"), Fault::UnsupportedMethod, 501),
        (line("GET http://b/ HTTP/1.1"), Fault::AbsoluteTarget, 400),
        (line("OPTIONS * HTTP/1.1"), Fault::AsteriskTarget, 400),
        (line("GET b:80 HTTP/1.1"), Fault::NoPath, 400),
        (line("GET ?x HTTP/1.1"), Fault::NoPath, 400),
        (line("GET /a#b HTTP/1.1"), Fault::Fragment, 400),
        (line("GET /a b HTTP/1.1"), Fault::BadTarget, 400),
        (line("GET  / HTTP/1.1"), Fault::NoPath, 400),
        (line("GET /  HTTP/1.1"), Fault::BadTarget, 400),
        (line("GET /\t HTTP/1.1"), Fault::BadTarget, 400),
        (line("GET /\0 HTTP/1.1"), Fault::BadTarget, 400),
        (line("GET /\u{e9} HTTP/1.1"), Fault::BadTarget, 400),
        (line("GET / HTTP/1.1\nX: y"), Fault::BareLineFeed, 400),
        (line("GET / HTTP/1.1\rX: y"), Fault::BareCarriageReturn, 400),
        (fields("X: \x01"), Fault::ControlByte, 400),
        (fields("X: y\r\n z"), Fault::FoldedLine, 400),
        (fields("X"), Fault::NoColon, 400),
        (fields("X : y"), Fault::SpaceBeforeColon, 400),
        (fields(": y"), Fault::BadFieldName, 400),
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), Fault::NoHost, 400),
        (fields("Host: b"), Fault::RepeatedHost, 400),
        ("GET / HTTP/1.1\r\nHost: a b\r\n\r\n".to_owned(), Fault::BadHost, 400),
        (fields("Content-Length: 1\r\nTransfer-Encoding: chunked"), Fault::LengthAndTransferEncoding, 400),
        (fields("Content-Length: 1, 1"), Fault::RepeatedContentLength, 400),
        (fields("Content-Length: +1"), Fault::BadContentLength, 400),
        (
            "GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned(),
            Fault::TransferEncodingInHttp10,
            400,
        ),
        (fields("Transfer-Encoding: chunked, gzip"), Fault::BadTransferEncoding, 400),
        (fields("Transfer-Encoding: gzip, chunked"), Fault::UnsupportedTransferEncoding, 501),
        (fields("Expect: 200-ok"), Fault::UnsupportedExpectation, 417),
        (fields("Expect: 100-continue, x"), Fault::UnsupportedExpectation, 417),
        (fields("Expect:"), Fault::UnsupportedExpectation, 417),
        (chunked("x"), Fault::BadChunkSize, 400),
        (chunked("00000000000000000"), Fault::ChunkSizeTooLong, 400),
        (chunked("1;\x01"), Fault::BadChunkExtension, 400),
        (chunked(&format!("1;{}", long(MAX_CHUNK_LINE_BYTES.into()))), Fault::ChunkLineTooLong, 400),
        (chunked("1\r\nxx"), Fault::BadChunkEnd, 400),
        (chunked("0\r\nX\r\n\r\n"), Fault::NoColon, 400),
        ("GET / HT".to_owned(), Fault::CutHead { got: 8 }, 400),
        ("GET / HTTP/1.1\r\nHo".to_owned(), Fault::CutHead { got: 18 }, 400),
        (fields("Content-Length: 3") + "ab", Fault::CutBody { got: 2 }, 400),
        (chunked("3\r\nabc\r\n0\r\n"), Fault::CutBody { got: 3 }, 400),
    ];
    for (text, fault, status) in table {
        assert_eq!(refused(&text), fault, "{text:?}");
        assert_eq!(fault.status().as_u16(), status, "{fault:?}");
    }
    // Those of which the texts are long are not cut everywhere.
    for (text, fault, status) in [
        (
            line(&format!("GET /{} HTTP/1.1", long(default.max_target_bytes))),
            Fault::TargetTooLong { limit: default.max_target_bytes },
            414,
        ),
        (long(default.max_head_bytes), Fault::TargetTooLong { limit: default.max_target_bytes }, 414),
        (
            fields(&format!("X: {}", long(default.max_head_bytes))),
            Fault::HeadTooLarge { limit: default.max_head_bytes },
            431,
        ),
        (
            fields(&"X: y\r\n".repeat(default.max_fields)),
            Fault::TooManyFields { limit: default.max_fields },
            431,
        ),
        (
            chunked("0\r\n") + &"X: y\r\n".repeat(default.max_fields + 1),
            Fault::TooManyFields { limit: default.max_fields },
            431,
        ),
        (chunked("0\r\nX: ") + &long(MAX_TRAILER_BYTES), Fault::TrailersTooLarge, 431),
    ] {
        for size in [1, 7, 4096, usize::MAX] {
            let told = decode(text.as_bytes().chunks(size.min(text.len())), default);
            assert_eq!(told.end, Err(fault), "{fault:?} in reads of {size}");
        }
        assert_eq!(fault.status(), StatusCode::from_u16(status).unwrap());
    }
}

#[test]
fn what_is_just_within_the_bounds_is_taken() {
    let target = format!("/{}", "x".repeat(9));
    let text = format!("GET {target} HTTP/1.1\r\nHost: a\r\nA: b\r\n\r\n");
    let exact = RequestLimits { max_head_bytes: text.len(), max_fields: 2, max_target_bytes: 10 };
    let end = |limits| {
        let whole = decode([text.as_bytes()], limits);
        assert_eq!(decode(text.as_bytes().chunks(1), limits), whole);
        whole.end
    };
    assert_eq!(end(exact), Ok(()));
    let limit = text.len() - 1;
    assert_eq!(end(RequestLimits { max_head_bytes: limit, ..exact }), Err(Fault::HeadTooLarge { limit }));
    assert_eq!(end(RequestLimits { max_fields: 1, ..exact }), Err(Fault::TooManyFields { limit: 1 }));
    assert_eq!(end(RequestLimits { max_target_bytes: 9, ..exact }), Err(Fault::TargetTooLong { limit: 9 }));
    let empty = "\r\n".repeat(MAX_EMPTY_LINES.into()) + "GET / HTTP/1.0\r\n\r\n";
    assert_eq!(told(&empty).end, Ok(()));
    let size = format!("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{:016x}\r\nx", 1);
    assert_eq!(told(&(size + "\r\n0\r\n\r\n")).end, Ok(()));
}

#[test]
fn a_head_that_trickles_in_is_searched_once() {
    let padding = "x".repeat(60 * 1024);
    let text = format!("GET / HTTP/1.1\r\nHost: a\r\nA: {padding}\r\nB: c\r\n\r\n");
    let searched = |size: usize| {
        SEARCHED.set(0);
        assert_eq!(decode(text.as_bytes().chunks(size), RequestLimits::default()).end, Ok(()));
        SEARCHED.get()
    };
    for size in [1, 2, 1000, text.len()] {
        assert!(searched(size) <= text.len(), "{} of {} in reads of {size}", searched(size), text.len());
    }
    assert!(searched(1) > padding.len());
}

#[test]
fn no_more_is_held_than_came() {
    let text = "POST /v1?a=b HTTP/1.1\r\nHost: a\r\nLong: some value\r\nContent-Length: 9\r\n\r\n";
    let mut decoder = RequestDecoder::new(RequestLimits::default());
    for (came, byte) in text.as_bytes().chunks(1).enumerate() {
        assert!(decoder.held() <= came);
        decoder.next(byte).unwrap();
    }
    assert_eq!(decoder.held(), 0);
    decoder.next(b"12345").unwrap();
    assert_eq!(decoder.held(), 0, "nothing of a body is held");
}

#[test]
fn a_connection_may_end_between_requests_only() {
    assert_eq!(told("").end, Ok(()));
    assert_eq!(told("\r\n").end, Ok(()));
    assert_eq!(told("\r").end, Err(Fault::CutHead { got: 1 }));
    let mut decoder = RequestDecoder::new(RequestLimits::default());
    decoder.next(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    assert_eq!(decoder.eof(), Ok(()), "the head says that nothing more belongs to it");
    assert_eq!(decoder.eof(), Ok(()));
}

#[test]
fn again_is_of_no_effect_within_a_request() {
    let mut decoder = RequestDecoder::new(RequestLimits::default());
    decoder.next(b"GET / HT").unwrap();
    decoder.again();
    let (consumed, part) = decoder.next(b"TP/1.0\r\n\r\n").unwrap();
    assert!(consumed == 10 && matches!(part, Some(RequestPart::Head(_))));
    decoder.again();
    assert_eq!(decoder.next(b"GET"), Ok((0, Some(RequestPart::End))));
}

proptest! {
    #[test]
    fn any_bytes_give_the_same_parts_whole_and_split(
        text in "(\r\n){0,2}(GET|POST|PRI|\\PC) (/|\\*|\\PC{0,3}) HTTP/[12].[019]\r?\n\
            ((Host|Content-Length|Transfer-Encoding|Connection|Expect|A ?): ?\
            (a|chunked|close|100-continue|[0-9]{1,2}|[\\PC\t]{1,4})\r?\n){0,4}\r?\n[0-9a-f;\r\n \\x00]{0,40}",
        size in 1..30usize,
    ) {
        let limits = RequestLimits { max_head_bytes: 120, max_fields: 3, max_target_bytes: 3 };
        for limits in [limits, RequestLimits::default()] {
            let whole = decode([text.as_bytes()], limits);
            prop_assert_eq!(&decode(text.as_bytes().chunks(1), limits), &whole);
            prop_assert_eq!(&decode(text.as_bytes().chunks(size), limits), &whole);
        }
    }
}
