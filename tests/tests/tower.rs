//! The client as a tower service, on each runtime: what ends it, and what becomes of its connection.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::mpsc;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body::{Body, Frame};
use steadfast::call::{Observation, Observer, Retries};
use steadfast::config::Overrides;
use steadfast::connect::Proxies;
use steadfast::http::{HeaderMap, Request, Response};
use steadfast::outcome::{ErrorKind, Phase};
use steadfast::time::Bound;
use steadfast_driver::{CallOutcome, Client, Network, ResponseBody, ServiceError};
use steadfast_mock::Mock;
use steadfast_scenario::Script;
use tower_service::Service;

/// No wait of these tests is meant to take so long
const CAP: Duration = Duration::from_secs(60);
/// A bound that is reached so late was not looked at
const LATE: Duration = Duration::from_secs(5);

const FAILS: &str = r#"{ repeat = { times = "forever", steps = [{ read = "request" },
    { answer = { head = ["500 Internal", "content-type: application/json"], body = "no" } }] } }"#;

/// A server that takes these steps on each connection
fn mock(steps: &str) -> Mock {
    let script = format!("name = \"x\"\nabout = \"a test\"\n[[connection]]\nsteps = [{steps}]\n");
    Mock::start(&Script::parse(&script).expect("a script"), None).expect("a server")
}

fn on_tokio<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async { tokio::time::timeout(CAP, future).await.expect("it ends") })
}

fn on_smol<T>(future: impl Future<Output = T>) -> T {
    smol::block_on(smol::future::or(future, async {
        smol::Timer::after(CAP).await;
        panic!("no end in time")
    }))
}

fn tokio_client() -> Client<steadfast_tokio::Tokio> {
    Client::new().with_proxies(Proxies::none())
}

fn smol_client() -> Client<steadfast_smol::Smol> {
    Client::new().with_proxies(Proxies::none())
}

/// What a request sends
struct Sent(Bytes);

impl Body for Sent {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
        let bytes = std::mem::take(&mut self.0);
        Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
    }
}

/// A body that always has something, which is nothing; it ends only for the sake of the test
struct SaysNothing {
    since: Instant,
    frame: fn() -> Frame<Bytes>,
}

impl Body for SaysNothing {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
        Poll::Ready((self.since.elapsed() < 2 * LATE).then(|| Ok((self.frame)())))
    }
}

fn post<B>(mock: &Mock, path: &str, body: B) -> Request<B> {
    Request::post(format!("{}{path}", mock.base_url())).body(body).expect("a request")
}

fn small(mock: &Mock, path: &str) -> Request<Sent> {
    post(mock, path, Sent(Bytes::from_static(b"{}")))
}

async fn respond<N: Network, B>(
    client: &mut Client<N>,
    request: Request<B>,
) -> Result<Response<ResponseBody<N>>, ServiceError>
where
    Client<N>: Service<Request<B>, Response = Response<ResponseBody<N>>, Error = ServiceError>,
{
    poll_fn(|cx| client.poll_ready(cx)).await?;
    client.call(request).await
}

/// Tells how each call of the client ended
fn observed<N: Network>(client: Client<N>) -> (Client<N>, mpsc::Receiver<Option<ErrorKind>>) {
    let (tell, told) = mpsc::channel();
    let observed = client.with_observers(move |_| {
        let tell = tell.clone();
        let observer = move |_: steadfast::time::Instant, seen: &Observation<'_>| {
            if let Observation::Over(outcome) = seen {
                _ = tell.send(outcome.result.as_ref().err().map(|error| error.kind.clone()));
            }
        };
        Some(Box::new(observer) as Box<dyn Observer>)
    });
    (observed, told)
}

/// How often a request is sent to a server that fails it each time, where two attempts are allowed
async fn attempts<N: Network>(
    mut client: Client<N>,
    method: &str,
    path: &str,
    retries: Option<Retries>,
) -> u32 {
    let mock = mock(FAILS);
    let mut request = small(&mock, path);
    *request.method_mut() = method.parse().expect("a method");
    request.extensions_mut().insert(Overrides::new().max_attempts(2));
    if let Some(retries) = retries {
        request.extensions_mut().insert(retries);
    }
    let response = respond(&mut client, request).await.expect("a response");
    assert_eq!(response.status(), 500);
    mock.shutdown().tally().requests
}

#[test]
fn a_path_that_is_not_known_has_one_attempt_unless_the_request_asks_for_more() {
    for (method, path, retries, expected) in [
        ("POST", "/v1/chat/completions", None, 2),
        ("POST", "/v1/something/else", None, 1),
        ("GET", "/v1/something/else", None, 1),
        ("GET", "/v1/something/else", Some(Retries::Allowed), 2),
        ("GET", "/v1/batches", None, 1),
    ] {
        assert_eq!(on_tokio(attempts(tokio_client(), method, path, retries)), expected, "{method} {path}");
        assert_eq!(on_smol(attempts(smol_client(), method, path, retries)), expected, "{method} {path}");
    }
}

