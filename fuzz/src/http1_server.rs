//! Bytes into the HTTP/1.1 request decoder, beside hyper's server.

mod oracle;

use http::uri::PathAndQuery;
use http::{HeaderName, Version};
use steadfast::http1::{RequestDecoder, RequestFault, RequestLimits, RequestPart};

use oracle::hyper;

/// A request that came whole
#[derive(Debug, PartialEq, Eq)]
struct Request {
    method: String,
    target: String,
    version: Version,
    /// By name, and those of one name in their order
    fields: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
}

/// What a connection comes to
#[derive(Debug)]
struct Told {
    /// The requests that came whole, up to one behind which the connection is closed
    whole: Vec<Request>,
    /// Why there is no other; none where the connection just ended, or is closed
    refused: Option<RequestFault>,
}

/// What comes over a connection
///
/// Wherever both take a request, it is the same: method, target, version, fields and body. No request is
/// taken that hyper refuses, and none where hyper sees another's bytes; but hyper takes much that is
/// refused here, as RFC 9112 lets it: lines that end in a bare LF, a missing or a repeated `Host`, a length
/// beside chunks, equal lengths, other codings before `chunked`, absolute targets, CONNECT and TRACE.
///
/// One is left out: a target that the crate http takes for none, such as one with `^` in it. It is in no
/// route of ours, or goes on as it came.
pub fn http1_server(data: &[u8]) {
    let told = read(data);
    let seen = hyper(data);
    for (at, request) in told.whole.iter().enumerate() {
        if PathAndQuery::try_from(request.target.as_str()).is_err() {
            return;
        }
        let Some(other) = seen.get(at) else {
            panic!("hyper takes {at} requests, and this is one more: {request:?}")
        };
        assert_eq!(request, other, "request {at}");
    }
}

/// What the decoder makes of them
fn read(bytes: &[u8]) -> Told {
    let mut decoder = RequestDecoder::new(RequestLimits::default());
    let mut told = Told { whole: Vec::new(), refused: None };
    let mut rest = bytes;
    let mut head = None;
    let mut body = Vec::new();
    loop {
        let (consumed, part) = match decoder.next(rest) {
            Ok(next) => next,
            Err(fault) => {
                told.refused = Some(fault);
                return told;
            }
        };
        match part {
            Some(RequestPart::Head(request)) => head = Some(request),
            Some(RequestPart::Body(range)) => body.extend_from_slice(&rest[range]),
            Some(RequestPart::End) => {
                let request = head.take().expect("an end has a head");
                let fields = request.fields.iter();
                told.whole.push(Request {
                    method: request.method.to_string(),
                    target: request.target,
                    version: request.version,
                    fields: sorted(fields.map(|(name, value)| (name.to_ascii_lowercase(), value.to_vec()))),
                    body: std::mem::take(&mut body),
                });
                if !request.keeps_alive {
                    return told;
                }
                decoder.again();
            }
            None => return told,
        }
        rest = &rest[consumed..];
    }
}

/// By name, and those of one name in their order
fn sorted(fields: impl Iterator<Item = (String, Vec<u8>)>) -> Vec<(String, Vec<u8>)> {
    let mut fields: Vec<_> = fields.collect();
    fields.sort_by(|(one, _), (other, _)| one.cmp(other));
    debug_assert!(fields.iter().all(|(name, _)| HeaderName::try_from(name).is_ok()));
    fields
}
