//! What tools are run, under what, and what the model is told of them.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use steadfast_tokio::{
    Format, LoopEnd, Overrides, RequestConfig, Tool, ToolEnd, ToolError, ToolEvent, ToolLoop, tool,
};
use tokio::sync::Barrier;

use crate::server::{bodies, chat, client, conversation, serve};

fn object() -> Value {
    json!({"type": "object"})
}

/// A tool that counts its runs and gives what it was given
pub(crate) fn echo(runs: &Arc<AtomicUsize>) -> Arc<dyn Tool> {
    let runs = Arc::clone(runs);
    Arc::new(tool("echo", "Says it again", object(), move |arguments| {
        runs.fetch_add(1, Ordering::SeqCst);
        async move { Ok(arguments) }
    }))
}

/// A tool that is done once two of it run, and says what is in force
fn meet() -> Arc<dyn Tool> {
    let barrier = Arc::new(Barrier::new(2));
    Arc::new(tool("meet", "Meets another", object(), move |_| {
        let barrier = Arc::clone(&barrier);
        async move {
            barrier.wait().await;
            let limit = RequestConfig::current().config().tool_timeout().limit();
            Ok(json!(limit.map(|limit| limit.as_millis() as u64)))
        }
    }))
}

/// A tool that is never done
pub(crate) fn stall() -> Arc<dyn Tool> {
    Arc::new(tool("stall", "Takes for ever", object(), |_| pending()))
}

