//! Whole responses, however they are cut; the names are those of the corpus cases they come from.

use http::{HeaderMap, Method, Version};
use proptest::prelude::*;

use super::{
    End, Http1Error, Incomplete, Limits, MAX_FIELDS, MAX_INTERIM_RESPONSES, MAX_TRAILER_BYTES, Part,
    ResponseDecoder, ResponseHead,
};

const EVENT_STREAM: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
const FINISH: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
const SENTINEL: &str = "data: [DONE]\n\n";
const HI: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":null}]}\n\n";

/// All that a decoder said of one connection
#[derive(Debug, PartialEq)]
struct Exchange {
    interim: Vec<u16>,
    head: Option<ResponseHead>,
    body: Vec<u8>,
    end: Result<End, Http1Error>,
    /// Whether the end came with the connection's end
    by_eof: bool,
    surplus: Vec<u8>,
}

/// Feeds the pieces and then the end of the connection
fn decode<'a>(method: &Method, pieces: impl IntoIterator<Item = &'a [u8]>, limits: Limits) -> Exchange {
    let mut decoder = ResponseDecoder::new(method, limits);
    let mut exchange = Exchange {
        interim: Vec::new(),
        head: None,
        body: Vec::new(),
        end: Ok(End::default()),
        by_eof: true,
        surplus: Vec::new(),
    };
    for mut piece in pieces {
        loop {
            let (consumed, part) = match decoder.next(piece) {
                Ok(next) => next,
                Err(error) => {
                    assert_eq!(decoder.next(piece), Err(error), "an error stays");
                    assert_eq!(decoder.eof(), Err(error), "an error stays");
                    return Exchange { end: Err(error), by_eof: false, ..exchange };
                }
            };
            match part {
                Some(Part::Interim(status)) => exchange.interim.push(status.as_u16()),
                Some(Part::Head(head)) => assert_eq!(exchange.head.replace(head), None, "one head"),
                Some(Part::Body(range)) => {
                    assert!(!range.is_empty() && range.end == consumed, "{range:?} of {consumed}");
                    exchange.body.extend_from_slice(&piece[range]);
                }
                Some(Part::End(end)) => {
                    assert!(exchange.by_eof, "one end");
                    exchange.end = Ok(end);
                    exchange.by_eof = false;
                }
                None if exchange.by_eof => {
                    assert_eq!(consumed, piece.len(), "no part, so all is consumed");
                    break;
                }
                None => {
                    assert_eq!(consumed, 0, "what follows the end is not the response's");
                    exchange.surplus.extend_from_slice(piece);
                    break;
                }
            }
            piece = &piece[consumed..];
        }
    }
    if exchange.by_eof {
        exchange.end = decoder.eof();
    }
    exchange
}

/// The exchange, the same for the bytes whole, one by one, and cut in two anywhere
fn exchange(method: &Method, input: &str) -> Exchange {
    let bytes = input.as_bytes();
    let whole = decode(method, [bytes], Limits::default());
    assert_eq!(decode(method, bytes.chunks(1), Limits::default()), whole, "byte by byte");
    for cut in 0..=bytes.len() {
        let (first, second) = bytes.split_at(cut);
        assert_eq!(decode(method, [first, second], Limits::default()), whole, "cut at {cut}");
    }
    whole
}

fn get(input: &str) -> Exchange {
    exchange(&Method::GET, input)
}

/// The end of a response that came whole over a connection that stays open
fn open() -> Result<End, Http1Error> {
    Ok(End { reusable: true, trailers: HeaderMap::new() })
}

#[test]
fn b01_chunk_extensions_and_trailers() {
    let exchange = get(&format!(
        "{EVENT_STREAM}43;x=\"a;b\"\r\n{FINISH}\r\ne ;y\r\n{SENTINEL}\r\n\
         0;last=1\r\nX-Checksum: example\r\nX-Req: 1\r\n\r\n"
    ));
    assert_eq!(exchange.body, [FINISH, SENTINEL].concat().as_bytes());
    let end = exchange.end.unwrap();
    assert!(end.reusable);
    assert_eq!(end.trailers.len(), 2);
    assert_eq!(
        (&end.trailers["x-checksum"], &end.trailers["x-req"]),
        (&"example".parse().unwrap(), &"1".parse().unwrap())
    );
    let head = exchange.head.unwrap();
    assert_eq!(head.headers.len(), 2, "trailers stay apart");
}

