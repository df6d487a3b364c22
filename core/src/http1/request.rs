//! A request head as one run of bytes.

use std::fmt;
use std::io::Write as _;

use bytes::Bytes;
use http::header::{
    ACCEPT_ENCODING, CONNECTION, CONTENT_LENGTH, HOST, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderName, Method};

use super::section::Names;

/// The fields that frame a message or belong to one connection, and so are not the caller's to set
pub(super) const RESERVED: [HeaderName; 9] = [
    HOST,
    CONTENT_LENGTH,
    TRANSFER_ENCODING,
    CONNECTION,
    TE,
    TRAILER,
    UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// What stands before the body of a request
///
/// Nothing in it can end a line early, so a caller's data never becomes a header field or a second
/// request: `http`'s types exclude it for names, values and methods, and [`RequestHead::encode`]
/// checks the rest. Its `Debug` form names the header fields and shows no values.
///
/// ```
/// use http::{HeaderMap, Method};
/// use steadfast::http1::RequestHead;
///
/// let head = RequestHead {
///     method: &Method::POST,
///     target: "/v1/chat/completions",
///     host: "api.example.com",
///     headers: &HeaderMap::new(),
///     body_length: Some(2),
/// };
/// assert_eq!(
///     head.encode()?,
///     "POST /v1/chat/completions HTTP/1.1\r\n\
///      host: api.example.com\r\n\
///      accept-encoding: identity\r\n\
///      content-length: 2\r\n\r\n"
/// );
/// # Ok::<(), steadfast::http1::RequestError>(())
/// ```
#[derive(Clone, Copy)]
pub struct RequestHead<'a> {
    /// The method
    pub method: &'a Method,
    /// The request target: path and query, or the form that the method or a proxy asks for
    /// (RFC 9112 3.2)
    pub target: &'a str,
    /// The value of `Host`: a name or address, and a port where it is not the scheme's own
    pub host: &'a str,
    /// The caller's header fields
    pub headers: &'a HeaderMap,
    /// The length of the body in bytes, zero where there is none; `None` for a body that goes out in chunks
    /// because its length is not known yet
    pub body_length: Option<u64>,
}

/// A request that cannot be sent as it is; the text names the fix
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The target is empty or has a byte that is not visible ASCII, or a `#`
    #[error("bad request target: percent-encode all but visible ASCII, and leave out the fragment")]
    BadTarget,
    /// The host is empty or has a byte that no name, address or port can have
    #[error("bad host: give a name or an address and perhaps a port, without user name and path")]
    BadHost,
    /// A header field that this module sets itself, or that no client of it may set
    #[error("the header `{name}` is not the caller's to set: leave it out")]
    Reserved {
        /// The field's name
        name: HeaderName,
    },
}

impl RequestHead<'_> {
    /// The head as it goes over the wire, its empty line included
    ///
    /// `Content-Length` is sent where there is a body, and for an empty one where the method
    /// usually has one: POST, PUT and PATCH (RFC 9110 8.6); `Transfer-Encoding: chunked` where its length
    /// is not known. `Accept-Encoding: identity` is sent
    /// unless the caller set that field. The bytes hold the caller's credentials: do not print them.
    ///
    /// Errors: [`RequestError`]. `Host`, `Content-Length` and the fields that belong to one
    /// connection (`Connection`, `Transfer-Encoding`, `TE`, `Trailer`, `Upgrade`, `Keep-Alive`,
    /// `Proxy-Connection`) are refused, not overwritten: the caller meant something by them.
    pub fn encode(&self) -> Result<Bytes, RequestError> {
        if !is_target(self.target) {
            return Err(RequestError::BadTarget);
        }
        if !is_host(self.host) {
            return Err(RequestError::BadHost);
        }
        if let Some(name) = self.headers.keys().find(|name| RESERVED.contains(name)) {
            return Err(RequestError::Reserved { name: name.clone() });
        }
        Ok(self.write().into())
    }

    fn write(&self) -> Vec<u8> {
        // The fixed words and the longest length make up less than 128 bytes.
        let fields: usize =
            self.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
        let mut head = Vec::with_capacity(fields + self.target.len() + self.host.len() + 128);
        head.extend_from_slice(self.method.as_str().as_bytes());
        head.push(b' ');
        head.extend_from_slice(self.target.as_bytes());
        head.extend_from_slice(b" HTTP/1.1\r\n");
        field(&mut head, &HOST, self.host.as_bytes());
        for (name, value) in self.headers {
            field(&mut head, name, value.as_bytes());
        }
        if !self.headers.contains_key(ACCEPT_ENCODING) {
            field(&mut head, &ACCEPT_ENCODING, b"identity");
        }
        match self.body_length {
            None => field(&mut head, &TRANSFER_ENCODING, b"chunked"),
            Some(0) if !matches!(*self.method, Method::POST | Method::PUT | Method::PATCH) => {}
            Some(length) => {
                write!(head, "{CONTENT_LENGTH}: {length}\r\n").expect("writing to a Vec cannot fail");
            }
        }
        head.extend_from_slice(b"\r\n");
        head
    }
}

