//! `steadfast calls` on what a relay recorded.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::support::{ConfigFile, Provider, Serving};
use crate::support::{Ran, await_text, run, spawn, steadfast};

/// A database of its own, which goes with the test
struct Records {
    file: PathBuf,
    config: ConfigFile,
}

impl Records {
    fn new(name: &str) -> Self {
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}.db", std::process::id()));
        let records =
            format!("[recording]\ndatabase = {file:?}\n\n[upstream.openai]\nurl = \"http://127.0.0.1:1\"\n");
        let records = Self { file, config: ConfigFile::new(name, &records) };
        records.remove();
        records
    }

    fn path(&self) -> &str {
        self.file.to_str().expect("a path in UTF-8")
    }

    fn calls(&self, arguments: &[&str]) -> Ran {
        run(steadfast(&["calls", "--database", self.path()]).args(arguments))
    }

    fn remove(&self) {
        for suffix in ["", "-wal", "-shm"] {
            // The target directory may keep what cannot be removed.
            _ = std::fs::remove_file(format!("{}{suffix}", self.path()));
        }
    }
}

impl Drop for Records {
    fn drop(&mut self) {
        self.remove();
    }
}

const EVENTS: [&str; 3] = [
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi \"},\"finish_reason\":null}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"sk-secret-9\"},\"finish_reason\":\"stop\"}]}\n\n",
    "data: [DONE]\n\n",
];

/// A relay that has recorded a stream, a call that was refused, and one that no provider answered
fn recorded(name: &str) -> Records {
    let records = Records::new(name);
    let provider = Provider::new();
    let upstream = format!("openai={}", provider.url);
    let serving = Serving::start(&["--config", records.config.path(), "--upstream", &upstream]);
    let mut app = serving.ask(
        "/openai/v1/chat/completions?key=in-query-12",
        "Authorization: Bearer sk-secret-9\r\nConnection: close\r\n",
        "{}",
    );
    let (mut peer, _) = provider.accept();
    peer.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
    for event in EVENTS {
        peer.send(&format!("{:x}\r\n{event}\r\n", event.len()));
        app.until("\n\n\r\n");
    }
    peer.send("0\r\n\r\n");
    app.rest();
    drop(app);
    assert!(serving.answer("/nowhere", "", "{}").starts_with("HTTP/1.1 404 "));
    assert_eq!(serving.stop().code, Some(0));
    records
}

#[test]
fn what_a_relay_recorded_is_listed_shown_and_replayed() {
    let records = recorded("listed");
    let listed = records.calls(&[]);
    assert_eq!((listed.code, listed.stderr.as_str()), (Some(0), ""));
    let rows: Vec<&str> = listed.stdout.lines().collect();
    assert_eq!(rows.len(), 3, "{}", listed.stdout);
    assert!(rows[0].starts_with("BEGUN (UTC) "), "{}", rows[0]);
    assert!(
        rows[1].contains("POST /openai/v1/chat/completions") && rows[1].contains(" passed "),
        "{}",
        rows[1]
    );
    assert!(rows[2].contains("POST /nowhere") && rows[2].contains(" not_found "), "{}", rows[2]);
    assert_eq!(records.calls(&["--limit", "1"]).stdout.lines().count(), 2);

    let json = records.calls(&["--json"]).stdout;
    let calls: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!((&calls[0]["ending"], &calls[0]["status"]), (&Value::from("passed"), &Value::from(200)));
    assert_eq!(calls[1]["code"], "not_found");
    let id = calls[0]["id"].as_str().expect("an id");

    let shown = records.calls(&["--show", id]).stdout;
    for part in ["total ", "Authorization: [credential]", "?key=[credential]", "{}\n", "\"Hi \"", "[DONE]"] {
        assert!(shown.contains(part), "{part} is not in\n{shown}");
    }
    assert!(!shown.contains("sk-secret") && !shown.contains("in-query"), "{shown}");
    let shown: Value = serde_json::from_str(&records.calls(&["--show", id, "--json"]).stdout).expect("JSON");
    assert_eq!(shown["answer_body"][0]["text"].as_str().map(str::len), Some(EVENTS.concat().len()));

    let trace = records.calls(&["--export-trace", id]);
    assert_eq!(trace.code, Some(0), "{}", trace.stderr);
    let file = ConfigFile::new("exported-trace", &trace.stdout);
    let replayed = run(&mut steadfast(&["replay", "--json", file.path()]));
    assert_eq!((replayed.code, replayed.stderr.as_str()), (Some(0), ""));
    let replayed: Value = serde_json::from_str(&replayed.stdout).expect("JSON");
    assert_eq!((&replayed["identical"], &replayed["trace"]), (&Value::from(true), &Value::from("whole")));
    let attempt = &replayed["timeline"]["attempts"][0];
    assert_eq!((&attempt["status"], &attempt["reason"]), (&Value::from(200), &Value::from("sentinel")));
    assert_eq!(attempt["events"], 3, "{attempt}");
}

#[test]
fn calls_that_are_not_there_are_refused_in_words() {
    let records = recorded("refused");
    let json = records.calls(&["--json"]).stdout;
    let refused: Value = serde_json::from_str(json.lines().last().expect("a line")).expect("JSON");
    let id = refused["id"].as_str().expect("an id");
    for (arguments, words) in [
        (["--show", "req_0"], "there is no call req_0"),
        (["--export-trace", id], "has no trace: no provider answered it"),
    ] {
        let ran = records.calls(&arguments);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
    }
    let nothing = run(&mut steadfast(&["calls", "--database", "/nowhere/calls.db"]));
    assert_eq!(nothing.code, Some(2));
    assert!(nothing.stderr.contains("--database: /nowhere/calls.db: "), "{}", nothing.stderr);
}

#[test]
fn further_calls_are_listed_as_they_end() {
    let records = recorded("followed");
    let mut child =
        spawn(&mut steadfast(&["calls", "--database", records.path(), "--follow", "--limit", "1"]));
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe"));
    await_text(&mut lines, "not_found");
    let serving = Serving::start(&["--config", records.config.path()]);
    assert!(serving.answer("/elsewhere", "", "{}").starts_with("HTTP/1.1 404 "));
    let mut rest = String::new();
    while !rest.contains("POST /elsewhere") {
        assert_ne!(lines.read_line(&mut rest).expect("a pipe"), 0, "{rest}");
    }
    // Nothing of what was left out on purpose, and nothing twice.
    assert!(!rest.contains("POST /openai") && !rest.contains("POST /nowhere"), "{rest}");
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    serving.stop();
}
