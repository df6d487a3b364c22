//! The head of a request that came: its request line, and what its fields say about the message.

use std::fmt;

use http::{Method, Version};

use super::lines::token;
use super::{Fields, RequestFault};

/// A request that came, up to its body
///
/// Its `Debug` form names the header fields, shows no values, and of the target only the path: a query
/// can hold a key.
#[derive(Clone, PartialEq, Eq)]
pub struct IncomingRequest {
    /// The method: any but CONNECT and TRACE
    pub method: Method,
    /// The path and the query, as they came: visible ASCII that begins with a slash
    pub target: String,
    /// HTTP/1.0 or HTTP/1.1
    pub version: Version,
    /// All fields of the head, those that frame the message too
    pub fields: Fields,
    /// How the end of the body is found
    pub body: BodyLength,
    /// Whether the connection may carry another request behind this one (RFC 9112 9.3)
    pub keeps_alive: bool,
    /// Whether the body is held back until an interim 100 has been sent (RFC 9110 10.1.1)
    ///
    /// Never in HTTP/1.0, nor where there is no body.
    pub expects_continue: bool,
}

/// How the end of a request's body is found
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyLength {
    /// There is no body, and nothing said so
    None,
    /// By its length in bytes, which can be zero
    Length(u64),
    /// By its last chunk
    Chunked,
}

impl IncomingRequest {
    /// The value of `Host`; none where an HTTP/1.0 request has none
    pub fn host(&self) -> Option<&str> {
        self.fields.get("host").and_then(|host| std::str::from_utf8(host).ok())
    }

    /// The path: the target without its query
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// Reads a request line without its end; the fields are still to come
    pub(super) fn parse_line(line: &[u8], max_target_bytes: usize) -> Result<Self, RequestFault> {
        if line == b"PRI * HTTP/2.0" {
            return Err(RequestFault::Http2);
        }
        let (method, rest) = split(line, memchr::memchr(b' ', line))?;
        let (target, version) = split(rest, memchr::memrchr(b' ', rest))?;
        let method = token(method).ok_or(RequestFault::BadRequestLine)?;
        let method = Method::from_bytes(method.as_bytes()).map_err(|_| RequestFault::BadRequestLine)?;
        let version = parse_version(version)?;
        if matches!(method, Method::CONNECT | Method::TRACE) {
            return Err(RequestFault::UnsupportedMethod);
        }
        if target.len() > max_target_bytes {
            return Err(RequestFault::TargetTooLong { limit: max_target_bytes });
        }
        Ok(Self { method, target: parse_target(target)?.to_owned(), version, ..Self::empty() })
    }

    /// The place of a request that is not there
    pub(super) fn empty() -> Self {
        Self {
            method: Method::GET,
            target: String::new(),
            version: Version::HTTP_11,
            fields: Fields::default(),
            body: BodyLength::None,
            keeps_alive: false,
            expects_continue: false,
        }
    }

    /// Reads what the fields say about the message, once all of them came
    pub(super) fn interpret(&mut self) -> Result<(), RequestFault> {
        self.check_host()?;
        self.body = self.body_length()?;
        let has_body = !matches!(self.body, BodyLength::None | BodyLength::Length(0));
        let expects = self.expects()?;
        self.expects_continue = expects && has_body && !self.is_old();
        let says = |token: &str| {
            self.fields.members("connection").any(|said| said.eq_ignore_ascii_case(token.as_bytes()))
        };
        self.keeps_alive = !says("close") && (!self.is_old() || says("keep-alive"));
        Ok(())
    }

    fn is_old(&self) -> bool {
        self.version == Version::HTTP_10
    }

    fn check_host(&self) -> Result<(), RequestFault> {
        let mut hosts = self.fields.get_all("host");
        match (hosts.next(), hosts.next()) {
            (Some(_), Some(_)) => Err(RequestFault::RepeatedHost),
            (Some(host), None) if is_authority(host) => Ok(()),
            (Some(_), None) => Err(RequestFault::BadHost),
            (None, _) if self.is_old() => Ok(()),
            (None, _) => Err(RequestFault::NoHost),
        }
    }

    /// How the body ends (RFC 9112 6.3), where it can end in one way only
    fn body_length(&self) -> Result<BodyLength, RequestFault> {
        let mut lengths = self.fields.get_all("content-length");
        let mut codings = self.fields.get_all("transfer-encoding");
        match (lengths.next(), codings.next()) {
            (None, None) => Ok(BodyLength::None),
            (Some(_), Some(_)) => Err(RequestFault::LengthAndTransferEncoding),
            (Some(_), None) if lengths.next().is_some() => Err(RequestFault::RepeatedContentLength),
            (Some(length), None) => parse_length(length).map(BodyLength::Length),
            (None, Some(_)) if self.is_old() => Err(RequestFault::TransferEncodingInHttp10),
            (None, Some(_)) if codings.next().is_some() => Err(RequestFault::BadTransferEncoding),
            (None, Some(coding)) if coding.eq_ignore_ascii_case(b"chunked") => Ok(BodyLength::Chunked),
            (None, Some(codings)) if ends_in_chunked(codings) => {
                Err(RequestFault::UnsupportedTransferEncoding)
            }
            (None, Some(_)) => Err(RequestFault::BadTransferEncoding),
        }
    }

