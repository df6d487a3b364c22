//! What the program says to command lines that it cannot follow.

use crate::support::{Ran, run, steadfast};

#[test]
fn usage_errors_exit_2_and_say_what_to_do() {
    let cases: [(&[&str], &str); 8] = [
        (&[], "Usage: steadfast"),
        (&["call"], "there is no <PROMPT>: give it as an argument, or on stdin"),
        (&["call", "--config", "request_timout=3", "Hi."], "the nearest is request_timeout"),
        (
            &["call", "--config", "tool_timeout=NaN", "Hi."],
            "tool_timeout cannot be NaN: it takes seconds over 0",
        ),
        (&["call", "--base-url", "localhost:80", "Hi."], "--base-url has to begin with http:// or https://"),
        (&["call", "--provider", "anthropic", "Hi."], "set ANTHROPIC_API_KEY"),
        (&["demo", "--only", "stream-mute-after-dleta"], "the nearest is stream-mute-after-delta"),
        (&["mock", "--script", "no/such/file.toml"], "no/such/file.toml: No such file"),
    ];
    for (arguments, said) in cases {
        let ran = run(steadfast(arguments).env("OPENAI_API_KEY", "sk-secret"));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(said), "{arguments:?}: {}", ran.stderr);
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
        let ran = run(steadfast(arguments).env("OPENAI_API_KEY", "sk-secret"));
        assert_eq!(ran.code, Some(2), "{arguments:?}: {}", ran.stderr);
        assert!(!ran.stderr.contains("sk-secret"), "{}", ran.stderr);
    }
}

#[test]
fn help_lists_what_a_script_needs() {
    let Ran { code, stdout: help, .. } = run(&mut steadfast(&["call", "--help"]));
    assert_eq!(code, Some(0));
    for line in [
        "   10  timeout: a bound was reached, and the message names it",
        "  after_marker                  2  ",
    ] {
        assert!(help.contains(line), "{help}");
    }
}
