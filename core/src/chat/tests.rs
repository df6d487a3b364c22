//! Conversations in every format: what is sent, what is kept, and what it costs.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Conversation, Format, Prices, ToolDefinition, ToolResult};
use crate::call::{Call, Command, Env, Request, RequestError};
use crate::config::RequestConfig;
use crate::dialect::Dialect;
use crate::machine::{Event, Machine, Step};
use crate::outcome::{
    Billing, CallError, Choice, Completion, Ending, ErrorKind, Outcome, ReasoningMember, Signature, Signed,
    Timeline, ToolCall, ToolKind, Turn, Usage,
};
use crate::time::Instant;
use crate::verb::{Service, openai};

const FORMATS: [Format; 7] = [
    Format::OpenAiChat,
    Format::OpenAiResponses,
    Format::Anthropic,
    Format::Gemini,
    Format::GeminiInteractions,
    Format::Ollama,
    Format::Cohere,
];

fn conversation(format: Format) -> Conversation {
    let endpoint = Request::post("http://h/chat?key=DO-NOT-PRINT").bearer("DO-NOT-PRINT");
    let prices = Prices::new("1".parse().unwrap(), "2".parse().unwrap());
    Conversation::new(format, endpoint, "m-1").prices(prices)
}

fn call(id: &str, arguments: &str) -> ToolCall {
    let (id, name, arguments) = (id.to_owned(), "look_up".to_owned(), arguments.to_owned());
    ToolCall { kind: ToolKind::Function, id, name, arguments }
}

fn turn(text: &str, tool_calls: Vec<ToolCall>) -> Turn {
    let raw = r#"{"input_tokens":10,"output_tokens":4}"#.to_owned();
    Turn {
        choices: vec![Choice { text: text.to_owned(), tool_calls, ..Choice::default() }],
        usage: Some(Usage { input_tokens: Some(10), output_tokens: Some(4), total_tokens: None, raw }),
        ..Turn::default()
    }
}

fn ended(ending: Ending, turn: Turn) -> Outcome {
    let (status, headers, body) = Default::default();
    let result = Ok(Completion { ending, turn, status, headers, body });
    Outcome { result, timeline: Timeline::new(0, Instant::ORIGIN), response: None }
}

fn completed(turn: Turn) -> Outcome {
    ended(Ending::Completed, turn)
}

fn failed(turn: Turn) -> Outcome {
    let (kind, billing, retry_after) = (ErrorKind::Cancelled, Billing::Delivered, None);
    let result = Err(CallError { kind, billing, turn: Box::new(turn), retry_after });
    Outcome { result, timeline: Timeline::new(0, Instant::ORIGIN), response: None }
}

/// What goes out as the body
fn body(request: &Request) -> Value {
    let env = Env { seed: 0, unix_at_origin: Duration::ZERO };
    let mut call = Call::new(request.clone(), RequestConfig::default(), env, Instant::ORIGIN);
    let mut drain = call.handle(Instant::ORIGIN, Event::Start).unwrap();
    let Step::Do(Command::Connect(id)) = drain.next() else { panic!("a connection is asked for") };
    drop(drain);
    drop(call.handle(Instant::ORIGIN, Event::Connected(id)).unwrap());
    serde_json::from_slice(call.outgoing(id)[1]).unwrap()
}

