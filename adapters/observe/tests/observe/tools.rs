//! The spans of a tool loop.

use std::time::Duration;

use serde_json::json;
use steadfast_mock::Mock;
use steadfast_scenario::Script;
use steadfast_tokio::{
    Client, Conversation, Format, LoopEnd, Overrides, Proxies, Request, ToolError, ToolEvent, ToolLoop,
    ToolRun, observe, tool,
};
use tracing_subscriber::layer::SubscriberExt;

use crate::spans::{Seen, Tree};

/// Asks for four tools, then answers
const SCRIPT: &str = r#"
name = "x"
about = "asks for four tools, then answers"
[bytes]
calls = """data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"t1","function":{"name":"look","arguments":"{\\\"secret\\\":\\\"sk-argument\\\"}"}},{"index":1,"id":"t2","function":{"name":"fail","arguments":"{}"}},{"index":2,"id":"t3","function":{"name":"crash","arguments":"{}"}},{"index":3,"id":"t4","function":{"name":"nobody","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}\n\ndata: {"choices":[],"usage":{"prompt_tokens":11,"completion_tokens":2}}\n\ndata: [DONE]\n\n"""
answer = """data: {"choices":[{"index":0,"delta":{"content":"So."},"finish_reason":"stop"}]}\n\ndata: {"choices":[],"usage":{"prompt_tokens":20,"completion_tokens":3}}\n\ndata: [DONE]\n\n"""
[[connection]]
steps = [{ read = "request" }, { head = ["200 OK", "content-type: text/event-stream"] }, { send = "$calls" }, "close"]
[[connection]]
steps = [{ read = "request" }, { head = ["200 OK", "content-type: text/event-stream"] }, { send = "$answer" }, "close"]
"#;

fn mock() -> Mock {
    Mock::start(&Script::parse(SCRIPT).expect("a valid script"), None).expect("the server starts")
}

fn client() -> Client {
    Client::new().with_proxies(Proxies::none()).with_observers(observe::spans)
}

fn conversation(mock: &Mock) -> Conversation {
    let endpoint = Request::post(&format!("{}/v1/chat", mock.base_url())).bearer("sk-key");
    Conversation::new(Format::OpenAiChat, endpoint, "m-1")
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(future)
}

fn watched<T>(tree: &Tree, act: impl FnOnce() -> T) -> T {
    let subscriber = tracing_subscriber::registry().with(tree.clone());
    tracing::subscriber::with_default(subscriber, || tracing::info_span!("around").in_scope(act))
}

fn field<'a>(span: &'a Seen, name: &str) -> Option<&'a str> {
    span.fields.get(name).map(String::as_str)
}

