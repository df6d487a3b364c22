//! The HTTP/1.1 response decoder against third-party cases (`../shared/conformance/http.json`).
//!
//! Each case is decoded whole, byte by byte, cut in two everywhere (where it is short), and cut at
//! random; all must agree. The outcome must be one that the case allows, a complete response must
//! be the expected one in every field, and an error that the RFC demands must be of its kind.

use std::collections::BTreeMap;

use http::{HeaderMap, Method, Version};
use serde::Deserialize;
use steadfast::http1::{End, Fields, Http1Error, Incomplete, Limits, Part, ResponseDecoder, ResponseHead};
use steadfast_tests::shared;

/// Cases below this many bytes are cut in two at every place
const SHORT: usize = 2048;
const RANDOM_SPLITS: u64 = 20;

#[derive(Deserialize)]
struct Cases {
    count: usize,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    method: String,
    bytes_b64: String,
    expected: Expected,
    allowed_outcomes: Vec<String>,
    certainty: String,
}

#[derive(Deserialize)]
struct Expected {
    error_kind: Option<String>,
    version: Option<String>,
    status: Option<u16>,
    reason: Option<String>,
    headers: Option<Vec<(String, String)>>,
    interim: Vec<Interim>,
    body_b64: Option<String>,
    trailers: Option<Vec<(String, String)>>,
    keep_alive: bool,
    leftover_len: usize,
}

#[derive(Deserialize)]
struct Interim {
    status: u16,
}

/// What a decoder said of one connection: the same for every split of the bytes
#[derive(Debug, PartialEq)]
struct Decoded {
    interim: Vec<u16>,
    head: Option<ResponseHead>,
    headers: Fields,
    trailers: Fields,
    body: Vec<u8>,
    end: Result<End, Http1Error>,
    leftover: usize,
}

#[test]
fn every_case_of_http_json() {
    let Some(path) = shared::path("conformance/http.json") else { return };
    let cases: Cases = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(cases.cases.len(), cases.count);
    let mut failures = Vec::new();
    let (mut splits, mut complete) = (0, 0);
    for case in &cases.cases {
        match run(case, &mut splits) {
            Ok(decoded) => complete += usize::from(decoded.end.is_ok()),
            Err(failure) => failures.push(format!("{}: {failure}", case.name)),
        }
    }
    let passed = cases.count - failures.len();
    println!("conformance http: {passed}/{} ({complete} complete, {splits} splits)", cases.count);
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

fn run(case: &Case, splits: &mut usize) -> Result<Decoded, String> {
    let bytes = base64(&case.bytes_b64);
    let method: Method = case.method.parse().map_err(|error| format!("method: {error}"))?;
    let whole = decode(&method, &[&bytes]);
    let mut agrees = |pieces: &[&[u8]], how: &str| {
        *splits += 1;
        let decoded = decode(&method, pieces);
        if decoded == whole { Ok(()) } else { Err(format!("{how}: {decoded:?}, whole: {whole:?}")) }
    };
    agrees(&bytes.chunks(1).collect::<Vec<_>>(), "byte by byte")?;
    if bytes.len() < SHORT {
        for cut in 0..=bytes.len() {
            agrees(&[&bytes[..cut], &bytes[cut..]], &format!("cut at {cut}"))?;
        }
    }
    for seed in 0..RANDOM_SPLITS {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut pieces = Vec::new();
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let longest = 1 << random.u32(0..12);
            let (piece, after) = rest.split_at(random.usize(0..=rest.len().min(longest)));
            pieces.push(piece);
            rest = after;
        }
        agrees(&pieces, &format!("random split {seed}"))?;
    }
    judge(case, &whole)?;
    Ok(whole)
}

fn decode(method: &Method, pieces: &[&[u8]]) -> Decoded {
    let mut decoder = ResponseDecoder::new(method, Limits::default()).keep_fields();
    let (mut headers, mut trailers) = (Fields::default(), Fields::default());
    let (mut interim, mut head, mut body, mut end, mut leftover) = (Vec::new(), None, Vec::new(), None, 0);
    for mut piece in pieces.iter().copied() {
        while end.as_ref().is_none_or(|end: &Result<_, _>| end.is_ok()) {
            let (consumed, part) = match decoder.next(piece) {
                Ok(next) => next,
                Err(error) => {
                    end = Some(Err(error));
                    break;
                }
            };
            match part {
                Some(Part::Interim(status)) => interim.push(status.as_u16()),
                Some(Part::Head(final_head)) => {
                    headers = decoder.take_fields();
                    head = Some(final_head);
                }
                Some(Part::Body(range)) => body.extend_from_slice(&piece[range]),
                Some(Part::End(ended)) => {
                    trailers = decoder.take_fields();
                    end = Some(Ok(ended));
                }
                None => {
                    leftover += piece.len() - consumed;
                    break;
                }
            }
            piece = &piece[consumed..];
        }
    }
    let end = end.unwrap_or_else(|| decoder.eof());
    Decoded { interim, head, headers, trailers, body, end, leftover }
}

