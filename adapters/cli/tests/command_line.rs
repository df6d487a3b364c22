//! What the program says to command lines that it cannot follow.

use std::process::{Command, Output};

fn steadfast(arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_steadfast"))
        .args(arguments)
        .env_clear()
        .envs(environment.iter().copied())
        .output()
        .unwrap()
}

#[test]
fn usage_errors_exit_2_and_say_what_to_do() {
    let cases: [(&[&str], &str); 6] = [
        (&[], "Usage: steadfast"),
        (&["call"], "<PROMPT>"),
        (&["call", "--config", "request_timout=3", "Hi."], "the nearest is request_timeout"),
        (
            &["call", "--config", "tool_timeout=NaN", "Hi."],
            "tool_timeout cannot be NaN: it takes seconds over 0",
        ),
        (&["call", "--base-url", "localhost:80", "Hi."], "--base-url has to begin with http:// or https://"),
        (&["call", "--provider", "anthropic", "Hi."], "set ANTHROPIC_API_KEY"),
    ];
    for (arguments, said) in cases {
        let output = steadfast(arguments, &[]);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
        assert!(stderr.contains(said), "{arguments:?}: {stderr}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn nothing_secret_is_repeated() {
    let cases: [&[&str]; 3] = [
        &["call", "--config", "api_key=sk-secret", "Hi."],
        &["call", "--config", "sk-secret", "Hi."],
        &["call", "--base-url", "https://me:sk-secret@host", "Hi."],
    ];
    for arguments in cases {
        let output = steadfast(arguments, &[("OPENAI_API_KEY", "sk-secret")]);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
        assert!(!stderr.contains("sk-secret"), "{stderr}");
    }
}

#[test]
fn help_lists_what_a_script_needs() {
    let output = steadfast(&["call", "--help"], &[]);
    let help = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0));
    for line in [
        "   10  timeout: a bound was reached, and the message names it",
        "  after_marker                  2  ",
    ] {
        assert!(help.contains(line), "{help}");
    }
}
