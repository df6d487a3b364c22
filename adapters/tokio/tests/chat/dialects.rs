//! A tool loop of two turns in the dialects that have shapes of their own.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use steadfast_tokio::{Format, LoopEnd, ToolLoop};

use crate::server::{Does, bodies, client, conversation, serve};
use crate::tools::echo;

/// Runs the loop; returns the messages of its second request
async fn second_request(format: Format, turns: [Vec<Value>; 2]) -> Vec<Value> {
    let mock = serve(turns.map(Does::Streams));
    let (client, mut conversation) = (client(), conversation(&mock, format));
    let runs = Arc::default();
    let report = ToolLoop::new([echo(&runs)]).run(&client, &mut conversation, "Go").unwrap().report().await;
    assert_eq!((report.end, report.text()), (LoopEnd::Answered, "So."), "{report:?}");
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    assert_eq!((report.cost.calls, report.cost.uncounted, report.cost.tokens.total()), (2, 0, 26));
    let body = bodies(&mock).remove(1);
    let member = ["messages", "input", "contents"].into_iter().find(|name| body[name].is_array());
    body[member.expect("messages")].as_array().unwrap().clone()
}

#[tokio::test]
async fn openai_responses() {
    let usage = json!({"input_tokens": 10, "output_tokens": 3});
    let done =
        json!({"type": "response.completed", "response": {"id": "r", "status": "completed", "usage": usage}});
    let call =
        json!({"type": "function_call", "id": "fc_1", "call_id": "t1", "name": "echo", "arguments": ""});
    let thought = json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed"});
    let turns = [
        vec![
            json!({"type": "response.output_item.done", "output_index": 0, "item": thought}),
            json!({"type": "response.output_item.added", "output_index": 1, "item": call}),
            json!({"type": "response.function_call_arguments.delta", "output_index": 1, "delta": "{\"x\":1}"}),
            json!({"type": "response.function_call_arguments.done", "output_index": 1, "arguments": "{\"x\":1}"}),
            done.clone(),
        ],
        vec![json!({"type": "response.output_text.delta", "output_index": 0, "delta": "So."}), done],
    ];
    assert_eq!(
        second_request(Format::OpenAiResponses, turns).await,
        [
            json!({"role": "user", "content": "Go"}),
            json!({"type": "reasoning", "summary": [], "encrypted_content": "sealed"}),
            json!({"type": "function_call", "call_id": "t1", "name": "echo", "arguments": "{\"x\":1}"}),
            json!({"type": "function_call_output", "call_id": "t1", "output": "{\"x\":1}"}),
        ]
    );
}

/// As DeepSeek and Moonshot answer, who refuse the second request without the reasoning
#[tokio::test]
async fn openai_chat_with_reasoning() {
    let chunk = |delta: Value| json!({"id": "c", "choices": [{"index": 0, "delta": delta}]});
    let end = |reason: &str| {
        json!({
            "choices": [{"index": 0, "delta": {}, "finish_reason": reason}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 3},
        })
    };
    let call =
        json!({"id": "t1", "type": "function", "function": {"name": "echo", "arguments": "{\"x\":1}"}});
    let mut piece = call.clone();
    piece["index"] = 0.into();
    let turns = [
        vec![
            chunk(json!({"role": "assistant", "content": null, "reasoning_content": "Hm"})),
            chunk(json!({"content": null, "reasoning_content": "m."})),
            chunk(json!({"tool_calls": [piece]})),
            end("tool_calls"),
            "[DONE]".into(),
        ],
        vec![chunk(json!({"content": "So."})), end("stop"), "[DONE]".into()],
    ];
    assert_eq!(
        second_request(Format::OpenAiChat, turns).await,
        [
            json!({"role": "user", "content": "Go"}),
            json!({
                "role": "assistant", "content": null, "reasoning_content": "Hmm.", "tool_calls": [call],
            }),
            json!({"role": "tool", "tool_call_id": "t1", "content": "{\"x\":1}"}),
        ]
    );
}

