//! What clients send and servers answer.

use serde_json::{Value, json};

use crate::call::{Request, RequestBuilder};
use crate::dialect::Dialect;

pub(super) const URL: &str = "http://api.example/v1/answers";

/// The head of a stream in chunks
pub(super) const STREAM_HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// The head of a stream that its connection's end delimits
pub(super) const OPEN_HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";

pub(super) const LAST_CHUNK: &str = "0\r\n\r\n";

pub(super) fn request(dialect: Dialect) -> RequestBuilder {
    Request::post(URL).body("{}").dialect(dialect)
}

/// A whole response with fields and a body of known length
pub(super) fn response(status: &str, fields: &[&str], body: &str) -> String {
    let fields: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
    format!("HTTP/1.1 {status}\r\n{fields}content-length: {}\r\n\r\n{body}", body.len())
}

/// One chunk
pub(super) fn chunk(data: impl AsRef<str>) -> String {
    let data = data.as_ref();
    format!("{:x}\r\n{data}\r\n", data.len())
}

/// One event, named by its `type` where it has one
pub(super) fn event(data: &Value) -> String {
    match data.get("type").and_then(Value::as_str) {
        Some(name) => format!("event: {name}\ndata: {data}\n\n"),
        None => format!("data: {data}\n\n"),
    }
}

/// The events of one answer in each of [`SPOKEN`]
pub(super) trait Answer {
    /// What comes before the first delta
    fn opening(self) -> String;
    /// A delta of text
    fn text(self, text: &str) -> String;
    /// What makes the answer whole: the completion marker, or the sentinel where there is no marker
    fn terminal(self) -> String;
    /// The sentinel, where there is one beside the marker
    fn sentinel(self) -> Option<String>;
    /// An overload inside the stream
    fn overload(self) -> String;
    /// A provider's keep-alive
    fn ping(self) -> String;
}

/// The dialects that these tests speak: one of each way in which an answer becomes whole
pub(super) const SPOKEN: [Dialect; 4] =
    [Dialect::OpenAiChat, Dialect::OpenAiResponses, Dialect::Anthropic, Dialect::Gemini];

fn unplayed(dialect: Dialect) -> ! {
    panic!("these tests do not speak {}", dialect.name())
}

impl Answer for Dialect {
    fn opening(self) -> String {
        match self {
            Self::OpenAiCompletions | Self::GeminiInteractions | Self::Ollama | Self::Cohere | Self::Custom(_) => {
                unplayed(self)
            }
            Self::OpenAiChat => event(&json!({"id": "c1", "choices": [{"index": 0, "delta": {"role": "assistant"}}]})),
            Self::OpenAiResponses => event(&json!({"type": "response.created", "response": {"id": "r1"}})),
            Self::Anthropic => [
                json!({"type": "message_start", "message": {"id": "m1", "usage": {"input_tokens": 5}}}),
                json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
            ]
            .iter()
            .map(event)
            .collect(),
            Self::Gemini => event(&json!({"responseId": "g1", "candidates": [{"content": {"parts": []}}]})),
        }
    }

    fn text(self, text: &str) -> String {
        event(&match self {
            Self::OpenAiCompletions
            | Self::GeminiInteractions
            | Self::Ollama
            | Self::Cohere
            | Self::Custom(_) => unplayed(self),
            Self::OpenAiChat => json!({"id": "c1", "choices": [{"index": 0, "delta": {"content": text}}]}),
            Self::OpenAiResponses => {
                json!({"type": "response.output_text.delta", "output_index": 0, "delta": text})
            }
            Self::Anthropic => {
                json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}})
            }
            Self::Gemini => json!({"candidates": [{"content": {"parts": [{"text": text}]}}]}),
        })
    }

    fn terminal(self) -> String {
        match self {
            Self::OpenAiCompletions | Self::GeminiInteractions | Self::Ollama | Self::Cohere | Self::Custom(_) => {
                unplayed(self)
            }
            Self::OpenAiChat => {
                event(&json!({"id": "c1", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}))
            }
            Self::OpenAiResponses => event(
                &json!({"type": "response.completed", "response": {"id": "r1", "status": "completed", "output": []}}),
            ),
            Self::Anthropic => [
                json!({"type": "content_block_stop", "index": 0}),
                json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}}),
            ]
            .iter()
            .map(event)
            .collect(),
            Self::Gemini => event(&json!({"candidates": [{"finishReason": "STOP"}]})),
        }
    }

    fn sentinel(self) -> Option<String> {
        match self {
            Self::OpenAiCompletions
            | Self::GeminiInteractions
            | Self::Ollama
            | Self::Cohere
            | Self::Custom(_) => unplayed(self),
            Self::OpenAiChat => Some("data: [DONE]\n\n".to_owned()),
            Self::Anthropic => Some(event(&json!({"type": "message_stop"}))),
            Self::OpenAiResponses | Self::Gemini => None,
        }
    }

    fn overload(self) -> String {
        event(&match self {
            Self::OpenAiCompletions
            | Self::GeminiInteractions
            | Self::Ollama
            | Self::Cohere
            | Self::Custom(_) => unplayed(self),
            Self::OpenAiChat => json!({"error": {"code": 503, "message": "overloaded"}}),
            Self::OpenAiResponses => {
                json!({"type": "error", "code": "server_is_overloaded", "message": "overloaded"})
            }
            Self::Anthropic => {
                json!({"type": "error", "error": {"type": "overloaded_error", "message": "overloaded"}})
            }
            Self::Gemini => json!({"error": {"code": 503, "status": "UNAVAILABLE", "message": "overloaded"}}),
        })
    }

    fn ping(self) -> String {
        match self {
            Self::OpenAiCompletions
            | Self::GeminiInteractions
            | Self::Ollama
            | Self::Cohere
            | Self::Custom(_) => unplayed(self),
            Self::Anthropic => event(&json!({"type": "ping"})),
            Self::OpenAiChat | Self::OpenAiResponses | Self::Gemini => ": keep-alive\n\n".to_owned(),
        }
    }
}
