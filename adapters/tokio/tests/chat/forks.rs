//! Many conversations at once, and one at a time.

use std::collections::BTreeSet;

use futures_util::StreamExt;
use futures_util::future::join_all;
use serde_json::json;
use steadfast_tokio::{Format, Piece, ToolEvent, ToolLoop, tool};

use crate::server::{CAP, Does, bodies, chat, client, conversation, serve};

#[tokio::test]
async fn two_hundred_forks_at_once_do_not_hear_each_other() {
    const FORKS: usize = 200;
    let mock = serve((0..FORKS).map(|number| chat(&format!("answer {number}"), &[], "stop")));
    let origin = conversation(&mock, Format::OpenAiChat).system("Be brief.");
    let mut forks = origin.fork(FORKS);
    let client = client();
    let turns = forks.iter_mut().enumerate().map(|(number, fork)| {
        let turn = client.chat(fork, format!("question {number}.")).expect("a valid request");
        async move { turn.outcome().await }
    });
    let outcomes = tokio::time::timeout(CAP, join_all(turns)).await.expect("all of them end");
    assert!(outcomes.iter().all(|outcome| outcome.word() == "completed"));

    let requests = mock.recorded().requests;
    assert_eq!(requests.len(), FORKS);
    let mut answers = BTreeSet::new();
    for (number, fork) in forks.iter().enumerate() {
        let question = format!("question {number}.");
        let asked = json!({"role": "user", "content": question});
        let body = |body: &[u8]| String::from_utf8_lossy(body).contains(&question);
        let request = requests.iter().find(|request| body(&request.body)).expect("it was asked");
        let answer = format!("answer {}", request.connection);
        let answered = json!({"role": "assistant", "content": answer});
        assert_eq!(fork.messages()[1..], [asked, answered]);
        assert_eq!((fork.cost().calls, fork.cost().tokens.total()), (1, 13));
        answers.insert(answer);
    }
    assert_eq!(answers.len(), FORKS, "each has an answer of its own");
    assert_eq!((origin.messages().len(), origin.cost().calls), (1, 0));
    assert!(!format!("{forks:?} {client:?}").contains("sk-secret"));
}

#[tokio::test]
async fn a_turn_and_a_loop_are_streams() {
    let call = [("t1", "echo", "{}")];
    let mock = serve([chat("Hi", &[], "stop"), chat("", &call, "tool_calls"), chat("So.", &[], "stop")]);
    let (client, mut conversation) = (client(), conversation(&mock, Format::OpenAiChat));
    let pieces: Vec<Piece> = client.chat(&mut conversation, "Hello").unwrap().collect().await;
    assert_eq!(pieces, [Piece::Text { choice: 0, text: "Hi".to_owned() }, Piece::Finished]);
    assert_eq!(conversation.messages().len(), 2);
    let tools = ToolLoop::new([]).tool(tool("echo", "Echoes", json!({}), |said| async { Ok(said) }));
    let run = tools.run(&client, &mut conversation, "Go").unwrap();
    let events: Vec<ToolEvent> = run.collect().await;
    let is_call = |event: &ToolEvent| matches!(event, ToolEvent::Called { turn: 1, .. });
    assert!(events.iter().any(is_call), "{events:?}");
    let end = ToolEvent::Piece { turn: 2, piece: Piece::Finished };
    assert_eq!(events.last(), Some(&end));
    assert_eq!(conversation.messages().len(), 6);
}

#[tokio::test]
async fn a_turn_that_was_taken_whole_is_kept() {
    let mock = serve([chat("Hi", &[], "stop"), chat("Hm", &[], "length"), Does::Refuses(400)]);
    let (client, mut conversation) = (client(), conversation(&mock, Format::OpenAiChat));
    let mut turn = client.chat(&mut conversation, "Hello").unwrap();
    assert_eq!(turn.next().await, Some(Piece::Text { choice: 0, text: "Hi".to_owned() }));
    while turn.next().await.is_some() {}
    assert_eq!(turn.cost().amount.to_string(), "0.000016");
    drop(turn);
    assert_eq!(conversation.messages().len(), 2);
    let outcome = client.chat(&mut conversation, "More").unwrap().outcome().await;
    assert_eq!(outcome.word(), "incomplete");
    assert_eq!(conversation.messages().len(), 4);
    let outcome = client.chat(&mut conversation, "More").unwrap().outcome().await;
    assert_eq!(outcome.word(), "error");
    assert_eq!((conversation.messages().len(), conversation.cost().calls), (4, 2));
    assert_eq!(bodies(&mock)[2]["messages"].as_array().map(Vec::len), Some(5));
}

#[tokio::test]
async fn a_turn_that_is_dropped_leaves_no_trace() {
    let mock = serve([chat("Hi", &[], "stop")]);
    let (client, mut conversation) = (client(), conversation(&mock, Format::OpenAiChat));
    let mut turn = client.chat(&mut conversation, "Hello").unwrap();
    assert!(turn.next().await.is_some());
    drop(turn);
    assert_eq!((conversation.messages().len(), conversation.cost().calls), (0, 0));
}