#[tokio::test]
async fn gemini_interactions() {
    let event = |kind: &str, mut event: Value| {
        event["event_type"] = kind.into();
        event
    };
    let created = event("interaction.created", json!({"interaction": {"id": "i", "status": "in_progress"}}));
    let completed = |status: &str| {
        let usage = json!({"total_input_tokens": 10, "total_output_tokens": 3, "total_tokens": 13});
        event("interaction.completed", json!({"interaction": {"id": "i", "status": status, "usage": usage}}))
    };
    let call = json!({"type": "function_call", "id": "t1", "name": "echo", "arguments": {"x": 1}});
    let sign = json!({"type": "thought_signature", "signature": "signed"});
    let turns = [
        vec![
            created.clone(),
            event("step.start", json!({"index": 0, "step": {"type": "thought"}})),
            event("step.delta", json!({"index": 0, "delta": sign})),
            event("step.stop", json!({"index": 0})),
            event("step.start", json!({"index": 1, "step": call})),
            event("step.stop", json!({"index": 1})),
            completed("requires_action"),
        ],
        vec![
            created,
            event("step.start", json!({"index": 0, "step": {"type": "model_output"}})),
            event("step.delta", json!({"index": 0, "delta": {"type": "text", "text": "So."}})),
            event("step.stop", json!({"index": 0})),
            completed("completed"),
        ],
    ];
    assert_eq!(
        second_request(Format::GeminiInteractions, turns).await,
        [
            json!({"type": "user_input", "content": [{"type": "text", "text": "Go"}]}),
            json!({"type": "thought", "signature": "signed"}),
            call,
            json!({
                "type": "function_result", "call_id": "t1", "name": "echo",
                "result": [{"type": "text", "text": "{\"x\":1}"}],
            }),
        ]
    );
}

#[tokio::test]
async fn anthropic() {
    let start = json!({"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 10, "output_tokens": 1}}});
    let end = |reason: &str| json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 3}});
    let (stop, over) = (json!({"type": "content_block_stop", "index": 0}), json!({"type": "message_stop"}));
    let block = |block: Value| json!({"type": "content_block_start", "index": 0, "content_block": block});
    let delta = |delta: Value| json!({"type": "content_block_delta", "index": 0, "delta": delta});
    let turns = [
        vec![
            start.clone(),
            block(json!({"type": "thinking", "thinking": "", "signature": ""})),
            delta(json!({"type": "thinking_delta", "thinking": "Hm."})),
            delta(json!({"type": "signature_delta", "signature": "signed"})),
            stop.clone(),
            block(json!({"type": "redacted_thinking", "data": "hidden"})),
            stop.clone(),
            block(json!({"type": "tool_use", "id": "t1", "name": "echo", "input": {}})),
            delta(json!({"type": "input_json_delta", "partial_json": "{\"x\":1}"})),
            stop.clone(),
            end("tool_use"),
            over.clone(),
        ],
        vec![
            start,
            block(json!({"type": "text", "text": ""})),
            delta(json!({"type": "text_delta", "text": "So."})),
            stop,
            end("end_turn"),
            over,
        ],
    ];
    assert_eq!(
        second_request(Format::Anthropic, turns).await,
        [
            json!({"role": "user", "content": "Go"}),
            json!({"role": "assistant", "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "signed"},
                {"type": "redacted_thinking", "data": "hidden"},
                {"type": "tool_use", "id": "t1", "name": "echo", "input": {"x": 1}},
            ]}),
            json!({"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "{\"x\":1}"},
            ]}),
        ]
    );
}

#[tokio::test]
async fn ollama_in_one_piece() {
    let answer = |message: Value| {
        Does::Answers(json!({
            "model": "m-1", "message": message, "done": true, "done_reason": "stop",
            "prompt_eval_count": 10, "eval_count": 3,
        }))
    };
    let call = json!({"function": {"name": "echo", "arguments": {"x": 1}}});
    let mock = serve([
        answer(json!({"role": "assistant", "content": "", "tool_calls": [call]})),
        answer(json!({"role": "assistant", "content": "So."})),
    ]);
    let (client, mut conversation) = (client(), conversation(&mock, Format::Ollama).unary());
    let runs = Arc::default();
    let report = ToolLoop::new([echo(&runs)]).run(&client, &mut conversation, "Go").unwrap().report().await;
    assert_eq!((report.end, report.text()), (LoopEnd::Answered, "So."), "{report:?}");
    assert_eq!((report.cost.calls, report.cost.tokens.total()), (2, 26));
    let body = bodies(&mock).remove(1);
    assert_eq!(body["stream"], json!(false));
    assert_eq!(
        body["messages"],
        json!([
            {"role": "user", "content": "Go"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_name": "echo", "content": "{\"x\":1}"},
        ])
    );
}

#[tokio::test]
async fn gemini() {
    let answer = |part: Value| {
        vec![json!({
            "candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 3},
        })]
    };
    let call = json!({"name": "echo", "args": {"x": 1}});
    let signed = json!({"functionCall": call, "thoughtSignature": "signed"});
    let turns = [answer(signed.clone()), answer(json!({"text": "So."}))];
    assert_eq!(
        second_request(Format::Gemini, turns).await,
        [
            json!({"role": "user", "parts": [{"text": "Go"}]}),
            json!({"role": "model", "parts": [signed]}),
            json!({"role": "user", "parts": [
                {"functionResponse": {"name": "echo", "response": {"output": {"x": 1}}}},
            ]}),
        ]
    );
}
