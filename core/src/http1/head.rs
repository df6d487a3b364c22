//! Response heads: the status line, the header fields, and what they say about the body.

use std::fmt;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName, StatusCode, Version};

use super::section::{Names, to_map, with_room};
use super::{Fields, Http1Error};

/// The head of a final response
///
/// Its `Debug` form names the header fields and shows no values: cookies are secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct ResponseHead {
    /// HTTP/1.0 or HTTP/1.1
    pub version: Version,
    /// The status: any three digits from 100 up, also those over 599
    pub status: StatusCode,
    /// The reason phrase as it came, perhaps empty; carries no meaning (RFC 9112 4)
    pub reason: Bytes,
    /// The header fields; [`ResponseDecoder::take_fields`](super::ResponseDecoder::take_fields) has them
    /// as they came
    pub headers: HeaderMap,
}

impl fmt::Debug for ResponseHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseHead")
            .field("version", &self.version)
            .field("status", &self.status)
            .field("headers", &Names(&self.headers))
            .finish_non_exhaustive()
    }
}

/// How the end of a body is found
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// By its length in bytes
    Length(u64),
    /// By its last chunk
    Chunked,
    /// By the end of the connection
    UntilEof,
}

impl ResponseHead {
    /// Reads a whole head, its empty line included, and its fields into `kept`
    pub(super) fn parse(bytes: &[u8], mut kept: Option<&mut Fields>) -> Result<Self, Http1Error> {
        let mut config = httparse::ParserConfig::default();
        config.allow_obsolete_multiline_headers_in_responses(true);
        let (version, code, headers) = with_room(|room| {
            let mut response = httparse::Response::new(room);
            config.parse_response(&mut response, bytes)?;
            Ok((response.version, response.code, to_map(response.headers, kept.as_deref_mut())))
        })
        .map_err(refusal)?;
        let version = match version {
            Some(0) => Version::HTTP_10,
            Some(1) => Version::HTTP_11,
            Some(_) | None => return Err(Http1Error::BadStatusLine),
        };
        let status =
            code.and_then(|code| StatusCode::from_u16(code).ok()).ok_or(Http1Error::BadStatusLine)?;
        let headers = headers.ok_or(Http1Error::BadField)?;
        Ok(Self { version, status, reason: reason(bytes, status), headers })
    }

    /// How the body ends, where the request was not HEAD or CONNECT (RFC 9112 6.3)
    pub(super) fn framing(&self) -> Result<Framing, Http1Error> {
        if matches!(self.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) {
            return Ok(Framing::Length(0));
        }
        let length = self.content_length()?;
        if !self.headers.contains_key(TRANSFER_ENCODING) {
            return Ok(length.map_or(Framing::UntilEof, Framing::Length));
        }
        if length.is_some() {
            return Err(Http1Error::LengthAndTransferEncoding);
        }
        let mut codings = self.headers.get_all(TRANSFER_ENCODING).iter();
        match (codings.next(), codings.next()) {
            (Some(coding), None) if coding.as_bytes().eq_ignore_ascii_case(b"chunked") => {
                Ok(Framing::Chunked)
            }
            _ => Err(Http1Error::UnsupportedTransferEncoding),
        }
    }

    /// Whether the server keeps the connection open after this response (RFC 9112 9.3)
    pub(super) fn keeps_alive(&self) -> bool {
        let says =
            |token: &str| self.connection_tokens().any(|said| said.eq_ignore_ascii_case(token.as_bytes()));
        // RFC 9112 6.1: chunks from an HTTP/1.0 server are faulty framing.
        let old = self.version == Version::HTTP_10;
        let faulty = old && self.headers.contains_key(TRANSFER_ENCODING);
        !says("close") && !faulty && (!old || says("keep-alive"))
    }

    fn connection_tokens(&self) -> impl Iterator<Item = &[u8]> {
        list(&self.headers, CONNECTION)
    }

    fn content_length(&self) -> Result<Option<u64>, Http1Error> {
        let mut length = None;
        for value in list(&self.headers, CONTENT_LENGTH) {
            let value = parse_length(value).ok_or(Http1Error::BadContentLength)?;
            if length.is_some_and(|length| length != value) {
                return Err(Http1Error::ConflictingContentLength);
            }
            length = Some(value);
        }
        Ok(length)
    }
}

