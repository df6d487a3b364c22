//! Heads that are passed on, and read again.

use std::num::NonZeroUsize;

use proptest::prelude::*;

use super::*;
use crate::http1::{
    ChunkHead, IncomingRequest, LAST_CHUNK, Limits, Part, RequestDecoder, RequestLimits, RequestPart,
    ResponseDecoder,
};

/// The head of a request, and its body
fn read(bytes: &[u8]) -> (IncomingRequest, Vec<u8>) {
    let mut decoder = RequestDecoder::new(RequestLimits::default());
    let (mut head, mut body, mut at) = (None, Vec::new(), 0);
    loop {
        let (consumed, part) = decoder.next(&bytes[at..]).expect("it is a request");
        match part.expect("it is whole") {
            RequestPart::Head(came) => head = Some(came),
            RequestPart::Body(range) => body.extend_from_slice(&bytes[at..][range]),
            RequestPart::End => break,
        }
        at += consumed;
    }
    (head.expect("a head"), body)
}

/// A request with these fields, passed on with nothing replaced or dropped
fn request(fields: &str) -> String {
    let (head, _) = read(format!("GET /a?b HTTP/1.1\r\nHost: app\r\n{fields}\r\n").as_bytes());
    encode(&forwarded(&head))
}

fn forwarded(head: &IncomingRequest) -> ForwardedRequest<'_> {
    ForwardedRequest {
        method: &head.method,
        target: &head.target,
        host: "up.test:443",
        fields: &head.fields,
        replaced: &[],
        dropped: &[],
        body: head.body,
    }
}

fn encode(request: &ForwardedRequest<'_>) -> String {
    let mut out = b"before ".to_vec();
    request.encode(&mut out).unwrap();
    String::from_utf8(out).unwrap().strip_prefix("before ").unwrap().to_owned()
}

const FRONT: &str = "GET /a?b HTTP/1.1\r\nHost: up.test:443\r\n";

#[test]
fn end_to_end_fields_keep_their_order_case_and_bytes() {
    let fields = "X-b: 1\r\nx-A:  \u{e9} ,\t2 \r\nX-B: 3\r\nCookie: a=b\r\nempty:\r\n\
        Proxied: y\r\nAccept-Encoding: gzip\r\n";
    let expected = "X-b: 1\r\nx-A: \u{e9} ,\t2\r\nX-B: 3\r\nCookie: a=b\r\nempty: \r\n\
        Proxied: y\r\nAccept-Encoding: gzip\r\n";
    assert_eq!(request(fields), format!("{FRONT}{expected}\r\n"));
}

#[test]
fn what_belongs_to_one_connection_stays_there() {
    for fields in [
        "Connection: keep-alive\r\nKeep-Alive: timeout=5\r\n",
        "connection: X-One, x-two\r\nX-ONE: 1\r\nX-Two: 2\r\n",
        "Connection: close\r\nConnection: ,x-one ,\r\nx-one: 1\r\nx-one: 2\r\n",
        "Connection: authorization\r\nAuthorization: Bearer a\r\n",
        "TE: trailers\r\nTrailer: X\r\nUpgrade: websocket\r\nConnection: upgrade, te\r\n",
        "Proxy-Connection: keep-alive\r\nproxy-Authorization: Basic a\r\nProxy-X: y\r\n",
        "Expect: 100-continue\r\n",
    ] {
        assert_eq!(request(fields), format!("{FRONT}\r\n"), "{fields:?}");
    }
    // None of these is one of those.
    let fields = "Conn: a\r\nUpgrade-Insecure-Requests: 1\r\nproxy: a\r\nX-Proxy-A: b\r\nTrailers: c\r\n";
    assert_eq!(request(&format!("Connection: x, cons\r\n{fields}")), format!("{FRONT}{fields}\r\n"));
}

#[test]
fn what_connection_names_is_made_afresh_where_the_relay_sets_it() {
    let text = "POST / HTTP/1.1\r\nHost: app\r\nConnection: host, content-length, x-key\r\n\
        Content-Length: 3\r\nX-Key: a\r\n\r\nabc";
    let (head, _) = read(text.as_bytes());
    let replaced = [(HeaderName::from_static("x-key"), HeaderValue::from_static("b"))];
    let sent = encode(&ForwardedRequest { replaced: &replaced, ..forwarded(&head) });
    assert_eq!(sent, "POST / HTTP/1.1\r\nHost: up.test:443\r\nx-key: b\r\nContent-Length: 3\r\n\r\n");
}