#[test]
fn a_kept_turn_is_what_the_dialect_wants_back() {
    let chat = json!({"role": "assistant", "content": "Hi"});
    for (format, expected) in [
        (Format::OpenAiChat, chat.clone()),
        (
            Format::OpenAiResponses,
            json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]}),
        ),
        (Format::Anthropic, json!({"role": "assistant", "content": [{"type": "text", "text": "Hi"}]})),
        (Format::Gemini, json!({"role": "model", "parts": [{"text": "Hi"}]})),
        (
            Format::GeminiInteractions,
            json!({"type": "model_output", "content": [{"type": "text", "text": "Hi"}]}),
        ),
        (Format::Ollama, chat.clone()),
        (Format::Cohere, chat.clone()),
    ] {
        let mut conversation = conversation(format);
        let exchange = conversation.exchange("Hello");
        assert_eq!(exchange.request().unwrap().dialect(), Some(format.dialect()));
        let cost = exchange.finish(&completed(turn("Hi", Vec::new())));
        assert_eq!(conversation.messages(), [format.user("Hello"), expected], "{format:?}");
        assert_eq!(cost, *conversation.cost());
        assert_eq!((cost.calls, cost.amount.to_string()), (1, "0.000018".to_owned()));
    }
}

#[test]
fn tools_and_their_results_are_what_the_dialect_wants() {
    let schema = json!({"type": "object"});
    let definition = ToolDefinition {
        name: "look_up".to_owned(),
        description: "Looks".to_owned(),
        schema: schema.clone(),
    };
    let openai_tool = json!([{"type": "function", "function": {
        "name": "look_up", "description": "Looks", "parameters": schema,
    }}]);
    let openai_call = json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": "t1", "type": "function", "function": {"name": "look_up", "arguments": "{\"x\":1}"}},
        {"id": "t2", "type": "function", "function": {"name": "look_up", "arguments": "{}"}},
    ]});
    let mut cohere_call = openai_call.clone();
    cohere_call.as_object_mut().unwrap().remove("content");
    let openai_results = [
        json!({"role": "tool", "tool_call_id": "t1", "content": "{\"found\":true}"}),
        json!({"role": "tool", "tool_call_id": "t2", "content": "{\"error\":\"no\"}"}),
    ];
    for (format, tools, said, results) in [
        (Format::OpenAiChat, openai_tool.clone(), vec![openai_call], openai_results.to_vec()),
        (
            Format::OpenAiResponses,
            json!([{
                "type": "function", "name": "look_up", "description": "Looks", "parameters": schema, "strict": false,
            }]),
            vec![
                json!({"type": "function_call", "call_id": "t1", "name": "look_up", "arguments": "{\"x\":1}"}),
                json!({"type": "function_call", "call_id": "t2", "name": "look_up", "arguments": "{}"}),
            ],
            vec![
                json!({"type": "function_call_output", "call_id": "t1", "output": "{\"found\":true}"}),
                json!({"type": "function_call_output", "call_id": "t2", "output": "{\"error\":\"no\"}"}),
            ],
        ),
        (
            Format::Anthropic,
            json!([{"name": "look_up", "description": "Looks", "input_schema": schema}]),
            vec![json!({"role": "assistant", "content": [
                {"type": "tool_use", "id": "t1", "name": "look_up", "input": {"x": 1}},
                {"type": "tool_use", "id": "t2", "name": "look_up", "input": {}},
            ]})],
            vec![json!({"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "{\"found\":true}"},
                {"type": "tool_result", "tool_use_id": "t2", "content": "{\"error\":\"no\"}", "is_error": true},
            ]})],
        ),
        (
            Format::Gemini,
            json!([{"functionDeclarations": [
                {"name": "look_up", "description": "Looks", "parametersJsonSchema": schema},
            ]}]),
            vec![json!({"role": "model", "parts": [
                {"functionCall": {"id": "t1", "name": "look_up", "args": {"x": 1}}},
                {"functionCall": {"id": "t2", "name": "look_up", "args": {}}},
            ]})],
            vec![json!({"role": "user", "parts": [
                {"functionResponse": {"id": "t1", "name": "look_up", "response": {"output": {"found": true}}}},
                {"functionResponse": {"id": "t2", "name": "look_up", "response": {"error": "no"}}},
            ]})],
        ),
        (
            Format::GeminiInteractions,
            json!([{"type": "function", "name": "look_up", "description": "Looks", "parameters": schema}]),
            vec![
                json!({"type": "function_call", "id": "t1", "name": "look_up", "arguments": {"x": 1}}),
                json!({"type": "function_call", "id": "t2", "name": "look_up", "arguments": {}}),
            ],
            vec![
                json!({
                    "type": "function_result", "call_id": "t1", "name": "look_up",
                    "result": [{"type": "text", "text": "{\"found\":true}"}],
                }),
                json!({
                    "type": "function_result", "call_id": "t2", "name": "look_up",
                    "result": [{"type": "text", "text": "{\"error\":\"no\"}"}], "is_error": true,
                }),
            ],
        ),
        (
            Format::Ollama,
            openai_tool.clone(),
            vec![json!({"role": "assistant", "content": "", "tool_calls": [
                {"function": {"name": "look_up", "arguments": {"x": 1}}},
                {"function": {"name": "look_up", "arguments": {}}},
            ]})],
            vec![
                json!({"role": "tool", "tool_name": "look_up", "content": "{\"found\":true}"}),
                json!({"role": "tool", "tool_name": "look_up", "content": "{\"error\":\"no\"}"}),
            ],
        ),
        (Format::Cohere, openai_tool.clone(), vec![cohere_call], openai_results.to_vec()),
    ] {
        let mut conversation = conversation(format);
        let mut exchange = conversation.exchange("Where?");
        let request = exchange.request_with(std::slice::from_ref(&definition), |request| request).unwrap();
        assert_eq!(body(&request)["tools"], tools, "{format:?}");
        let calls = vec![call("t1", r#"{"x":1}"#), call("t2", "")];
        exchange.answered(&completed(turn("", calls.clone())));
        assert!(exchange.conversation().messages().is_empty(), "calls are kept with their results");
        let values = [Ok(json!({"found": true})), Err("no".to_owned())];
        let given: Vec<ToolResult> =
            calls.into_iter().zip(values).map(|(call, value)| ToolResult { call, value }).collect();
        exchange.results(&given);
        let again = body(&exchange.request().unwrap());
        let expected: Vec<Value> = [format.user("Where?")].into_iter().chain(said).chain(results).collect();
        assert_eq!(again[format.messages_member()], Value::from(expected.clone()), "{format:?}");
        exchange.finish(&failed(turn("lost", Vec::new())));
        assert_eq!(conversation.messages(), expected, "what was paid for is kept, what failed is not");
        assert_eq!(conversation.cost().calls, 1);
    }
}

#[test]
fn what_a_provider_signed_goes_back_with_its_signature() {
    let signature = |signs, token: &str| Signature { choice: 0, signs, token: token.to_owned() };
    let mut signed = turn("Hi", vec![call("t1", "{}"), call("t2", "{}")]);
    signed.choices[0].reasoning = "Hm.So.".to_owned();
    signed.signatures = vec![
        signature(Signed::Reasoning { end: 3 }, "s1"),
        signature(Signed::Hidden, "h"),
        signature(Signed::Reasoning { end: 6 }, "s2"),
        signature(Signed::ToolCall { index: 1 }, "s3"),
    ];
    let kept = |format| {
        let mut conversation = conversation(format);
        conversation.exchange("Hello").finish(&completed(signed.clone()));
        conversation.messages()[1..].to_vec()
    };
    let anthropic = kept(Format::Anthropic).remove(0);
    assert_eq!(
        anthropic["content"].as_array().unwrap()[..4],
        [
            json!({"type": "thinking", "thinking": "Hm.", "signature": "s1"}),
            json!({"type": "redacted_thinking", "data": "h"}),
            json!({"type": "thinking", "thinking": "So.", "signature": "s2"}),
            json!({"type": "text", "text": "Hi"}),
        ]
    );
    let parts = &kept(Format::Gemini)[0]["parts"];
    assert_eq!(parts[1], json!({"functionCall": {"id": "t1", "name": "look_up", "args": {}}}));
    assert_eq!(parts[2]["thoughtSignature"], "s3");
    assert!(!kept(Format::OpenAiChat)[0].to_string().contains("Hm."));
    let summary = |text: &str| json!([{"type": "summary_text", "text": text}]);
    let responses = kept(Format::OpenAiResponses);
    assert_eq!(
        responses[..3],
        [
            json!({"type": "reasoning", "summary": summary("Hm."), "encrypted_content": "s1"}),
            json!({"type": "reasoning", "summary": [], "encrypted_content": "h"}),
            json!({"type": "reasoning", "summary": summary("So."), "encrypted_content": "s2"}),
        ]
    );
    assert_eq!((&responses[3]["type"], responses.len()), (&json!("message"), 6));
    let steps = kept(Format::GeminiInteractions);
    assert_eq!(
        steps[0],
        json!({"type": "thought", "signature": "s1", "summary": [{"type": "text", "text": "Hm."}]})
    );
    assert_eq!(steps[1], json!({"type": "thought", "signature": "h"}));
    assert_eq!((&steps[4]["signature"], &steps[5]["signature"]), (&Value::Null, &json!("s3")));
}

#[test]
fn reasoning_goes_back_in_its_own_words_to_who_wants_it_so() {
    let kept = |format, turn: &Turn| {
        let mut conversation = conversation(format);
        conversation.exchange("Hello").finish(&completed(turn.clone()));
        conversation.messages()[1].clone()
    };
    let mut thought = turn("", vec![call("t1", "{}")]);
    thought.choices[0].reasoning = "Hm.".to_owned();
    assert_eq!(kept(Format::Ollama, &thought)["thinking"], "Hm.");
    for member in [ReasoningMember::ReasoningContent, ReasoningMember::Reasoning] {
        thought.reasoning_member = Some(member);
        assert_eq!(kept(Format::OpenAiChat, &thought)[member.name()], "Hm.");
        let silent = Turn { reasoning_member: Some(member), ..turn("Hi", Vec::new()) };
        assert_eq!(kept(Format::OpenAiChat, &silent)[member.name()], "", "asked for all the same");
    }
}

#[test]
fn a_failed_call_leaves_a_conversation_as_it_was() {
    for format in FORMATS {
        let mut conversation = conversation(format).system("Be brief.");
        conversation.exchange("Hello").finish(&completed(turn("Hi", Vec::new())));
        let (messages, cost) = (conversation.messages().to_vec(), *conversation.cost());
        conversation.exchange("And?").finish(&failed(turn("Half an ans", Vec::new())));
        drop(conversation.exchange("And?"));
        assert_eq!((conversation.messages(), *conversation.cost()), (&messages[..], cost), "{format:?}");
    }
}

#[test]
fn an_incomplete_turn_is_kept_without_the_calls_that_nobody_can_answer() {
    let mut conversation = conversation(Format::OpenAiChat);
    let calls = vec![call("t1", r#"{"x":1}"#), call("t2", r#"{"x"#), call("t3", "")];
    let outcome = ended(Ending::Incomplete("length".to_owned()), turn("Hi", calls));
    conversation.exchange("Hello").finish(&outcome);
    let kept = &conversation.messages()[1];
    assert_eq!(kept["content"], "Hi");
    assert_eq!(kept["tool_calls"].as_array().map(Vec::len), Some(1));
    assert_eq!(kept["tool_calls"][0]["id"], "t1");
}

#[test]
fn an_answer_without_a_word_leaves_no_message() {
    for format in FORMATS {
        let mut conversation = conversation(format);
        conversation.exchange("Hello").finish(&completed(turn("", Vec::new())));
        assert_eq!(conversation.messages(), [format.user("Hello")], "{format:?}");
        assert_eq!(conversation.cost().calls, 1);
    }
}

#[test]
fn the_callers_fields_go_before_ours() {
    let mut conversation = conversation(Format::OpenAiChat)
        .system("Be brief.")
        .field("temperature", 0)
        .field("stream_options", Value::Null)
        .field("messages", "no field")
        .field("tools", json!([{"type": "web_search"}]));
    let exchange =
        conversation.exchange(json!({"role": "user", "content": [{"type": "text", "text": "Hi"}]}));
    assert_eq!(
        body(&exchange.request().unwrap()),
        json!({
            "model": "m-1", "stream": true, "temperature": 0, "tools": [{"type": "web_search"}],
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
            ],
        })
    );
    let schema = json!({});
    let tool = ToolDefinition { name: "f".to_owned(), description: String::new(), schema };
    let tools = body(&exchange.request_with(&[tool], |request| request).unwrap())["tools"].clone();
    assert_eq!(
        (tools[0]["type"].as_str(), tools[1]["type"].as_str()),
        (Some("web_search"), Some("function"))
    );
    for (format, member) in [
        (Format::Anthropic, "system"),
        (Format::OpenAiResponses, "instructions"),
        (Format::Gemini, "systemInstruction"),
        (Format::GeminiInteractions, "system_instruction"),
    ] {
        let mut conversation = super::tests::conversation(format).unary().system("Be brief.");
        let request = conversation.exchange("Hi").request().unwrap();
        assert!(body(&request)[member].to_string().contains("Be brief."), "{format:?}");
        assert_ne!(body(&request)["stream"], json!(true));
    }
}

#[test]
fn forks_go_their_own_ways() {
    let mut origin = conversation(Format::Anthropic);
    origin.exchange("Hello").finish(&completed(turn("Hi", Vec::new())));
    let mut forks = origin.fork(2);
    assert!(forks.iter().all(|fork| fork.messages() == origin.messages()));
    assert!(forks.iter().all(|fork| fork.cost().calls == 0));
    forks[0].exchange("And?").finish(&completed(turn("So.", Vec::new())));
    assert_eq!(forks.iter().map(|fork| fork.messages().len()).collect::<Vec<_>>(), [4, 2]);
    assert_eq!(forks.iter().map(|fork| fork.cost().calls).collect::<Vec<_>>(), [1, 0]);
    assert_eq!((origin.messages().len(), origin.cost().calls), (2, 1));
}

#[test]
fn a_turn_without_a_count_is_one() {
    let mut conversation = conversation(Format::Ollama);
    let uncounted = Turn { usage: None, ..turn("Hi", Vec::new()) };
    let cost = conversation.exchange("Hello").finish(&completed(uncounted));
    assert_eq!((cost.calls, cost.uncounted, cost.tokens.total()), (1, 1, 0));
}

#[test]
fn no_debug_form_shows_a_key_or_a_word() {
    let mut conversation = conversation(Format::Gemini).system("DO-NOT-PRINT");
    assert!(!format!("{conversation:?}").contains("DO-NOT-PRINT"));
    let exchange = conversation.exchange("DO-NOT-PRINT");
    assert!(!format!("{exchange:?} {:?}", exchange.request().unwrap()).contains("DO-NOT-PRINT"));
}

#[test]
fn dialects_without_messages_have_no_format() {
    for format in FORMATS {
        assert_eq!(Format::try_from(format.dialect()), Ok(format));
    }
    let none = Format::try_from(Dialect::OpenAiCompletions).unwrap_err();
    assert!(none.to_string().contains(Dialect::OpenAiCompletions.name()));
}

#[test]
fn an_endpoint_of_another_dialect_is_refused() {
    let service = Service::openai("sk");
    let request = |endpoint| Conversation::new(Format::OpenAiChat, endpoint, "m-1").exchange("Hi").request();
    assert_eq!(request(service.request(&openai::CHAT, [])).unwrap().dialect(), Some(Dialect::OpenAiChat));
    let error = request(service.request(&openai::RESPOND, [])).unwrap_err();
    let (endpoint, conversation) = (Dialect::OpenAiResponses.name(), Dialect::OpenAiChat.name());
    assert_eq!(error, RequestError::OtherDialect { endpoint, conversation });
}
