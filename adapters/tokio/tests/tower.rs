//! The client as a tower service: which requests it sends again, what bounds them, how they end.

use std::future::poll_fn;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::pin::Pin;
use std::sync::mpsc;
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame};
use steadfast_mock::Mock;
use steadfast_scenario::Script;
use steadfast_tokio::steadfast::http::response::Parts;
use steadfast_tokio::steadfast::http::{HeaderValue, Method, Request, Response};
use steadfast_tokio::steadfast::time::Instant;
use steadfast_tokio::{
    CallOutcome, Client, ErrorKind, Observation, Observer, Overrides, Phase, Proxies, ResponseBody, Retries,
    ServiceError, Tokio,
};
use tower_service::Service;

/// No wait of these tests is meant to take so long
const CAP: Duration = Duration::from_secs(30);

/// A server that fails each request
const FAILS: &str = r#"{ repeat = { times = "forever", steps = [{ read = "request" },
    { answer = { head = ["500 Internal", "content-type: application/json"], body = "no" } }] } }"#;

/// What a request sends
enum Sent {
    Bytes(&'static [u8]),
    Nothing,
    /// It never comes
    Never,
    /// It cannot be had
    Failed,
}

impl Body for Sent {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
        match *self {
            Self::Bytes(bytes) => {
                *self = Self::Nothing;
                Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(bytes)))))
            }
            Self::Nothing => Poll::Ready(None),
            Self::Never => Poll::Pending,
            Self::Failed => Poll::Ready(Some(Err("no such file"))),
        }
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
    Request::post(format!("{}{path}", mock.base_url())).body(Sent::Bytes(b"{}")).expect("a request")
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

#[tokio::test]
async fn a_body_that_never_comes_is_within_the_total_deadline() {
    let mock = mock(FAILS);
    let mut request = post(&mock, "/v1/chat/completions").map(|_| Sent::Never);
    request.extensions_mut().insert(Overrides::new().total_deadline(0.2));
    let error = respond(&mut client(), request).await.expect_err("nothing comes");
    assert!(error.to_string().contains("raise `total_deadline`"), "{error}");
    let ServiceError::RequestBodyTimeout(timeout) = error else { panic!("{error:?}") };
    assert_eq!((timeout.phase, timeout.limit), (Phase::Deadline, Duration::from_millis(200)));
    assert!(timeout.elapsed >= timeout.limit, "{timeout:?}");
    assert_eq!(mock.shutdown().tally().connections, 0);
}

/// A body that comes late; the clock is that of the runtime
struct Late(Pin<Box<tokio::time::Sleep>>);

impl Body for Late {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
        self.0.as_mut().poll(cx).map(|()| None)
    }
}

#[tokio::test(start_paused = true)]
async fn the_time_that_a_body_takes_is_the_call_s() {
    // It takes connections, and answers none.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/v1/chat/completions", listener.local_addr().expect("an address"));
    let body = Late(Box::pin(tokio::time::sleep(Duration::from_millis(400))));
    let mut request = Request::post(url).body(body).expect("a request");
    request.extensions_mut().insert(Overrides::new().total_deadline(1.0));
    let began = tokio::time::Instant::now();
    let error = respond(&mut client(), request).await.expect_err("nothing comes");
    let ServiceError::Call(error) = error else { panic!("{error:?}") };
    let ErrorKind::Timeout(timeout) = error.kind else { panic!("{error}") };
    assert_eq!((timeout.phase, timeout.limit), (Phase::Deadline, Duration::from_secs(1)));
    let within = Duration::from_secs(1)..Duration::from_millis(1_010);
    assert!(within.contains(&began.elapsed()) && within.contains(&timeout.elapsed), "{timeout:?}");
}

#[tokio::test]
async fn a_body_that_fails_or_is_too_large_is_told_as_that() {
    let mock = mock(FAILS);
    let failed = post(&mock, "/v1/chat/completions").map(|_| Sent::Failed);
    let error = respond(&mut client(), failed).await.expect_err("it fails");
    assert!(matches!(&error, ServiceError::RequestBody(why) if why == "no such file"), "{error:?}");

    for (bytes, limit) in [(&b"12345"[..], 4), (b"1234", 4)] {
        let mut request = post(&mock, "/v1/batches").map(|_| Sent::Bytes(bytes));
        request.extensions_mut().insert(Overrides::new().max_body_bytes(limit));
        match respond(&mut client(), request).await {
            Ok(response) => assert_eq!((bytes.len(), response.status().as_u16()), (limit, 500)),
            Err(ServiceError::RequestTooLarge { limit: told }) => assert_eq!((bytes.len(), told), (5, limit)),
            Err(error) => panic!("{error:?}"),
        }
    }
    assert_eq!(mock.shutdown().tally().requests, 1);
}

/// A response that begins with these bytes, and goes on as the steps say
fn streaming(rest: &str) -> String {
    format!(
        r#"{{ read = "request" }}, {{ send = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nHi\r\n{rest}" }}"#
    )
}

