//! Errors in a provider's own words, from error bodies and from inside a 200.
//!
//! Whatever spelling a provider chose, the same five facts come out:
//!
//! | spelling | seen at |
//! |---|---|
//! | `{"error":{"message","type","code"}}` | OpenAI and the servers compatible with it, OpenRouter |
//! | `{"type":"error","error":{"type","message"},"request_id"}` | Anthropic |
//! | `{"error":{"code","message","status"}}`, also `[{…}]` | Gemini |
//! | `{"object":"error","message","type","code"}` | vLLM, Mistral |
//! | `{"type":"error","code","message"}` | OpenAI Responses, in a stream |
//! | `{"error":"text"}`, with `code` beside it at xAI | Ollama, Venice, xAI |
//! | `{"message"}`, `{"detail"}` | Cohere, Mistral, FastAPI servers |

use serde_json::{Map, Value};

use crate::framing::sse::Framer;
use crate::outcome::ProviderError;

/// The error that the body of a response with an error status tells
///
/// JSON, and JSON framed as an event stream, as some streaming endpoints send it. `None` for
/// anything else, such as a proxy's page of HTML.
pub fn from_body(body: &[u8]) -> Option<ProviderError> {
    let told = |value: Value| told(&value, Evidence::Status);
    match first_json(body) {
        Some(value) => told(value),
        None => sse_values(body).find_map(told),
    }
}

/// The error that an event inside a 200 is or holds
///
/// `json` is the event's whole data. It is an error if it has an `error` that says something, if its
/// type is that of one, or if it is a message with a code. `None` for everything else, so that any
/// event can be asked.
pub fn from_raw(json: &str) -> Option<ProviderError> {
    told(&serde_json::from_str(json).ok()?, Evidence::Needed)
}

/// What says that an object without an `error` member is an error at all
#[derive(Clone, Copy)]
enum Evidence {
    /// The status of the response
    Status,
    /// Nothing, so the object itself must
    Needed,
}