#[test]
fn a_tool_loop_is_a_span_around_its_calls_and_its_tools() {
    let (mock, tree) = (mock(), Tree::default());
    let schema = json!({"type": "object"});
    let tools = ToolLoop::new([])
        .tool(tool("look", "Looks", schema.clone(), |_| async {
            tokio::task::yield_now().await;
            tracing::info_span!("within").in_scope(|| Ok(json!("sk-result")))
        }))
        .tool(tool("fail", "Fails", schema.clone(), |_| async { Err(ToolError::new("sk-error")) }))
        .tool(tool("crash", "Panics", schema, |_| async { panic!("sk-panic") }))
        .with_observers(observe::tool_spans);
    let report = watched(&tree, || {
        let (client, mut conversation) = (client(), conversation(&mock));
        block_on(async {
            tools.run(&client, &mut conversation, "sk-prompt").expect("it runs").report().await
        })
    });
    assert_eq!((report.end, report.text()), (LoopEnd::Answered, "So."));

    let (spans, printed) = (tree.spans(), tree.print());
    let tree: Vec<_> = spans.iter().map(|span| (span.name, span.parent)).collect();
    let (agent, execute) = (Some("invoke_agent"), "execute_tool");
    let expected = [
        ("around", None),
        ("invoke_agent", Some("around")),
        ("call", agent),
        ("attempt", Some("call")),
        (execute, agent),
        (execute, agent),
        (execute, agent),
        ("within", Some(execute)),
        ("call", agent),
        ("attempt", Some("call")),
    ];
    assert_eq!(tree, expected, "{printed}");
    assert!(spans.iter().all(|span| span.is_closed), "{printed}");
    for (name, value) in [
        ("otel.name", "invoke_agent"),
        ("otel.kind", "internal"),
        ("otel.status_code", "OK"),
        ("gen_ai.operation.name", "invoke_agent"),
        ("gen_ai.provider.name", "openai"),
        ("gen_ai.request.model", "m-1"),
        ("gen_ai.usage.input_tokens", "31"),
        ("gen_ai.usage.output_tokens", "5"),
        ("steadfast.result", "answered"),
        ("steadfast.turns", "2"),
    ] {
        assert_eq!(field(&spans[1], name), Some(value), "{name}");
    }
    for (at, id, name, error) in
        [(4, "t1", "look", None), (5, "t2", "fail", Some("failed")), (6, "t3", "crash", Some("panicked"))]
    {
        let span = &spans[at];
        assert_eq!(field(span, "otel.name"), Some(&*format!("execute_tool {name}")));
        assert_eq!(field(span, "gen_ai.operation.name"), Some("execute_tool"));
        assert_eq!(field(span, "gen_ai.tool.name"), Some(name));
        assert_eq!(field(span, "gen_ai.tool.call.id"), Some(id));
        assert_eq!(field(span, "gen_ai.tool.type"), Some("function"));
        assert_eq!(field(span, "error.type"), error);
        assert_eq!(field(span, "otel.status_code"), Some(if error.is_none() { "OK" } else { "ERROR" }));
    }
    assert!(!printed.contains("sk-"), "{printed}");
}

#[test]
fn what_is_cut_short_says_so() {
    let cut = |ends: &dyn Fn(ToolLoop, &Client, &mut Conversation)| {
        let (mock, tree) = (mock(), Tree::default());
        let stall = tool("look", "Stalls", json!({"type": "object"}), |_| std::future::pending());
        let tools = ToolLoop::new([]).tool(stall).with_observers(observe::tool_spans);
        watched(&tree, || ends(tools, &client(), &mut conversation(&mock)));
        let spans = tree.spans();
        assert!(spans.iter().all(|span| span.is_closed), "{}", tree.print());
        let named = |name: &str| spans.iter().find(|span| span.name == name).cloned().expect("a span");
        [named("invoke_agent"), named("execute_tool")].map(|span| span.fields["error.type"].clone())
    };
    let until_it_stalls = |run: &mut ToolRun<'_>| {
        block_on(async { while !matches!(run.next().await, Some(ToolEvent::Called { .. })) {} });
    };
    let dropped = cut(&|tools, client, conversation| {
        until_it_stalls(&mut tools.run(client, conversation, "Go").expect("it runs"));
    });
    assert_eq!(dropped, ["dropped", "dropped"]);
    let cancelled = cut(&|tools, client, conversation| {
        let mut run = tools.run(client, conversation, "Go").expect("it runs");
        until_it_stalls(&mut run);
        run.cancel();
    });
    assert_eq!(cancelled, ["cancelled", "dropped"]);
    let timed_out = cut(&|tools, client, conversation| {
        let limited = Overrides::new().tool_timeout(Duration::from_millis(50));
        let client = client.clone().with_config(&limited).expect("in range");
        let mut run = tools.run(&client, conversation, "Go").expect("it runs");
        block_on(async {
            while !matches!(run.next().await.expect("it goes on"), ToolEvent::Piece { turn: 2, .. }) {}
        });
    });
    assert_eq!(timed_out, ["dropped", "tool_timeout"]);
}
