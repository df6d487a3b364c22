//! `steadfast gaps`.

use std::net::TcpListener;

use serde_json::Value;

use crate::support::{Ran, run, server, steadfast};

fn gaps(base_url: &str, more: &[&str]) -> Ran {
    run(steadfast(&["gaps", "--base-url", base_url]).args(more))
}

const PAUSES: &str = r#"
[bytes]
reasoning = """data: {"choices":[{"index":0,"delta":{"reasoning_content":"Hm"},"finish_reason":null}]}\n\n"""
text = """data: {"choices":[{"index":0,"delta":{"content":"4"},"finish_reason":"stop"}]}\n\n"""
done = """data: [DONE]\n\n"""

[[connection]]
steps = [
    { read = "request" },
    { head = ["200 OK", "content-type: text/event-stream", "transfer-encoding: chunked"] },
    { chunk = "$reasoning" },
    { pause = 0.4 },
    { chunk = "$text" },
    { chunk = "$done" },
    "last-chunk",
    "await-close",
]
"#;

#[test]
fn the_largest_gap_is_found_and_held_against_the_idle_bound() {
    let mock = server(PAUSES);
    let ran = gaps(&mock.base_url(), &["--json", "--config", "stream_idle_timeout=50"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(ran.stderr, "steadfast: measuring openai gpt-5-nano, run 1\n");
    let report: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!((&report["verdict"], &report["idle_bound_seconds"]), (&"ok".into(), &50.0.into()));
    let run = &report["runs"][0];
    assert_eq!((&run["outcome"], &run["error"]), (&"completed".into(), &Value::Null));
    let gap = &run["largest_gap"];
    assert!((0.35..30.0).contains(&gap["seconds"].as_f64().expect("seconds")), "{report}");
    assert_eq!(gap["after"], "reasoning");
    assert_eq!(report["largest_gap_seconds"], gap["seconds"]);
    let counted: u64 =
        run["histogram"].as_array().expect("rows").iter().filter_map(|row| row["gaps"].as_u64()).sum();
    assert_eq!(Some(counted + 1), run["chunks"].as_u64(), "{report}");
}

#[test]
fn people_get_a_histogram_and_a_verdict() {
    let mock = server(PAUSES);
    let ran = gaps(&mock.base_url(), &["--model", "m"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.starts_with("openai m, run 1: completed\n"), "{}", ran.stdout);
    assert!(ran.stdout.contains(", after reasoning: "), "{}", ran.stdout);
    assert!(ran.stdout.contains(" % of the idle bound of 120 s\n"), "{}", ran.stdout);
    assert!(ran.stdout.ends_with("\nok: no gap over 60 s\n"), "{}", ran.stdout);
}

#[test]
fn silence_that_a_bound_ended_is_the_largest_gap() {
    let after = PAUSES.find("    { pause").expect("a pause");
    let mock = server(&format!("{}    \"await-close\",\n]\n", &PAUSES[..after]));
    let ran = gaps(&mock.base_url(), &["--json", "--config", "stream_idle_timeout=0.3"]);
    let report: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!((ran.code, &report["verdict"]), (Some(0), &"ok".into()), "{report}");
    assert_eq!(report["runs"][0]["outcome"], "timeout", "{report}");
    assert!(report["largest_gap_seconds"].as_f64().is_some_and(|gap| gap >= 0.3), "{report}");
}

#[test]
fn an_error_is_no_measurement() {
    const KEY: &str = "sk-0123456789-SECRET";
    let refuses = server(
        "[[connection]]\nsteps = [{ read = \"request\" }, { answer = { head = [\"401 No\", \"content-type: application/json\"], \
         body = '{\"error\":{\"message\":\"Incorrect key sk-0123456789-SECRET\"}}' } }, \"await-close\"]",
    );
    let mut command = steadfast(&["gaps", "--json", "--base-url", &refuses.base_url()]);
    let ran = run(command.env("OPENAI_API_KEY", KEY));
    let report: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!((ran.code, &report["verdict"]), (Some(2), &"nothing_measured".into()), "{ran:?}");
    assert!(report["runs"][0]["error"].as_str().is_some_and(|error| error.contains("401")), "{report}");
    assert!(!ran.stdout.contains("SECRET") && !ran.stderr.contains("SECRET"), "{ran:?}");

    let nobody = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let ran = gaps(&format!("http://{nobody}"), &["--runs", "2"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stdout.ends_with("nothing could be measured\n"), "{}", ran.stdout);
    assert_eq!(ran.stdout.matches("run 2").count(), 1, "{}", ran.stdout);
}

#[test]
fn without_a_key_or_a_server_there_is_nobody_to_measure() {
    let ran = run(&mut steadfast(&["gaps"]));
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("set one of OPENAI_API_KEY, "), "{}", ran.stderr);
    assert_eq!(ran.stdout, "");
}
