//! A provider that stalls ends as a typed timeout, under SDKs that know nothing of it.

use std::error::Error;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_openai::config::OpenAIConfig;
use async_openai::error::OpenAIError;
use async_openai::types::chat::{
    ChatCompletionRequestUserMessageArgs, CreateChatCompletionRequest, CreateChatCompletionRequestArgs,
};
use futures_util::StreamExt;
use rig_core::ProviderError;
use rig_core::completion::CompletionRequest;
use rig_core::streaming::{Item, StreamEvent};
use steadfast_mock::Mock;
use steadfast_scenario::Script;
use steadfast_tokio::{CallError, CallOutcome, Client, ErrorKind, Overrides, Phase, Timeout};
use steadfast_under_sdks::{async_openai as under_async_openai, rig as under_rig};

/// No call of these tests is meant to take so long
const CAP: Duration = Duration::from_secs(60);

const HEAD: &str =
    r#"{ head = ["200 OK", "content-type: text/event-stream", "transfer-encoding: chunked"] }"#;

/// A server that says "Hi" with these steps around it, and then nothing more on each connection
fn mock(connections: &[&str]) -> Mock {
    let hi = r#"hi = """data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}\n\n""""#;
    let stop = r#"stop = """data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n""""#;
    let whole = r#"whole = '{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hi","refusal":null},"finish_reason":"stop","logprobs":null}],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}'"#;
    let mut script = format!("name = \"x\"\nabout = \"a test\"\n[bytes]\n{hi}\n{stop}\n{whole}\n");
    for steps in connections {
        script += &format!("[[connection]]\nsteps = [{{ read = \"request\" }}, {steps}]\n");
    }
    Mock::start(&Script::parse(&script).expect("a script"), None).expect("a server")
}

/// Bounds that a test can wait for
fn client() -> Client {
    let bounds = Overrides::new().request_timeout(0.4).stream_idle_timeout(0.3).max_attempts(2);
    Client::new().with_config(&bounds).expect("they are in range")
}

fn async_openai(mock: &Mock) -> (async_openai::Client<OpenAIConfig>, Arc<Mutex<Vec<CallOutcome>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let service = under_async_openai::Steadfast {
        client: client(),
        seen: move |outcome| noted.lock().expect("nobody panics with it").push(outcome),
    };
    let config =
        OpenAIConfig::new().with_api_base(format!("{}/v1", mock.base_url())).with_api_key("sk-example");
    (async_openai::Client::with_config(config).with_http_service(service), seen)
}

fn question() -> CreateChatCompletionRequest {
    let message = ChatCompletionRequestUserMessageArgs::default().content("Hi.").build().expect("a message");
    CreateChatCompletionRequestArgs::default()
        .model("m")
        .messages([message.into()])
        .build()
        .expect("a request")
}

/// The timeout at the bottom of an error of somebody else's
fn timeout_in(error: &(dyn Error + 'static)) -> Option<Timeout> {
    let mut error = Some(error);
    while let Some(one) = error {
        if let Some(CallError { kind: ErrorKind::Timeout(timeout), .. }) = one.downcast_ref() {
            return Some(*timeout);
        }
        if let Some(steadfast_tokio::ServiceError::Call(CallError {
            kind: ErrorKind::Timeout(timeout),
            ..
        })) = one.downcast_ref()
        {
            return Some(*timeout);
        }
        error = one.source();
    }
    None
}

async fn within_cap<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(CAP, future).await.expect("it ends")
}

#[tokio::test]
async fn async_openai_gets_a_typed_timeout_where_nothing_comes() {
    let mock = mock(&["\"await-close\"", "\"await-close\""]);
    let (client, _) = async_openai(&mock);
    let error = within_cap(client.chat().create(question())).await.expect_err("nothing comes");
    let OpenAIError::Boxed(error) = error else { panic!("{error:?}") };
    assert_eq!(timeout_in(&*error).expect("a timeout").phase, Phase::Request);
    assert_eq!(mock.shutdown().tally().requests, 2, "a request that timed out is tried again");
}

#[tokio::test]
async fn async_openai_gets_the_answer_of_the_second_attempt() {
    let mock = mock(&[
        r#"{ answer = { head = ["503 Busy", "retry-after: 0"], body = "busy" } }, "await-close""#,
        r#"{ answer = { head = ["200 OK", "content-type: application/json"], body = "$whole" } }, "await-close""#,
    ]);
    let (client, seen) = async_openai(&mock);
    let answer = within_cap(client.chat().create(question())).await.expect("an answer");
    assert_eq!(answer.choices[0].message.content.as_deref(), Some("Hi"));
    let seen = seen.lock().expect("nobody panics with it");
    assert_eq!(seen[0].get().expect("it is over").timeline.attempts.len(), 2);
}