#[test]
fn fields_are_replaced_and_dropped_in_any_case() {
    let text = "GET /a?b HTTP/1.1\r\nAUTHORIZATION: a\r\nX-Relay: b\r\nHost: app\r\n\
        authorization: c\r\nA: d\r\n\r\n";
    let (head, _) = read(text.as_bytes());
    let replaced = [
        (http::header::AUTHORIZATION, HeaderValue::from_static("Bearer key")),
        (HeaderName::from_static("x-new"), HeaderValue::from_static("e")),
    ];
    let sent =
        encode(&ForwardedRequest { replaced: &replaced, dropped: &["x-RELAY", "none"], ..forwarded(&head) });
    assert_eq!(sent, format!("{FRONT}A: d\r\nauthorization: Bearer key\r\nx-new: e\r\n\r\n"));
}

#[test]
fn the_framing_is_made_afresh() {
    for (body, line) in [
        (BodyLength::None, ""),
        (BodyLength::Length(0), "Content-Length: 0\r\n"),
        (BodyLength::Length(u64::MAX), "Content-Length: 18446744073709551615\r\n"),
        (BodyLength::Chunked, "Transfer-Encoding: chunked\r\n"),
    ] {
        for came in ["", "content-length: 07\r\n", "Transfer-encoding: CHUNKED\r\n"] {
            let (head, _) = match came {
                "" => read(b"GET /a?b HTTP/1.0\r\n\r\n"),
                came => read(format!("GET /a?b HTTP/1.1\r\nHost: a\r\n{came}\r\n0\r\n\r\n  ").as_bytes()),
            };
            let sent = encode(&ForwardedRequest { body, ..forwarded(&head) });
            assert_eq!(sent, format!("{FRONT}{line}\r\n"), "{came:?} as {body:?}");
        }
    }
}

#[test]
fn what_cannot_be_sent_is_refused_and_nothing_is_written() {
    let (head, _) = read(b"GET / HTTP/1.0\r\n\r\n");
    let good = forwarded(&head);
    let reserved = [(http::header::HOST, HeaderValue::from_static("b"))];
    for (bad, error) in [
        (ForwardedRequest { target: "/a\r\nX: y", ..good }, RequestError::BadTarget),
        (ForwardedRequest { target: "/a b", ..good }, RequestError::BadTarget),
        (ForwardedRequest { host: "a\r\nX: y", ..good }, RequestError::BadHost),
        (ForwardedRequest { host: "", ..good }, RequestError::BadHost),
        (
            ForwardedRequest { replaced: &reserved, ..good },
            RequestError::Reserved { name: http::header::HOST },
        ),
    ] {
        let mut out = Vec::new();
        assert_eq!((bad.encode(&mut out), out.len()), (Err(error), 0));
    }
}

/// The head and the fields of a final response
fn response(method: &Method, text: &str) -> (crate::http1::ResponseHead, Fields) {
    let mut decoder = ResponseDecoder::new(method, Limits::default()).keep_fields();
    match decoder.next(text.as_bytes()) {
        Ok((_, Some(Part::Head(head)))) => (head, decoder.take_fields()),
        other => panic!("{other:?}"),
    }
}

