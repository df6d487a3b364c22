//! What a server says, well formed and not.

use steadfast::dialect::Dialect;

/// One thing that a server sends
#[derive(arbitrary::Arbitrary, Clone, Debug)]
pub(super) enum Words {
    /// The head of a response, by number
    Head(u8),
    /// An event of the call's dialect, by number, in a chunk where the body is chunked
    Event(u8),
    /// The last chunk
    LastChunk,
    /// A whole answer, by number
    Answer(u8),
    /// Anything at all
    Bytes(Vec<u8>),
}

const HEADS: [&str; 12] = [
    "200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n",
    "200 OK\r\ncontent-type: text/event-stream\r\n",
    "200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n",
    "200 OK\r\ncontent-type: application/x-ndjson\r\ntransfer-encoding: chunked\r\n",
    "200 OK\r\ncontent-type: application/json\r\n",
    "200 OK\r\ncontent-type: text/html\r\ncontent-length: 90\r\n",
    "102 Processing\r\n",
    "429 Slow Down\r\nretry-after: 1.5\r\ntransfer-encoding: chunked\r\n",
    "503 Busy\r\ncontent-length: 0\r\n",
    "400 Bad\r\nx-should-retry: true\r\ntransfer-encoding: chunked\r\n",
    "500 No\r\nretry-after-ms: 20000\r\n",
    "204 Nothing\r\n",
];

const ANSWERS: [&str; 6] = [
    "HTTP/1.1 503 Busy\r\nretry-after: 1\r\ncontent-length: 4\r\n\r\nbusy",
    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 76\r\n\r\n{\"choices\":[{\"index\":0,\"message\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]} ",
    "HTTP/1.1 429 No\r\ncontent-length: 45\r\n\r\n{\"error\":{\"code\":\"insufficient_quota\",\"m\":0}}",
    "HTTP/1.1 529 Overloaded\r\nretry-after: Sun, 06 Nov 1994 08:49:32 GMT\r\ncontent-length: 0\r\n\r\n",
    "HTTP/1.1 101 Switching\r\n\r\n",
    "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-type: text/event-stream\r\n\r\n\x1F",
];

impl Words {
    /// Their bytes
    pub(super) fn bytes(&self, dialect: Dialect, chunked: bool) -> Vec<u8> {
        match self {
            Self::Head(which) => format!("HTTP/1.1 {}\r\n", of(&HEADS, *which)).into_bytes(),
            Self::Event(which) => {
                let event = event(dialect, *which);
                match chunked {
                    true => format!("{:x}\r\n{event}\r\n", event.len()).into_bytes(),
                    false => event.into_bytes(),
                }
            }
            Self::LastChunk => b"0\r\n\r\n".to_vec(),
            Self::Answer(which) => of(&ANSWERS, *which).as_bytes().to_vec(),
            Self::Bytes(bytes) => bytes.clone(),
        }
    }
}

fn of<'a>(all: &[&'a str], which: u8) -> &'a str {
    all[usize::from(which) % all.len()]
}

/// An event of a dialect, or one that is none
fn event(dialect: Dialect, which: u8) -> String {
    const ODD: [&str; 6] = [
        ": ping\n\n",
        "data: {\n\n",
        "data: null\n\n",
        "event: error\ndata: {\"message\":\"no\"}\n\n",
        "id: 7\ndata",
        "\n",
    ];
    let events = events(dialect);
    let which = usize::from(which) % (events.len() + ODD.len());
    let Some(data) = events.get(which) else { return ODD[which - events.len()].to_owned() };
    match dialect {
        Dialect::Ollama => format!("{data}\n"),
        Dialect::OpenAiChat
        | Dialect::OpenAiCompletions
        | Dialect::OpenAiResponses
        | Dialect::Anthropic
        | Dialect::Gemini
        | Dialect::GeminiInteractions
        | Dialect::Cohere
        | Dialect::Custom(_) => format!("data: {data}\n\n"),
    }
}