#[tokio::test]
async fn three_tools_run_side_by_side_and_the_scope_times_one_out() {
    let calls = [("t1", "meet", "{}"), ("t2", "stall", "{}"), ("t3", "meet", "")];
    let mock = serve([chat("Let me see.", &calls, "tool_calls"), chat("So it is.", &[], "stop")]);
    let (client, mut conversation) = (client(), conversation(&mock, Format::OpenAiChat));
    let tools = ToolLoop::new([meet(), stall()]);
    let limit = Duration::from_millis(300);
    let scope = Overrides::new().tool_timeout(limit);
    let run = RequestConfig::sync_scope(&scope, || tools.run(&client, &mut conversation, "Where?"));
    // Outside of the scope in which it began, which holds all the same.
    let mut run = run.unwrap().unwrap();
    let (mut text, mut called, mut returned) = (String::new(), Vec::new(), Vec::new());
    while let Some(event) = run.next().await {
        match event {
            ToolEvent::Piece { piece, .. } => text.push_str(piece.text()),
            ToolEvent::Called { turn: 1, call } => called.push(call.id),
            ToolEvent::Returned { turn: 1, result } => returned.push((result.call.id, result.value)),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(text, "Let me see.So it is.");
    assert_eq!(called, ["t1", "t2", "t3"]);
    returned.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(returned[0].1, Ok(json!(300)), "the scope is in force in a tool");
    assert!(returned[1].1.as_ref().unwrap_err().contains("300ms"), "{returned:?}");
    assert_eq!(returned[2].1, Ok(json!(300)));

    let report = run.report().await;
    assert_eq!((report.end, report.text()), (LoopEnd::Answered, "So it is."));
    let ends: Vec<_> = report.tools.iter().map(|record| (record.id.as_str(), record.end)).collect();
    assert_eq!(
        ends,
        [("t1", ToolEnd::Returned), ("t2", ToolEnd::TimedOut { limit }), ("t3", ToolEnd::Returned)]
    );
    assert!(report.tools[1].elapsed >= limit, "{:?}", report.tools);
    assert_eq!((report.cost.calls, report.cost.amount.to_string()), (2, "0.000032".to_owned()));
    assert_eq!(report.cost, *conversation.cost());

    let bodies = bodies(&mock);
    assert_eq!(bodies[0]["tools"].as_array().map(Vec::len), Some(2));
    let messages = bodies[1]["messages"].as_array().unwrap();
    let ids: Vec<_> = messages[2..].iter().map(|message| message["tool_call_id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["t1", "t2", "t3"], "in the order in which the model asked");
    assert!(messages[3]["content"].as_str().unwrap().contains("error"));
    assert_eq!(conversation.messages()[..5], messages[..5]);
    assert_eq!(conversation.messages()[5], json!({"role": "assistant", "content": "So it is."}));
}

#[tokio::test]
async fn three_tools_are_run_over_two_turns_and_their_cost_is_told() {
    let mock = serve([
        chat("", &[("t1", "double", "{\"x\":21}"), ("t2", "stall", "{}")], "tool_calls"),
        chat("", &[("t3", "echo", "{\"y\":1}")], "tool_calls"),
        chat("42.", &[], "stop"),
    ]);
    let (client, mut conversation) = (client(), conversation(&mock, Format::OpenAiChat));
    let double: Arc<dyn Tool> =
        Arc::new(tool("double", "Doubles", object(), |arguments: Value| async move {
            let x = arguments["x"].as_i64().ok_or_else(|| ToolError::new("no x"))?;
            Ok(json!(2 * x))
        }));
    let runs = Arc::default();
    let tools = ToolLoop::new([double, stall(), echo(&runs)]);
    let limit = Duration::from_millis(200);
    let scope = Overrides::new().tool_timeout(limit);
    let run = RequestConfig::sync_scope(&scope, || tools.run(&client, &mut conversation, "Twice 21?"));
    let report = run.unwrap().unwrap().report().await;
    assert_eq!((report.end, report.text()), (LoopEnd::Answered, "42."));
    let ends: Vec<_> = report.tools.iter().map(|record| (record.id.as_str(), record.end)).collect();
    let timed_out = ToolEnd::TimedOut { limit };
    assert_eq!(ends, [("t1", ToolEnd::Returned), ("t2", timed_out), ("t3", ToolEnd::Returned)]);
    assert_eq!((report.cost.calls, report.cost.amount.to_string()), (3, "0.000048".to_owned()));
    let bodies = bodies(&mock);
    assert_eq!(bodies[1]["messages"][2]["content"], "42");
    assert_eq!(bodies[2]["messages"][5]["content"], "{\"y\":1}");
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn what_cannot_be_run_is_told_to_the_model_and_never_run() {
    let calls =
        [("t1", "echo", "{\"x\""), ("t2", "nobody", "{}"), ("t3", "fail", "{}"), ("t4", "echo", "{\"x\":1}")];
    let mock = serve([chat("", &calls, "tool_calls"), chat("Well.", &[], "stop")]);
    let (client, mut conversation) = (client(), conversation(&mock, Format::OpenAiChat));
    let runs = Arc::default();
    let fail: Arc<dyn Tool> =
        Arc::new(tool("fail", "Fails", object(), |_| async { Err(ToolError::new("out of order")) }));
    let report =
        ToolLoop::new([echo(&runs), fail]).run(&client, &mut conversation, "Go").unwrap().report().await;
    assert_eq!(report.end, LoopEnd::Answered);
    let ends: Vec<_> = report.tools.iter().map(|record| record.end).collect();
    assert_eq!(ends, [ToolEnd::BadArguments, ToolEnd::Unknown, ToolEnd::Failed, ToolEnd::Returned]);
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    let told = &bodies(&mock)[1]["messages"];
    for (at, words) in [(2, "not valid JSON"), (3, "no tool called `nobody`"), (4, "out of order")] {
        assert!(told[at]["content"].as_str().unwrap().contains(words), "{told}");
    }
    assert_eq!(told[5]["content"], "{\"x\":1}");
}

/// Panics when it is dropped
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("sk-dropped");
        }
    }
}

#[tokio::test]
async fn a_tool_that_panics_is_told_to_the_model_and_the_others_go_on() {
    let names = ["at-once", "later", "when-called", "when-dropped", "echo"];
    let calls: Vec<_> = names.iter().map(|name| (*name, *name, "{}")).collect();
    let mock = serve([chat("", &calls, "tool_calls"), chat("Well.", &[], "stop")]);
    let (client, mut conversation) = (client(), conversation(&mock, Format::OpenAiChat));
    let runs = Arc::default();
    let tools = ToolLoop::new([echo(&runs)])
        .tool(tool("at-once", "", object(), |_| async { panic!("sk-secret") }))
        .tool(tool("later", "", object(), |_| async {
            tokio::task::yield_now().await;
            panic!("sk-secret")
        }))
        .tool(tool("when-called", "", object(), |arguments: Value| {
            assert!(arguments.is_null(), "sk-secret");
            async { Ok(Value::Null) }
        }))
        .tool(tool("when-dropped", "", object(), |_| async {
            let _bomb = Bomb;
            pending().await
        }));
    let limit = Duration::from_millis(100);
    let scope = Overrides::new().tool_timeout(limit);
    let run = RequestConfig::sync_scope(&scope, || tools.run(&client, &mut conversation, "Go"));
    let report = run.unwrap().unwrap().report().await;
    assert_eq!((report.end, report.text()), (LoopEnd::Answered, "Well."));
    let ends: Vec<_> = report.tools.iter().map(|record| record.end).collect();
    let (panicked, timed_out) = (ToolEnd::Panicked, ToolEnd::TimedOut { limit });
    assert_eq!(ends, [panicked, panicked, panicked, timed_out, ToolEnd::Returned]);
    let told = bodies(&mock)[1]["messages"].to_string();
    assert!(told.contains("the tool panicked") && !told.contains("sk-"), "{told}");
}

#[tokio::test]
async fn a_call_that_was_cut_off_is_never_run() {
    let mock = serve([chat("Hm", &[("t1", "echo", "{}"), ("t2", "echo", "{\"x")], "length")]);
    let (client, mut conversation) = (client(), conversation(&mock, Format::OpenAiChat));
    let runs = Arc::default();
    let report = ToolLoop::new([echo(&runs)]).run(&client, &mut conversation, "Go").unwrap().report().await;
    assert_eq!(report.end, LoopEnd::Answered);
    assert_eq!(report.last().map(|outcome| outcome.word()), Some("incomplete"));
    assert_eq!(runs.load(Ordering::SeqCst), 0);
    assert_eq!(conversation.messages()[1], json!({"role": "assistant", "content": "Hm"}));
}

#[tokio::test]
async fn no_more_tools_run_at_once_than_are_allowed() {
    let calls = [("t1", "alone", "{}"), ("t2", "alone", "{}"), ("t3", "alone", "{}")];
    let mock = serve([chat("", &calls, "tool_calls"), chat("Done.", &[], "stop")]);
    let (client, mut conversation) = (client(), conversation(&mock, Format::OpenAiChat));
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let seen = Arc::clone(&most);
    let alone: Arc<dyn Tool> = Arc::new(tool("alone", "Alone", object(), move |_| {
        let (running, most) = (Arc::clone(&running), Arc::clone(&most));
        async move {
            most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::task::yield_now().await;
            running.fetch_sub(1, Ordering::SeqCst);
            Ok(Value::Null)
        }
    }));
    let tools = ToolLoop::new([alone]).max_parallel(2);
    let report = tools.run(&client, &mut conversation, "Go").unwrap().report().await;
    assert!(report.tools.iter().all(|record| record.end == ToolEnd::Returned), "{:?}", report.tools);
    assert_eq!((report.tools.len(), seen.load(Ordering::SeqCst)), (3, 2));
}
