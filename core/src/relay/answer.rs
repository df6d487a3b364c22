//! The relay's own errors, in the shape of the dialect that was called (rule RLY-3).

use std::fmt::Write as _;

use http::StatusCode;
use serde_json::json;

use crate::http1::RequestFault;

/// Whose error shape an answer has
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Shape {
    /// `{"error": {"message", "type", "param", "code"}}`
    #[default]
    OpenAi,
    /// `{"type": "error", "error": {"type", "message", "code"}, "request_id"}`
    Anthropic,
    /// `{"error": {"code", "message", "status", "details"}, "code"}`, as Google's APIs have it
    Google,
}

/// What the relay itself says
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// No connection to the provider could be opened; nothing was sent
    UpstreamUnreachable,
    /// The head of the provider's answer did not come in time
    UpstreamTimeout,
    /// The request began to go out, and then the connection broke; or the answer could not be read
    UpstreamFailed,
    /// The cap on open connections to providers is reached; nothing was sent
    GatewayOverloaded,
    /// The relay is about to stop; nothing was sent
    GatewayDraining,
    /// No route has this path
    NotFound,
    /// The relay asks for a key of its own, and this one is none of them
    Unauthorized,
    /// The path climbs out of its route
    BadPath,
    /// The head of the request did not come in time
    RequestTimeout,
    /// The request is not one that the relay passes on
    BadRequest(RequestFault),
}

impl Code {
    /// The code as it stands in the answer
    pub const fn name(self) -> &'static str {
        match self {
            Self::UpstreamUnreachable => "upstream_unreachable",
            Self::UpstreamTimeout => "upstream_timeout",
            Self::UpstreamFailed => "upstream_failed",
            Self::GatewayOverloaded => "gateway_overloaded",
            Self::GatewayDraining => "gateway_draining",
            Self::NotFound => "not_found",
            Self::Unauthorized => "unauthorized",
            Self::RequestTimeout => "request_timeout",
            Self::BadPath | Self::BadRequest(_) => "bad_request",
        }
    }

    /// The status of the answer
    pub fn status(self) -> StatusCode {
        match self {
            Self::UpstreamUnreachable | Self::UpstreamFailed => StatusCode::BAD_GATEWAY,
            Self::UpstreamTimeout => StatusCode::GATEWAY_TIMEOUT,
            Self::GatewayOverloaded | Self::GatewayDraining => StatusCode::SERVICE_UNAVAILABLE,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::BadPath => StatusCode::BAD_REQUEST,
            Self::RequestTimeout => StatusCode::REQUEST_TIMEOUT,
            Self::BadRequest(fault) => fault.status(),
        }
    }

    /// What happened, in words
    pub fn message(self) -> String {
        match self {
            Self::UpstreamUnreachable => {
                "The provider could not be reached. Nothing was sent to it.".to_owned()
            }
            Self::UpstreamTimeout => "The provider's answer did not begin in time.".to_owned(),
            Self::UpstreamFailed => {
                "The connection to the provider broke before its answer began. The provider may have the request."
                    .to_owned()
            }
            Self::GatewayOverloaded => {
                "The relay has as many connections to providers open as it may. Nothing was sent.".to_owned()
            }
            Self::GatewayDraining => "The relay is about to stop. Nothing was sent.".to_owned(),
            Self::NotFound => "No upstream is configured for this path.".to_owned(),
            Self::Unauthorized => "The relay does not know this key.".to_owned(),
            Self::BadPath => "The path has `.` or `..` segments, or a NUL.".to_owned(),
            Self::RequestTimeout => "The head of the request did not come in time.".to_owned(),
            Self::BadRequest(fault) => fault.to_string(),
        }
    }

    /// Whether the app is told to try again, or not to; `None` leaves it to the app
    const fn should_retry(self, may_resend: bool) -> Option<bool> {
        match self {
            // A resend may bill twice.
            Self::UpstreamFailed | Self::UpstreamTimeout if !may_resend => Some(false),
            Self::NotFound | Self::Unauthorized | Self::BadPath | Self::BadRequest(_) => Some(false),
            Self::UpstreamFailed
            | Self::UpstreamTimeout
            | Self::UpstreamUnreachable
            | Self::GatewayOverloaded
            | Self::GatewayDraining
            | Self::RequestTimeout => None,
        }
    }

    /// Seconds after which to try again
    const fn retry_after(self) -> Option<u32> {
        match self {
            Self::GatewayOverloaded | Self::GatewayDraining => Some(RETRY_AFTER_SECONDS),
            Self::UpstreamUnreachable
            | Self::UpstreamTimeout
            | Self::UpstreamFailed
            | Self::NotFound
            | Self::Unauthorized
            | Self::BadPath
            | Self::RequestTimeout
            | Self::BadRequest(_) => None,
        }
    }

    fn openai_type(self) -> &'static str {
        match self {
            Self::NotFound | Self::BadPath | Self::RequestTimeout | Self::BadRequest(_) => {
                "invalid_request_error"
            }
            Self::Unauthorized => "authentication_error",
            Self::UpstreamUnreachable
            | Self::UpstreamTimeout
            | Self::UpstreamFailed
            | Self::GatewayOverloaded
            | Self::GatewayDraining => "server_error",
        }
    }

    fn anthropic_type(self) -> &'static str {
        match self {
            Self::NotFound => "not_found_error",
            Self::BadPath | Self::BadRequest(_) => "invalid_request_error",
            Self::Unauthorized => "authentication_error",
            Self::UpstreamTimeout | Self::RequestTimeout => "timeout_error",
            Self::GatewayOverloaded | Self::GatewayDraining => "overloaded_error",
            Self::UpstreamUnreachable | Self::UpstreamFailed => "api_error",
        }
    }

    fn google_status(self) -> &'static str {
        match self {
            Self::NotFound => "NOT_FOUND",
            Self::BadPath | Self::BadRequest(_) => "INVALID_ARGUMENT",
            Self::Unauthorized => "UNAUTHENTICATED",
            Self::UpstreamTimeout | Self::RequestTimeout => "DEADLINE_EXCEEDED",
            Self::UpstreamUnreachable
            | Self::UpstreamFailed
            | Self::GatewayOverloaded
            | Self::GatewayDraining => "UNAVAILABLE",
        }
    }
}

