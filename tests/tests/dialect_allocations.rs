//! What decoding allocates per event of a steady stream, in every dialect: nothing.
//!
//! Counted by the allocator, so alone in its process.

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use steadfast::dialect::findings::{Finding, Findings};
use steadfast::dialect::{Decode, Decoder, Dialect};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// How a stream begins, and the events that its middle consists of
struct Steady {
    dialect: Dialect,
    beginning: &'static [&'static str],
    middle: &'static [&'static str],
}

const STREAMS: [Steady; 8] = [
    Steady {
        dialect: Dialect::OpenAiChat,
        beginning: &[
            r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"t","function":{"name":"f","arguments":""}}]}}]}"#,
        ],
        middle: &[
            r#"{"id":"c","model":"m","choices":[{"index":0,"delta":{"content":"a\n\u00e9"},"finish_reason":null}],"usage":null}"#,
            r#"{"id":"c","model":"m","choices":[{"index":0,"delta":{"reasoning_content":"plain"}}]}"#,
            r#"{"id":"c","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\""}}]}}]}"#,
        ],
    },
    Steady {
        dialect: Dialect::OpenAiCompletions,
        beginning: &[],
        middle: &[
            r#"{"id":"c","model":"m","choices":[{"index":0,"text":"a\n","logprobs":null,"finish_reason":null}]}"#,
        ],
    },
    Steady {
        dialect: Dialect::OpenAiResponses,
        beginning: &[
            r#"{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","call_id":"t","name":"f"}}"#,
        ],
        middle: &[
            r#"{"type":"response.output_text.delta","output_index":0,"delta":"a\n"}"#,
            r#"{"type":"response.function_call_arguments.delta","output_index":1,"delta":"{\"x\""}"#,
            r#"{"type":"response.brand_new","x":[1]}"#,
        ],
    },
    Steady {
        dialect: Dialect::Anthropic,
        beginning: &[
            r#"{"type":"message_start","message":{"id":"m"}}"#,
            r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}"#,
        ],
        middle: &[
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a\n"}}"#,
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"x\""}}"#,
            r#"{"type":"ping"}"#,
        ],
    },
    Steady {
        dialect: Dialect::Gemini,
        beginning: &[],
        middle: &[
            r#"{"candidates":[{"index":0,"content":{"role":"model","parts":[{"text":"a\n"}]}}],"responseId":"g","modelVersion":"m"}"#,
            r#"{"candidates":[{"index":0,"content":{"parts":[{"text":"plain","thought":true}]}}]}"#,
            r#"{"candidates":[],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":7,"totalTokenCount":12}}"#,
        ],
    },
    Steady {
        dialect: Dialect::GeminiInteractions,
        beginning: &[
            r#"{"event_type":"interaction.created","interaction":{"id":"i","model":"m"}}"#,
            r#"{"event_type":"step.start","index":2,"step":{"type":"function_call","id":"t","name":"f","arguments":{}}}"#,
        ],
        middle: &[
            r#"{"event_type":"step.delta","index":1,"delta":{"type":"text","text":"a\n"}}"#,
            r#"{"event_type":"step.delta","index":0,"delta":{"type":"thought_summary","content":{"type":"text","text":"plain"}}}"#,
            r#"{"event_type":"step.delta","index":2,"delta":{"type":"arguments_delta","arguments":"{\"x\""}}"#,
            r#"{"event_type":"step.delta","index":0,"delta":{"type":"thought_signature","signature":"s"}}"#,
        ],
    },
    Steady {
        dialect: Dialect::Ollama,
        beginning: &[],
        middle: &[
            r#"{"model":"m","created_at":"t","message":{"role":"assistant","content":"a\n"},"done":false}"#,
            r#"{"model":"m","response":"plain","thinking":"b","done":false}"#,
        ],
    },
    Steady {
        dialect: Dialect::Cohere,
        beginning: &[
            r#"{"type":"message-start","id":"c"}"#,
            r#"{"type":"tool-call-start","index":0,"delta":{"message":{"tool_calls":{"id":"t","function":{"name":"f","arguments":""}}}}}"#,
        ],
        middle: &[
            r#"{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"a\n"}}}}"#,
            r#"{"type":"tool-plan-delta","delta":{"message":{"tool_plan":"plain"}}}"#,
            r#"{"type":"tool-call-delta","index":0,"delta":{"message":{"tool_calls":{"function":{"arguments":"{\"x\""}}}}}"#,
        ],
    },
];

#[test]
fn a_steady_stream_allocates_nothing_per_event() {
    assert_eq!(STREAMS.map(|stream| stream.dialect), Dialect::ALL);
    // Members that nobody looks at cost serde_json a few bytes of scratch where they are nested, so
    // there are none here, and no citations.
    for Steady { dialect, beginning, middle } in STREAMS {
        let mut findings = Findings::default();
        let mut decoder = Decoder::new(dialect);
        let mut play = |events: &[&str]| {
            let mut found = 0;
            for data in events {
                decoder.event("message", data, &mut findings).unwrap();
                while let Some(finding) = findings.take() {
                    found += usize::from(!matches!(finding, Finding::Error(_) | Finding::Opened { .. }));
                }
                findings.clear();
            }
            found
        };
        play(beginning);
        // The first round sizes the buffers that every later one reuses.
        play(middle);
        let mut round = || {
            let before = ALLOCATOR.stats();
            let found: usize = (0..1000).map(|_| play(middle)).sum();
            let after = ALLOCATOR.stats();
            ([after.allocations - before.allocations, after.reallocations - before.reallocations], found)
        };
        // The test harness has a thread of its own, which allocates once or twice. What decoding
        // allocates is there in every round.
        let (counts, found) = (0..5).map(|_| round()).min().expect("five rounds");
        let events = 1000 * middle.len();
        println!("{dialect:?}: {events} events, {found} findings, {} allocations", counts[0] + counts[1]);
        assert_eq!(counts, [0, 0], "{dialect:?}");
        assert!(found + 1000 >= events, "{dialect:?}: {found} findings in {events} events");
    }
}
