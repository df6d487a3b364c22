//! How a tool loop ends before the model is content.

use std::future::pending;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use steadfast_mock::Mock;
use steadfast_tokio::{
    ErrorKind, Format, LoopEnd, Overrides, Phase, Piece, Request, Tool, ToolEnd, ToolEvent, ToolLoop, tool,
};
use tokio::sync::Notify;

use crate::server::{CAP, Does, bodies, chat, client, conversation, serve};
use crate::tools::{echo, stall};

const CALL: [(&str, &str, &str); 1] = [("t1", "echo", "{}")];

#[tokio::test]
async fn the_model_is_called_so_often_and_no_more() {
    let mock = serve((0..4).map(|_| chat("", &CALL, "tool_calls")));
    let (client, mut conversation) = (client(), conversation(&mock, Format::OpenAiChat));
    let runs = Arc::default();
    let tools = ToolLoop::new([echo(&runs)]).max_turns(3);
    let report = tools.run(&client, &mut conversation, "Go").unwrap().report().await;
    assert_eq!(report.end, LoopEnd::TurnLimit { limit: 3 });
    let ends: Vec<_> = report.tools.iter().map(|record| (record.turn, record.end)).collect();
    assert_eq!(ends, [(1, ToolEnd::Returned), (2, ToolEnd::Returned), (3, ToolEnd::NotRun)]);
    assert_eq!((runs.load(Ordering::SeqCst), mock.recorded().requests.len()), (2, 3));
    assert_eq!((report.outcomes.len(), report.cost.calls), (3, 3));
    let last = conversation.messages().last().unwrap();
    assert!(last["content"].as_str().unwrap().contains("limit of 3"), "{last}");
    assert_eq!(ToolLoop::MAX_TURNS, 8);
}

