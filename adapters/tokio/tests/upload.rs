//! Bodies that are read as they go out, and header fields that are made for each attempt, on real sockets.

use std::io::Cursor;
use std::time::Duration;

use steadfast_mock::{Mock, RequestRecord};
use steadfast_scenario::Script;
use steadfast_tokio::steadfast::body::Ready;
use steadfast_tokio::steadfast::http::{HeaderMap, HeaderValue};
use steadfast_tokio::verb::{Service, openai};
use steadfast_tokio::{
    Body, Client, ErrorKind, Form, Outcome, Overrides, Part, Phase, Proxies, Request, headers, reader,
};
use tokio::io::AsyncWriteExt;

/// No wait of these tests is meant to take so long
const CAP: Duration = Duration::from_secs(60);

const BUSY_THEN_WELL: &str = r#"
name = "busy"
about = "is overloaded once"
[[connection]]
steps = [{ read = "request" }, { head = ["503 Busy", "content-length: 0", "retry-after-ms: 1"] }, "await-close"]
[[connection]]
steps = [{ read = "request" }, { head = ["200 OK", "content-length: 2"] }, { send = "{}" }, "await-close"]
"#;

fn mock(script: &str) -> Mock {
    Mock::start(&Script::parse(script).expect("a valid script"), None).expect("the server starts")
}

async fn send(request: Request) -> Outcome {
    tokio::time::timeout(CAP, Client::new().with_proxies(Proxies::none()).send(request))
        .await
        .expect("it ends")
}

fn requests(mock: &Mock, count: usize) -> Vec<RequestRecord> {
    let came = mock.wait_for(CAP, |seen| seen.requests.iter().filter(|it| it.complete).count() == count);
    came.expect("they come whole").requests
}

/// More than a window, and than a socket takes at once
fn large() -> Vec<u8> {
    (0..400_000_u32).map(|at| b'a' + (at % 23) as u8).collect()
}

#[tokio::test]
async fn a_form_is_built_again_for_another_attempt() {
    let mock = mock(BUSY_THEN_WELL);
    let service = Service::openai("sk-1").at(&mock.base_url());
    let bytes = large();
    let length = bytes.len() as u64;
    let file = Body::source(move || Ok(reader(Cursor::new(bytes.clone())))).length(length);
    let form = Form::new().text("purpose", "batch").part(Part::new("file", file).file_name("a.jsonl"));
    let outcome =
        send(service.request(&openai::FILE_UPLOAD, []).form(form).build().expect("a request")).await;
    assert!(outcome.result.is_ok(), "{outcome:?}");
    assert_eq!(outcome.timeline.attempts.len(), 2);
    let [first, second] = &requests(&mock, 2)[..] else { panic!("two requests") };
    assert!(first.body_len > length && first.body_len == second.body_len);
    assert_eq!(first.body, second.body);
    assert_eq!(first.header("content-length"), Some(&*first.body_len.to_string()));
    let boundary = first.header("content-type").and_then(|it| it.split_once("boundary=")).expect("a form").1;
    let text = String::from_utf8_lossy(&first.body);
    assert!(text.starts_with(&format!("--{boundary}\r\nContent-Disposition: form-data; name=\"purpose\"")));
    assert!(text.contains("filename=\"a.jsonl\"\r\n\r\nabcdefg"));
}

#[tokio::test]
async fn what_is_read_once_goes_out_in_chunks_and_is_not_sent_again() {
    let mock = mock(BUSY_THEN_WELL);
    let (reading, mut writing) = tokio::io::simplex(1_000);
    let bytes = large();
    let length = bytes.len() as u64;
    tokio::spawn(async move {
        writing.write_all(&bytes).await.expect("it is read");
        writing.shutdown().await.expect("it is read");
    });
    let request =
        Request::post(&mock.base_url()).body(Body::once(reader(reading))).build().expect("a request");
    let outcome = send(request).await;
    assert!(
        matches!(&outcome.result.expect_err("busy").kind, ErrorKind::Status(error) if error.status == 503)
    );
    let [only] = &requests(&mock, 1)[..] else { panic!("one request") };
    assert_eq!((only.body_len, only.header("transfer-encoding")), (length, Some("chunked")));
}

#[tokio::test]
async fn a_source_that_waits_for_ever_does_not_hold_the_call() {
    let mock = mock(BUSY_THEN_WELL);
    let (reading, _writing) = tokio::io::simplex(1_000);
    let request = Request::post(&mock.base_url())
        .body(Body::once(reader(reading)))
        .overrides(Overrides::new().request_timeout(0.2))
        .build()
        .expect("a request");
    let error = send(request).await.result.expect_err("nothing comes of it");
    // Nothing was read of it, so another attempt was made, which ran into the same.
    assert!(
        matches!(&error.kind, ErrorKind::Timeout(timeout) if timeout.phase == Phase::Request),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_source_that_fails_is_told_as_the_callers() {
    let mock = mock(BUSY_THEN_WELL);
    let body = Body::source(|| Err::<Ready<Cursor<&str>>, _>(std::io::Error::other("no such file")));
    let request = Request::post(&mock.base_url()).body(body.length(3)).build().expect("a request");
    let error = send(request).await.result.expect_err("it has no body");
    assert!(matches!(&error.kind, ErrorKind::Consumer(message) if message.contains("no such file")));
}

#[tokio::test]
async fn headers_are_made_for_each_attempt_and_may_take_their_time() {
    let mock = mock(BUSY_THEN_WELL);
    let request = Request::post(&mock.base_url())
        .body("{}")
        .attempt_header_source(|_, attempt| {
            headers(async move {
                tokio::task::yield_now().await;
                tokio::time::sleep(Duration::from_millis(1)).await;
                let value = HeaderValue::try_from(format!("attempt-{}", attempt.number()))?;
                let mut fields = HeaderMap::new();
                fields.insert("x-signature", value);
                Ok::<_, steadfast_tokio::steadfast::http::Error>(fields)
            })
        })
        .build()
        .expect("a request");
    assert!(send(request).await.result.is_ok());
    let seen = requests(&mock, 2);
    let signatures: Vec<_> = seen.iter().map(|request| request.header("x-signature")).collect();
    assert_eq!(signatures, [Some("attempt-1"), Some("attempt-2")]);
}