/// The members of a comma-separated field over all its lines, empty ones included
fn list(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = &[u8]> {
    let lines = headers.get_all(name).into_iter();
    lines.flat_map(|line| line.as_bytes().split(|&byte| byte == b',').map(<[u8]>::trim_ascii))
}

/// Digits only: `parse` alone would take a sign
fn parse_length(digits: &[u8]) -> Option<u64> {
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// What follows the status code on the status line
fn reason(head: &[u8], status: StatusCode) -> Bytes {
    const BEFORE_REASON: usize = "HTTP/1.1 200 ".len();
    let line = head.trim_ascii_start();
    let line = &line[..memchr::memchr(b'\n', line).unwrap_or(line.len())];
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let reason = line.get(BEFORE_REASON..).unwrap_or_default();
    match status.canonical_reason() {
        Some(usual) if usual.as_bytes() == reason => Bytes::from_static(usual.as_bytes()),
        Some(_) | None => Bytes::copy_from_slice(reason),
    }
}

fn refusal(error: httparse::Error) -> Http1Error {
    match error {
        httparse::Error::TooManyHeaders => Http1Error::TooManyFields,
        httparse::Error::Status | httparse::Error::Token | httparse::Error::Version => {
            Http1Error::BadStatusLine
        }
        httparse::Error::HeaderName | httparse::Error::HeaderValue | httparse::Error::NewLine => {
            Http1Error::BadField
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(text: &str) -> ResponseHead {
        ResponseHead::parse(text.as_bytes(), None).unwrap()
    }

    fn framing(fields: &str) -> Result<Framing, Http1Error> {
        head(&format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n")).framing()
    }

    #[test]
    fn lengths_may_repeat_but_not_differ() {
        for equal in
            ["Content-Length: 6", "Content-Length: 6, 06,6", "Content-Length: 6\r\nContent-Length:\t6 "]
        {
            assert_eq!(framing(equal), Ok(Framing::Length(6)), "{equal}");
        }
        for different in ["Content-Length: 6, 7", "Content-Length: 6\r\nContent-Length: 7"] {
            assert_eq!(framing(different), Err(Http1Error::ConflictingContentLength), "{different}");
        }
    }

    #[test]
    fn lengths_are_digits_that_fit() {
        assert_eq!(framing("Content-Length: 18446744073709551615"), Ok(Framing::Length(u64::MAX)));
        for bad in ["", ",", "6,", ",6", "-1", "+1", "0x1", "1.0", "6 6", "\"6\"", "18446744073709551616"] {
            let fields = format!("Content-Length: {bad}");
            assert_eq!(framing(&fields), Err(Http1Error::BadContentLength), "{fields}");
        }
    }

    #[test]
    fn the_only_transfer_coding_is_chunked_once() {
        assert_eq!(framing("Transfer-Encoding: Chunked"), Ok(Framing::Chunked));
        let refused = Err(Http1Error::UnsupportedTransferEncoding);
        for codings in
            ["", "gzip", "identity", "gzip, chunked", "chunked, gzip", "chunked, chunked", "chunked;q=1"]
        {
            assert_eq!(framing(&format!("Transfer-Encoding: {codings}")), refused, "{codings}");
        }
        assert_eq!(framing("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"), refused);
    }

    #[test]
    fn keep_alive_follows_the_version_and_the_connection_tokens() {
        let keeps = |version: &str, fields: &str| {
            head(&format!("HTTP/{version} 200 OK\r\n{fields}\r\n")).keeps_alive()
        };
        assert!(keeps("1.1", ""));
        assert!(keeps("1.1", "Connection: x-close\r\n"));
        assert!(!keeps("1.1", "Connection: Keep-Alive, CLOSE\r\n"));
        assert!(!keeps("1.1", "Connection: upgrade\r\nConnection: close\r\n"));
        assert!(!keeps("1.0", ""));
        assert!(keeps("1.0", "Connection: Keep-Alive\r\n"));
        assert!(!keeps("1.0", "Connection: keep-alive, close\r\n"));
        assert!(!keeps("1.0", "Connection: keep-alive\r\nTransfer-Encoding: chunked\r\n"));
    }

    #[test]
    fn reason_phrases_are_kept_as_they_came() {
        for (line, reason) in [
            ("HTTP/1.1 200 OK", "OK"),
            ("\r\n\nHTTP/1.1 404 No  such \u{e9} ", "No  such \u{e9} "),
            ("HTTP/1.1 200 ", ""),
            ("HTTP/1.1 200", ""),
        ] {
            assert_eq!(head(&format!("{line}\r\n\r\n")).reason, reason, "{line}");
        }
    }

    #[test]
    fn debug_shows_no_values() {
        let head = head("HTTP/1.1 200 OK\r\nSet-Cookie: secret\r\n\r\n");
        let expected = r#"ResponseHead { version: HTTP/1.1, status: 200, headers: ["set-cookie"], .. }"#;
        assert_eq!(format!("{head:?}"), expected);
    }

    #[test]
    fn each_broken_line_has_its_error() {
        let parse = |text: &str| ResponseHead::parse(text.as_bytes(), None).unwrap_err();
        for line in
            ["HTTP/1.2 200 OK", "HTTP/2 200 OK", "HTTP/1.1  200 OK", "HTTP/1.1 20 OK", "HTTP/1.1 099 OK"]
        {
            assert_eq!(parse(&format!("{line}\r\n\r\n")), Http1Error::BadStatusLine, "{line}");
        }
        for line in ["no colon", "A : b", ": b", "A: b\rc", "A: \0", "A: b\x01", "A\u{e9}: b"] {
            let text = format!("HTTP/1.1 200 OK\r\n{line}\r\n\r\n");
            assert_eq!(parse(&text), Http1Error::BadField, "{line:?}");
        }
        assert_eq!(parse("HTTP/1.1 200 OK\r\n A: b\r\n\r\n"), Http1Error::BadField);
        assert_eq!(parse("HTTP/1.1 200 OK\r\nA: b\r\n\rC: d\r\n\r\n"), Http1Error::BadField);
    }
}