fn told(value: &Value, evidence: Evidence) -> Option<ProviderError> {
    match value {
        Value::Array(values) => values.iter().find_map(|value| told(value, evidence)),
        Value::Object(outer) => {
            let mut error = of_object(outer, evidence)?;
            error.status = error.status.or_else(|| status(outer));
            error.request_id = error.request_id.or_else(|| string(outer, "request_id"));
            Some(error)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn of_object(outer: &Map<String, Value>, evidence: Evidence) -> Option<ProviderError> {
    match outer.get("error") {
        Some(Value::Object(inner)) if !inner.is_empty() => return Some(of_fields(inner)),
        Some(Value::String(message)) if !message.is_empty() => {
            return Some(ProviderError { message: message.clone(), ..of_fields(outer) });
        }
        _ => {}
    }
    let error = of_fields(outer);
    let told = match evidence {
        Evidence::Status => !error.message.is_empty(),
        Evidence::Needed => error.code.is_some() && outer.get("message").is_some_and(Value::is_string),
    };
    let is_error_type = |name| string(outer, name).is_some_and(|kind| kind.to_lowercase().ends_with("error"));
    (told || is_error_type("type") || is_error_type("object")).then_some(error)
}

/// Reads the object that holds the message itself
fn of_fields(fields: &Map<String, Value>) -> ProviderError {
    let code = fields.get("code").filter(|code| code.is_number()).map(Value::to_string);
    ProviderError {
        kind: string(fields, "type").filter(|kind| kind != "error").or_else(|| string(fields, "status")),
        code: code.or_else(|| string(fields, "code")),
        status: status(fields),
        message: first_text(fields, &["message", "detail", "msg"]),
        request_id: string(fields, "request_id"),
    }
}

/// A member that is a string and not empty
fn string(fields: &Map<String, Value>, name: &str) -> Option<String> {
    fields.get(name)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// An HTTP error status among the members, as a number or as its digits
fn status(fields: &Map<String, Value>) -> Option<u16> {
    ["code", "status", "status_code"].iter().find_map(|name| {
        let status = match fields.get(*name)? {
            Value::Number(number) => number.as_u64()?,
            Value::String(digits) => digits.parse().ok()?,
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
        };
        u16::try_from(status).ok().filter(|status| (400..=599).contains(status))
    })
}

/// The text of a message, however deep it is wrapped
///
/// FastAPI wraps its complaints in a list of objects, and some gateways the error they got.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => values.first().map(text).unwrap_or_default(),
        Value::Object(fields) => first_text(fields, &["message", "detail", "msg", "error"]),
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}

/// The text of the first of these members that has one
fn first_text(fields: &Map<String, Value>, names: &[&str]) -> String {
    let mut texts = names.iter().filter_map(|name| fields.get(*name)).map(text);
    texts.find(|text| !text.is_empty()).unwrap_or_default()
}

/// The first JSON document in a text, whatever follows it
fn first_json(text: &[u8]) -> Option<Value> {
    let text = String::from_utf8_lossy(text);
    let text = text.trim_start_matches('\u{FEFF}');
    serde_json::Deserializer::from_str(text).into_iter().next()?.ok()
}

/// The JSON documents that an event stream carries, its tail and `error` lines too
fn sse_values(body: &[u8]) -> impl Iterator<Item = Value> {
    let mut framer = Framer::new(body.len());
    let mut rest = body;
    std::iter::from_fn(move || {
        let (consumed, event) = framer.next(rest).ok()?;
        let (input, event) = match event {
            Some(event) => (rest, event),
            None => (&body[..0], framer.tail()?),
        };
        rest = &rest[consumed..];
        Some(first_json(framer.bytes(input, event.data)))
    })
    .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Type, code, status, message and request id
    type Told<'a> = (Option<&'a str>, Option<&'a str>, Option<u16>, &'a str, Option<&'a str>);

    fn told(error: Option<&ProviderError>) -> Option<Told<'_>> {
        let error = error?;
        let ProviderError { kind, code, status, message, request_id } = error;
        Some((kind.as_deref(), code.as_deref(), *status, message, request_id.as_deref()))
    }

    #[test]
    fn every_spelling_of_an_error_body_is_read() {
        let cases: &[(&str, Told<'_>)] = &[
            (
                r#"{"error":{"message":"quota","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}"#,
                (Some("insufficient_quota"), Some("insufficient_quota"), None, "quota", None),
            ),
            (
                r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"},"request_id":"req_x"}"#,
                (Some("overloaded_error"), None, None, "busy", Some("req_x")),
            ),
            (
                r#"[{"error":{"code":503,"message":"m","status":"UNAVAILABLE"}}]"#,
                (Some("UNAVAILABLE"), Some("503"), Some(503), "m", None),
            ),
            (
                r#"{"object":"error","message":"m","type":"BadRequestError","param":null,"code":400}"#,
                (Some("BadRequestError"), Some("400"), Some(400), "m", None),
            ),
            (
                r#"{"object":"error","message":{"detail":[{"loc":["body"],"msg":"field required"}]},"type":"t"}"#,
                (Some("t"), None, None, "field required", None),
            ),
            (r#"{"error":{"code":"429","message":"m"}}"#, (None, Some("429"), Some(429), "m", None)),
            (r#"{"error":"text"}"#, (None, None, None, "text", None)),
            (r#"{"code":"c","error":"text"}"#, (None, Some("c"), None, "text", None)),
            (r#"{"error":{"message":"m"},"status":401}"#, (None, None, Some(401), "m", None)),
            (r#"{"message":"m"}"#, (None, None, None, "m", None)),
            (r#"{"detail":"m"}"#, (None, None, None, "m", None)),
            (r#"{"detail":{"error":{"message":"m"}}}"#, (None, None, None, "m", None)),
            (r#"{"error":true,"message":"m"}"#, (None, None, None, "m", None)),
            ("\u{FEFF} \n{\"message\":\"m\"}\ntrailing", (None, None, None, "m", None)),
        ];
        for (body, expected) in cases {
            assert_eq!(told(from_body(body.as_bytes()).as_ref()), Some(*expected), "{body}");
        }
    }

    #[test]
    fn what_tells_nothing_is_no_error() {
        let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
        for body in [
            "",
            "<html><body>502 Bad Gateway</body></html>",
            "upstream connect error",
            "500 error",
            "null",
            "{}",
            "[]",
            "\"text\"",
            r#"{"error":null}"#,
            r#"{"error":{}}"#,
            r#"{"error":""}"#,
            "data: {\n\n",
            &deep,
        ] {
            assert_eq!(from_body(body.as_bytes()), None, "{body}");
        }
        let error = from_body(b"{\"message\":\"a\xFFb\"}").unwrap();
        assert_eq!(error.message, "a\u{FFFD}b");
    }

    #[test]
    fn c10_a_body_framed_as_an_event_stream() {
        let json = r#"{"error":{"message":"input larger than context","type":"invalid_request_error"}}"#;
        let expected = (Some("invalid_request_error"), None, None, "input larger than context", None);
        for body in [
            format!("data: {json}\n\n"),
            format!("event: error\r\ndata: {json}\r\n\r\ndata: [DONE]\r\n\r\n"),
            format!(": ping\n\ndata: {json}"),
        ] {
            assert_eq!(told(from_body(body.as_bytes()).as_ref()), Some(expected), "{body}");
        }
        let line = b"error: {\"code\":400,\"message\":\"m\",\"type\":\"t\"}\n\ndata: [DONE]\n\n";
        let expected = (Some("t"), Some("400"), Some(400), "m", None);
        assert_eq!(told(from_body(line).as_ref()), Some(expected));
    }

    #[test]
    fn errors_in_events_are_told_from_everything_else() {
        let cases: &[(&str, Told<'_>)] = &[
            (
                // Corpus F01
                r#"{"type":"error","error":{"details":null,"type":"overloaded_error","message":"busy"},"request_id":"req_x"}"#,
                (Some("overloaded_error"), None, None, "busy", Some("req_x")),
            ),
            (
                // The `response` of corpus E04
                r#"{"id":"r1","status":"failed","error":{"code":"server_error","message":"m"},"output":[]}"#,
                (None, Some("server_error"), None, "m", None),
            ),
            (
                r#"{"type":"error","sequence_number":3,"code":"rate_limit_exceeded","message":"m","param":null}"#,
                (None, Some("rate_limit_exceeded"), None, "m", None),
            ),
            (
                // Corpus H06
                r#"{"code":400,"message":"m","type":"invalid_request_error"}"#,
                (Some("invalid_request_error"), Some("400"), Some(400), "m", None),
            ),
            (
                r#"{"id":"x","choices":[{"finish_reason":"error"}],"error":{"code":502,"message":"m"}}"#,
                (None, Some("502"), Some(502), "m", None),
            ),
            (r#"{"message":"m","type":"BadRequestError"}"#, (Some("BadRequestError"), None, None, "m", None)),
            (r#"{"error":"model runner has stopped"}"#, (None, None, None, "model runner has stopped", None)),
        ];
        for (json, expected) in cases {
            assert_eq!(told(from_raw(json).as_ref()), Some(*expected), "{json}");
        }
        for json in [
            r#"{"choices":[{"delta":{"content":"error"}}],"error":null}"#,
            r#"{"type":"message_start","message":{"id":"m","role":"assistant"}}"#,
            r#"{"model":"m","message":{"role":"assistant","content":"x"},"done":false}"#,
            r#"{"type":"status","message":"loading the model"}"#,
            r#"{"id":"r1","status":"completed","error":null,"output":[]}"#,
            "[DONE]",
        ] {
            assert_eq!(from_raw(json), None, "{json}");
        }
    }
}
