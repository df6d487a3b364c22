//! The client as a tower service: which requests it sends again, what bounds them, how they end.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame};
use steadfast_mock::Mock;
use steadfast_scenario::Script;
use steadfast_tokio::steadfast::http::{Request, Response};
use steadfast_tokio::{Client, Overrides, Proxies, ResponseBody, Retries, ServiceError, Tokio};
use tower_service::Service;

/// No wait of these tests is meant to take so long
const CAP: Duration = Duration::from_secs(30);

/// A server that fails each request
const FAILS: &str = r#"{ repeat = { times = "forever", steps = [{ read = "request" },
    { answer = { head = ["500 Internal", "content-type: application/json"], body = "no" } }] } }"#;

/// What a request sends
struct Sent(Option<Bytes>);

impl Body for Sent {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }
}

/// A server that takes these steps on each connection
fn mock(steps: &str) -> Mock {
    let script = format!("name = \"x\"\nabout = \"a test\"\n[[connection]]\nsteps = [{steps}]\n");
    Mock::start(&Script::parse(&script).expect("a script"), None).expect("a server")
}

/// Two attempts: the pause between them is short
fn client() -> Client {
    let attempts = Overrides::new().max_attempts(2);
    Client::new().with_proxies(Proxies::none()).with_config(&attempts).expect("it is in range")
}

fn post(mock: &Mock, path: &str) -> Request<Sent> {
    let body = Sent(Some(Bytes::from_static(b"{}")));
    Request::post(format!("{}{path}", mock.base_url())).body(body).expect("a request")
}

async fn within_cap<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(CAP, future).await.expect("it ends")
}

async fn respond<B>(
    client: &mut Client,
    request: Request<B>,
) -> Result<Response<ResponseBody<Tokio>>, ServiceError>
where
    Client: Service<Request<B>, Response = Response<ResponseBody<Tokio>>, Error = ServiceError>,
{
    poll_fn(|cx| client.poll_ready(cx)).await?;
    within_cap(client.call(request)).await
}

/// How often a request is sent to a server that fails it each time
async fn sent(request: impl FnOnce(&Mock) -> Request<Sent>) -> u32 {
    let mock = mock(FAILS);
    let response = respond(&mut client(), request(&mock)).await.expect("a response");
    assert_eq!(response.status(), 500);
    mock.shutdown().tally().requests
}

#[tokio::test]
async fn a_request_is_sent_again_only_where_its_verb_may_be() {
    assert_eq!(sent(|mock| post(mock, "/v1/batches")).await, 1);
    assert_eq!(sent(|mock| post(mock, "/v1/something/else")).await, 1);
    assert_eq!(sent(|mock| post(mock, "/v1/chat/completions")).await, 2);
}

#[tokio::test]
async fn the_extensions_of_a_request_go_before_its_verb() {
    let with = |path: &'static str, retries: Retries| {
        move |mock: &Mock| {
            let mut request = post(mock, path);
            request.extensions_mut().insert(retries);
            request.extensions_mut().insert(Overrides::new().max_attempts(3));
            request
        }
    };
    assert_eq!(sent(with("/v1/batches", Retries::Allowed)).await, 3);
    assert_eq!(sent(with("/v1/chat/completions", Retries::Never)).await, 1);
}