#[test]
fn b03_chunks_cut_at_awkward_places() {
    let pieces = [
        EVENT_STREAM,
        "4",
        "3\r",
        &format!("\n{FINISH}\r"),
        "",
        &format!("\ne\r\n{SENTINEL}\r\n0\r"),
        "\n\r",
        "\n",
    ];
    let exchange = decode(&Method::POST, pieces.map(str::as_bytes), Limits::default());
    assert_eq!(exchange.body, [FINISH, SENTINEL].concat().as_bytes());
    assert_eq!(exchange.end, open());
}

#[test]
fn b05_an_http_error_inside_a_chunked_body() {
    let exchange = get(&format!(
        "{EVENT_STREAM}4f\r\n{HI}\r\nHTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\n\r\n<html>502</html>"
    ));
    assert_eq!(exchange.body, HI.as_bytes());
    assert_eq!(exchange.end, Err(Http1Error::BadChunkSize));
    assert!(Http1Error::BadChunkSize.to_string().starts_with("bad chunk size"));
}

#[test]
fn b07_a_chunked_body_without_its_last_chunk() {
    let exchange = get(&format!("{EVENT_STREAM}4f\r\n{HI}\r\n"));
    assert_eq!(exchange.body, HI.as_bytes());
    assert_eq!(exchange.end, Err(Incomplete::Chunked { got: 79 }.into()));
    let exchange = get(&format!("{EVENT_STREAM}4f\r\n{HI}\r\n0\r\nX-Req: 1\r\n"));
    assert_eq!(exchange.end, Err(Incomplete::Chunked { got: 79 }.into()));
}

#[test]
fn b09_content_length_and_real_length_differ() {
    let json = "{\"choices\":[{\"message\":{\"content\":\"Hi\"},\"finish_reason\":\"st";
    let exchange = get(&format!("HTTP/1.1 200 OK\r\nContent-Length: 65\r\n\r\n{json}"));
    assert_eq!(exchange.body, json.as_bytes());
    assert_eq!(exchange.end, Err(Incomplete::Body { got: 59, expected: 65 }.into()));
    assert_eq!(
        exchange.end.unwrap_err().to_string(),
        "the connection ended inside the body: 59 of 65 bytes came"
    );

    let exchange = get(&format!("HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n{SENTINEL}EXTRA BYTES"));
    assert_eq!(exchange.body, SENTINEL.as_bytes());
    assert_eq!(exchange.end, open());
    assert_eq!(exchange.surplus, b"EXTRA BYTES");
}

#[test]
fn b10_early_hints_before_the_answer() {
    let exchange = get(&format!(
        "HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\nContent-Length: 999\r\n\r\n\
         {EVENT_STREAM}43\r\n{FINISH}\r\ne\r\n{SENTINEL}\r\n0\r\n\r\n"
    ));
    assert_eq!(exchange.interim, [103]);
    let head = exchange.head.unwrap();
    assert_eq!(head.status, 200);
    assert_eq!(
        head.headers.keys().map(|name| name.as_str()).collect::<Vec<_>>(),
        ["content-type", "transfer-encoding"]
    );
    assert_eq!(exchange.body, [FINISH, SENTINEL].concat().as_bytes());
    assert_eq!(exchange.end, open());
}

