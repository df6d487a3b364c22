//! A retry budget that the calls of a client share (rule RTY-9).

use std::io::Write;

use steadfast::call::Request;
use steadfast::config::Overrides;
use steadfast::outcome::{ErrorKind, Note};
use steadfast::retry::RetryBudgetSettings;

use crate::clients::{CLIENTS, Setup};
use crate::server::{Server, read_head};

#[test]
fn a_server_that_fails_for_all_gets_one_retry_for_each_call_that_pays_for_one() {
    const CALLS: usize = 2;
    const ANSWER: &str = "HTTP/1.1 503 Busy\r\nconnection: close\r\ncontent-length: 4\r\n\r\nbusy";
    let budget = RetryBudgetSettings { percent: 100, min_per_second: 0, ..RetryBudgetSettings::default() };
    for (name, calls) in CLIENTS {
        // A third attempt of a call would find nobody.
        let server = Server::start(2 * CALLS, |mut socket| {
            read_head(&mut socket).expect("a request");
            socket.write_all(ANSWER.as_bytes()).expect("a client");
        });
        let url = format!("http://127.0.0.1:{}/v1", server.port());
        let overrides = Overrides::new().max_attempts(3);
        let request =
            || Request::post(&url).body("{}").overrides(overrides).build().expect("a valid request");
        let setup = Setup { budget: Some(budget), ..Setup::default() };
        let outcomes = calls(&setup, (0..CALLS).map(|_| request()).collect());
        for outcome in &outcomes {
            let error = outcome.result.as_ref().expect_err("a status");
            assert!(
                matches!(&error.kind, ErrorKind::Status(error) if error.status == 503),
                "{name}: {error}"
            );
            assert_eq!(outcome.timeline.attempt_count(), 2, "{name}");
            assert!(outcome.timeline.notes.contains(&Note::RetryBudgetUsedUp), "{name}");
        }
        assert_eq!(server.join().len(), 2 * CALLS);
    }
}