/// Tells when a call is over
fn observed(client: Client) -> (Client, mpsc::Receiver<()>) {
    let (tell, told) = mpsc::channel();
    let observed = client.with_observers(move |_| {
        let tell = tell.clone();
        let observer = move |_: Instant, seen: &Observation<'_>| {
            if let Observation::Over(_) = seen {
                _ = tell.send(());
            }
        };
        Some(Box::new(observer) as Box<dyn Observer>)
    });
    (observed, told)
}

#[tokio::test]
async fn a_body_that_is_dropped_where_its_end_has_come_leaves_its_connection() {
    let once = streaming(r"0\r\n\r\n");
    let mock = mock(&format!("{once}, {once}, \"await-close\""));
    let (mut client, told) = observed(client());
    for _ in 0..2 {
        let response = respond(&mut client, post(&mock, "/v1/chat/completions")).await.expect("a response");
        let outcome = response.extensions().get::<CallOutcome>().expect("each has one").clone();
        assert!(outcome.get().is_none(), "its body was not read");
        drop(response);
        let outcome = outcome.get().expect("it is over");
        assert!(outcome.result.is_ok(), "{:?}", outcome.result);
        told.try_recv().expect("it is told");
    }
    assert_eq!(mock.shutdown().tally().connections, 1);
}

#[test]
fn a_body_that_is_dropped_before_its_end_is_cancelled_wherever_that_is() {
    let mock = mock(&format!("{}, \"await-close\"", streaming("")));
    let (mut client, told) = observed(client());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut begin = || {
        let response = respond(&mut client, post(&mock, "/v1/chat/completions"));
        runtime.block_on(response).expect("a response").into_parts()
    };
    let responses = [begin(), begin(), begin()];
    let [(inside, in_runtime), (outside, on_thread), (after, left)] = responses;
    runtime.block_on(async { drop(in_runtime) });
    thread::spawn(|| drop(on_thread)).join().expect("no panic");
    drop(runtime);
    drop(left);
    let error_of = |parts: Parts| {
        let outcome = parts.extensions.get::<CallOutcome>().expect("each has one").get().expect("it is over");
        outcome.result.as_ref().expect_err("it was dropped").kind.clone()
    };
    assert_eq!(error_of(inside), ErrorKind::Cancelled);
    assert_eq!(error_of(outside), ErrorKind::Cancelled);
    // Without its runtime the socket fails before that.
    let after = error_of(after);
    assert!(matches!(after, ErrorKind::Cancelled | ErrorKind::Transport(_)), "{after}");
    assert_eq!(told.try_iter().count(), 3);
    assert_eq!(mock.shutdown().tally().connections, 3);
}

#[tokio::test]
async fn header_fields_go_out_as_they_are_and_cookies_as_one() {
    // Not the mock: it records no credential.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/v1/batches", listener.local_addr().expect("an address"));
    let server = thread::spawn(move || {
        let (mut socket, _) = listener.accept().expect("a connection");
        socket.set_read_timeout(Some(CAP)).expect("a bound");
        let (mut request, mut piece) = (Vec::new(), [0; 1024]);
        while !request.ends_with(b"\r\n\r\n{}") {
            match socket.read(&mut piece).expect("a request") {
                0 => break,
                read => request.extend_from_slice(&piece[..read]),
            }
        }
        socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").expect("it is read");
        request
    });
    let mut request = Request::post(url).body(Sent::Bytes(b"{}")).expect("a request");
    for (name, value) in [("cookie", &b"a=1"[..]), ("cookie", b"b=2"), ("x-list", b"1"), ("x-list", b"\xE9")]
    {
        request.headers_mut().append(name, HeaderValue::from_bytes(value).expect("a value"));
    }
    let response = respond(&mut client(), request).await.expect("a response");
    assert_eq!(response.status(), 200);
    let request = server.join().expect("no panic");
    for line in [&b"\r\ncookie: a=1; b=2\r\n"[..], b"\r\nx-list: 1, \xE9\r\n"] {
        let is_there = request.windows(line.len()).any(|bytes| bytes == line);
        assert!(is_there, "{}", String::from_utf8_lossy(&request));
    }
}

#[tokio::test]
async fn an_error_whose_body_is_cut_tells_the_length_of_what_came() {
    let cut = r#"{ read = "request" },
        { head = ["500 Internal", "content-length: 100"] }, { send = "no" }, "close""#;
    let response = respond(&mut client(), post(&mock(cut), "/v1/batches")).await.expect("a response");
    assert_eq!(response.status(), 500);
    assert_eq!(response.headers()["content-length"], "2");

    let bodiless = r#"{ read = "request" }, { head = ["200 OK", "content-length: 100"] }, "await-close""#;
    let mock = mock(bodiless);
    let request = post(&mock, "/v1/files").map(|_| Sent::Nothing);
    let (mut parts, body) = request.into_parts();
    parts.method = Method::HEAD;
    let response = respond(&mut client(), Request::from_parts(parts, body)).await.expect("a response");
    assert_eq!(response.headers()["content-length"], "100");
}
