//! Requests as they come in: heads by `httparse`, bodies by length or in chunks.

use crate::record::{Recorded, RequestRecord};
use crate::state::State;

/// No head may be longer, in bytes
const LONGEST_HEAD: usize = 256 * 1024;
/// No line inside a chunked body may be longer, in bytes
const LONGEST_LINE: usize = 8 * 1024;
/// So much of a body is kept, in bytes
const KEPT_BODY: usize = 64 * 1024;

/// Reads what comes on one connection, and keeps the record of it
pub(crate) struct Requests {
    connection: u64,
    reading: Reading,
    /// Bytes of a head or a line that is not complete
    partial: Vec<u8>,
    /// Where the request that is being read stands in the record
    index: usize,
    /// Requests whose head came
    pub(crate) heads: u64,
    /// Requests that came whole
    pub(crate) complete: u64,
}

/// What the next byte belongs to
#[derive(Clone, Copy)]
enum Reading {
    Head,
    /// A body with so many bytes left
    Body(u64),
    ChunkSize,
    Chunk(u64),
    /// The line end behind a chunk
    ChunkEnd,
    Trailer,
}

impl Requests {
    pub(crate) fn new(connection: u64) -> Self {
        Self { connection, reading: Reading::Head, partial: Vec::new(), index: 0, heads: 0, complete: 0 }
    }

    /// Takes in bytes; what is wrong with them if they are no HTTP/1.1
    pub(crate) fn feed(&mut self, mut bytes: &[u8], state: &State) -> Result<(), String> {
        while !bytes.is_empty() {
            bytes = match self.reading {
                Reading::Head => self.head(bytes, state)?,
                Reading::Body(left) | Reading::Chunk(left) => self.body(bytes, left, state),
                Reading::ChunkSize | Reading::ChunkEnd | Reading::Trailer => self.line(bytes, state)?,
            };
        }
        Ok(())
    }

