//! Settings of a file, the environment and the command line: which wins, and what is refused.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::{decode, run, server, steadfast};

/// A settings file of one test
struct Settings(PathBuf);

impl Settings {
    fn new(name: &str, text: &str) -> Self {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("settings-{name}-{}.toml", std::process::id()));
        fs::write(&path, text).expect("a directory for tests");
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("a path that is text")
    }
}

impl Drop for Settings {
    fn drop(&mut self) {
        _ = fs::remove_file(&self.0);
    }
}

/// What `steadfast config` tells with these arguments and variables
fn told(arguments: &[&str], variables: &[(&str, &str)]) -> Value {
    let ran = run(steadfast(&["config", "--json"]).args(arguments).envs(variables.iter().copied()));
    assert_eq!((ran.code, ran.stderr.as_str(), ran.stdout.lines().count()), (Some(0), "", 1));
    serde_json::from_str(&ran.stdout).expect("JSON")
}

#[test]
fn cfg_6_the_command_line_goes_before_the_environment_before_the_file() {
    let file = Settings::new(
        "order",
        "request_timeout = 1\nmax_attempts = \"1\"\ntool_timeout = inf\nafter_marker = 0\n",
    );
    let told = told(
        &["--config-file", file.path(), "--config", "request_timeout=2", "--config", "request_timeout=3"],
        &[
            ("STEADFAST_REQUEST_TIMEOUT", "4"),
            ("STEADFAST_MAX_ATTEMPTS", "4"),
            ("STEADFAST_AFTER_MARKER", ""),
        ],
    );
    assert_eq!(told["request_timeout"], json!({"value": 3.0, "source": "call", "from": "--config"}));
    assert_eq!(
        told["max_attempts"],
        json!({"value": 4, "source": "environment", "from": "STEADFAST_MAX_ATTEMPTS"})
    );
    assert_eq!(told["tool_timeout"], json!({"value": "inf", "source": "file", "from": file.path()}));
    assert_eq!(told["after_marker"], json!({"value": 0.0, "source": "file", "from": file.path()}));
    assert_eq!(told["connect_timeout"], json!({"value": 10.0, "source": "built-in"}));
    assert_eq!(told.as_object().expect("an object").len(), 17);
}

#[test]
fn the_file_is_the_one_given_else_the_one_of_the_environment() {
    let given = Settings::new("given", "max_attempts = 5\n");
    let named = Settings::new("named", "max_attempts = 6\n");
    let variable = [("STEADFAST_CONFIG_FILE", named.path())];
    let attempts = |arguments: &[&str]| told(arguments, &variable)["max_attempts"]["value"].clone();
    assert_eq!(attempts(&[]), json!(6));
    assert_eq!(attempts(&["--config-file", given.path()]), json!(5));
    assert_eq!(told(&[], &[("STEADFAST_CONFIG_FILE", "")])["max_attempts"]["value"], json!(3));
}

#[test]
fn the_table_has_a_row_for_each_setting() {
    let ran = run(steadfast(&["config", "--config", "max_attempts=1"]).env("STEADFAST_TOOL_TIMEOUT", "2.5"));
    assert_eq!((ran.code, ran.stderr.as_str(), ran.stdout.lines().count()), (Some(0), "", 17));
    for row in [
        "connect_timeout                10  built-in\n",
        "max_attempts                    1  call --config\n",
        "tool_timeout                  2.5  environment STEADFAST_TOOL_TIMEOUT\n",
    ] {
        assert!(ran.stdout.contains(row), "{}", ran.stdout);
    }
}

