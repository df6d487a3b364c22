//! What servers say in each dialect.

use steadfast::config::RequestConfig;
use steadfast::dialect::Dialect;
use steadfast::outcome::ToolCall;

use super::plan::{Piece, Problem};
use super::spoken::What;
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
    /// Reports of usage so far
    counts: u8,
}

/// What every prompt of a run comes to
const INPUT_TOKENS: u8 = 5;

/// Says how many tokens the answer has so far, each time another number
fn count(body: &mut Body, said: &mut Said, input: Option<u8>) {
    said.counts = said.counts.saturating_add(1);
    body.number(said.counts);
    body.mean(0, What::Usage(input, Some(said.counts)), "");
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
            body.end(dialect, Mark::Delta);
        }
        Piece::Thought => {
            let (before, between, after) = match dialect {
                Dialect::OpenAiChat => {
                    (r#"{"choices":[{"index":0,"delta":{"reasoning":""#, r#"","content":""#, r#""}}]}"#)
                }
                Dialect::Gemini => (
                    r#"{"candidates":[{"content":{"parts":[{"text":""#,
                    r#"","thought":true},{"text":""#,
                    r#""}]}}]}"#,
                ),
                Dialect::Ollama => (r#"{"message":{"thinking":""#, r#"","content":""#, r#""},"done":false}"#),
                Dialect::OpenAiCompletions
                | Dialect::OpenAiResponses
                | Dialect::Anthropic
                | Dialect::GeminiInteractions
                | Dialect::Cohere
                | Dialect::Custom(_) => return,
            };
            body.begin(dialect);
            body.push(before);
            body.say_new(0, What::Reasoning, "Hm", "");
            body.push(between);
            body.token();
            body.push(after);
            body.end(dialect, Mark::Delta);
        }
        Piece::Long => {
            said.longs += 1;
            let is_refusal = dialect == Dialect::OpenAiChat && said.longs.is_multiple_of(2);
            let (before, after) = match dialect {
                Dialect::OpenAiChat if is_refusal => {
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
            body.say_long(0, if is_refusal { What::Refusal } else { What::Reasoning }, length);
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
            body.say_new(1, What::Text, "<other ", ">");
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
            let (before, after) = match dialect {
                Dialect::OpenAiChat | Dialect::OpenAiCompletions => {
                    (r#"{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":"#, "}}")
                }
                Dialect::Gemini => {
                    (r#"{"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":"#, "}}")
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
            count(body, said, Some(INPUT_TOKENS));
            body.push(after);
            body.end(dialect, Mark::Noise(piece));
        }
        Piece::Marker => marker(body, said, dialect, false),
        Piece::StopsEarly => marker(body, said, dialect, true),
        Piece::Sentinel => {
            if let Some((before, after)) = sentinel(dialect) {
                body.begin(dialect);
                body.push(before);
                if !after.is_empty() {
                    body.mean(0, What::Finish, finish_word(dialect, false));
                    count(body, said, Some(INPUT_TOKENS));
                }
                body.push(after);
                body.end(dialect, Mark::Sentinel);
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
    if dialect == Dialect::Anthropic && !is_second {
        body.mean(0, What::Usage(Some(INPUT_TOKENS), None), "");
    }
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
            body.push(r#","id":""#);
            body.say_new(0, What::ToolId, "t", "");
            body.push(r#"","function":{"name":""#);
            body.say_new(0, What::ToolName, "f", "");
            body.push(r#"","arguments":""#);
            body.say(0, What::ToolArguments, "{}");
            body.push(r#""}}]}}]}"#);
            body.end(dialect, Mark::Delta);
        }
        Dialect::Anthropic if !said.marked => {
            let begin = |body: &mut Body, kind| {
                body.begin(dialect);
                body.push(r#"{"type":""#);
                body.push(kind);
                body.push(r#"","index":1"#);
                body.push(number);
            };
            begin(body, "content_block_start");
            body.push(r#","content_block":{"type":"tool_use","id":""#);
            body.say_new(0, What::ToolId, "t", "");
            body.push(r#"","name":""#);
            body.say_new(0, What::ToolName, "f", "");
            body.push(r#"","input":{}}}"#);
            body.end(dialect, Mark::Delta);
            begin(body, "content_block_delta");
            body.push(r#","delta":{"type":"input_json_delta","partial_json":"{\"a\":1}"}}"#);
            body.mean(0, What::ToolArguments, r#"{"a":1}"#);
            body.end(dialect, Mark::Delta);
            begin(body, "content_block_stop");
            body.push("}");
            body.end(dialect, Mark::Noise(Piece::Tool));
            said.words = true;
        }
        Dialect::Gemini => {
            body.begin(dialect);
            body.push(r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":""#);
            // It has none.
            body.mean(0, What::ToolId, "");
            body.say_new(0, What::ToolName, "f", "");
            body.push(r#"","args":"#);
            body.say(0, What::ToolArguments, r#"{"a":1}"#);
            body.push("}}]}}]}");
            body.end(dialect, Mark::Delta);
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
    let word = finish_word(dialect, early);
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
            (r#"{"type":"message_delta","delta":{"stop_reason":""#, "", r#""},"usage":{"output_tokens":"#)
        }
        Dialect::OpenAiResponses
        | Dialect::GeminiInteractions
        | Dialect::Ollama
        | Dialect::Cohere
        | Dialect::Custom(_) => return,
    };
    body.begin(dialect);
    body.push(before);
    body.say(0, What::Finish, word);
    if said.two_choices {
        body.push(between);
        body.say(1, What::Finish, word);
    }
    body.push(after);
    if dialect == Dialect::Anthropic {
        count(body, said, None);
        body.push("}}");
    }
    body.end(dialect, if said.marked { Mark::MarkerAgain(early) } else { Mark::Marker(early) });
    said.marked = true;
}

/// The provider's word for why it stopped: because all was said, or early
pub(crate) fn finish_word(dialect: Dialect, early: bool) -> &'static str {
    match (dialect, early) {
        (Dialect::Anthropic, false) => "end_turn",
        (Dialect::Anthropic, true) => "max_tokens",
        (Dialect::Gemini, false) => "STOP",
        (Dialect::Gemini, true) => "MAX_TOKENS",
        (Dialect::OpenAiResponses | Dialect::GeminiInteractions, false) => "completed",
        (Dialect::Cohere, false) => "COMPLETE",
        (_, false) => "stop",
        (_, true) => "length",
    }
}

/// What stands before and after the number of the answer's tokens; nothing after it where none is said
fn sentinel(dialect: Dialect) -> Option<(&'static str, &'static str)> {
    Some(match dialect {
        Dialect::OpenAiChat | Dialect::OpenAiCompletions => ("[DONE]", ""),
        Dialect::OpenAiResponses => (
            r#"{"type":"response.completed","response":{"status":"completed","output":[],"usage":{"input_tokens":5,"output_tokens":"#,
            "}}}",
        ),
        Dialect::Anthropic => (r#"{"type":"message_stop"}"#, ""),
        Dialect::Gemini | Dialect::Custom(_) => return None,
        Dialect::GeminiInteractions => (
            r#"{"interaction":{"status":"completed","usage":{"total_input_tokens":5,"total_output_tokens":"#,
            r#"}},"event_type":"interaction.completed"}"#,
        ),
        Dialect::Ollama => (
            r#"{"message":{"content":""},"done":true,"done_reason":"stop","prompt_eval_count":5,"eval_count":"#,
            "}",
        ),
        Dialect::Cohere => (
            r#"{"type":"message-end","delta":{"finish_reason":"COMPLETE","usage":{"tokens":{"input_tokens":5,"output_tokens":"#,
            "}}}}",
        ),
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