    fn head<'b>(&mut self, bytes: &'b [u8], state: &State) -> Result<&'b [u8], String> {
        let before = self.partial.len();
        self.partial.extend_from_slice(bytes);
        let mut headers = [httparse::EMPTY_HEADER; 256];
        let mut request = httparse::Request::new(&mut headers);
        let length =
            match request.parse(&self.partial).map_err(|error| format!("the request's head: {error}"))? {
                httparse::Status::Partial if self.partial.len() > LONGEST_HEAD => {
                    return Err(format!("a request's head of more than {LONGEST_HEAD} bytes"));
                }
                httparse::Status::Partial => return Ok(&[]),
                httparse::Status::Complete(length) => length,
            };
        let body = body_of(request.headers)?;
        let record = RequestRecord {
            connection: self.connection,
            at: state.now(),
            method: request.method.unwrap_or_default().to_owned(),
            target: redact_target(request.path.unwrap_or_default()),
            headers: request.headers.iter().map(header).collect(),
            ..RequestRecord::default()
        };
        self.index = state.record(|recorded| {
            recorded.requests.push(record);
            recorded.requests.len() - 1
        });
        self.heads += 1;
        self.partial.clear();
        self.enter(body, state);
        Ok(&bytes[length - before..])
    }

    /// Goes on with that; a body of no bytes is complete at once
    fn enter(&mut self, reading: Reading, state: &State) {
        self.reading = reading;
        if matches!(reading, Reading::Body(0)) {
            self.reading = Reading::Head;
            self.complete += 1;
            self.update(state, |request| request.complete = true);
            state.requested(self.index);
        }
    }

    /// Nothing more will come
    pub(crate) fn end(&self, state: &State) {
        if self.heads > self.complete {
            state.requested(self.index);
        }
    }

    fn body<'b>(&mut self, bytes: &'b [u8], left: u64, state: &State) -> &'b [u8] {
        let taken = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
        let (content, rest) = bytes.split_at(taken);
        self.update(state, |request| {
            request.body_len += content.len() as u64;
            let room = KEPT_BODY.saturating_sub(request.body.len()).min(content.len());
            request.body.extend_from_slice(&content[..room]);
        });
        let left = left - taken as u64;
        let next = match self.reading {
            Reading::Chunk(_) if left == 0 => Reading::ChunkEnd,
            Reading::Chunk(_) => Reading::Chunk(left),
            Reading::Head | Reading::Body(_) | Reading::ChunkSize | Reading::ChunkEnd | Reading::Trailer => {
                Reading::Body(left)
            }
        };
        self.enter(next, state);
        rest
    }

    /// A line of the chunked coding (RFC 9112, 7.1)
    fn line<'b>(&mut self, bytes: &'b [u8], state: &State) -> Result<&'b [u8], String> {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(bytes.len(), |end| end + 1);
        self.partial.extend_from_slice(&bytes[..taken]);
        if self.partial.len() > LONGEST_LINE {
            return Err(format!("a line of more than {LONGEST_LINE} bytes in a chunked body"));
        }
        if end.is_none() {
            return Ok(&[]);
        }
        let line = std::mem::take(&mut self.partial);
        let line = line.strip_suffix(b"\r\n").ok_or("a bare LF in a chunked body")?;
        let next = match self.reading {
            Reading::ChunkSize => match chunk_size(line)? {
                0 => Reading::Trailer,
                size => Reading::Chunk(size),
            },
            Reading::ChunkEnd if line.is_empty() => Reading::ChunkSize,
            Reading::ChunkEnd => return Err("no line end behind a chunk".to_owned()),
            Reading::Trailer if line.is_empty() => Reading::Body(0),
            Reading::Head | Reading::Body(_) | Reading::Chunk(_) | Reading::Trailer => Reading::Trailer,
        };
        self.enter(next, state);
        Ok(&bytes[taken..])
    }

    fn update(&self, state: &State, change: impl FnOnce(&mut RequestRecord)) {
        let index = self.index;
        state.record(|Recorded { requests, .. }| change(&mut requests[index]));
    }
}

fn body_of(headers: &[httparse::Header<'_>]) -> Result<Reading, String> {
    let values = |name: &'static str| {
        headers.iter().filter(move |header| header.name.eq_ignore_ascii_case(name)).map(|header| header.value)
    };
    let mut coding = values("transfer-encoding");
    let mut lengths = values("content-length");
    match (coding.next(), lengths.next(), coding.next().is_some() || lengths.next().is_some()) {
        (None, None, _) => Ok(Reading::Body(0)),
        (Some(coding), None, false) if coding.eq_ignore_ascii_case(b"chunked") => Ok(Reading::ChunkSize),
        (None, Some(length), false) => std::str::from_utf8(length)
            .ok()
            .filter(|length| length.bytes().all(|digit| digit.is_ascii_digit()))
            .and_then(|length| length.parse().ok())
            .map(Reading::Body)
            .ok_or_else(|| "content-length is no number".to_owned()),
        (Some(_), _, _) | (None, Some(_), _) => Err("the length of the body is not clear".to_owned()),
    }
}

fn chunk_size(line: &[u8]) -> Result<u64, String> {
    let digits = line.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    std::str::from_utf8(digits)
        .ok()
        .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
        .and_then(|digits| u64::from_str_radix(digits, 16).ok())
        .ok_or_else(|| "a chunk's size is no number".to_owned())
}

const REDACTED: &str = "[redacted]";

fn header(header: &httparse::Header<'_>) -> (String, String) {
    const SECRET: [&str; 6] =
        ["authorization", "proxy-authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie"];
    let name = header.name.to_ascii_lowercase();
    let value = if SECRET.contains(&name.as_str()) {
        REDACTED.to_owned()
    } else {
        String::from_utf8_lossy(header.value).into_owned()
    };
    (name, value)
}