async fn endless_body_ends<N: Network>(mut client: Client<N>, frame: fn() -> Frame<Bytes>) {
    const LIMIT: Duration = Duration::from_millis(200);
    let mock = mock(FAILS);
    let mut request = post(&mock, "/v1/chat/completions", SaysNothing { since: Instant::now(), frame });
    request.extensions_mut().insert(Overrides::new().total_deadline(LIMIT.as_secs_f64()));
    let error = respond(&mut client, request).await.expect_err("nothing comes");
    let ServiceError::RequestBodyTimeout(timeout) = error else { panic!("{error:?}") };
    assert_eq!((timeout.phase, timeout.limit), (Phase::Deadline, LIMIT));
    assert!((LIMIT..LATE).contains(&timeout.elapsed), "{timeout:?}");
    assert_eq!(mock.shutdown().tally().connections, 0);
}

#[test]
fn a_body_that_says_nothing_without_end_is_within_the_total_deadline() {
    for frame in [|| Frame::data(Bytes::new()), || Frame::trailers(HeaderMap::new())] as [fn() -> _; 2] {
        on_tokio(endless_body_ends(tokio_client(), frame));
        on_smol(endless_body_ends(smol_client(), frame));
    }
}

/// Polls `future`, which is not to be ready, until the server has seen that much
async fn until<T>(future: &mut Pin<&mut impl Future<Output = T>>, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    poll_fn(|cx| {
        assert!(future.as_mut().poll(cx).is_pending(), "there is no answer");
        if holds() {
            return Poll::Ready(());
        }
        assert!(began.elapsed() < CAP, "the server has not seen it");
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

async fn dropped_before_the_head<N: Network>(client: Client<N>, body: usize, is_whole: bool) {
    let mock = mock(r#"{ read = "head" }, "await-close""#);
    let (mut client, told) = observed(client);
    let mut request = post(&mock, "/v1/chat/completions", Sent(Bytes::from(vec![b' '; body])));
    request.extensions_mut().insert(Overrides::new().max_attempts(3).max_body_bytes(body));
    {
        let mut responding = pin!(respond(&mut client, request));
        until(&mut responding, || mock.recorded().requests.first().is_some_and(|it| it.complete == is_whole))
            .await;
    }
    assert_eq!(told.try_recv(), Ok(Some(ErrorKind::Cancelled)));
    let seen = mock.wait_for(CAP, |seen| seen.connections[0].closed_by_peer.is_some());
    let seen = seen.expect("the connection closes");
    assert_eq!((seen.requests.len(), seen.connections.len()), (1, 1), "nothing is sent again");
}

#[test]
fn a_future_that_is_dropped_before_the_head_closes_its_connection() {
    // The whole request is with the server; and more of one than the sockets hold.
    for (body, is_whole) in [(2, true), (64 << 20, false)] {
        on_tokio(dropped_before_the_head(tokio_client(), body, is_whole));
        on_smol(dropped_before_the_head(smol_client(), body, is_whole));
    }
}

const STREAMING: &str = r#"{ read = "request" },
    { send = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nHi\r\n" }, "await-close""#;

/// No bound but the one over silence, so that no timer was needed before the body is there
fn idle_alone() -> Overrides {
    let off = Bound::Unbounded;
    Overrides::new()
        .connect_timeout(off)
        .request_timeout(off)
        .total_deadline(off)
        .stream_deadline(off)
        .stream_idle_timeout(60.0)
}

/// A response whose body has begun, and the server that goes on with it
async fn begun<N: Network>(client: &mut Client<N>) -> (Response<ResponseBody<N>>, Mock) {
    let mock = mock(STREAMING);
    let mut request = small(&mock, "/v1/chat/completions");
    request.extensions_mut().insert(idle_alone());
    (respond(client, request).await.expect("a response"), mock)
}

fn assert_left<N: Network>(response: Response<ResponseBody<N>>, mock: &Mock, leave: fn(ResponseBody<N>)) {
    let outcome = response.extensions().get::<CallOutcome>().expect("each has one").clone();
    leave(response.into_body());
    let error = outcome.get().expect("it is over").result.as_ref().expect_err("it was dropped");
    assert_eq!(error.kind, ErrorKind::Cancelled);
    let seen = mock.wait_for(CAP, |seen| seen.connections[0].closed_by_peer.is_some());
    let seen = seen.expect("the connection closes");
    assert_eq!((seen.requests.len(), seen.connections.len()), (1, 1), "nothing is sent again");
}

fn on_a_thread<N: Network>(body: ResponseBody<N>) {
    thread::spawn(move || drop(body)).join().expect("no panic");
}

/// Reads on until nothing is there, which waits for a timer
fn waited_for<N: Network>(mut body: ResponseBody<N>) {
    let mut cx = Context::from_waker(Waker::noop());
    while let Poll::Ready(frame) = Pin::new(&mut body).poll_frame(&mut cx) {
        assert!(frame.is_some_and(|frame| frame.is_ok()), "it goes on");
    }
}

#[test]
fn a_body_that_is_left_mid_way_closes_its_connection_at_once_wherever_that_is() {
    on_tokio(async {
        for leave in [drop, on_a_thread, waited_for] as [fn(_); 3] {
            let (response, mock) = begun(&mut tokio_client()).await;
            assert_left(response, &mock, leave);
        }
    });
    on_smol(async {
        for leave in [drop, on_a_thread, waited_for] as [fn(_); 3] {
            let (response, mock) = begun(&mut smol_client()).await;
            assert_left(response, &mock, leave);
        }
    });
}
