//! The bytes that stand for each event.

use serde_json::{Value, json};
use steadfast::dialect::Dialect;

use crate::terms::{BODY_BYTES, Case, Framing, Input, THOUGHT_BYTES};

/// What one server has said on one connection, so that it goes on as a server would
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Server {
    has_begun: bool,
    block_open: bool,
    half_head: bool,
}

impl Server {
    /// The bytes that say `input`
    pub(crate) fn say(&mut self, case: &Case, input: Input) -> Vec<u8> {
        use Input::*;
        let head =
            |status: &str, fields: &str| format!("HTTP/1.1 {status}\r\n{fields}content-length: 2\r\n\r\n");
        let answer = |status: &str, fields: &str, body: &str| {
            format!("HTTP/1.1 {status}\r\n{fields}content-length: {}\r\n\r\n{body}", body.len())
        };
        match input {
            Interim => "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n".to_owned(),
            HalfHead | StreamHead => {
                let framing = match case.framing {
                    Framing::Chunked => "transfer-encoding: chunked\r\n",
                    Framing::UntilEof => "",
                };
                let is_ndjson = case.dialect == Dialect::Ollama;
                let kind = if is_ndjson { "application/x-ndjson" } else { "text/event-stream" };
                let whole = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\n{framing}\r\n");
                let (first, rest) = whole.split_at(22);
                match (input, std::mem::replace(&mut self.half_head, input == HalfHead)) {
                    (HalfHead, _) => first.to_owned(),
                    (_, true) => rest.to_owned(),
                    _ => whole,
                }
            }
            UnaryHead => {
                format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {BODY_BYTES}\r\n\r\n")
            }
            Busy => answer("503 Service Unavailable", "", "no"),
            BusyHead => {
                self.half_head = true;
                head("503 Service Unavailable", "")
            }
            Limited => answer("429 Too Many Requests", "retry-after: 3\r\n", "no"),
            LimitedLong => answer("429 Too Many Requests", "retry-after: 5000\r\n", "no"),
            Bad => answer("400 Bad Request", "", "no"),
            BusyFinal => answer("503 Service Unavailable", "x-should-retry: false\r\n", "no"),
            BadAgain => answer("400 Bad Request", "x-should-retry: true\r\n", "no"),
            Quota => answer(
                "429 Too Many Requests",
                "content-type: application/json\r\n",
                r#"{"error":{"type":"insufficient_quota","code":"insufficient_quota","message":"spent"}}"#,
            ),
            Body if self.half_head => "no".to_owned(),
            Body => padded(&unary(case.dialect).to_string()),
            BodyOverload => padded(&overload(case.dialect).to_string()),
            BodyNotJson => padded("never"),
            BodyEnd => "0\r\n\r\n".to_owned(),
            BodyEndAndMore => "0\r\n\r\nHTTP/1.1 ".to_owned(),
            _ => {
                let mut text = self.stream(case.dialect, input);
                if case.framing == Framing::Chunked {
                    text = format!("{:x}\r\n{text}\r\n", text.len());
                }
                let ends = input == MarkerAndEnd || input == DeltaToEnd && case.dialect == Dialect::Gemini;
                if ends && case.framing == Framing::Chunked {
                    text.push_str("0\r\n\r\n");
                }
                text
            }
        }
        .into_bytes()
    }