/// What `retry-after` says where the relay is full or about to stop
const RETRY_AFTER_SECONDS: u32 = 1;

/// An answer of the relay's own
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnAnswer {
    /// What happened
    pub code: Code,
    /// Header fields, but for the length and what belongs to the connection
    pub fields: Vec<(&'static str, String)>,
    /// JSON
    pub body: String,
}

impl OwnAnswer {
    /// What is answered to the request with this id
    ///
    /// `may_resend`: a route may say that a resend is harmless, and then the app is not told to leave it.
    pub fn new(code: Code, shape: Shape, request_id: &str, may_resend: bool) -> Self {
        let (message, name) = (code.message(), code.name());
        let body = match shape {
            Shape::OpenAi => json!({
                "error": {"message": message, "type": code.openai_type(), "param": null, "code": name}
            }),
            Shape::Anthropic => json!({
                "type": "error",
                "error": {"type": code.anthropic_type(), "message": message, "code": name},
                "request_id": request_id,
            }),
            Shape::Google => json!({
                "error": {
                    "code": code.status().as_u16(),
                    "message": message,
                    "status": code.google_status(),
                    "details": [{
                        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                        "reason": name.to_ascii_uppercase(),
                        "domain": "steadfast",
                    }],
                },
                "code": name,
            }),
        };
        let mut fields =
            vec![("content-type", "application/json".to_owned()), ("x-request-id", request_id.to_owned())];
        if let Some(should) = code.should_retry(may_resend) {
            fields.push(("x-should-retry", should.to_string()));
        }
        if let Some(seconds) = code.retry_after() {
            fields.push(("retry-after", seconds.to_string()));
        }
        Self { code, fields, body: body.to_string() }
    }

    /// The whole answer over HTTP/1.1
    pub(super) fn write(&self, keeps_alive: bool, to_head: bool, out: &mut Vec<u8>) {
        let fields = self.fields.iter().map(|(name, value)| (*name, value.as_str()));
        write(self.code.status(), fields, self.body.as_bytes(), keeps_alive, to_head, out);
    }
}

/// What the relay answers to a request for one of its own paths
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    /// The status
    pub status: StatusCode,
    /// Header fields, but for the length and what belongs to the connection; no line end in any
    pub fields: Vec<(&'static str, String)>,
    /// The body
    pub body: Vec<u8>,
}

impl Served {
    /// The whole answer over HTTP/1.1
    pub(super) fn write(&self, keeps_alive: bool, to_head: bool, out: &mut Vec<u8>) {
        let fields = self.fields.iter().map(|(name, value)| (*name, value.as_str()));
        write(self.status, fields, &self.body, keeps_alive, to_head, out);
    }
}

fn write<'f>(
    status: StatusCode,
    fields: impl Iterator<Item = (&'f str, &'f str)>,
    body: &[u8],
    keeps_alive: bool,
    to_head: bool,
    out: &mut Vec<u8>,
) {
    let mut head = String::new();
    // Writing to a string cannot fail.
    _ = write!(head, "HTTP/1.1 {} {}\r\n", status.as_u16(), status.canonical_reason().unwrap_or_default());
    for (name, value) in fields {
        let value = value.replace(['\r', '\n', '\0'], " ");
        _ = write!(head, "{name}: {value}\r\n");
    }
    _ = write!(head, "content-length: {}\r\n", body.len());
    if !keeps_alive {
        head.push_str("connection: close\r\n");
    }
    head.push_str("\r\n");
    out.extend_from_slice(head.as_bytes());
    if !to_head {
        out.extend_from_slice(body);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn answer(code: Code, shape: Shape) -> (OwnAnswer, Value) {
        let answer = OwnAnswer::new(code, shape, "req_1", false);
        let body = serde_json::from_str(&answer.body).unwrap();
        (answer, body)
    }

    fn field<'a>(answer: &'a OwnAnswer, name: &str) -> Option<&'a str> {
        answer.fields.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    #[test]
    fn each_dialect_has_its_own_shape_and_all_have_the_code() {
        let (_, openai) = answer(Code::UpstreamFailed, Shape::OpenAi);
        assert_eq!(openai["error"]["code"], "upstream_failed");
        assert_eq!(openai["error"]["type"], "server_error");
        let (_, anthropic) = answer(Code::GatewayOverloaded, Shape::Anthropic);
        assert_eq!(anthropic["type"], "error");
        assert_eq!(anthropic["error"]["type"], "overloaded_error");
        assert_eq!(anthropic["error"]["code"], "gateway_overloaded");
        let (_, google) = answer(Code::UpstreamTimeout, Shape::Google);
        assert_eq!(google["error"]["code"], 504);
        assert_eq!(google["error"]["status"], "DEADLINE_EXCEEDED");
        assert_eq!(google["code"], "upstream_timeout");
    }

    #[test]
    fn a_resend_that_may_bill_twice_is_advised_against_and_one_that_cannot_is_not() {
        for (code, should, after) in [
            (Code::UpstreamFailed, Some("false"), None),
            (Code::UpstreamTimeout, Some("false"), None),
            (Code::UpstreamUnreachable, None, None),
            (Code::GatewayOverloaded, None, Some("1")),
            (Code::GatewayDraining, None, Some("1")),
            (Code::NotFound, Some("false"), None),
            (Code::Unauthorized, Some("false"), None),
        ] {
            let (answer, _) = answer(code, Shape::OpenAi);
            assert_eq!(field(&answer, "x-should-retry"), should, "{code:?}");
            assert_eq!(field(&answer, "retry-after"), after, "{code:?}");
            assert_eq!(field(&answer, "x-request-id"), Some("req_1"));
        }
        let settled = OwnAnswer::new(Code::UpstreamFailed, Shape::OpenAi, "r", true);
        assert_eq!(field(&settled, "x-should-retry"), None);
    }

    #[test]
    fn it_is_a_whole_message() {
        let (answer, _) = answer(Code::NotFound, Shape::OpenAi);
        let mut out = Vec::new();
        answer.write(false, false, &mut out);
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with("HTTP/1.1 404 Not Found\r\ncontent-type: application/json\r\n"), "{text}");
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}", body.len())));
        assert!(head.ends_with("connection: close"));
        let mut to_head = Vec::new();
        answer.write(true, true, &mut to_head);
        assert!(to_head.ends_with(b"\r\n\r\n"));
    }
}