#[test]
fn a_call_goes_by_what_is_in_force() {
    let mock = server("[[connection]]\nsteps = [{ read = \"request\" }, \"await-close\"]");
    let file = Settings::new("call", "max_attempts = 1\nrequest_timeout = 60\n");
    let limit = |more: &[&str]| {
        let mut call = steadfast(&["call", "--json", "--base-url", &mock.base_url(), "Hi."]);
        call.args(["--config-file", file.path()]).args(more).env("STEADFAST_REQUEST_TIMEOUT", "0.2");
        let ran = run(&mut call);
        let outcome: Value = serde_json::from_str(&ran.stdout).expect("JSON");
        let attempts = outcome["timeline"]["attempts"].as_array().expect("a list").len();
        (ran.code, attempts, outcome["error"]["limit"].as_f64())
    };
    assert_eq!(limit(&[]), (Some(10), 1, Some(0.2)));
    assert_eq!(limit(&["--config", "request_timeout=0.1"]), (Some(10), 1, Some(0.1)));
}

#[test]
fn decode_goes_by_what_is_in_force_and_makes_one_attempt() {
    let file = Settings::new("decode", "stream_idle_timeout = 7\nmax_attempts = 4\n");
    let open = ["--dialect", "openai-chat", "--end", "open", "--config-file", file.path()];
    let limit = |more: &[&str]| {
        let ran = decode(&[&open, more].concat(), b"data: {\"choices\":[]}\n\n");
        let answer: Value = serde_json::from_str(&ran.stdout).expect("JSON");
        (ran.code, answer["error"]["limit"].as_f64())
    };
    assert_eq!(limit(&[]), (Some(10), Some(7.0)));
    assert_eq!(limit(&["--config", "stream_idle_timeout=8"]), (Some(10), Some(8.0)));
    let refused = ["--dialect", "openai-chat", "--status", "503", "--config-file", file.path()];
    assert_eq!(decode(&refused, b"{}").code, Some(11), "a second attempt would find nothing recorded");
}

#[test]
fn the_demo_is_played_under_the_built_ins_whatever_is_in_force() {
    let demo = ["demo", "--driver", "all", "--only", "status-503-then-200"];
    let ran = run(steadfast(&demo).env("STEADFAST_MAX_BODY_BYTES", "1").env("STEADFAST_MAX_ATTEMPTS", "1"));
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
}

#[test]
fn cfg_6_what_no_setting_is_called_is_a_usage_error_of_every_command() {
    let file = Settings::new("unknown", "max_attempts = 2\n\nrequest_timout = 30\n");
    let by_file =
        format!("{}:3: there is no setting request_timout; the nearest is request_timeout", file.path());
    let by_variable =
        "there is no variable STEADFAST_REQUEST_TIMOUT; the nearest is STEADFAST_REQUEST_TIMEOUT";
    let commands: [&[&str]; 5] = [
        &["call", "Hi."],
        &["config"],
        &["decode", "--dialect", "openai-chat", "no/such/file"],
        &["demo", "--list"],
        &["mock", "--script", "no/such/file"],
    ];
    for command in commands {
        let ran = run(steadfast(command).args(["--config-file", file.path()]));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{command:?}");
        assert!(ran.stderr.contains(&by_file), "{command:?}: {}", ran.stderr);
        let ran = run(steadfast(command).env("STEADFAST_REQUEST_TIMOUT", "sk-secret"));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{command:?}");
        assert!(ran.stderr.contains(by_variable), "{command:?}: {}", ran.stderr);
        assert!(!ran.stderr.contains("sk-secret"));
    }
}

#[test]
fn a_file_that_cannot_be_used_is_a_usage_error_that_names_it() {
    let value = Settings::new("value", "\nmax_attempts = 0\n");
    let syntax = Settings::new("syntax", "max_attempts = 2\nsoon\n");
    let large = Settings::new("large", &"#".repeat((1 << 20) + 1));
    let cases = [
        (value.path(), format!("{}:2: max_attempts cannot be 0: it takes a whole number", value.path())),
        (syntax.path(), format!("{}:2: ", syntax.path())),
        (large.path(), format!("{}: larger than 1 MiB, the most that is read", large.path())),
        ("no/such/file.toml", "no/such/file.toml: No such file".to_owned()),
    ];
    for (path, said) in cases {
        let ran = run(&mut steadfast(&["config", "--config-file", path]));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{path}");
        assert!(ran.stderr.contains(&said), "{path}: {}", ran.stderr);
    }
}