    /// Whether `Expect: 100-continue` is there
    fn expects(&self) -> Result<bool, RequestFault> {
        let mut expects = false;
        for expectation in self.fields.members("expect") {
            if !expectation.eq_ignore_ascii_case(b"100-continue") {
                return Err(RequestFault::UnsupportedExpectation);
            }
            expects = true;
        }
        Ok(expects)
    }
}

impl fmt::Debug for IncomingRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IncomingRequest")
            .field("method", &self.method)
            .field("path", &self.path())
            .field("version", &self.version)
            .field("fields", &self.fields)
            .field("body", &self.body)
            .field("keeps_alive", &self.keeps_alive)
            .field("expects_continue", &self.expects_continue)
            .finish()
    }
}

/// What is before and behind the space
fn split(line: &[u8], space: Option<usize>) -> Result<(&[u8], &[u8]), RequestFault> {
    let space = space.ok_or(RequestFault::BadRequestLine)?;
    Ok((&line[..space], &line[space + 1..]))
}

fn parse_version(version: &[u8]) -> Result<Version, RequestFault> {
    match version {
        b"HTTP/1.1" => Ok(Version::HTTP_11),
        b"HTTP/1.0" => Ok(Version::HTTP_10),
        [b'H', b'T', b'T', b'P', b'/', major, b'.', minor]
            if major.is_ascii_digit() && minor.is_ascii_digit() =>
        {
            Err(RequestFault::UnsupportedVersion)
        }
        _ => Err(RequestFault::BadRequestLine),
    }
}

fn parse_target(target: &[u8]) -> Result<&str, RequestFault> {
    if target.is_empty() {
        return Err(RequestFault::BadRequestLine);
    }
    if target == b"*" {
        return Err(RequestFault::AsteriskTarget);
    }
    if target[0] != b'/' {
        let absolute = memchr::memmem::find(target, b"://").is_some();
        return Err(if absolute { RequestFault::AbsoluteTarget } else { RequestFault::NoPath });
    }
    if !target.iter().all(u8::is_ascii_graphic) {
        return Err(RequestFault::BadTarget);
    }
    if target.contains(&b'#') {
        return Err(RequestFault::Fragment);
    }
    std::str::from_utf8(target).map_err(|_| RequestFault::BadTarget)
}

/// One number in digits
fn parse_length(value: &[u8]) -> Result<u64, RequestFault> {
    if value.contains(&b',') {
        return Err(RequestFault::RepeatedContentLength);
    }
    let digits = value.iter().all(u8::is_ascii_digit).then_some(value);
    let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
    digits.and_then(|digits| digits.parse().ok()).ok_or(RequestFault::BadContentLength)
}

/// Whether it is a list of codings of which the last, and only that, is `chunked`
fn ends_in_chunked(codings: &[u8]) -> bool {
    let mut codings = codings.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
    let is_chunked = |coding: &[u8]| coding.eq_ignore_ascii_case(b"chunked");
    codings.next_back().is_some_and(is_chunked)
        && codings.all(|coding| token(coding).is_some() && !is_chunked(coding))
}

/// A name, an IPv4 address or an IPv6 address in brackets, and perhaps a port (RFC 3986 3.2.2)
///
/// The punctuation that the grammar allows in a name and no name has, such as a comma, is not taken.
fn is_authority(host: &[u8]) -> bool {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~%".contains(byte);
    let is_address = |byte: &u8| byte.is_ascii_hexdigit() || b":.".contains(byte);
    let (is_host, port) = match host.strip_prefix(b"[") {
        Some(rest) => {
            let Some(end) = memchr::memchr(b']', rest) else { return false };
            (end > 0 && rest[..end].iter().all(is_address), &rest[end + 1..])
        }
        None => {
            let (name, port) = host.split_at(memchr::memchr(b':', host).unwrap_or(host.len()));
            (!name.is_empty() && name.iter().all(is_name), port)
        }
    };
    let is_port = match port {
        [] => true,
        [b':', digits @ ..] => digits.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    is_host && is_port
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_names_or_addresses_and_perhaps_a_port() {
        for host in ["a", "api.example.com", "a:80", "a:", "127.0.0.1:8080", "[::1]", "[::ffff:1.2.3.4]:443"]
        {
            assert!(is_authority(host.as_bytes()), "{host}");
        }
        let bad = [
            "", ":80", "a b", "a,b", "a:b", "a:80:80", "a/b", "u@a", "a?b", "a#b", "[]", "[::1", "[::1]a",
            "[g]", "::1", "a\u{e9}", "http://a", "a:+80", "a\\b",
        ];
        for host in bad {
            assert!(!is_authority(host.as_bytes()), "{host}");
        }
    }

    #[test]
    fn debug_shows_neither_values_nor_the_query() {
        let mut request = IncomingRequest::parse_line(b"GET /v1/models?key=secret HTTP/1.1", 100).unwrap();
        request.fields.push("Authorization", b"secret");
        let expected = "IncomingRequest { method: GET, path: \"/v1/models\", version: HTTP/1.1, \
            fields: [\"Authorization\"], body: None, keeps_alive: false, expects_continue: false }";
        assert_eq!(format!("{request:?}"), expected);
    }
}