#[tokio::test]
async fn a_stream_of_async_openai_that_stalls_ends_at_the_idle_bound() {
    let mock = mock(&[&format!("{HEAD}, {{ chunk = \"$hi\" }}, \"await-close\"")]);
    let (client, seen) = async_openai(&mock);
    let mut stream = within_cap(client.chat().create_stream(question())).await.expect("it begins");
    let first = within_cap(stream.next()).await.expect("a piece").expect("no error");
    assert_eq!(first.choices[0].delta.content.as_deref(), Some("Hi"));
    // The SDK keeps no more than words of a body's error; the outcome is typed.
    within_cap(stream.next()).await.expect("a word about it").expect_err("it stalls");
    let seen = seen.lock().expect("nobody panics with it");
    let outcome = seen[0].get().expect("it is over");
    let error = outcome.result.as_ref().expect_err("a timeout");
    assert_eq!(timeout_in(error).expect("a timeout").phase, Phase::StreamIdle);
}

#[tokio::test]
async fn a_whole_stream_passes_through_async_openai() {
    let mock = mock(&[&format!(
        "{HEAD}, {{ chunk = \"$hi\" }}, {{ chunk = \"$stop\" }}, \"last-chunk\", \"await-close\""
    )]);
    let (client, seen) = async_openai(&mock);
    let stream = within_cap(client.chat().create_stream(question())).await.expect("it begins");
    let pieces: Vec<_> = within_cap(stream.collect::<Vec<_>>()).await;
    let text: String = pieces
        .into_iter()
        .filter_map(|piece| piece.expect("no error").choices[0].delta.content.clone())
        .collect();
    assert_eq!(text, "Hi");
    // The SDK drops the body at `[DONE]`, in a task of its own, and the last chunk may come after that.
    let outcome = seen.lock().expect("nobody panics with it")[0].clone();
    within_cap(async {
        while outcome.get().is_none() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let outcome = outcome.get().expect("it is over");
    let is_told = match &outcome.result {
        Ok(completion) => completion.status == 200,
        Err(error) => matches!(error.kind, ErrorKind::Cancelled),
    };
    assert!(is_told, "{:?}", outcome.result);
}

fn rig(mock: &Mock) -> rig_core::providers::openai::OpenAI {
    rig_core::providers::openai::OpenAIConfig::new("sk-example")
        .with_base_url(format!("{}/v1", mock.base_url()))
        .connect(under_rig::Steadfast(client()))
}

#[tokio::test]
async fn rig_gets_a_typed_timeout_where_nothing_comes() {
    let mock = mock(&["\"await-close\"", "\"await-close\""]);
    let model = rig(&mock).chat("m");
    let error = within_cap(model.call(CompletionRequest::new("Hi."))).await.expect_err("nothing comes");
    let ProviderError::Http(error) = error else { panic!("{error:?}") };
    assert_eq!(timeout_in(&*error).expect("a timeout").phase, Phase::Request, "{error:?}");
    assert_eq!(mock.shutdown().tally().requests, 2, "a request that timed out is tried again");
}

#[tokio::test]
async fn rig_gets_an_answer_and_the_words_of_a_refusal() {
    let mock = mock(&[
        r#"{ answer = { head = ["200 OK", "content-type: application/json"], body = "$whole" } }, "await-close""#,
    ]);
    let answer =
        within_cap(rig(&mock).chat("m").call(CompletionRequest::new("Hi."))).await.expect("an answer");
    assert!(format!("{answer:?}").contains("Hi"), "{answer:?}");

    let mock = self::mock(&[
        r#"{ answer = { head = ["401 No", "content-type: application/json"], body = '{"error":{"message":"no such key"}}' } }, "await-close""#,
    ]);
    let error =
        within_cap(rig(&mock).chat("m").call(CompletionRequest::new("Hi."))).await.expect_err("refused");
    assert!(format!("{error:?}").contains("no such key"), "{error:?}");
}

#[tokio::test]
async fn a_stream_of_rig_that_stalls_ends_at_the_idle_bound() {
    let mock = mock(&[&format!("{HEAD}, {{ chunk = \"$hi\" }}, \"await-close\"")]);
    let model = rig(&mock).chat("m");
    let mut stream = model.stream(CompletionRequest::new("Hi.")).expect("it begins");
    let (mut text, mut stalled) = (String::new(), None);
    while let Some(event) = within_cap(stream.next()).await {
        match event {
            Ok(Item::Event(StreamEvent::Text { text: piece, .. })) => text += &piece,
            Ok(_) => {}
            Err(error) => stalled = Some(error),
        }
    }
    assert_eq!(text, "Hi");
    let Some(ProviderError::Http(error)) = stalled else { panic!("{stalled:?}") };
    assert_eq!(timeout_in(&*error).expect("a timeout").phase, Phase::StreamIdle, "{error:?}");
}