/// An encoded head with these fields in the place of those of the same name
///
/// Errors: a field that is not the caller's to set.
pub(crate) fn with_fields(head: &[u8], fields: &HeaderMap) -> Result<Bytes, RequestError> {
    if let Some(name) = fields.keys().find(|name| RESERVED.contains(name)) {
        return Err(RequestError::Reserved { name: name.clone() });
    }
    let lines = head[..head.len() - 2].split_inclusive(|byte| *byte == b'\n');
    let mut changed = Vec::with_capacity(2 * head.len());
    for (number, line) in lines.enumerate() {
        let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
        let is_replaced = std::str::from_utf8(name).is_ok_and(|name| fields.contains_key(name));
        if number == 0 || !is_replaced {
            changed.extend_from_slice(line);
        }
    }
    for (name, value) in fields {
        field(&mut changed, name, value.as_bytes());
    }
    changed.extend_from_slice(b"\r\n");
    Ok(changed.into())
}

impl fmt::Debug for RequestHead<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A target's query can hold a key.
        let path = self.target.split('?').next().unwrap_or_default();
        f.debug_struct("RequestHead")
            .field("method", self.method)
            .field("path", &path)
            .field("host", &self.host)
            .field("headers", &Names(self.headers))
            .field("body_length", &self.body_length)
            .finish()
    }
}

fn field(head: &mut Vec<u8>, name: &HeaderName, value: &[u8]) {
    head.extend_from_slice(name.as_str().as_bytes());
    head.extend_from_slice(b": ");
    head.extend_from_slice(value);
    head.extend_from_slice(b"\r\n");
}

pub(super) fn is_target(target: &str) -> bool {
    !target.is_empty() && target.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#')
}

