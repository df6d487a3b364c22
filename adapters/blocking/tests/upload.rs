//! Bodies that are read as they go out, and header fields that are made for each attempt, on real sockets.

use std::io::{Cursor, Write};
use std::time::Duration;

use steadfast_blocking::steadfast::body::Ready;
use steadfast_blocking::steadfast::http::{HeaderMap, HeaderValue};
use steadfast_blocking::verb::{Service, openai};
use steadfast_blocking::{Body, Client, ErrorKind, Form, Overrides, Part, Phase, Proxies, Request, reader};
use steadfast_mock::{Mock, RequestRecord};
use steadfast_scenario::Script;

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

fn mock() -> Mock {
    Mock::start(&Script::parse(BUSY_THEN_WELL).expect("a valid script"), None).expect("the server starts")
}

fn client() -> Client {
    Client::new().with_proxies(Proxies::none())
}

fn requests(mock: &Mock, count: usize) -> Vec<RequestRecord> {
    let came = mock.wait_for(CAP, |seen| seen.requests.iter().filter(|it| it.complete).count() == count);
    came.expect("they come whole").requests
}

#[test]
fn a_form_is_built_again_for_another_attempt() {
    let mock = mock();
    let service = Service::openai("sk-1").at(&mock.base_url());
    let bytes = "0123456789".repeat(40_000);
    let length = bytes.len() as u64;
    let image = Body::source(move || Ok(Ready(Cursor::new(bytes.clone())))).length(length);
    let image = Part::new("image", image).file_name("a.png").content_type("image/png");
    let form = Form::new().text("prompt", "a cat").part(image);
    let outcome =
        client().send(service.request(&openai::IMAGE_EDIT, []).form(form).build().expect("a request"));
    assert!(outcome.result.is_ok(), "{outcome:?}");
    let [first, second] = &requests(&mock, 2)[..] else { panic!("two requests") };
    assert!(first.body_len > length && first.body_len == second.body_len);
    assert_eq!(first.body, second.body);
}

#[test]
fn a_reader_that_waits_is_read_on_a_thread_of_its_own() {
    let mock = mock();
    let (reading, mut writing) = std::io::pipe().expect("a pipe");
    let body = Body::once(reader(reading));
    let request = Request::post(&mock.base_url()).body(body).build().expect("a request");
    let outcome = std::thread::scope(|scope| {
        scope.spawn(move || writing.write_all(&[b'x'; 200_000]).expect("it is read"));
        client().send(request)
    });
    assert!(
        matches!(&outcome.result.expect_err("busy").kind, ErrorKind::Status(error) if error.status == 503)
    );
    let [only] = &requests(&mock, 1)[..] else { panic!("one request") };
    assert_eq!((only.body_len, only.header("transfer-encoding")), (200_000, Some("chunked")));
}

#[test]
fn a_reader_that_waits_for_ever_does_not_hold_the_call() {
    let mock = mock();
    let (reading, _writing) = std::io::pipe().expect("a pipe");
    let request = Request::post(&mock.base_url())
        .body(Body::once(reader(reading)))
        .overrides(Overrides::new().request_timeout(0.2).max_attempts(1))
        .build()
        .expect("a request");
    let error = client().send(request).result.expect_err("nothing comes of it");
    assert!(
        matches!(&error.kind, ErrorKind::Timeout(timeout) if timeout.phase == Phase::Request),
        "{error:?}"
    );
}

#[test]
fn headers_are_made_for_each_attempt() {
    let mock = mock();
    let request = Request::post(&mock.base_url())
        .body("{}")
        .attempt_headers(|_, attempt| {
            let mut fields = HeaderMap::new();
            fields.insert("x-signature", HeaderValue::try_from(format!("attempt-{}", attempt.number()))?);
            Ok::<_, steadfast_blocking::steadfast::http::Error>(fields)
        })
        .build()
        .expect("a request");
    assert!(client().send(request).result.is_ok());
    let seen = requests(&mock, 2);
    let signatures: Vec<_> = seen.iter().map(|request| request.header("x-signature")).collect();
    assert_eq!(signatures, [Some("attempt-1"), Some("attempt-2")]);
}
