//! A tool loop on smol.

use std::future::pending;

use serde_json::json;
use steadfast_mock::Mock;
use steadfast_scenario::Script;
use steadfast_smol::{
    Client, Conversation, Format, LoopEnd, Overrides, Proxies, Request, ToolEnd, ToolLoop, tool,
};

const SCRIPT: &str = r#"
name = "x"
about = "asks for two tools, then answers"
[bytes]
calls = """data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"t1","function":{"name":"stall","arguments":"{}"}},{"index":1,"id":"t2","function":{"name":"answer","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}\n\ndata: [DONE]\n\n"""
answer = """data: {"choices":[{"index":0,"delta":{"content":"So."},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n"""
[[connection]]
steps = [{ read = "request" }, { head = ["200 OK", "content-type: text/event-stream"] }, { send = "$calls" }, "close"]
[[connection]]
steps = [{ read = "request" }, { head = ["200 OK", "content-type: text/event-stream"] }, { send = "$answer" }, "close"]
"#;

#[test]
fn a_tool_that_takes_too_long_does_not_hold_up_the_loop() {
    let mock = Mock::start(&Script::parse(SCRIPT).expect("a valid script"), None).expect("it starts");
    let limit = std::time::Duration::from_millis(200);
    let endpoint = Request::post(&mock.base_url()).overrides(Overrides::new().tool_timeout(limit));
    let mut conversation = Conversation::new(Format::OpenAiChat, endpoint, "m-1");
    let schema = json!({"type": "object"});
    let stall = tool("stall", "Takes for ever", schema.clone(), |_| pending());
    let answer = tool("answer", "Answers", schema, |_| async { Ok(json!(42)) });
    let client = Client::new().with_proxies(Proxies::none());
    let report = smol::block_on(async {
        let run = ToolLoop::new([]).tool(stall).tool(answer).run(&client, &mut conversation, "What?");
        run.expect("a valid request").report().await
    });
    assert_eq!((report.end, report.text()), (LoopEnd::Answered, "So."));
    let ends: Vec<_> = report.tools.iter().map(|record| record.end).collect();
    assert_eq!(ends, [ToolEnd::TimedOut { limit }, ToolEnd::Returned]);
    assert_eq!(conversation.messages().len(), 5);
}

#[test]
fn a_tool_that_panics_does_not_end_the_loop() {
    let mock = Mock::start(&Script::parse(SCRIPT).expect("a valid script"), None).expect("it starts");
    let mut conversation = Conversation::new(Format::OpenAiChat, Request::post(&mock.base_url()), "m-1");
    let schema = json!({"type": "object"});
    let stall = tool("stall", "Panics", schema.clone(), |_| async {
        smol::future::yield_now().await;
        panic!("sk-secret")
    });
    let answer = tool("answer", "Answers", schema, |_| async { Ok(json!(42)) });
    let client = Client::new().with_proxies(Proxies::none());
    let report = smol::block_on(async {
        let run = ToolLoop::new([]).tool(stall).tool(answer).run(&client, &mut conversation, "What?");
        run.expect("a valid request").report().await
    });
    assert_eq!((report.end, report.text()), (LoopEnd::Answered, "So."));
    let ends: Vec<_> = report.tools.iter().map(|record| record.end).collect();
    assert_eq!(ends, [ToolEnd::Panicked, ToolEnd::Returned]);
    let told = conversation.messages()[2].to_string();
    assert!(told.contains("the tool panicked") && !told.contains("sk-"), "{told}");
}