/// A tool that says when it runs, never is done, and counts the runs that were dropped
fn held(running: &Arc<Notify>, dropped: &Arc<AtomicUsize>) -> Arc<dyn Tool> {
    struct Counts(Arc<AtomicUsize>);
    impl Drop for Counts {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let (running, dropped) = (Arc::clone(running), Arc::clone(dropped));
    Arc::new(tool("echo", "Holds", json!({"type": "object"}), move |_| {
        let (running, counts) = (Arc::clone(&running), Counts(Arc::clone(&dropped)));
        async move {
            running.notify_one();
            pending::<()>().await;
            drop(counts);
            Ok(Value::Null)
        }
    }))
}

#[tokio::test]
async fn who_gives_up_drops_the_tools() {
    for drops in [true, false] {
        let mock = serve([chat("", &CALL, "tool_calls")]);
        let (client, mut conversation) = (client(), conversation(&mock, Format::OpenAiChat));
        let (running, dropped) = (Arc::default(), Arc::default());
        let tools = ToolLoop::new([held(&running, &dropped)]);
        let mut run = tools.run(&client, &mut conversation, "Go").unwrap();
        let going_on = async { while run.next().await.is_some() {} };
        tokio::select! {
            () = going_on => panic!("it is never done"),
            () = running.notified() => {}
            () = tokio::time::sleep(CAP) => panic!("the tool is run"),
        }
        assert_eq!(dropped.load(Ordering::SeqCst), 0);
        if drops {
            drop(run);
        } else {
            run.cancel();
            let report = run.report().await;
            assert_eq!((report.end, report.tools[0].end), (LoopEnd::Cancelled, ToolEnd::Dropped));
            assert_eq!(report.cost.calls, 1);
        }
        assert_eq!(dropped.load(Ordering::SeqCst), 1);
        assert!(conversation.messages().is_empty(), "no call of a tool is kept without its result");
        assert_eq!(conversation.cost().calls, 1, "what was answered is paid for");
    }
}

#[tokio::test]
async fn a_call_of_the_model_can_be_given_up_too() {
    let mock = serve([Does::Holds]);
    let (client, mut conversation) = (client(), conversation(&mock, Format::OpenAiChat));
    let mut run = ToolLoop::new([stall()]).run(&client, &mut conversation, "Go").unwrap();
    run.cancel();
    let report = run.report().await;
    assert_eq!(report.end, LoopEnd::Cancelled);
    assert_eq!(report.outcomes.len(), 1);
}

#[tokio::test]
async fn another_thread_gives_a_loop_up_that_waits() {
    // For a tool
    let mock = serve([chat("", &CALL, "tool_calls")]);
    let (client, mut conversation) = (client(), conversation(&mock, Format::OpenAiChat));
    let (running, dropped) = (Arc::default(), Arc::default());
    let mut run = ToolLoop::new([held(&running, &dropped)]).run(&client, &mut conversation, "Go").unwrap();
    let canceller = run.canceller();
    let gives_up = async {
        running.notified().await;
        std::thread::spawn(move || canceller.cancel()).join().expect("a thread");
    };
    let both = async { tokio::join!(run.report(), gives_up).0 };
    let report = tokio::time::timeout(CAP, Box::pin(both)).await.expect("it ends");
    assert_eq!((report.end, report.tools[0].end), (LoopEnd::Cancelled, ToolEnd::Dropped));
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
    // For the model
    let mock = serve([Does::Holds]);
    let mut conversation = crate::server::conversation(&mock, Format::OpenAiChat);
    let mut run = ToolLoop::new([stall()]).run(&client, &mut conversation, "Go").unwrap();
    let canceller = run.canceller();
    let report =
        tokio::time::timeout(CAP, once_asked(Box::pin(run.report()), &mock, || canceller.cancel())).await;
    let report = report.expect("it ends");
    assert_eq!((report.end, report.outcomes.len()), (LoopEnd::Cancelled, 1));
}

#[tokio::test]
async fn another_task_gives_a_turn_up_that_waits() {
    let mock = serve([Does::Holds]);
    let (client, mut conversation) = (client(), conversation(&mock, Format::OpenAiChat));
    let mut chat = client.chat(&mut conversation, "Go").unwrap();
    let canceller = chat.canceller();
    let outcome = once_asked(Box::pin(chat.outcome()), &mock, || canceller.clone().cancel());
    let outcome = tokio::time::timeout(CAP, outcome).await.expect("it ends");
    assert_eq!(outcome.result.unwrap_err().kind, ErrorKind::Cancelled);
    assert!(canceller.is_cancelled() && conversation.messages().is_empty());
}

/// What `future` comes to, where `act` is done while it waits for the answer to its request
async fn once_asked<T>(mut future: impl Future<Output = T> + Unpin, mock: &Mock, act: impl FnOnce()) -> T {
    let mut act = Some(act);
    std::future::poll_fn(|cx| {
        let polled = Pin::new(&mut future).poll(cx);
        if polled.is_pending() && mock.recorded().requests.len() == 1 {
            act.take().into_iter().for_each(|act| act());
        } else if act.is_some() {
            cx.waker().wake_by_ref();
        }
        polled
    })
    .await
}

#[tokio::test]
async fn who_gives_up_an_answer_that_is_whole_runs_none_of_its_tools() {
    let mock = serve([chat("", &CALL, "tool_calls")]);
    let (client, mut conversation) = (client(), conversation(&mock, Format::OpenAiChat));
    let runs = Arc::default();
    let mut run = ToolLoop::new([echo(&runs)]).run(&client, &mut conversation, "Go").unwrap();
    loop {
        match run.next().await.expect("it goes on") {
            ToolEvent::Piece { piece: Piece::Finished, .. } => break,
            ToolEvent::Piece { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    run.cancel();
    let report = run.report().await;
    assert_eq!(report.outcomes[0].word(), "completed");
    assert_eq!((report.end, report.tools[0].end), (LoopEnd::Cancelled, ToolEnd::Dropped));
    assert_eq!(runs.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn one_deadline_holds_for_all_turns_and_tools() {
    let limit = Duration::from_millis(300);
    let end = LoopEnd::Deadline { limit };
    // In a tool
    let mock = serve([chat("", &[("t1", "stall", "{}")], "tool_calls")]);
    let (client, mut conversation) = (client(), conversation(&mock, Format::OpenAiChat));
    let tools = ToolLoop::new([stall()]).deadline(limit);
    let report = tools.run(&client, &mut conversation, "Go").unwrap().report().await;
    assert_eq!((report.end, report.tools[0].end), (end, ToolEnd::Dropped));
    // In a call of the model
    let mock = serve([Does::Holds]);
    let mut conversation = crate::server::conversation(&mock, Format::OpenAiChat);
    let report = tools.run(&client, &mut conversation, "Go").unwrap().report().await;
    assert_eq!(report.end, end);
    match &report.last().unwrap().result.as_ref().unwrap_err().kind {
        ErrorKind::Timeout(timeout) => assert_eq!(timeout.phase, Phase::Deadline),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_deadline_may_be_longer_than_any_bound_or_past_at_once() {
    for (limit, end) in
        [(Duration::MAX, LoopEnd::Answered), (Duration::ZERO, LoopEnd::Deadline { limit: Duration::ZERO })]
    {
        let mock = serve([chat("So.", &[], "stop")]);
        let (client, mut conversation) = (client(), conversation(&mock, Format::OpenAiChat));
        let tools = ToolLoop::new([stall()]).deadline(limit);
        let report = tools.run(&client, &mut conversation, "Go").unwrap().report().await;
        assert_eq!((report.end, report.outcomes.len()), (end, usize::from(!limit.is_zero())));
    }
}

#[tokio::test]
async fn a_loop_is_retried_until_its_first_callback_and_can_be_gone_on_with() {
    let mock = serve([
        Does::Refuses(503),
        chat("", &CALL, "tool_calls"),
        Does::Refuses(503),
        chat("So.", &[], "stop"),
    ]);
    let (client, mut conversation) = (client(), conversation(&mock, Format::OpenAiChat));
    let runs = Arc::default();
    let tools = ToolLoop::new([echo(&runs)]);
    let report = tools.run(&client, &mut conversation, "Go").unwrap().report().await;
    assert_eq!(report.end, LoopEnd::Failed);
    let attempts: Vec<_> = report.outcomes.iter().map(|outcome| outcome.timeline.attempt_count()).collect();
    assert_eq!(attempts, [2, 1]);
    assert_eq!(conversation.messages().len(), 3, "what the tool did is kept");
    let report = tools.run(&client, &mut conversation, Vec::new()).unwrap().report().await;
    assert_eq!((report.end, report.text()), (LoopEnd::Answered, "So."));
    assert_eq!(runs.load(Ordering::SeqCst), 1, "the tool is not run again");
    assert_eq!(conversation.messages().len(), 4);
    assert_eq!(bodies(&mock).len(), 4);
}

#[tokio::test]
async fn later_turns_are_retried_where_that_is_asked_for() {
    let mock = serve([chat("", &CALL, "tool_calls"), Does::Refuses(503), chat("So.", &[], "stop")]);
    let (client, mut conversation) = (client(), conversation(&mock, Format::OpenAiChat));
    let runs = Arc::default();
    let tools = ToolLoop::new([echo(&runs)]).retry_each_turn();
    let report = tools.run(&client, &mut conversation, "Go").unwrap().report().await;
    assert_eq!((report.end, report.text()), (LoopEnd::Answered, "So."));
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_future_that_is_dropped_loses_nothing() {
    let calls = [("t1", "echo", "{\"x\":1}"), ("t2", "echo", "{\"x\":2}")];
    let mock = serve([chat("One", &calls, "tool_calls"), chat("Two", &[], "stop")]);
    let (client, mut conversation) = (client(), conversation(&mock, Format::OpenAiChat));
    let runs = Arc::default();
    let mut run = ToolLoop::new([echo(&runs)]).run(&client, &mut conversation, "Go").unwrap();
    let (mut text, mut returned) = (String::new(), 0);
    loop {
        // Each future is polled once and dropped.
        let event = tokio::select! {
            biased;
            event = run.next() => event,
            () = std::future::ready(()) => { tokio::task::yield_now().await; continue }
        };
        match event {
            None => break,
            Some(ToolEvent::Piece { piece, .. }) => text.push_str(piece.text()),
            Some(ToolEvent::Returned { .. }) => returned += 1,
            Some(_) => {}
        }
    }
    assert_eq!((text.as_str(), returned, runs.load(Ordering::SeqCst)), ("OneTwo", 2, 2));
    assert_eq!(run.report().await.end, LoopEnd::Answered);
}

#[tokio::test]
async fn an_endpoint_that_cannot_be_used_is_told_before_anything_happens() {
    let mut conversation =
        steadfast_tokio::Conversation::new(Format::OpenAiChat, Request::post("ftp://h/"), "m-1");
    assert!(ToolLoop::new([stall()]).run(&client(), &mut conversation, "Go").is_err());
    let endpoint = Request::post("http://h/").overrides(Overrides::new().max_attempts(0));
    let mut conversation = steadfast_tokio::Conversation::new(Format::OpenAiChat, endpoint, "m-1");
    assert!(client().chat(&mut conversation, "Go").is_err());
}
