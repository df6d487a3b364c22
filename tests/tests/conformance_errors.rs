//! Recorded error replies of providers through the reader of error bodies.

use std::fs;

use serde::Deserialize;
use serde_json::Value;
use steadfast::dialect::provider_error;
use steadfast_tests::shared;

#[derive(Deserialize)]
struct Cases {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    body: String,
    expected: Expected,
}

#[derive(Deserialize)]
struct Expected {
    message: Option<String>,
    r#type: Option<String>,
    code: Option<Value>,
}

#[test]
fn every_recorded_error_gives_its_message_type_and_code() {
    let Some(path) = shared::path("conformance/errors.json") else { return };
    let cases: Cases = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    for Case { name, body, expected } in &cases.cases {
        let error = provider_error::from_body(body.as_bytes()).unwrap_or_else(|| panic!("{name}: {body}"));
        let code =
            expected.code.as_ref().map(|code| code.as_str().map_or_else(|| code.to_string(), str::to_owned));
        assert_eq!(error.message, expected.message.clone().unwrap_or_default(), "{name}");
        assert_eq!(error.kind, expected.r#type, "{name}");
        assert_eq!(error.code, code, "{name}");
        let status = code.and_then(|code| code.parse().ok()).filter(|status| (400..=599).contains(status));
        if status.is_some() {
            assert_eq!(error.status, status, "{name}");
        }
    }
    let count = cases.cases.len();
    assert!(count > 0);
    println!("conformance errors: {count}/{count}");
}
