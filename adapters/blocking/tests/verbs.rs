//! Every verb, sent to a server on a real socket: its request line, its header fields and its body.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::json;
use steadfast_blocking::verb::{Api, Service, anthropic, gemini, openai};
use steadfast_blocking::{Client, Proxies, Retries};
use steadfast_mock::{Mock, RequestRecord};
use steadfast_scenario::Script;

/// No wait of this test is meant to take so long
const CAP: Duration = Duration::from_secs(60);

/// One line each: retries, verb, method, target, and the fields that differ
const EXPECTED: &str = include_str!("verbs.txt");

const SERVER: &str = r#"
name = "any"
about = "answers anything with an empty object"
[[connection]]
steps = [{ read = "request" }, { head = ["200 OK", "content-length: 2"] }, { send = "{}" }, "await-close"]
"#;

#[test]
fn every_verb_goes_out_as_its_provider_wants_it() {
    let script = Script::parse(SERVER).expect("a valid script");
    let mock = Mock::start(&script, None).expect("the server starts");
    let client = Client::new().with_proxies(Proxies::none());
    let service = |api| match api {
        Api::OpenAi => Service::openai("sk-openai").at(&format!("{}/v1", mock.base_url())),
        Api::Anthropic => Service::anthropic("sk-anthropic").at(&mock.base_url()),
        Api::Gemini => Service::gemini("sk-gemini").at(&mock.base_url()),
    };
    let mut lines = String::new();
    for (sent, row) in [openai::ALL, anthropic::ALL, gemini::ALL].concat().into_iter().enumerate() {
        let api = row.api.expect("a verb of an API");
        let ids = ["a/b", "c"];
        let request = service(api).row(row, &ids[..row.ids()]).idempotency_key("once");
        let has_body = ["POST", "PATCH"].contains(&row.method().as_str());
        let request = if has_body { request.json(&json!({"verb": row.name})) } else { request };
        // What is sent again is no matter here, and an empty object is no answer.
        let outcome = client.send(request.retries(Retries::Never).build().expect("a valid request"));
        assert!(outcome.result.is_ok() || row.dialect.is_some(), "{}: {:?}", row.name, outcome.result);
        let recorded =
            mock.wait_for(CAP, |seen| seen.requests.iter().filter(|it| it.complete).count() > sent);
        let seen = &recorded.expect("it comes whole").requests[sent];
        let retries = if row.retries == Retries::Allowed { "retried" } else { "single" };
        writeln!(lines, "{} {} {retries}: {}", api.name(), row.name, line(seen)).expect("a string takes all");
        let body = if has_body { json!({"verb": row.name}).to_string() } else { String::new() };
        assert_eq!(String::from_utf8_lossy(&seen.body), body, "{}", row.name);
    }
    if lines != EXPECTED {
        let differ = lines.lines().zip(EXPECTED.lines()).find(|(sent, expected)| sent != expected);
        panic!("{differ:#?}, or one is missing, in\n{lines}");
    }
}

/// The request line and the fields, without those that are the same everywhere
fn line(seen: &RequestRecord) -> String {
    for (name, value) in [("idempotency-key", "once"), ("accept-encoding", "identity")] {
        assert_eq!(seen.header(name), Some(value));
    }
    assert!(seen.header("user-agent").is_some_and(|agent| agent.starts_with("steadfast/")));
    let left_out = ["host", "user-agent", "idempotency-key", "accept-encoding", "content-length"];
    let fields = seen.headers.iter().filter(|(name, _)| !left_out.contains(&name.as_str()));
    let mut fields: Vec<String> = fields.map(|(name, value)| format!("{name}={value}")).collect();
    fields.sort();
    format!("{} {} {}", seen.method, seen.target, fields.join(" "))
}