/// Compares with what the case allows and expects
fn judge(case: &Case, decoded: &Decoded) -> Result<(), String> {
    let expected = &case.expected;
    let outcome = outcome(case, decoded);
    if !case.allowed_outcomes.iter().any(|allowed| allowed == outcome) {
        return Err(format!("{:?}, allowed: {:?}", decoded.end, case.allowed_outcomes));
    }
    let end = match &decoded.end {
        Ok(end) => end,
        Err(error) if case.certainty == "must" => {
            return same("error kind", &error_kind(error), &expected.error_kind.as_deref());
        }
        Err(_) => return Ok(()),
    };
    let head = decoded.head.as_ref().ok_or("no head")?;
    let version = if head.version == Version::HTTP_10 { "1.0" } else { "1.1" };
    same("version", &Some(version), &expected.version.as_deref())?;
    same("status", &Some(head.status.as_u16()), &expected.status)?;
    same("reason", &Some(latin_1(&head.reason)), &expected.reason)?;
    same("headers", &lines(&decoded.headers), &expected_lines(&expected.headers))?;
    same("the map of headers", &fields(&head.headers), &grouped(&lines(&decoded.headers)))?;
    let interim = expected.interim.iter().map(|interim| interim.status).collect();
    same("interim", &decoded.interim, &interim)?;
    same("body", &decoded.body, &base64(expected.body_b64.as_deref().unwrap_or_default()))?;
    same("trailers", &lines(&decoded.trailers), &expected_lines(&expected.trailers))?;
    same("the map of trailers", &fields(&end.trailers), &grouped(&lines(&decoded.trailers)))?;
    same("keep_alive", &end.reusable, &expected.keep_alive)?;
    same("leftover_len", &decoded.leftover, &expected.leftover_len)
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, got: &T, expected: &T) -> Result<(), String> {
    if got == expected { Ok(()) } else { Err(format!("{what}: {got:?}, expected: {expected:?}")) }
}

fn outcome(case: &Case, decoded: &Decoded) -> &'static str {
    let success = decoded.head.as_ref().is_some_and(|head| head.status.is_success());
    match &decoded.end {
        // RFC 9110 9.3.6: what follows the head is the tunnel's, as it is the new protocol's after 101.
        Ok(_) if case.method == "CONNECT" && success => "upgrade",
        Ok(_) => "complete",
        Err(Http1Error::Incomplete(_)) => "incomplete",
        Err(Http1Error::UnaskedUpgrade) => "upgrade",
        Err(_) => "error",
    }
}

/// The kind that the cases have for an error; `None` where the RFC never demands it
fn error_kind(error: &Http1Error) -> Option<&'static str> {
    match error {
        Http1Error::BadStatusLine => Some("bad_status_line"),
        Http1Error::BadContentLength => Some("bad_content_length"),
        Http1Error::ConflictingContentLength => Some("conflicting_content_length"),
        Http1Error::BadChunkSize => Some("bad_chunk_size"),
        Http1Error::ChunkSizeOverflow => Some("chunk_size_overflow"),
        Http1Error::BadChunkEnd | Http1Error::BadChunkExtension => Some("bad_chunk_terminator"),
        Http1Error::Incomplete(Incomplete::Head { .. }) => Some("eof_in_head"),
        Http1Error::Incomplete(Incomplete::Body { .. } | Incomplete::Chunked { .. }) => Some("eof_in_body"),
        Http1Error::BadField
        | Http1Error::HeadTooLarge { .. }
        | Http1Error::TooManyFields
        | Http1Error::TooManyInterimResponses
        | Http1Error::UnaskedUpgrade
        | Http1Error::LengthAndTransferEncoding
        | Http1Error::UnsupportedTransferEncoding
        | Http1Error::ChunkLineTooLong
        | Http1Error::BadTrailer
        | Http1Error::TrailersTooLarge => None,
    }
}

/// Names, which compare in any case, and values, in the order in which they came
fn lines(fields: &Fields) -> Vec<(String, String)> {
    let line = |(name, value): (&str, &[u8])| (name.to_ascii_lowercase(), latin_1(value));
    fields.iter().map(line).collect()
}

fn expected_lines(lines: &Option<Vec<(String, String)>>) -> Vec<(String, String)> {
    lines.iter().flatten().map(|(name, value)| (name.to_ascii_lowercase(), value.clone())).collect()
}

/// The values of each field in order; a map keeps no other
fn fields(map: &HeaderMap) -> BTreeMap<String, Vec<String>> {
    let lines = map.iter().map(|(name, value)| (name.as_str().to_owned(), latin_1(value.as_bytes())));
    grouped(&lines.collect::<Vec<_>>())
}

fn grouped(lines: &[(String, String)]) -> BTreeMap<String, Vec<String>> {
    let mut fields = BTreeMap::<_, Vec<_>>::new();
    for (name, value) in lines {
        fields.entry(name.clone()).or_default().push(value.clone());
    }
    fields
}

fn latin_1(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

/// Decodes padded base64 (RFC 4648 4)
fn base64(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut held) = (0_u32, 0);
    for digit in text.bytes().filter(|&digit| digit != b'=') {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => panic!("{digit:#x} is no base64 digit"),
        };
        bits = bits << 6 | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
        }
    }
    bytes
}