    fn stream(&mut self, dialect: Dialect, input: Input) -> String {
        use Input::*;
        match input {
            Delta => self.delta(dialect),
            Thought => {
                let thought = "y".repeat(THOUGHT_BYTES);
                event(dialect, &json!({"choices": [{"index": 0, "delta": {"reasoning": thought}}]}))
            }
            RawByte => "x".to_owned(),
            // In one event, so that a driver can drop its `Drain` in the middle of it.
            TwoDeltas if dialect == Dialect::Gemini => {
                let parts = json!([{"text": "x"}, {"text": "x"}]);
                event(dialect, &json!({"candidates": [{"content": {"parts": parts}}]}))
            }
            TwoDeltas => self.delta(dialect) + &self.delta(dialect),
            HalfDelta => {
                let whole = self.delta(dialect);
                whole[..whole.len() - 12].to_owned()
            }
            RestDelta => {
                let whole = self.delta(dialect);
                whole[whole.len() - 12..].to_owned()
            }
            OpenDelta => self.delta(dialect).trim_ascii_end().to_owned(),
            LineEnd if dialect == Dialect::Ollama => "\n".to_owned(),
            LineEnd => "\n\n".to_owned(),
            Comment if dialect == Dialect::Ollama => "\n".to_owned(),
            Comment => ": here\n\n".to_owned(),
            Marker | MarkerAndEnd => self.marker(dialect, true),
            LengthMarker => self.marker(dialect, false),
            DeltaToEnd => {
                let mut text = self.delta(dialect);
                if dialect != Dialect::Ollama {
                    text += &self.marker(dialect, true);
                }
                text + &sentinel(dialect)
            }
            Usage if dialect == Dialect::Gemini => {
                event(dialect, &json!({"usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 2}}))
            }
            Usage => {
                event(dialect, &json!({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}}))
            }
            Sentinel => sentinel(dialect),
            Overload => event(dialect, &overload(dialect)),
            Invalid => event(dialect, &invalid(dialect)),
            NotJson if dialect == Dialect::Ollama => "{never\n".to_owned(),
            NotJson => "data: {never\n\n".to_owned(),
            _ => String::new(),
        }
    }

    fn delta(&mut self, dialect: Dialect) -> String {
        let begins = !std::mem::replace(&mut self.has_begun, true);
        let opens_block = !std::mem::replace(&mut self.block_open, true);
        match dialect {
            Dialect::Anthropic => {
                let mut text = String::new();
                if begins {
                    text += &event(dialect, &json!({"type": "message_start", "message": {"id": "m1"}}));
                }
                if opens_block {
                    let block = json!({"type": "text", "text": ""});
                    text += &event(
                        dialect,
                        &json!({"type": "content_block_start", "index": 0, "content_block": block}),
                    );
                }
                let delta = json!({"type": "text_delta", "text": "x"});
                text + &event(dialect, &json!({"type": "content_block_delta", "index": 0, "delta": delta}))
            }
            Dialect::Gemini => {
                event(dialect, &json!({"candidates": [{"content": {"parts": [{"text": "x"}]}}]}))
            }
            Dialect::Ollama => event(dialect, &json!({"message": {"content": "x"}, "done": false})),
            _ => event(dialect, &json!({"choices": [{"index": 0, "delta": {"content": "x"}}]})),
        }
    }

    fn marker(&mut self, dialect: Dialect, is_whole: bool) -> String {
        let word = |whole, cut| if is_whole { whole } else { cut };
        let closes_block = std::mem::replace(&mut self.block_open, false);
        match dialect {
            Dialect::Anthropic => {
                let mut text = String::new();
                if closes_block {
                    text += &event(dialect, &json!({"type": "content_block_stop", "index": 0}));
                }
                text + &event(
                    dialect,
                    &json!({"type": "message_delta", "delta": {"stop_reason": word("end_turn", "max_tokens")}}),
                )
            }
            Dialect::Gemini => {
                event(dialect, &json!({"candidates": [{"finishReason": word("STOP", "MAX_TOKENS")}]}))
            }
            _ => event(
                dialect,
                &json!({"choices": [{"index": 0, "delta": {}, "finish_reason": word("stop", "length")}]}),
            ),
        }
    }
}

fn sentinel(dialect: Dialect) -> String {
    match dialect {
        Dialect::Anthropic => event(dialect, &json!({"type": "message_stop"})),
        Dialect::Gemini => String::new(),
        Dialect::Ollama => {
            event(dialect, &json!({"message": {"content": ""}, "done": true, "done_reason": "stop"}))
        }
        _ => "data: [DONE]\n\n".to_owned(),
    }
}

fn overload(dialect: Dialect) -> Value {
    match dialect {
        Dialect::Anthropic => {
            json!({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}})
        }
        _ => json!({"error": {"code": 503, "status": "UNAVAILABLE", "message": "busy"}}),
    }
}

fn invalid(dialect: Dialect) -> Value {
    match dialect {
        Dialect::Anthropic => {
            json!({"type": "error", "error": {"type": "invalid_request_error", "message": "no"}})
        }
        Dialect::Ollama => json!({"error": "model not found"}),
        _ => json!({"error": {"code": 400, "status": "INVALID_ARGUMENT", "message": "no"}}),
    }
}

fn unary(dialect: Dialect) -> Value {
    match dialect {
        Dialect::Anthropic => json!({
            "type": "message", "content": [{"type": "text", "text": "x"}], "stop_reason": "end_turn",
            "usage": {"input_tokens": 5, "output_tokens": 2},
        }),
        Dialect::Gemini => json!({
            "candidates": [{"content": {"parts": [{"text": "x"}]}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 2},
        }),
        Dialect::Ollama => json!({
            "message": {"content": "x"}, "done": true, "done_reason": "stop", "prompt_eval_count": 5, "eval_count": 2,
        }),
        _ => json!({
            "choices": [{"index": 0, "message": {"content": "x"}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 5, "completion_tokens": 2},
        }),
    }
}

fn event(dialect: Dialect, data: &Value) -> String {
    match (dialect, data.get("type").and_then(Value::as_str)) {
        (Dialect::Ollama, _) => format!("{data}\n"),
        (_, Some(name)) => format!("event: {name}\ndata: {data}\n\n"),
        (_, None) => format!("data: {data}\n\n"),
    }
}

fn padded(body: &str) -> String {
    format!("{body:BODY_BYTES$}")
}
