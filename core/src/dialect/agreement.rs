//! A whole answer and the stream of it give the same turn, in every dialect.

use super::testing::{play, play_unary};
use super::{Dialect, Progress};
use crate::outcome::{Choice, ReasoningMember, ToolCall, ToolKind, Turn, Usage};

/// A stream, and the body that says the same at once
struct Pair {
    dialect: Dialect,
    stream: &'static [&'static str],
    whole: &'static str,
    /// Text, reasoning, refusal, finish reason
    said: [&'static str; 4],
    /// Id, name, arguments
    calls: &'static [(ToolKind, [&'static str; 3])],
    id: Option<&'static str>,
    model: Option<&'static str>,
    usage: [Option<u64>; 3],
}

const FUNCTION: ToolKind = ToolKind::Function;

const PAIRS: [Pair; 8] = [
    Pair {
        dialect: Dialect::OpenAiChat,
        stream: &[
            r#"{"id":"c","model":"m","choices":[{"index":0,"delta":{"role":"assistant","reasoning_content":"H"}}]}"#,
            r#"{"id":"c","choices":[{"index":0,"delta":{"reasoning_content":"m","content":"a"}}]}"#,
            r#"{"id":"c","choices":[{"index":0,"delta":{"content":"\u00e9","refusal":"N"}}]}"#,
            r#"{"id":"c","choices":[{"index":0,"delta":{"refusal":"o","tool_calls":[{"index":0,"id":"t","function":{"name":"f","arguments":"{\"x\""}}]}}]}"#,
            r#"{"id":"c","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}},{"index":1,"id":"u","type":"custom","custom":{"name":"g","input":"in"}}]},"finish_reason":"tool_calls"}]}"#,
            r#"{"id":"c","choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}"#,
            "[DONE]",
        ],
        whole: r#"{"id":"c","model":"m","choices":[{"index":0,"message":{"role":"assistant","reasoning_content":"Hm","content":"aé","refusal":"No","tool_calls":[{"id":"t","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}},{"id":"u","type":"custom","custom":{"name":"g","input":"in"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}"#,
        said: ["aé", "Hm", "No", "tool_calls"],
        calls: &[(FUNCTION, ["t", "f", r#"{"x":1}"#]), (ToolKind::Custom, ["u", "g", "in"])],
        id: Some("c"),
        model: Some("m"),
        usage: [Some(5), Some(2), Some(7)],
    },
    Pair {
        dialect: Dialect::OpenAiCompletions,
        stream: &[
            r#"{"id":"c","model":"m","choices":[{"index":0,"text":"a"}]}"#,
            r#"{"id":"c","choices":[{"index":0,"text":"\n","finish_reason":"length"}]}"#,
            r#"{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}"#,
            "[DONE]",
        ],
        whole: r#"{"id":"c","model":"m","object":"text_completion","choices":[{"index":0,"text":"a\n","logprobs":null,"finish_reason":"length"}],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}"#,
        said: ["a\n", "", "", "length"],
        calls: &[],
        id: Some("c"),
        model: Some("m"),
        usage: [Some(5), Some(2), Some(7)],
    },
    Pair {
        dialect: Dialect::OpenAiResponses,
        stream: &[
            r#"{"type":"response.created","response":{"id":"r","model":"m","status":"in_progress","output":[]}}"#,
            r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"rs","summary":[]}}"#,
            r#"{"type":"response.reasoning_summary_text.delta","output_index":0,"delta":"Hm"}"#,
            r#"{"type":"response.output_item.added","output_index":1,"item":{"type":"message","id":"ms","content":[]}}"#,
            r#"{"type":"response.output_text.delta","output_index":1,"delta":"a"}"#,
            r#"{"type":"response.output_text.delta","output_index":1,"delta":"\u00e9"}"#,
            r#"{"type":"response.refusal.delta","output_index":1,"delta":"No"}"#,
            r#"{"type":"response.output_item.added","output_index":2,"item":{"type":"function_call","id":"fc","call_id":"t","name":"f","arguments":""}}"#,
            r#"{"type":"response.function_call_arguments.delta","output_index":2,"delta":"{\"x\":1}"}"#,
            r#"{"type":"response.completed","response":{"id":"r","model":"m","status":"completed","output":[{"type":"reasoning","summary":[{"text":"Hm"}]},{"type":"message","content":[{"type":"output_text","text":"aé"},{"type":"refusal","refusal":"No"}]},{"type":"function_call","call_id":"t","name":"f","arguments":"{\"x\":1}"}],"usage":{"input_tokens":5,"output_tokens":2,"total_tokens":7}}}"#,
        ],
        whole: r#"{"id":"r","model":"m","status":"completed","output":[{"type":"reasoning","summary":[{"text":"Hm"}]},{"type":"message","content":[{"type":"output_text","text":"aé"},{"type":"refusal","refusal":"No"}]},{"type":"function_call","call_id":"t","name":"f","arguments":"{\"x\":1}"}],"usage":{"input_tokens":5,"output_tokens":2,"total_tokens":7}}"#,
        said: ["aé", "Hm", "No", "completed"],
        calls: &[(FUNCTION, ["t", "f", r#"{"x":1}"#])],
        id: Some("r"),
        model: Some("m"),
        usage: [Some(5), Some(2), Some(7)],
    },
    Pair {
        dialect: Dialect::Anthropic,
        stream: &[
            r#"{"type":"message_start","message":{"id":"a","type":"message","model":"m","content":[],"usage":{"input_tokens":5,"output_tokens":1}}}"#,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm"}}"#,
            r#"{"type":"content_block_stop","index":0}"#,
            r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#,
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"a\u00e9"}}"#,
            r#"{"type":"content_block_stop","index":1}"#,
            r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}"#,
            r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"x\":1}"}}"#,
            r#"{"type":"content_block_stop","index":2}"#,
            r#"{"type":"content_block_start","index":3,"content_block":{"type":"server_tool_use","id":"s","name":"g","input":{}}}"#,
            r#"{"type":"content_block_stop","index":3}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":2}}"#,
            r#"{"type":"message_stop"}"#,
        ],
        whole: r#"{"id":"a","type":"message","model":"m","content":[{"type":"thinking","thinking":"Hm"},{"type":"text","text":"aé"},{"type":"tool_use","id":"t","name":"f","input":{"x":1}},{"type":"server_tool_use","id":"s","name":"g","input":{}}],"stop_reason":"tool_use","usage":{"input_tokens":5,"output_tokens":2}}"#,
        said: ["aé", "Hm", "", "tool_use"],
        calls: &[(FUNCTION, ["t", "f", r#"{"x":1}"#]), (ToolKind::Server, ["s", "g", "{}"])],
        id: Some("a"),
        model: Some("m"),
        usage: [Some(5), Some(2), None],
    },
    Pair {
        dialect: Dialect::Gemini,
        stream: &[
            r#"{"candidates":[{"index":0,"content":{"parts":[{"text":"Hm","thought":true}]}}],"responseId":"g","modelVersion":"m"}"#,
            r#"{"candidates":[{"index":0,"content":{"parts":[{"text":"a"},{"text":"\u00e9"}]}}],"responseId":"g"}"#,
            r#"{"candidates":[{"index":0,"content":{"parts":[{"functionCall":{"id":"t","name":"f","args":{"x":1}}}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":2,"totalTokenCount":7}}"#,
        ],
        whole: r#"{"candidates":[{"content":{"parts":[{"text":"Hm","thought":true},{"text":"aé"},{"functionCall":{"id":"t","name":"f","args":{"x":1}}}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":2,"totalTokenCount":7},"responseId":"g","modelVersion":"m"}"#,
        said: ["aé", "Hm", "", "STOP"],
        calls: &[(FUNCTION, ["t", "f", r#"{"x":1}"#])],
        id: Some("g"),
        model: Some("m"),
        usage: [Some(5), Some(2), Some(7)],
    },
    Pair {
        dialect: Dialect::GeminiInteractions,
        stream: &[
            r#"{"event_type":"interaction.created","interaction":{"id":"i","status":"in_progress","model":"m"}}"#,
            r#"{"event_type":"step.start","index":0,"step":{"type":"thought"}}"#,
            r#"{"event_type":"step.delta","index":0,"delta":{"type":"thought_summary","content":{"type":"text","text":"Hm"}}}"#,
            r#"{"event_type":"step.stop","index":0}"#,
            r#"{"event_type":"step.start","index":1,"step":{"type":"model_output"}}"#,
            r#"{"event_type":"step.delta","index":1,"delta":{"type":"text","text":"a"}}"#,
            r#"{"event_type":"step.delta","index":1,"delta":{"type":"text","text":"\u00e9"}}"#,
            r#"{"event_type":"step.stop","index":1}"#,
            r#"{"event_type":"step.start","index":2,"step":{"type":"google_search_call","id":"s"}}"#,
            r#"{"event_type":"step.delta","index":2,"delta":{"type":"google_search_call","arguments":{"queries":["q"]}}}"#,
            r#"{"event_type":"step.stop","index":2}"#,
            r#"{"event_type":"step.start","index":3,"step":{"type":"function_call","id":"t","name":"f","arguments":{}}}"#,
            r#"{"event_type":"step.delta","index":3,"delta":{"type":"arguments_delta","arguments":"{\"x\":1}"}}"#,
            r#"{"event_type":"step.stop","index":3}"#,
            r#"{"event_type":"interaction.completed","interaction":{"id":"i","status":"requires_action","usage":{"total_input_tokens":5,"total_output_tokens":2,"total_tokens":7}}}"#,
        ],
        whole: r#"{"id":"i","model":"m","status":"requires_action","steps":[{"type":"thought","summary":[{"type":"text","text":"Hm"}]},{"type":"model_output","content":[{"type":"text","text":"aé"}]},{"type":"google_search_call","id":"s","arguments":{"queries":["q"]}},{"type":"function_call","id":"t","name":"f","arguments":{"x":1}}],"usage":{"total_input_tokens":5,"total_output_tokens":2,"total_tokens":7}}"#,
        said: ["aé", "Hm", "", "requires_action"],
        calls: &[
            (ToolKind::Server, ["s", "google_search", r#"{"queries":["q"]}"#]),
            (FUNCTION, ["t", "f", r#"{"x":1}"#]),
        ],
        id: Some("i"),
        model: Some("m"),
        usage: [Some(5), Some(2), Some(7)],
    },
    Pair {
        dialect: Dialect::Ollama,
        stream: &[
            r#"{"model":"m","message":{"role":"assistant","content":"","thinking":"Hm"},"done":false}"#,
            r#"{"model":"m","message":{"role":"assistant","content":"a"},"done":false}"#,
            r#"{"model":"m","message":{"role":"assistant","content":"\u00e9"},"done":false}"#,
            r#"{"model":"m","message":{"role":"assistant","content":"","tool_calls":[{"id":"t","function":{"index":0,"name":"f","arguments":{"x":1}}}]},"done":false}"#,
            r#"{"model":"m","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","total_duration":9,"prompt_eval_count":5,"eval_count":2}"#,
        ],
        whole: r#"{"model":"m","message":{"role":"assistant","content":"aé","thinking":"Hm","tool_calls":[{"id":"t","function":{"index":0,"name":"f","arguments":{"x":1}}}]},"done":true,"done_reason":"stop","total_duration":9,"prompt_eval_count":5,"eval_count":2}"#,
        said: ["aé", "Hm", "", "stop"],
        calls: &[(FUNCTION, ["t", "f", r#"{"x":1}"#])],
        id: None,
        model: Some("m"),
        usage: [Some(5), Some(2), None],
    },
    Pair {
        dialect: Dialect::Cohere,
        stream: &[
            r#"{"type":"message-start","id":"c","delta":{"message":{"role":"assistant","content":[],"tool_plan":"","tool_calls":[]}}}"#,
            r#"{"type":"tool-plan-delta","delta":{"message":{"tool_plan":"Hm"}}}"#,
            r#"{"type":"content-start","index":0,"delta":{"message":{"content":{"type":"text","text":""}}}}"#,
            r#"{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"a"}}}}"#,
            r#"{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"\u00e9"}}}}"#,
            r#"{"type":"content-end","index":0}"#,
            r#"{"type":"tool-call-start","index":0,"delta":{"message":{"tool_calls":{"id":"t","type":"function","function":{"name":"f","arguments":""}}}}}"#,
            r#"{"type":"tool-call-delta","index":0,"delta":{"message":{"tool_calls":{"function":{"arguments":"{\"x\":1}"}}}}}"#,
            r#"{"type":"tool-call-end","index":0}"#,
            r#"{"type":"message-end","delta":{"finish_reason":"TOOL_CALL","usage":{"tokens":{"input_tokens":5,"output_tokens":2}}}}"#,
        ],
        whole: r#"{"id":"c","message":{"role":"assistant","content":[{"type":"text","text":"aé"}],"tool_plan":"Hm","tool_calls":[{"id":"t","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}],"citations":[]},"finish_reason":"TOOL_CALL","usage":{"tokens":{"input_tokens":5,"output_tokens":2}}}"#,
        said: ["aé", "Hm", "", "TOOL_CALL"],
        calls: &[(FUNCTION, ["t", "f", r#"{"x":1}"#])],
        id: Some("c"),
        model: None,
        usage: [Some(5), Some(2), None],
    },
];

impl Pair {
    /// The turn that both must give, with the provider's own report of usage as it was read
    fn turn(&self, raw: &str) -> Turn {
        let [text, reasoning, refusal, finish_reason] = self.said.map(str::to_owned);
        let tool_calls = self.calls.iter().map(|&(kind, [id, name, arguments])| ToolCall {
            kind,
            id: id.to_owned(),
            name: name.to_owned(),
            arguments: arguments.to_owned(),
        });
        let choice = Choice {
            index: 0,
            text,
            reasoning,
            refusal,
            tool_calls: tool_calls.collect(),
            finish_reason: Some(finish_reason),
        };
        let [input_tokens, output_tokens, total_tokens] = self.usage;
        Turn {
            id: self.id.map(str::to_owned),
            model: self.model.map(str::to_owned),
            choices: vec![choice],
            usage: Some(Usage { input_tokens, output_tokens, total_tokens, raw: raw.to_owned() }),
            signatures: Vec::new(),
            reasoning_member: (self.dialect == Dialect::OpenAiChat)
                .then_some(ReasoningMember::ReasoningContent),
        }
    }
}

#[test]
fn a_whole_answer_and_its_stream_give_the_same_turn() {
    assert_eq!(PAIRS.map(|pair| pair.dialect), Dialect::ALL);
    for pair in &PAIRS {
        let streamed = play(pair.dialect, pair.stream);
        let whole = play_unary(pair.dialect, pair.whole);
        let dialect = pair.dialect;
        let raw = whole.turn.usage.as_ref().map_or("", |usage| &usage.raw);
        assert_eq!(whole.turn, pair.turn(raw), "{dialect:?}, whole");
        assert_eq!(streamed.turn, whole.turn, "{dialect:?}, streamed");
        let end = if dialect.has_sentinel() { Progress::Ended } else { Progress::Marked };
        assert_eq!((streamed.last(), whole.last()), (end, Progress::Ended), "{dialect:?}");
        assert_eq!((streamed.unknown, whole.unknown, streamed.opened, whole.opened), (0, 0, 1, 1));
        assert!(streamed.errors.is_empty() && whole.errors.is_empty(), "{dialect:?}");
    }
}
