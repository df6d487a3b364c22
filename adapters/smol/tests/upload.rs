//! Bodies that are read as they go out, on real sockets.

use std::time::Duration;

use smol::io::Cursor;
use steadfast_mock::Mock;
use steadfast_scenario::Script;
use steadfast_smol::{Body, Client, ErrorKind, Proxies, Request, reader};

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

#[test]
fn a_body_is_opened_again_for_another_attempt() {
    let script = Script::parse(BUSY_THEN_WELL).expect("a valid script");
    let mock = Mock::start(&script, None).expect("the server starts");
    let bytes = "0123456789".repeat(40_000);
    let length = bytes.len() as u64;
    let body = Body::source(move || Ok(reader(Cursor::new(bytes.clone()))));
    let request = Request::post(&mock.base_url()).body(body).build().expect("a request");
    let outcome = smol::block_on(Client::new().with_proxies(Proxies::none()).send(request));
    assert!(outcome.result.is_ok(), "{outcome:?}");
    let seen = mock.wait_for(CAP, |seen| seen.requests.iter().filter(|it| it.complete).count() == 2);
    let lengths: Vec<_> = seen.expect("both come whole").requests.iter().map(|it| it.body_len).collect();
    assert_eq!(lengths, [length, length]);
}

/// Never has anything, and wakes nobody
struct Mute;

impl smol::io::AsyncRead for Mute {
    fn poll_read(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
        _: &mut [u8],
    ) -> std::task::Poll<std::io::Result<usize>> {
        std::task::Poll::Pending
    }
}

#[test]
fn an_early_refusal_is_seen_while_the_source_waits() {
    let script = r#"
name = "refuses"
about = "refuses at the head"
[[connection]]
steps = [{ read = "head" }, { head = ["413 Too Large", "content-length: 3"] }, { send = "big" }, "await-close"]
"#;
    let mock = Mock::start(&Script::parse(script).expect("a valid script"), None).expect("the server starts");
    let request = Request::post(&mock.base_url()).body(Body::once(reader(Mute))).build().expect("a request");
    let client = Client::new().with_proxies(Proxies::none());
    let outcome = smol::block_on(async {
        let mut call = client.stream(request);
        while call.next().await.is_some() {}
        call.outcome().await
    });
    let error = outcome.result.expect_err("it was refused");
    assert!(matches!(&error.kind, ErrorKind::Status(error) if error.body == "big"), "{error:?}");
}
