//! Third-party HTTP dates and `Retry-After` values.

use std::fs;
use std::time::Duration;

use http::{HeaderMap, HeaderValue};
use serde::Deserialize;
use steadfast::retry::{http_date, retry_after};
use steadfast_tests::shared;

/// Cases whose expectation a rule of ours overrules: one name a line, under the rule in a comment
const EXCEPTIONS: &str = include_str!("conformance_dates_exceptions.txt");

#[derive(Deserialize)]
struct Cases {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    kind: String,
    name: String,
    input: String,
    now_year: Option<u64>,
    now_epoch: Option<u64>,
    expected_epoch: Option<i64>,
    expected_delay_s: Option<serde_json::Number>,
}

#[test]
fn every_case_but_the_exceptions_is_as_expected() {
    let Some(path) = shared::path("conformance/dates.json") else { return };
    let cases: Cases = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let mut exceptions: Vec<&str> =
        EXCEPTIONS.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    let mut passed = 0;
    for case in &cases.cases {
        let outcome = outcome(case);
        match exceptions.iter().position(|name| *name == case.name) {
            Some(listed) => {
                assert!(outcome.is_err(), "{} is listed as an exception, but passes", case.name);
                exceptions.swap_remove(listed);
            }
            None => {
                assert_eq!(outcome, Ok(()), "{}", case.name);
                passed += 1;
            }
        }
    }
    assert!(exceptions.is_empty(), "no such cases: {exceptions:?}");
    assert!(passed > 0);
    println!("conformance dates: {passed}/{} ({} exceptions)", cases.cases.len(), cases.cases.len() - passed);
}

fn outcome(case: &Case) -> Result<(), String> {
    let (got, expected) = match case.kind.as_str() {
        "http-date" => {
            let years = case.now_year.expect("a date has a year to count from") - 1970;
            let now = Duration::from_secs(years * 31_556_952 + 86_400);
            let got = http_date::parse(case.input.as_bytes(), now).map(|epoch| epoch.to_string());
            (got, case.expected_epoch.map(|epoch| epoch.to_string()))
        }
        "retry-after" => {
            let now = Duration::from_secs(case.now_epoch.expect("a delay has a point to count from"));
            let mut headers = HeaderMap::new();
            headers.insert("retry-after", HeaderValue::from_bytes(case.input.as_bytes()).unwrap());
            let delay = retry_after::parse(&headers, now).map(|delay| match delay {
                Duration::MAX => "too long".to_owned(),
                delay => delay.as_secs_f64().to_string(),
            });
            let expected = case.expected_delay_s.as_ref().map(|seconds| match seconds.as_u64() {
                Some(seconds) => seconds.to_string(),
                None => "too long".to_owned(),
            });
            (delay, expected)
        }
        other => panic!("a kind of case that this test does not know: {other}"),
    };
    if got == expected { Ok(()) } else { Err(format!("got {got:?}, expected {expected:?}")) }
}