/// The target without the credentials that some providers take in the query
fn redact_target(target: &str) -> String {
    const SECRET: [&str; 5] = ["key", "api_key", "api-key", "access_token", "token"];
    let Some((path, query)) = target.split_once('?') else { return target.to_owned() };
    let redact = |pair: &str| match pair.split_once('=') {
        Some((name, _)) if SECRET.iter().any(|secret| name.eq_ignore_ascii_case(secret)) => {
            format!("{name}={REDACTED}")
        }
        Some(_) | None => pair.to_owned(),
    };
    let query: Vec<String> = query.split('&').map(redact).collect();
    format!("{path}?{}", query.join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(wire: &[u8], piece: usize) -> Result<Vec<RequestRecord>, String> {
        let state = State::new(None);
        let mut requests = Requests::new(3);
        for bytes in wire.chunks(piece) {
            requests.feed(bytes, &state)?;
        }
        let mut read = state.recorded().requests;
        read.iter_mut().for_each(|request| request.at = std::time::Duration::ZERO);
        Ok(read)
    }

    #[test]
    fn any_split_reads_the_same_requests() {
        let wire = b"POST /a?key=s3&x=1 HTTP/1.1\r\nAuthorization: Bearer s3\r\ncontent-length: 3\r\n\r\nabc\
            POST /b HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n2\r\nde\r\n1;x=y\r\nf\r\n0\r\nt: v\r\n\r\n\
            GET /c HTTP/1.1\r\n\r\n";
        let expected =
            |method: &str, target: &str, header: Option<(&str, &str)>, more: (&str, &str), body: &[u8]| {
                RequestRecord {
                    connection: 3,
                    method: method.to_owned(),
                    target: target.to_owned(),
                    headers: header
                        .into_iter()
                        .chain((!more.0.is_empty()).then_some(more))
                        .map(|(name, value)| (name.to_owned(), value.to_owned()))
                        .collect(),
                    body_len: body.len() as u64,
                    body: body.to_vec(),
                    complete: true,
                    ..RequestRecord::default()
                }
            };
        let secret = Some(("authorization", "[redacted]"));
        let expected = [
            expected("POST", "/a?key=[redacted]&x=1", secret, ("content-length", "3"), b"abc"),
            expected("POST", "/b", None, ("transfer-encoding", "chunked"), b"def"),
            expected("GET", "/c", None, ("", ""), b""),
        ];
        for piece in 1..=wire.len() {
            assert_eq!(read(wire, piece).as_deref(), Ok(&expected[..]), "in pieces of {piece}");
        }
    }

    #[test]
    fn a_long_body_is_counted_whole_and_kept_in_part() {
        let mut wire = b"POST / HTTP/1.1\r\ncontent-length: 70000\r\n\r\n".to_vec();
        wire.extend_from_slice(&[b'x'; 69_999]);
        let request = &read(&wire, 4096).expect("valid")[0];
        assert_eq!((request.body_len, request.body.len(), request.complete), (69_999, 65_536, false));
    }

    #[test]
    fn what_is_no_http_is_named() {
        let error = |wire: &[u8]| read(wire, 7).expect_err("not HTTP");
        assert_eq!(error(b"\x16\x03\x01\x02\x00\x01\x00"), "the request's head: invalid token");
        assert_eq!(error(b"GET / HTTP/1.1\r\ncontent-length: +3\r\n\r\n"), "content-length is no number");
        assert_eq!(
            error(b"GET / HTTP/1.1\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n"),
            "the length of the body is not clear"
        );
        let chunked =
            |body: &str| format!("GET / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n{body}").into_bytes();
        assert_eq!(error(&chunked("+1\r\n")), "a chunk's size is no number");
        assert_eq!(error(&chunked("1\r\nab\r\n")), "no line end behind a chunk");
        assert_eq!(error(&chunked("1\n")), "a bare LF in a chunked body");
    }
}
