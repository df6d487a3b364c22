//! A relay that is killed, and what of its calls is in its records.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::postgres_server::Server;
use super::support::{ConfigFile, Provider, Serving};
use crate::support::{run, steadfast};

/// What may be lost: calls that were over for no longer than this before
const MAY_BE_LOST: Duration = Duration::from_secs(1);

/// Makes calls until some were over for long enough, kills the relay, and looks for each of these
fn loses_no_call_that_was_over_for_a_second(name: &str, database: &str) {
    let provider = Provider::new();
    let text = format!("[recording]\ndatabase = {database:?}\n[upstream.openai]\nurl = {:?}\n", provider.url);
    let config = ConfigFile::new(name, &text);
    let mut relay = Serving::start(&["--config", config.path()]);
    let mut over: Vec<(String, Instant)> = Vec::new();
    while over.first().is_none_or(|(_, at)| at.elapsed() < 2 * MAY_BE_LOST) {
        let path = format!("/openai/v1/{}", over.len());
        relay.pass(&provider, &path);
        over.push((path, Instant::now()));
    }
    let killed = Instant::now();
    relay.child.kill().expect("it runs");
    relay.child.wait().expect("it ends");
    let ran = run(&mut steadfast(&["calls", "--database", database, "--json", "--limit", "10000"]));
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let calls: Vec<Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let old: Vec<_> = over.iter().filter(|(_, at)| killed - *at > MAY_BE_LOST).collect();
    assert!(old.len() > 10, "{}", old.len());
    for (path, at) in old {
        let kept = calls.iter().filter(|call| call["target"] == *path && call["ended"].is_number()).count();
        assert_eq!(kept, 1, "{path}, over {:?} before", killed - *at);
    }
    // Another one goes on with the same records.
    let relay = Serving::start(&["--config", config.path()]);
    assert!(relay.answer("/nowhere", "", "{}").starts_with("HTTP/1.1 404 "));
    let ended = relay.stop();
    assert!(ended.is_quiet(), "{}", ended.said);
    let last = run(&mut steadfast(&["calls", "--database", database, "--limit", "1"])).stdout;
    assert!(last.contains("POST /nowhere"), "{last}");
}

#[test]
fn from_a_file() {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("killed-{}.db", std::process::id()));
    let file = file.to_str().expect("a path in UTF-8");
    loses_no_call_that_was_over_for_a_second("killed-file", file);
    for suffix in ["", "-wal", "-shm"] {
        // The target directory may keep what cannot be removed.
        _ = std::fs::remove_file(format!("{file}{suffix}"));
    }
}

#[test]
fn from_postgres() {
    let Some(server) = Server::start("killed") else { return };
    loses_no_call_that_was_over_for_a_second("killed-postgres", &server.url());
}
