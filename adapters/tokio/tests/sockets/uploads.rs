//! Large requests: answered early, never read, read slowly; plain and over TLS.

use std::time::Duration;

use steadfast::outcome::{Billing, ErrorKind, Phase};
use steadfast_mock::Mock;

use crate::requests::{client_of, current_thread, mock, once, unary_from, within_cap};

const TEN_MEGABYTES: usize = 10_000_000;
const SMALL: &str = "receive_buffer = 16384";
const SMALL_TLS: &str = "receive_buffer = 16384\ntls = true";
const ANSWER: &str = r#"{ answer = { head = ["200 OK", "content-type: application/json"],
    body = '{"choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}]}' } }"#;

fn upload(mock: &Mock, seconds: f64) -> steadfast_tokio::Outcome {
    let request = unary_from(&mock.base_url(), once().request_timeout(seconds), TEN_MEGABYTES);
    current_thread().block_on(within_cap(client_of(mock).send(request)))
}

#[test]
fn an_early_answer_is_returned_and_the_reset_behind_it_does_not_hide_it() {
    for server in [SMALL, SMALL_TLS] {
        for status in ["413 Content Too Large", "429 Too Many Requests"] {
            let steps = format!(
                r#"{{ read = "head" }}, {{ answer = {{ head = ["{status}", "connection: close"], body = "no" }} }}, "rst""#
            );
            let mock = mock(server, "", &[&steps]);
            let error = upload(&mock, 60.0).result.expect_err("a status");
            let ErrorKind::Status(refusal) = &error.kind else { panic!("{status} {server}: {error}") };
            assert!(status.starts_with(refusal.status.as_str()), "{error}");
            assert_eq!((&refusal.body[..], refusal.whole), (&b"no"[..], true));
            assert_eq!(error.billing, Billing::MaybeBilled);
            assert_eq!(mock.recorded().requests.len(), 1);
        }
    }
}

#[test]
fn a_server_that_never_reads_is_a_timeout() {
    let limit = Duration::from_millis(500);
    let mock = mock(SMALL, "", &[r#""hold""#]);
    let error = upload(&mock, limit.as_secs_f64()).result.expect_err("a breach");
    let ErrorKind::Timeout(timeout) = error.kind else { panic!("{error}") };
    assert_eq!((timeout.phase, timeout.limit), (Phase::Request, limit));
    assert!(timeout.elapsed >= limit);
    assert_eq!(mock.recorded().tally().received, 0);
}

#[test]
fn a_large_request_arrives_whole() {
    for server in [SMALL, SMALL_TLS, "tls = true", ""] {
        let steps = format!(r#"{{ read = "request" }}, {ANSWER}, "await-close""#);
        let mock = mock(server, "", &[&steps]);
        assert_eq!(upload(&mock, 60.0).result.expect("a success").turn.text(), "Hi");
        let request = &mock.recorded().requests[0];
        assert!(request.complete);
        assert_eq!(request.body_len, TEN_MEGABYTES as u64 + r#"{"padding":""}"#.len() as u64);
    }
}
