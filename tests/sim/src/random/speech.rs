//! What servers say in each dialect.

use steadfast::config::RequestConfig;
use steadfast::dialect::Dialect;
use steadfast::outcome::ToolCall;

use super::plan::{Piece, Problem};
use super::wire::{Body, Mark};

/// What has been said in one answer
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Said {
    /// The server spoke of a second choice
    two_choices: bool,
    /// A content block is open (Anthropic)
    block: bool,
    /// Words or a whole tool call came (Anthropic)
    words: bool,
    /// Tool calls so far
    tools: u8,
    /// Long pieces so far
    longs: u8,
    /// A completion marker came
    marked: bool,
}

/// Adds `piece` to `body`, as far as the dialect has a word for it
pub(crate) fn say(body: &mut Body, said: &mut Said, dialect: Dialect, piece: Piece, config: &RequestConfig) {
    match piece {
        Piece::Opening => opening(body, said, dialect),
        Piece::Text => {
            said.words = true;
            let (before, after) = text(dialect);
            body.begin(dialect);
            body.push(before);
            body.token();
            body.push(after);
            body.end(dialect, Mark::Text);
        }
        Piece::Thought => {
            let (before, after) = match dialect {
                Dialect::OpenAiChat => {
                    (r#"{"choices":[{"index":0,"delta":{"reasoning":"Hm","content":""#, r#""}}]}"#)
                }
                Dialect::Gemini => (
                    r#"{"candidates":[{"content":{"parts":[{"text":"Hm","thought":true},{"text":""#,
                    r#""}]}}]}"#,
                ),
                Dialect::Ollama => (r#"{"message":{"thinking":"Hm","content":""#, r#""},"done":false}"#),
                Dialect::OpenAiCompletions
                | Dialect::OpenAiResponses
                | Dialect::Anthropic
                | Dialect::GeminiInteractions
                | Dialect::Cohere
                | Dialect::Custom(_) => return,
            };
            body.begin(dialect);
            body.push(before);
            body.token();
            body.push(after);
            body.weight += "Hm".len();
            body.end(dialect, Mark::Text);
        }
        Piece::Long => {
            said.longs += 1;
            let (before, after) = match dialect {
                Dialect::OpenAiChat if said.longs.is_multiple_of(2) => {
                    (r#"{"choices":[{"index":0,"delta":{"refusal":""#, r#""}}]}"#)
                }
                Dialect::OpenAiChat => (r#"{"choices":[{"index":0,"delta":{"reasoning":""#, r#""}}]}"#),
                Dialect::Gemini => {
                    (r#"{"candidates":[{"content":{"parts":[{"thought":true,"text":""#, r#""}]}}]}"#)
                }
                Dialect::Ollama => (r#"{"message":{"thinking":""#, r#""},"done":false}"#),
                Dialect::OpenAiCompletions
                | Dialect::OpenAiResponses
                | Dialect::Anthropic
                | Dialect::GeminiInteractions
                | Dialect::Cohere
                | Dialect::Custom(_) => return,
            };
            // Three come near to a small bound, and four go past it.
            let most = config.max_body_bytes();
            let length = if most <= MAX_FLOOD { most * 3 / 10 } else { 200 };
            body.begin(dialect);
            body.push(before);
            body.fill(length);
            body.weight += length;
            body.push(after);
            body.end(dialect, Mark::Delta);
        }
        Piece::SecondChoice => {
            let (before, after) = match dialect {
                Dialect::OpenAiChat => (r#"{"choices":[{"index":1,"delta":{"content":""#, r#""}}]}"#),
                Dialect::OpenAiCompletions => (r#"{"choices":[{"index":1,"text":""#, r#""}]}"#),
                Dialect::Gemini => {
                    (r#"{"candidates":[{"index":1,"content":{"parts":[{"text":""#, r#""}]}}]}"#)
                }
                Dialect::OpenAiResponses
                | Dialect::Anthropic
                | Dialect::GeminiInteractions
                | Dialect::Ollama
                | Dialect::Cohere
                | Dialect::Custom(_) => return,
            };
            body.begin(dialect);
            body.push(before);
            body.other_token();
            body.push(after);
            body.end(dialect, if said.two_choices { Mark::Delta } else { Mark::OpensChoice });
            said.two_choices = true;
        }
        Piece::Tool => tool(body, said, dialect),
        Piece::Comment => {
            let is_lines = dialect == Dialect::Ollama || body.in_array;
            body.push(if is_lines { "\n" } else { ": so so\n\n" });
            body.mark(Mark::Noise(piece));
        }
        Piece::Ping if dialect == Dialect::Anthropic => {
            body.event(dialect, r#"{"type":"ping"}"#, Mark::Noise(piece));
        }
        Piece::Ping => {
            let is_lines = dialect == Dialect::Ollama || body.in_array;
            body.push(if is_lines { "\r\n" } else { ":\n\n" });
            body.mark(Mark::Noise(piece));
        }
        Piece::Unknown => {
            body.event(
                dialect,
                r#"{"type":"odd.thing","event_type":"odd.thing","odd":1}"#,
                Mark::Noise(piece),
            );
        }
        Piece::Null => body.event(dialect, "null", Mark::Noise(piece)),
        Piece::Usage => {
            let usage = match dialect {
                Dialect::OpenAiChat | Dialect::OpenAiCompletions => {
                    r#"{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2}}"#
                }
                Dialect::Gemini => r#"{"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":2}}"#,
                Dialect::OpenAiResponses
                | Dialect::Anthropic
                | Dialect::GeminiInteractions
                | Dialect::Ollama
                | Dialect::Cohere
                | Dialect::Custom(_) => return,
            };
            body.event(dialect, usage, Mark::Noise(piece));
        }
        Piece::Marker => marker(body, said, dialect, false),
        Piece::StopsEarly => marker(body, said, dialect, true),
        Piece::Sentinel => {
            if let Some(data) = sentinel(dialect) {
                body.event(dialect, data, Mark::Sentinel);
            }
        }
        Piece::InBand(problem) => body.event(dialect, in_band(dialect, problem), Mark::InBand(problem)),
        Piece::Blocked if dialect == Dialect::Gemini => {
            body.event(dialect, r#"{"promptFeedback":{"blockReason":"SAFETY"}}"#, Mark::Blocked);
        }
        Piece::Blocked => {}
        // In an array an element that is not closed would swallow the others.
        Piece::NotJson => body.event(dialect, if body.in_array { "{oops}" } else { "{oops" }, Mark::NotJson),
        Piece::Flood => {
            // Larger floods would take memory and show nothing more.
            let max_event_bytes = config.max_event_bytes();
            if max_event_bytes <= MAX_FLOOD {
                body.begin(dialect);
                body.mark(Mark::MayBreak);
                body.push(r#"{"odd":""#);
                body.fill(max_event_bytes + SLACK);
                body.mark(Mark::Broken);
                body.push(r#""}"#);
                body.end(dialect, Mark::Noise(piece));
            }
        }
    }
}

/// The largest bound that a server goes past
pub(crate) const MAX_FLOOD: usize = 4096;

/// How far past a bound it goes before that must be noticed
pub(crate) const SLACK: usize = 64;

fn opening(body: &mut Body, said: &mut Said, dialect: Dialect) {
    let (before, after) = match dialect {
        Dialect::OpenAiChat => (r#"{"id":""#, r#"","choices":[{"index":0,"delta":{"role":"assistant"}}]}"#),
        Dialect::OpenAiCompletions => (r#"{"id":""#, r#"","choices":[{"index":0,"text":""}]}"#),
        Dialect::OpenAiResponses => (r#"{"type":"response.created","response":{"id":""#, r#""}}"#),
        Dialect::Anthropic => {
            (r#"{"type":"message_start","message":{"id":""#, r#"","usage":{"input_tokens":5}}}"#)
        }
        Dialect::Gemini => (r#"{"responseId":""#, r#"","candidates":[{"content":{"parts":[]}}]}"#),
        Dialect::GeminiInteractions => {
            (r#"{"interaction":{"id":""#, r#"","status":"in_progress"},"event_type":"interaction.created"}"#)
        }
        Dialect::Ollama => {
            (r#"{"model":""#, r#"","message":{"role":"assistant","content":""},"done":false}"#)
        }
        Dialect::Cohere => (
            r#"{"id":""#,
            r#"","type":"message-start","delta":{"message":{"role":"assistant","content":[]}}}"#,
        ),
        Dialect::Custom(_) => return,
    };
    body.begin(dialect);
    body.push(before);
    body.id();
    body.push(after);
    // What was said cannot be taken back, and would be said twice.
    let is_second = dialect == Dialect::Anthropic && said.words;
    body.end(dialect, if is_second { Mark::SecondMessage } else { Mark::Noise(Piece::Opening) });
    if dialect == Dialect::Anthropic && !said.block && !said.marked {
        said.block = true;
        let start = r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#;
        body.event(dialect, start, Mark::Noise(Piece::Opening));
    }
}

/// What stands before and after a piece of text in the data of its event
fn text(dialect: Dialect) -> (&'static str, &'static str) {
    match dialect {
        Dialect::OpenAiChat | Dialect::Custom(_) => {
            (r#"{"choices":[{"index":0,"delta":{"content":""#, r#""}}]}"#)
        }
        Dialect::OpenAiCompletions => (r#"{"choices":[{"index":0,"text":""#, r#""}]}"#),
        Dialect::OpenAiResponses => {
            (r#"{"type":"response.output_text.delta","output_index":0,"delta":""#, r#""}"#)
        }
        Dialect::Anthropic => {
            (r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":""#, r#""}}"#)
        }
        Dialect::Gemini => (r#"{"candidates":[{"content":{"parts":[{"text":""#, r#""}]}}]}"#),
        Dialect::GeminiInteractions => {
            (r#"{"index":1,"delta":{"type":"text","text":""#, r#""},"event_type":"step.delta"}"#)
        }
        Dialect::Ollama => (r#"{"message":{"content":""#, r#""},"done":false}"#),
        Dialect::Cohere => {
            (r#"{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":""#, r#""}}}}"#)
        }
    }
}

fn tool(body: &mut Body, said: &mut Said, dialect: Dialect) {
    const DIGITS: [&str; 8] = ["0", "1", "2", "3", "4", "5", "6", "7"];
    // More than a handful shows nothing more.
    let Some(number) = DIGITS.get(usize::from(said.tools)) else { return };
    if matches!(dialect, Dialect::OpenAiChat | Dialect::Gemini)
        || (dialect == Dialect::Anthropic && !said.marked)
    {
        body.weight += size_of::<ToolCall>();
    }
    match dialect {
        Dialect::OpenAiChat => {
            body.begin(dialect);
            body.push(r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":"#);
            body.push(number);
            body.push(r#","id":"t"#);
            body.push(number);
            body.push(r#"","function":{"name":"f","arguments":"{}"}}]}}]}"#);
            body.end(dialect, Mark::Delta);
        }
        Dialect::Anthropic if !said.marked => {
            for (before, after, mark) in [
                (
                    r#"{"type":"content_block_start","index":1"#,
                    r#","content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}"#,
                    Mark::Delta,
                ),
                (
                    r#"{"type":"content_block_delta","index":1"#,
                    r#","delta":{"type":"input_json_delta","partial_json":"{\"a\":1}"}}"#,
                    Mark::Delta,
                ),
                (r#"{"type":"content_block_stop","index":1"#, "}", Mark::Noise(Piece::Tool)),
            ] {
                body.begin(dialect);
                body.push(before);
                body.push(number);
                body.push(after);
                body.end(dialect, mark);
            }
            said.words = true;
        }
        Dialect::Gemini => {
            let call = r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{}}}]}}]}"#;
            body.event(dialect, call, Mark::Delta);
        }
        Dialect::Anthropic
        | Dialect::OpenAiCompletions
        | Dialect::OpenAiResponses
        | Dialect::GeminiInteractions
        | Dialect::Ollama
        | Dialect::Cohere
        | Dialect::Custom(_) => return,
    }
    said.tools += 1;
}

fn marker(body: &mut Body, said: &mut Said, dialect: Dialect, early: bool) {
    let word = match (dialect, early) {
        (Dialect::Anthropic, false) => "end_turn",
        (Dialect::Anthropic, true) => "max_tokens",
        (Dialect::Gemini, false) => "STOP",
        (Dialect::Gemini, true) => "MAX_TOKENS",
        (_, false) => "stop",
        (_, true) => "length",
    };
    // What stands before the word, what follows it where there are two choices, and what ends the event
    let (before, between, after) = match dialect {
        Dialect::OpenAiChat => (
            r#"{"choices":[{"index":0,"delta":{},"finish_reason":""#,
            r#""},{"index":1,"delta":{},"finish_reason":""#,
            r#""}]}"#,
        ),
        Dialect::OpenAiCompletions => (
            r#"{"choices":[{"index":0,"text":"","finish_reason":""#,
            r#""},{"index":1,"text":"","finish_reason":""#,
            r#""}]}"#,
        ),
        Dialect::Gemini => {
            (r#"{"candidates":[{"index":0,"finishReason":""#, r#""},{"index":1,"finishReason":""#, r#""}]}"#)
        }
        Dialect::Anthropic => {
            if std::mem::take(&mut said.block) {
                let stop = r#"{"type":"content_block_stop","index":0}"#;
                body.event(dialect, stop, Mark::Noise(Piece::Marker));
            }
            (r#"{"type":"message_delta","delta":{"stop_reason":""#, "", r#""},"usage":{"output_tokens":2}}"#)
        }
        Dialect::OpenAiResponses
        | Dialect::GeminiInteractions
        | Dialect::Ollama
        | Dialect::Cohere
        | Dialect::Custom(_) => return,
    };
    body.begin(dialect);
    body.push(before);
    body.push(word);
    if said.two_choices {
        body.push(between);
        body.push(word);
    }
    body.push(after);
    body.end(dialect, if said.marked { Mark::MarkerAgain(early) } else { Mark::Marker(early) });
    said.marked = true;
}

fn sentinel(dialect: Dialect) -> Option<&'static str> {
    Some(match dialect {
        Dialect::OpenAiChat | Dialect::OpenAiCompletions => "[DONE]",
        Dialect::OpenAiResponses => {
            r#"{"type":"response.completed","response":{"status":"completed","output":[]}}"#
        }
        Dialect::Anthropic => r#"{"type":"message_stop"}"#,
        Dialect::Gemini | Dialect::Custom(_) => return None,
        Dialect::GeminiInteractions => {
            r#"{"interaction":{"status":"completed"},"event_type":"interaction.completed"}"#
        }
        Dialect::Ollama => r#"{"message":{"content":""},"done":true,"done_reason":"stop"}"#,
        Dialect::Cohere => r#"{"type":"message-end","delta":{"finish_reason":"COMPLETE"}}"#,
    })
}

fn in_band(dialect: Dialect, problem: Problem) -> &'static str {
    match (dialect, problem) {
        (Dialect::OpenAiResponses, Problem::Overload) => {
            r#"{"type":"error","code":"server_is_overloaded","message":"busy"}"#
        }
        (Dialect::OpenAiResponses, Problem::Invalid) => {
            r#"{"type":"error","code":"invalid_prompt","message":"bad"}"#
        }
        (Dialect::OpenAiResponses, Problem::Quota) => {
            r#"{"type":"error","code":"insufficient_quota","message":"pay"}"#
        }
        (Dialect::Anthropic, Problem::Overload) => {
            r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#
        }
        (Dialect::Anthropic, Problem::Invalid) => {
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"bad"}}"#
        }
        (Dialect::Anthropic, Problem::Quota) => {
            r#"{"type":"error","error":{"type":"billing_error","message":"pay"}}"#
        }
        (Dialect::Gemini, Problem::Overload) => {
            r#"{"error":{"code":503,"message":"busy","status":"UNAVAILABLE"}}"#
        }
        (Dialect::Gemini, Problem::Invalid) => {
            r#"{"error":{"code":400,"message":"bad","status":"INVALID_ARGUMENT"}}"#
        }
        (Dialect::Ollama, Problem::Overload) => r#"{"error":"busy","code":503}"#,
        (Dialect::Ollama, Problem::Invalid) => r#"{"error":"bad"}"#,
        (Dialect::GeminiInteractions, Problem::Overload) => {
            r#"{"event_type":"error","error":{"code":503,"message":"busy"}}"#
        }
        (Dialect::GeminiInteractions, Problem::Invalid) => {
            r#"{"event_type":"error","error":{"code":400,"message":"bad"}}"#
        }
        (Dialect::Cohere, Problem::Overload) => r#"{"type":"error","error":{"code":503,"message":"busy"}}"#,
        (Dialect::Cohere, Problem::Invalid) => r#"{"type":"error","error":{"code":400,"message":"bad"}}"#,
        (Dialect::OpenAiChat | Dialect::OpenAiCompletions | Dialect::Custom(_), Problem::Overload) => {
            r#"{"error":{"code":503,"message":"busy"}}"#
        }
        (Dialect::OpenAiChat | Dialect::OpenAiCompletions | Dialect::Custom(_), Problem::Invalid) => {
            r#"{"error":{"code":400,"message":"bad"}}"#
        }
        (_, Problem::Quota) => r#"{"error":{"code":"insufficient_quota","message":"pay"}}"#,
    }
}

/// What stands before and after the text of a whole answer in one JSON document
pub(crate) fn whole(dialect: Dialect) -> (&'static str, &'static str) {
    match dialect {
        Dialect::OpenAiChat | Dialect::Custom(_) => (
            r#"{"choices":[{"index":0,"message":{"role":"assistant","content":""#,
            r#""},"finish_reason":"stop"}]}"#,
        ),
        Dialect::OpenAiCompletions => {
            (r#"{"choices":[{"index":0,"text":""#, r#"","finish_reason":"stop"}]}"#)
        }
        Dialect::OpenAiResponses => (
            r#"{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":""#,
            r#""}]}]}"#,
        ),
        Dialect::Anthropic => {
            (r#"{"type":"message","content":[{"type":"text","text":""#, r#""}],"stop_reason":"end_turn"}"#)
        }
        Dialect::Gemini => {
            (r#"{"candidates":[{"content":{"parts":[{"text":""#, r#""}]},"finishReason":"STOP"}]}"#)
        }
        Dialect::GeminiInteractions => {
            (r#"{"status":"completed","outputs":[{"type":"text","text":""#, r#""}]}"#)
        }
        Dialect::Ollama => (r#"{"message":{"content":""#, r#""},"done":true,"done_reason":"stop"}"#),
        Dialect::Cohere => {
            (r#"{"message":{"content":[{"type":"text","text":""#, r#""}]},"finish_reason":"COMPLETE"}"#)
        }
    }
}

/// The body of an answer with an error status
pub(crate) fn error_body(problem: Problem) -> &'static str {
    match problem {
        Problem::Overload => r#"{"error":{"message":"busy"}}"#,
        Problem::Invalid => r#"{"error":{"type":"invalid_request_error","message":"bad"}}"#,
        Problem::Quota => r#"{"error":{"type":"insufficient_quota","message":"pay"}}"#,
    }
}