/// The bytes of `uri-host` and `port` (RFC 3986 3.2.2), without the grammar
pub(super) fn is_host(host: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=:[]".contains(&byte);
    !host.is_empty() && host.bytes().all(allowed)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn head<'a>(method: &'a Method, headers: &'a HeaderMap, body_length: u64) -> RequestHead<'a> {
        RequestHead { method, target: "/v1?x=1", host: "[::1]:8080", headers, body_length: Some(body_length) }
    }

    fn encode(method: &Method, headers: &HeaderMap, body_length: u64) -> String {
        String::from_utf8(head(method, headers, body_length).encode().unwrap().to_vec()).unwrap()
    }

    #[test]
    fn the_length_is_sent_where_there_is_a_body_or_should_be() {
        for method in [Method::POST, Method::PUT, Method::PATCH] {
            let expected = format!(
                "{method} /v1?x=1 HTTP/1.1\r\nhost: [::1]:8080\r\naccept-encoding: identity\r\ncontent-length: 0\r\n\r\n"
            );
            assert_eq!(encode(&method, &HeaderMap::new(), 0), expected);
        }
        for method in [Method::GET, Method::DELETE, Method::HEAD, Method::CONNECT] {
            assert!(!encode(&method, &HeaderMap::new(), 0).contains("content-length"), "{method}");
            let longest = encode(&method, &HeaderMap::new(), u64::MAX);
            assert!(longest.ends_with("\r\ncontent-length: 18446744073709551615\r\n\r\n"), "{method}");
        }
    }

    #[test]
    fn the_callers_fields_go_out_in_order_with_their_encoding() {
        let mut headers = HeaderMap::new();
        headers.append("authorization", HeaderValue::from_static("Bearer key"));
        headers.append("accept-encoding", HeaderValue::from_static("gzip"));
        headers.append("x-raw", HeaderValue::from_bytes(b"\xE9").unwrap());
        headers.append("authorization", HeaderValue::from_static("second"));
        let bytes = head(&Method::GET, &headers, 0).encode().unwrap();
        let expected: &[u8] = b"GET /v1?x=1 HTTP/1.1\r\nhost: [::1]:8080\r\nauthorization: Bearer key\r\n\
            authorization: second\r\naccept-encoding: gzip\r\nx-raw: \xE9\r\n\r\n";
        assert_eq!(bytes, expected);
    }

    #[test]
    fn fields_that_frame_the_message_are_refused() {
        for name in RESERVED {
            let headers = HeaderMap::from_iter([(name.clone(), HeaderValue::from_static("x"))]);
            let error = head(&Method::POST, &headers, 1).encode().unwrap_err();
            assert_eq!(error, RequestError::Reserved { name: name.clone() });
            assert_eq!(
                error.to_string(),
                format!("the header `{name}` is not the caller's to set: leave it out")
            );
        }
    }

    #[test]
    fn fields_take_the_place_of_those_of_their_name() {
        let old = HeaderMap::from_iter([
            (http::header::AUTHORIZATION, HeaderValue::from_static("old")),
            (HeaderName::from_static("x-date"), HeaderValue::from_static("a")),
        ]);
        let head = head(&Method::GET, &old, 0).encode().unwrap();
        let new = HeaderMap::from_iter([
            (http::header::AUTHORIZATION, HeaderValue::from_static("new")),
            (HeaderName::from_static("x-more"), HeaderValue::from_static("b")),
        ]);
        let changed = String::from_utf8(with_fields(&head, &new).unwrap().to_vec()).unwrap();
        assert_eq!(
            changed,
            "GET /v1?x=1 HTTP/1.1\r\nhost: [::1]:8080\r\nx-date: a\r\naccept-encoding: identity\r\n\
             authorization: new\r\nx-more: b\r\n\r\n"
        );
        let reserved = HeaderMap::from_iter([(HOST, HeaderValue::from_static("other"))]);
        assert_eq!(with_fields(&head, &reserved), Err(RequestError::Reserved { name: HOST }));
    }

    #[test]
    fn nothing_can_end_a_line_early() {
        let headers = HeaderMap::new();
        let request = head(&Method::GET, &headers, 0);
        for target in ["", "/a b", "/a\r\nx: y", "/a\n", "/a\tb", "/\0", "/\u{7f}", "/é", "/a#b"] {
            assert_eq!(
                RequestHead { target, ..request }.encode(),
                Err(RequestError::BadTarget),
                "{target:?}"
            );
        }
        for target in ["*", "/", "http://a/b?c", "api.example.com:443", "/%E9?a=[{\"b\"|^`\\}]"] {
            assert!(RequestHead { target, ..request }.encode().is_ok(), "{target:?}");
        }
        for host in ["", "a b", "a\r\nx: y", "a\n", "user@a", "a/b", "a?", "a#", "a\\b", "é"] {
            assert_eq!(RequestHead { host, ..request }.encode(), Err(RequestError::BadHost), "{host:?}");
        }
    }

    #[test]
    fn debug_shows_neither_values_nor_the_query() {
        let headers = HeaderMap::from_iter([(HOST, HeaderValue::from_static("secret"))]);
        let expected = r#"RequestHead { method: GET, path: "/v1", host: "[::1]:8080", headers: ["host"], body_length: Some(0) }"#;
        assert_eq!(format!("{:?}", head(&Method::GET, &headers, 0)), expected);
    }
}
