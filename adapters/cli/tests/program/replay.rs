//! `steadfast call --record` and `steadfast replay`.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

use crate::support::{Ran, run, scenario, server, steadfast};

/// A file of this test's own, which goes with it
struct Trace(PathBuf);

impl Trace {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("trace-{}-{number}.jsonl", std::process::id());
        Self(PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name))
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("a path in UTF-8")
    }

    fn text(&self) -> String {
        fs::read_to_string(&self.0).expect("a trace")
    }

    fn replay(&self, more: &[&str]) -> Ran {
        run(steadfast(&["replay"]).args(more).arg(&self.0))
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        _ = fs::remove_file(&self.0);
    }
}

/// Records the call of an embedded scenario
fn record(name: &str) -> (Trace, Ran) {
    let trace = Trace::new();
    let (_mock, arguments) = scenario(name);
    let ran = run(steadfast(&[]).args(arguments).args(["--record", trace.path()]));
    (trace, ran)
}

fn json(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
}

#[test]
fn what_was_recorded_replays_with_the_same_steps() {
    let ends = [
        ("stream-happy", 0),
        ("stream-mute-after-delta", 10),
        ("status-503-then-200", 0),
        ("unary-happy", 0),
    ];
    for (name, code) in ends {
        let (trace, ran) = record(name);
        assert_eq!(ran.code, Some(code), "{ran:?}");
        let replayed = trace.replay(&[]);
        assert_eq!((replayed.code, &*replayed.stderr), (Some(0), ""), "{replayed:?}");
        let text = trace.text();
        for step in text.lines().filter(|line| line.starts_with("{\"step\"")) {
            assert!(replayed.stdout.contains(step), "{step}\nis not in\n{}", replayed.stdout);
        }
        assert!(replayed.stdout.contains("· attempts "), "{}", replayed.stdout);
        assert!(replayed.stdout.contains("\nidentical: "), "{}", replayed.stdout);
        let ran = trace.replay(&["--json"]);
        let report = json(&ran);
        assert_eq!((&report["identical"], &report["trace"]), (&Value::from(true), &Value::from("whole")));
        assert!(report["timeline"]["attempts"].as_array().is_some_and(|attempts| !attempts.is_empty()));
        let first = text.lines().find(|line| line.starts_with("{\"step\"")).expect("a step");
        assert!(ran.stdout.contains(first), "a step stays as it is: {}", ran.stdout);
    }
}

#[test]
fn a_step_that_differs_is_shown_with_its_line_and_exits_4() {
    let (trace, _) = record("stream-happy");
    let text = trace.text();
    let line = text.lines().position(|line| line.contains("\"step\":\"text\"")).expect("a delta") + 1;
    let changed = text.replacen("\"step\":\"text\"", "\"step\":\"refusal\"", 1);
    fs::write(&trace.0, changed).expect("a file");
    let ran = trace.replay(&[]);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    let shown = format!("differs at line {line}:\n  recorded {{\"step\":\"refusal\"");
    assert!(
        ran.stdout.contains(&shown) && ran.stdout.contains("\n  replayed {\"step\":\"text\""),
        "{}",
        ran.stdout
    );
    let ran = trace.replay(&["--json", "--what-if", "max_attempts=1"]);
    assert_eq!((ran.code, &json(&ran)["difference"]["line"]), (Some(4), &Value::from(line)));
}