/// A response passed on
fn answer(text: &str, body: ForwardedBody, version: Version, keep_alive: bool) -> String {
    let (head, fields) = response(&Method::GET, text);
    let (status, reason, fields) = (head.status, &head.reason[..], &fields);
    let mut out = Vec::new();
    ForwardedResponse { version, status, reason, fields, body, keep_alive }.encode(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn a_response_passes_in_its_own_words() {
    let text = "HTTP/1.1 529 Site  is \u{e9}\r\nrequest-ID: 1\r\nX: a\r\n  b\r\nCONTENT-length: 4\r\n\
        x: c\r\nVia: d\r\n\r\n";
    let expected = "HTTP/1.1 529 Site  is \u{e9}\r\nrequest-ID: 1\r\nX: a b\r\nCONTENT-length: 4\r\n\
        x: c\r\nVia: d\r\n\r\n";
    assert_eq!(answer(text, ForwardedBody::Length(4), Version::HTTP_11, true), expected);
    let text = "HTTP/1.0 200\r\nConnection: close, x-hop\r\nKeep-Alive: 1\r\nX-Hop: 2\r\nX: y\r\n\
        Trailer: z\r\nProxy-Authenticate: Basic\r\nUpgrade: h2c\r\n\r\n";
    let expected = "HTTP/1.1 200 \r\nX: y\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(answer(text, ForwardedBody::Chunked, Version::HTTP_11, true), expected);
}

#[test]
fn a_response_is_framed_as_it_is_told() {
    use ForwardedBody::{Chunked, Length, None, UntilClose};
    let lengthy = "HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 06, 6\r\ncontent-length: 6\r\nC: d\r\n\r\n";
    let chunked = "HTTP/1.1 200 OK\r\nA: b\r\nTransfer-Encoding: chunked\r\nC: d\r\n\r\n";
    let plain = "HTTP/1.1 200 OK\r\nA: b\r\nC: d\r\n\r\n";
    let (v10, v11) = (Version::HTTP_10, Version::HTTP_11);
    for (came, body, version, keep_alive, framing) in [
        (lengthy, Length(6), v11, true, "Content-Length: 6\r\nC: d\r\n"),
        (lengthy, Length(6), v11, false, "Content-Length: 6\r\nC: d\r\nConnection: close\r\n"),
        (lengthy, Length(6), v10, true, "Content-Length: 6\r\nC: d\r\nConnection: keep-alive\r\n"),
        (lengthy, Length(6), v10, false, "Content-Length: 6\r\nC: d\r\nConnection: close\r\n"),
        (chunked, Length(6), v11, true, "C: d\r\nContent-Length: 6\r\n"),
        (lengthy, Chunked, v11, true, "C: d\r\nTransfer-Encoding: chunked\r\n"),
        (chunked, Chunked, v11, false, "C: d\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n"),
        (chunked, UntilClose, v10, true, "C: d\r\nConnection: close\r\n"),
        (lengthy, UntilClose, v11, false, "C: d\r\nConnection: close\r\n"),
        (plain, UntilClose, v11, true, "C: d\r\nConnection: close\r\n"),
        (chunked, None, v11, true, "C: d\r\n"),
        // Not one number: it is not told of.
        (lengthy, None, v11, true, "C: d\r\n"),
    ] {
        let expected = format!("HTTP/1.1 200 OK\r\nA: b\r\n{framing}\r\n");
        assert_eq!(answer(came, body, version, keep_alive), expected, "{came:?} as {body:?} to {version:?}");
    }
}

#[test]
fn without_a_body_its_length_may_be_told() {
    for (status, told) in
        [("200 OK", "Content-Length: 7\r\n"), ("304 NM", "Content-Length: 7\r\n"), ("204 NC", "")]
    {
        let (head, fields) =
            response(&Method::HEAD, &format!("HTTP/1.1 {status}\r\nContent-Length: 7\r\n\r\n"));
        let (reason, fields, body) = (&head.reason[..], &fields, ForwardedBody::None);
        let mut out = Vec::new();
        let version = Version::HTTP_11;
        let forwarded =
            ForwardedResponse { version, status: head.status, reason, fields, body, keep_alive: true };
        forwarded.encode(&mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), format!("HTTP/1.1 {status}\r\n{told}\r\n"));
    }
}

#[test]
fn a_response_that_cannot_be_sent_is_refused() {
    let good = ForwardedResponse {
        version: Version::HTTP_10,
        status: StatusCode::OK,
        reason: b"a\tb",
        fields: &Fields::default(),
        body: ForwardedBody::UntilClose,
        keep_alive: false,
    };
    let mut out = Vec::new();
    good.encode(&mut out).unwrap();
    assert_eq!(out, b"HTTP/1.1 200 a\tb\r\nConnection: close\r\n\r\n");
    out.clear();
    let chunks = ForwardedResponse { body: ForwardedBody::Chunked, ..good };
    assert_eq!(chunks.encode(&mut out), Err(ForwardError::ChunksInHttp10));
    for reason in [&b"a\r\nX: y"[..], b"a\n", b"\0"] {
        let bad = ForwardedResponse { reason, ..good };
        assert_eq!((bad.encode(&mut out), out.len()), (Err(ForwardError::BadReason), 0));
    }
}

#[test]
fn chunk_heads_are_hexadecimal() {
    for (length, expected) in [(1, "1\r\n"), (15, "f\r\n"), (16, "10\r\n"), (0xABC_DE0, "abcde0\r\n")] {
        assert_eq!(&*ChunkHead::new(NonZeroUsize::new(length).unwrap()), expected.as_bytes());
    }
    let longest = ChunkHead::new(NonZeroUsize::MAX);
    assert_eq!(*longest, *format!("{:x}\r\n", usize::MAX).as_bytes());
}

proptest! {
    /// What is passed on is read as the same message
    #[test]
    fn a_request_passed_on_is_the_same_request(
        fields in proptest::collection::vec(
            (
                "(X-[a-c]|x-A|Accept|Connection|Keep-Alive|Cookie|TE|Expect)",
                "(x-a|close|100-continue|[ -~\u{e9}]{0,9})",
            ),
            0..6,
        ),
        body in proptest::option::of("[ -~]{0,40}"),
        pieces in proptest::collection::vec(1..9usize, 0..6),
        chunked: bool,
    ) {
        let mut text = "POST /v1?a=b HTTP/1.1\r\nHost: app\r\n".to_owned();
        for (name, value) in &fields {
            text += &format!("{name}: {}\r\n", if name == "Expect" { "100-continue" } else { value });
        }
        let framed = match &body {
            None => "\r\n".to_owned(),
            Some(body) if chunked => {
                format!("Transfer-Encoding: chunked\r\n\r\n{}", in_chunks(body, &pieces))
            }
            Some(body) => format!("Content-Length: {}\r\n\r\n{body}", body.len()),
        };
        let (came, data) = read((text + &framed).as_bytes());
        prop_assert_eq!(&data[..], body.as_deref().unwrap_or_default().as_bytes());

        let mut sent = encode(&forwarded(&came));
        sent += &match came.body {
            BodyLength::Chunked => in_chunks(body.as_deref().unwrap(), &pieces),
            BodyLength::None | BodyLength::Length(_) => body.clone().unwrap_or_default(),
        };
        let (again, data_again) = read(sent.as_bytes());
        prop_assert_eq!(&data_again, &data);
        prop_assert_eq!((&again.method, &again.target, again.body), (&came.method, &came.target, came.body));
        prop_assert_eq!(again.host(), Some("up.test:443"));

        let named: Vec<String> = fields
            .iter()
            .filter(|(name, _)| name == "Connection")
            .flat_map(|(_, value)| value.split(',').map(|option| option.trim().to_lowercase()))
            .collect();
        let own = ["host", "connection", "keep-alive", "te", "expect", "content-length", "transfer-encoding"];
        let end_to_end = |request: &IncomingRequest| -> Vec<(String, Vec<u8>)> {
            let fields = request.fields.iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
            fields.filter(|(name, _)| !own.contains(&&name.to_lowercase()[..])).collect()
        };
        let mut expected = end_to_end(&came);
        expected.retain(|(name, _)| !named.contains(&name.to_lowercase()));
        prop_assert_eq!(end_to_end(&again), expected);

        // Nothing is left to be dropped from it.
        let mut twice = encode(&forwarded(&again));
        twice += sent.split_once("\r\n\r\n").unwrap().1;
        prop_assert_eq!(twice, sent);
    }
}

/// The body in chunks of these lengths, and the rest in one more
fn in_chunks(body: &str, lengths: &[usize]) -> String {
    let (mut text, mut rest) = (String::new(), body);
    for length in lengths.iter().copied().chain([usize::MAX]) {
        let (chunk, behind) = rest.split_at(length.min(rest.len()));
        rest = behind;
        if let Some(length) = NonZeroUsize::new(chunk.len()) {
            text += std::str::from_utf8(&ChunkHead::new(length)).unwrap();
            text += chunk;
            text += "\r\n";
        }
    }
    text + std::str::from_utf8(LAST_CHUNK).unwrap()
}