#[test]
fn b13_http_1_0_answers() {
    let exchange =
        get(&format!("HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n{HI}{FINISH}{SENTINEL}"));
    assert_eq!(exchange.head.unwrap().version, Version::HTTP_10);
    assert_eq!(exchange.body, [HI, FINISH, SENTINEL].concat().as_bytes());
    assert_eq!((exchange.end, exchange.by_eof), (Ok(End::default()), true));

    let exchange = get("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
    assert_eq!(exchange.body, b"hello");
    assert_eq!((exchange.end, exchange.by_eof), (Ok(End::default()), false));
}

#[test]
fn b14_content_length_and_chunked_together() {
    let exchange = get(&format!(
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\nTransfer-Encoding: chunked\r\n\r\ne\r\n{SENTINEL}\r\n0\r\n\r\n"
    ));
    assert_eq!((exchange.head, exchange.body), (None, Vec::new()));
    assert_eq!(exchange.end, Err(Http1Error::LengthAndTransferEncoding));
}

/// A response whose `fields` header lines are followed by the two of a stream
fn with_fields(fields: usize) -> String {
    let lines: String = (0..fields).map(|n| format!("X-H-{n}: v\r\n")).collect();
    EVENT_STREAM.replacen("\r\n", &format!("\r\n{lines}"), 1) + "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"
}

#[test]
fn b16_more_header_fields_than_usual() {
    let decode = |input: &str| decode(&Method::GET, input.as_bytes().chunks(7), Limits::default());
    let exchange = decode(&with_fields(300));
    assert_eq!(exchange.head.unwrap().headers.len(), 302);
    assert_eq!(exchange.end, open());
    assert_eq!(decode(&with_fields(MAX_FIELDS - 2)).end, open());
    assert_eq!(decode(&with_fields(MAX_FIELDS - 1)).end, Err(Http1Error::TooManyFields));
}

#[test]
fn b19_old_style_heads() {
    let exchange = get("HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n");
    assert_eq!((exchange.head.unwrap().reason.len(), exchange.end), (0, open()));
    let exchange = get("HTTP/1.1 200 OK\r\nContent-Type : text/event-stream\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(exchange.end, Err(Http1Error::BadField));
    let exchange = get("HTTP/1.1 200 OK\r\nX-Long: a\r\n b\r\nContent-Length: 0\r\n\r\n");
    assert_eq!((&exchange.head.unwrap().headers["x-long"], exchange.end), (&"a b".parse().unwrap(), open()));
    let exchange = get("HTTP/1.1 200 OK\r\nno colon here\r\n\r\n");
    assert_eq!(exchange.end, Err(Http1Error::BadField));
}

#[test]
fn some_responses_have_no_body_whatever_their_head_says() {
    for (method, status) in [(Method::HEAD, 200), (Method::GET, 204), (Method::GET, 304)] {
        for fields in ["Content-Length: 5", "Transfer-Encoding: chunked", "X: y"] {
            let exchange = exchange(&method, &format!("HTTP/1.1 {status} X\r\n{fields}\r\n\r\nhello"));
            assert_eq!(
                (exchange.end, exchange.surplus),
                (open(), b"hello".to_vec()),
                "{method} {status} {fields}"
            );
        }
    }
    let exchange = get("HTTP/1.1 205 Reset Content\r\nContent-Length: 5\r\n\r\nhello");
    assert_eq!(exchange.body, b"hello");
}

#[test]
fn a_tunnel_begins_after_a_2xx_to_connect() {
    let tunnel = exchange(&Method::CONNECT, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
    assert_eq!((tunnel.end, tunnel.by_eof), (Ok(End::default()), false));
    assert_eq!(tunnel.surplus, b"hello");
    let refused = exchange(&Method::CONNECT, "HTTP/1.1 407 X\r\nContent-Length: 5\r\n\r\nhello");
    assert_eq!((refused.body, refused.end), (b"hello".to_vec(), open()));
}

#[test]
fn an_upgrade_that_nobody_asked_for_is_refused() {
    let exchange = get("HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\nproto");
    assert_eq!((exchange.interim, exchange.end), (Vec::new(), Err(Http1Error::UnaskedUpgrade)));
}

#[test]
fn heads_and_interim_responses_are_bounded() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let limited =
        |limit| decode(&Method::GET, head.as_bytes().chunks(1), Limits { max_head_bytes: limit }).end;
    assert_eq!(limited(head.len()), open());
    assert_eq!(limited(head.len() - 1), Err(Http1Error::HeadTooLarge { limit: head.len() - 1 }));

    let interim = |n: u8| "HTTP/1.1 102 Processing\r\n\r\n".repeat(n.into()) + head;
    let many = decode(&Method::GET, [interim(MAX_INTERIM_RESPONSES).as_bytes()], Limits::default());
    assert_eq!((many.interim.len(), many.end), (128, open()));
    let more = decode(&Method::GET, [interim(MAX_INTERIM_RESPONSES + 1).as_bytes()], Limits::default());
    assert_eq!(more.end, Err(Http1Error::TooManyInterimResponses));
}

#[test]
fn trailers_are_bounded_and_strict() {
    let end = |trailers: &str| {
        let input = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n{trailers}");
        let whole = decode(&Method::GET, [input.as_bytes()], Limits::default());
        assert_eq!(decode(&Method::GET, input.as_bytes().chunks(1), Limits::default()), whole);
        whole.end
    };
    let trailers = |length: usize| format!("A: {}\r\n\r\n", "b".repeat(length - 7));
    assert_eq!(end(&trailers(MAX_TRAILER_BYTES)).unwrap().trailers["a"].len(), MAX_TRAILER_BYTES - 7);
    assert_eq!(end(&trailers(MAX_TRAILER_BYTES + 1)), Err(Http1Error::TrailersTooLarge));
    assert_eq!(end(&format!("{}\r\n", "A:\r\n".repeat(MAX_FIELDS))).unwrap().trailers.len(), MAX_FIELDS);
    assert_eq!(end(&format!("{}\r\n", "A:\r\n".repeat(MAX_FIELDS + 1))), Err(Http1Error::TooManyFields));
    for bad in
        ["A: b\n\r\n", "\n", "no colon\r\n\r\n", "A : b\r\n\r\n", "A: b\r\n c\r\n\r\n", "A: \0\r\n\r\n"]
    {
        assert_eq!(end(bad), Err(Http1Error::BadTrailer), "{bad:?}");
    }
}

#[test]
fn the_connections_end_is_told_apart_by_where_it_comes() {
    assert_eq!(get("").end, Err(Incomplete::Head { got: 0 }.into()));
    assert_eq!(get("HTTP/1.1 100 Continue\r\n\r\n").end, Err(Incomplete::Head { got: 0 }.into()));
    assert_eq!(get("HTTP/1.1 200 OK\r\n").end, Err(Incomplete::Head { got: 17 }.into()));
    assert_eq!(get("HTTP/1.1 200 OK\r\n\r\nhalf").end, Ok(End::default()));

    let mut decoder = ResponseDecoder::new(&Method::GET, Limits::default());
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    assert!(matches!(decoder.next(head), Ok((38, Some(Part::Head(_))))));
    assert_eq!(decoder.eof(), Ok(End::default()), "nothing was owed");
    assert_eq!(decoder.next(b"x"), Ok((0, None)));
}

#[test]
fn decoders_are_small_and_show_no_bytes() {
    assert!(size_of::<ResponseDecoder>() <= 112, "{}", size_of::<ResponseDecoder>());
    let mut decoder = ResponseDecoder::new(&Method::GET, Limits::default());
    assert_eq!(decoder.next(b"HTTP/1.1 200 OK\r\nSet-Cookie: secret"), Ok((35, None)));
    let debug = format!("{decoder:?}");
    assert!(debug.contains("Section(35 bytes)") && !debug.contains("secret"), "{debug}");
}

prop_compose! {
    /// A response that is valid, and what it must decode to
    fn valid_response()(
        interim in prop::collection::vec(prop::sample::select(vec![100_u16, 102, 103, 199]), 0..3),
        status in prop::sample::select(vec![200_u16, 201, 400, 429, 503, 999]),
        values in prop::collection::vec("[!-~]([ !-~]{0,20}[!-~])?", 0..6),
        chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..6),
        trailers in prop::collection::vec("[!-~]{1,10}", 0..3),
        framing in 0..3,
        surplus in prop::collection::vec(any::<u8>(), 0..10),
    ) -> (Vec<u8>, Exchange) {
        let (chunked, sized) = (framing == 0, framing == 1);
        let body = chunks.concat();
        let mut headers = HeaderMap::new();
        for (n, value) in values.iter().enumerate() {
            let name: http::HeaderName = format!("x-{}", n % 4).parse().unwrap();
            headers.append(name, value.parse().unwrap());
        }
        if chunked {
            headers.append("transfer-encoding", "chunked".parse().unwrap());
        } else if sized {
            headers.append("content-length", body.len().into());
        }
        let mut bytes = Vec::new();
        for status in &interim {
            bytes.extend_from_slice(format!("HTTP/1.1 {status} X\r\nA: b\r\n\r\n").as_bytes());
        }
        bytes.extend_from_slice(format!("HTTP/1.1 {status} Reason\r\n").as_bytes());
        for (name, value) in &headers {
            bytes.extend_from_slice(format!("{name}: \t").as_bytes());
            bytes.extend_from_slice(value.as_bytes());
            bytes.extend_from_slice(b" \r\n");
        }
        bytes.extend_from_slice(b"\r\n");
        let mut end = End { reusable: chunked || sized, trailers: HeaderMap::new() };
        if chunked {
            for chunk in &chunks {
                bytes.extend_from_slice(format!("{:x};e=\"\\\";\"\r\n", chunk.len()).as_bytes());
                bytes.extend_from_slice(chunk);
                bytes.extend_from_slice(b"\r\n");
            }
            bytes.extend_from_slice(b"0\r\n");
            for trailer in &trailers {
                bytes.extend_from_slice(format!("T: {trailer}\r\n").as_bytes());
                end.trailers.append("t", trailer.parse().unwrap());
            }
            bytes.extend_from_slice(b"\r\n");
        } else {
            bytes.extend_from_slice(&body);
        }
        let by_eof = !chunked && !sized;
        let surplus = if by_eof { Vec::new() } else { surplus };
        bytes.extend_from_slice(&surplus);
        let head = ResponseHead {
            version: Version::HTTP_11,
            status: http::StatusCode::from_u16(status).unwrap(),
            reason: "Reason".into(),
            headers,
        };
        (bytes, Exchange { interim, head: Some(head), body, end: Ok(end), by_eof, surplus })
    }
}

proptest! {
    #[test]
    fn any_split_of_a_valid_response_gives_the_same_parts(
        (bytes, expected) in valid_response(),
        lengths in prop::collection::vec(0..30_usize, 0..200),
    ) {
        let mut rest = &bytes[..];
        let mut pieces = Vec::new();
        for length in lengths {
            let (piece, after) = rest.split_at(length.min(rest.len()));
            pieces.push(piece);
            rest = after;
        }
        pieces.push(rest);
        prop_assert_eq!(decode(&Method::POST, pieces, Limits::default()), expected);
    }

    #[test]
    fn any_bytes_give_the_same_parts_whole_and_split(
        bytes in "(HTTP/1.[01] [0-9]{3} ?O?\r?\n)?((Content-Length|Transfer-Encoding|Connection|A): ?(chunked|close|[0-9]{1,2}|\\PC{1,4})\r?\n){0,3}\r?\n[0-9a-f;\r\n \\x00]{0,40}",
    ) {
        let whole = decode(&Method::GET, [bytes.as_bytes()], Limits::default());
        prop_assert_eq!(decode(&Method::GET, bytes.as_bytes().chunks(1), Limits::default()), whole);
    }
}

/// Each kind of part that has fields, and those fields
fn fields_of(bytes: &[u8], size: usize) -> Vec<(&'static str, Vec<String>)> {
    let mut decoder = ResponseDecoder::new(&Method::GET, Limits::default()).keep_fields();
    let mut told = Vec::new();
    for mut read in bytes.chunks(size) {
        while let (consumed, Some(part)) = decoder.next(read).unwrap() {
            let kind = match part {
                Part::Interim(_) => "interim",
                Part::Head(_) => "head",
                Part::End(_) => "end",
                Part::Body(_) => "",
            };
            let line = |(name, value)| format!("{name}: {}", std::str::from_utf8(value).unwrap());
            if !kind.is_empty() {
                told.push((kind, decoder.take_fields().iter().map(line).collect()));
            }
            read = &read[consumed..];
        }
    }
    told
}

#[test]
fn fields_are_kept_in_their_order_and_case() {
    let head = "HTTP/1.1 103 \r\nLINK: x\r\n\r\nHTTP/1.1 200 OK\r\nb: 1\r\nA: 2\r\nB:  3\r\n 4\r\na: 5\r\n";
    let chunked =
        format!("{head}Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nT: 1\r\nU: 2\r\nt: 3\r\n\r\n");
    let lengthy = format!("{head}Content-Length: 0\r\n\r\n");
    for (message, framing, trailers) in [
        (&chunked, "Transfer-Encoding: chunked", &["T: 1", "U: 2", "t: 3"][..]),
        (&lengthy, "Content-Length: 0", &[]),
    ] {
        for size in 1..=message.len() {
            let told = fields_of(message.as_bytes(), size);
            let owned = |lines: &[&str]| lines.iter().map(|&line| line.to_owned()).collect::<Vec<_>>();
            let head = owned(&["b: 1", "A: 2", "B: 3 4", "a: 5", framing]);
            let expected = [("interim", owned(&["LINK: x"])), ("head", head), ("end", owned(trailers))];
            assert_eq!(told, expected, "in reads of {size}");
        }
    }
    let mut decoder = ResponseDecoder::new(&Method::GET, Limits::default());
    decoder.next(lengthy.as_bytes()).unwrap();
    assert!(decoder.take_fields().is_empty());
}