#[test]
fn what_if_says_how_it_would_have_ended_and_what_is_not_known() {
    let (trace, ran) = record("stream-mute-after-delta");
    assert_eq!(ran.code, Some(10));
    let ran = trace.replay(&["--what-if", "stream_idle_timeout=300"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert!(lines[0].starts_with("as recorded  timeout: no byte of the stream for 3"), "{}", ran.stdout);
    assert_eq!(lines[1], "what if      stream_idle_timeout=300");
    assert!(lines[2].trim_start().starts_with("still waiting at 0."), "{}", ran.stdout);
    assert!(
        lines[2].contains("; would end at 300.")
            && lines[2].ends_with("s by stream_idle_timeout if nothing more came"),
        "{}",
        ran.stdout
    );
    let ran = trace.replay(&["--what-if", "stream_idle_timeout=inf"]);
    assert!(ran.stdout.contains("would wait for ever if nothing more came"), "{}", ran.stdout);
    let ran = trace.replay(&["--json", "--what-if", "stream_idle_timeout=0.1"]);
    let report = json(&ran);
    let what_if = &report["what_if"];
    assert_eq!((&what_if["ends"], &what_if["known_until"]), (&Value::from("ended"), &Value::Null));
    assert_eq!(what_if["outcome"]["error"]["limit"], 0.1);
    assert_eq!(report["recorded"]["error"]["limit"], 0.3);
}

#[test]
fn no_key_is_in_a_trace() {
    const KEY: &str = "sk-DO-NOT-RECORD-0123456789";
    let mock = server(&format!(
        "[[connection]]\nsteps = [{{ read = \"request\" }}, {{ head = [\"401 No\", \"set-cookie: s=THE-COOKIE\", \
         \"content-type: application/json\", \"content-length: 66\"] }}, \
         {{ trickle = {{ data = '{{\"error\":{{\"message\":\"Incorrect key {KEY}.\"}}}}', size = 7, every = 0.005 }} }}, \
         \"await-close\"]"
    ));
    for bodies in ["whole", "hashed", "lengths"] {
        let trace = Trace::new();
        let url = format!("{}/v1", mock.base_url());
        let arguments =
            ["call", "--base-url", &url, "--record", trace.path(), "--record-bodies", bodies, "SAY-NOT"];
        let ran = run(steadfast(&arguments).env("OPENAI_API_KEY", KEY));
        assert_eq!(ran.code, Some(11), "{ran:?}");
        let text = trace.text();
        for secret in ["NOT-RECORD", "THE-COOKIE", "SAY-NOT"] {
            assert!(!text.contains(secret), "{bodies}: {secret} in {text}");
        }
        assert!(text.contains("\"status\":401"), "{text}");
        let ran = trace.replay(&[]);
        if bodies == "whole" {
            assert_eq!(ran.code, Some(0), "{ran:?}");
        } else {
            assert_eq!(ran.code, Some(2), "{ran:?}");
            assert!(
                ran.stderr.contains(&format!(
                    "line 1: bodies are not whole in this trace but recorded as {bodies}"
                )),
                "{ran:?}"
            );
        }
    }
}

#[test]
fn what_cannot_be_replayed_says_why_and_exits_2() {
    let trace = Trace::new();
    for (content, said) in [
        ("", "line 1: this is no trace"),
        ("{\"trace\":9}\n", "line 1: this is a trace of version 9"),
        ("data: {}\n\n", "line 1: this is no trace"),
    ] {
        fs::write(&trace.0, content).expect("a file");
        let ran = trace.replay(&[]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains(&format!("{}: {said}", trace.path())), "{}", ran.stderr);
    }
    let ran = run(&mut steadfast(&["replay", "/no/such/file"]));
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let (trace, _) = record("unary-happy");
    for (setting, said) in [
        ("max_attempts", "--what-if takes KEY=VALUE"),
        ("max_attempts=0", "max_attempts cannot be 0"),
        ("max_atempts=1", "the nearest is max_attempts"),
    ] {
        let ran = trace.replay(&["--what-if", setting]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains(said), "{}", ran.stderr);
    }
}

#[test]
fn a_trace_that_was_cut_is_replayed_as_far_as_it_goes() {
    let (trace, _) = record("stream-happy");
    let text = trace.text();
    fs::write(&trace.0, &text[..text.len() / 2]).expect("a file");
    let ran = trace.replay(&[]);
    assert_eq!(ran.code, Some(12), "{ran:?}");
    assert_eq!(ran.stderr, "steadfast: the trace was cut: what is said is of the call so far\n");
    assert!(ran.stdout.contains("\nidentical: "), "{}", ran.stdout);
    let ran = trace.replay(&["--what-if", "max_attempts=1"]);
    assert_eq!(ran.code, Some(12), "{ran:?}");
    assert!(ran.stdout.starts_with("as recorded  the trace ends at"), "{}", ran.stdout);
    let first = text.lines().next().expect("a line");
    fs::write(&trace.0, first).expect("a file");
    let ran = trace.replay(&[]);
    assert_eq!(ran.code, Some(12), "{ran:?}");
    assert_eq!(ran.stderr, "steadfast: the trace was cut before its call began\n");
}

#[test]
fn a_file_that_cannot_be_written_is_told_before_the_call() {
    let (mock, arguments) = scenario("unary-happy");
    let ran = run(steadfast(&[]).args(arguments).args(["--record", "/no/such/folder/trace"]));
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("/no/such/folder/trace: "), "{}", ran.stderr);
    assert_eq!(mock.shutdown().tally().connections, 0);
}

#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_is_full_harms_no_call() {
    let (_mock, arguments) = scenario("unary-happy");
    let ran = run(steadfast(&[]).args(arguments).args(["--record", "/dev/full"]));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.starts_with("steadfast: the trace could not be written: "), "{}", ran.stderr);
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
}

#[cfg(unix)]
#[test]
fn a_trace_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let (trace, _) = record("unary-happy");
    let mode = || fs::metadata(&trace.0).expect("a trace").permissions().mode() & 0o777;
    assert_eq!(mode(), 0o600);
    // Nor where others could read what was there before.
    fs::set_permissions(&trace.0, fs::Permissions::from_mode(0o644)).expect("a mode");
    let (_mock, arguments) = scenario("unary-happy");
    let ran = run(steadfast(&[]).args(arguments).args(["--record", trace.path()]));
    assert_eq!((ran.code, mode()), (Some(0), 0o600), "{ran:?}");
}