/// What an answer is made of: a beginning, text, more of it, a tool call, marks of the end, an error
fn events(dialect: Dialect) -> &'static [&'static str] {
    match dialect {
        Dialect::OpenAiChat | Dialect::Custom(_) => &[
            r#"{"id":"c","choices":[{"index":0,"delta":{"role":"assistant"}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":"Hi"}}]}"#,
            r#"{"choices":[{"index":1,"delta":{"content":"Ho","reasoning_content":"\ud83d"}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"t","function":{"name":"f","arguments":"{"}}]}}]}"#,
            r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
            r#"{"choices":[{"index":1,"delta":{},"finish_reason":"length"}]}"#,
            r#"{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2}}"#,
            "[DONE]",
            r#"{"error":{"code":503,"message":"overloaded"}}"#,
            r#"{"object":"odd"}"#,
        ],
        Dialect::OpenAiCompletions => &[
            r#"{"id":"c","choices":[{"index":0,"text":"Hi"}]}"#,
            r#"{"choices":[{"index":0,"text":"\n","finish_reason":"length"}]}"#,
            r#"{"choices":[{"index":0,"text":"","finish_reason":"stop"}]}"#,
            r#"{"choices":[],"usage":{"prompt_tokens":5}}"#,
            "[DONE]",
            r#"{"error":{"type":"server_error","message":"no"}}"#,
        ],
        Dialect::OpenAiResponses => &[
            r#"{"type":"response.created","response":{"id":"r","status":"in_progress","output":[]}}"#,
            r#"{"type":"response.output_text.delta","output_index":0,"delta":"Hi"}"#,
            r#"{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","call_id":"t","name":"f","arguments":""}}"#,
            r#"{"type":"response.function_call_arguments.delta","output_index":1,"delta":"{}"}"#,
            r#"{"type":"response.refusal.delta","output_index":0,"delta":"No"}"#,
            r#"{"type":"response.completed","response":{"id":"r","status":"completed","output":[],"usage":{"input_tokens":5}}}"#,
            r#"{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}"#,
            r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"no"}}}"#,
            r#"{"type":"error","code":"server_is_overloaded","message":"overloaded"}"#,
            r#"{"type":"odd"}"#,
        ],
        Dialect::Anthropic => &[
            r#"{"type":"message_start","message":{"id":"m","usage":{"input_tokens":5}}}"#,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}"#,
            r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}"#,
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{}"}}"#,
            r#"{"type":"content_block_stop","index":0}"#,
            r#"{"type":"content_block_stop","index":1}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}"#,
            r#"{"type":"message_stop"}"#,
            r#"{"type":"ping"}"#,
            r#"{"type":"error","error":{"type":"overloaded_error","message":"overloaded"}}"#,
        ],
        Dialect::Gemini => &[
            r#"{"responseId":"g","candidates":[{"content":{"parts":[]}}]}"#,
            r#"{"candidates":[{"content":{"parts":[{"text":"Hi"},{"text":"Hm","thought":true}]}}]}"#,
            r#"{"candidates":[{"index":1,"content":{"parts":[{"functionCall":{"name":"f","args":{}}}]}}]}"#,
            r#"{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":5}}"#,
            r#"{"candidates":[{"index":1,"finishReason":"MAX_TOKENS"}]}"#,
            r#"{"promptFeedback":{"blockReason":"SAFETY"}}"#,
            r#"{"error":{"code":503,"status":"UNAVAILABLE","message":"overloaded"}}"#,
        ],
        Dialect::GeminiInteractions => &[
            r#"{"event_type":"interaction.created","interaction":{"id":"i","status":"in_progress"}}"#,
            r#"{"event_type":"step.start","index":0,"step":{"type":"model_output"}}"#,
            r#"{"event_type":"step.delta","index":0,"delta":{"type":"text","text":"Hi"}}"#,
            r#"{"event_type":"step.stop","index":0}"#,
            r#"{"event_type":"interaction.completed","interaction":{"id":"i","status":"completed"}}"#,
            r#"{"event_type":"interaction.completed","interaction":{"status":"failed"}}"#,
            r#"{"event_type":"error","error":{"message":"no","code":"unavailable"}}"#,
        ],
        Dialect::Ollama => &[
            r#"{"model":"m","message":{"content":"Hi"},"done":false}"#,
            r#"{"message":{"content":"","thinking":"Hm","tool_calls":[{"function":{"name":"f","arguments":{}}}]},"done":false}"#,
            r#"{"message":{"content":"!"},"done":true,"done_reason":"stop","eval_count":2}"#,
            r#"{"done":true,"done_reason":"length"}"#,
            r#"{"error":"overloaded"}"#,
        ],
        Dialect::Cohere => &[
            r#"{"type":"message-start","id":"c"}"#,
            r#"{"type":"content-start","index":0,"delta":{"message":{"content":{"type":"text","text":""}}}}"#,
            r#"{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"Hi"}}}}"#,
            r#"{"type":"tool-call-start","index":0,"delta":{"message":{"tool_calls":{"id":"t","function":{"name":"f","arguments":""}}}}}"#,
            r#"{"type":"content-end","index":0}"#,
            r#"{"type":"message-end","delta":{"finish_reason":"COMPLETE","usage":{"tokens":{"input_tokens":5}}}}"#,
            r#"{"type":"message-end","delta":{"finish_reason":"ERROR","error":"no"}}"#,
        ],
    }
}
