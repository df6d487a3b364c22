//! What `steadfast call` asks, where that comes on stdin.

use std::io::Write;
use std::process::Stdio;

use serde_json::Value;

use crate::support::{Ran, finish, server, spawn, steadfast};

/// Runs `call` with these arguments and that on stdin
fn ask(arguments: &[&str], input: &[u8]) -> Ran {
    let mut child = spawn(steadfast(&["call"]).args(arguments).stdin(Stdio::piped()));
    // One that does not like its arguments does not read.
    _ = child.stdin.take().expect("a pipe").write_all(input);
    finish(child)
}

#[test]
fn a_prompt_comes_on_stdin() {
    let cases = [
        (Some("-"), "one two", "one two"),
        (None, "one\n\ntwo\n", "one\n\ntwo"),
        (Some("-"), "\u{e9}\n\r\n", "\u{e9}\n"),
        (Some("given"), "not read", "given"),
    ];
    for (argument, input, prompt) in cases {
        let mock = server(
            "[[connection]]\nsteps = [{ read = \"request\" }, { answer = { head = [\"200 OK\", \
             \"content-type: application/json\"], body = '{\"choices\":[{\"message\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}' } }, \
             \"await-close\"]",
        );
        let url = mock.base_url();
        let mut arguments = vec!["--provider", "openai", "--no-stream", "--base-url", &url];
        arguments.extend(argument);
        let ran = ask(&arguments, input.as_bytes());
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Hi\n"), "{input:?}: {}", ran.stderr);
        let seen = mock.recorded();
        let [request] = &seen.requests[..] else { panic!("{:?}", seen.requests) };
        let body: Value = serde_json::from_slice(&request.body).expect("JSON");
        assert_eq!(body["messages"][0]["content"], prompt);
    }
}

#[test]
fn no_prompt_is_a_usage_error() {
    let none = "there is no <PROMPT>: give it as an argument, or on stdin";
    let cases: [(&[&str], &[u8], &str); 5] = [
        (&[], b"", none),
        (&["-"], b" \n", none),
        (&[""], b"Hi.", none),
        (&["-"], b"\xFF", "the prompt on stdin: not UTF-8"),
        (&[], &[b'x'; (16 << 20) + 1], "the prompt on stdin: larger than 16 MiB"),
    ];
    for (arguments, input, message) in cases {
        let ran = ask(arguments, input);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(ran.stderr.contains(message), "{arguments:?}: {}", ran.stderr);
    }
}
