//! Where stdout goes: a terminal, a file that is full, one that is not open for writing.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::process::Stdio;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::{Value, json};
use steadfast_mock::Mock;

use crate::support::{finish, run, server, steadfast};

/// What a model says to take over a terminal: it clears the screen, sets a title, and goes back
const TEXT: &str = "a\u{1b}[2J\u{9b}1mb\u{1b}]0;t\u{7}\rc\u{8}\td";

fn answering(text: &str) -> Mock {
    let event = json!({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": "stop"}]});
    let body = format!("data: {event}\n\ndata: [DONE]\n\n");
    server(&format!(
        "[bytes]\nbody = {}\n[[connection]]\nsteps = [{{ read = \"request\" }}, \
         {{ answer = {{ head = [\"200 OK\", \"content-type: text/event-stream\"], body = \"$body\" }} }}, \
         \"await-close\"]",
        Value::from(body)
    ))
}

/// A terminal: the side that people sit at, and the name of the other one
fn terminal() -> (File, String) {
    let people = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&people).expect("it can be used");
    unlockpt(&people).expect("it can be used");
    let name = ptsname(&people, Vec::new()).expect("a name").into_string().expect("text");
    (File::from(people), name)
}

/// What the program shows on a terminal
fn shown(arguments: &[&str]) -> String {
    let (mut people, name) = terminal();
    let program = OpenOptions::new().write(true).open(name).expect("the other side");
    let child = steadfast(arguments).stdout(program).stderr(Stdio::piped()).spawn();
    let ran = finish(child.expect("the program starts"));
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let mut shown = Vec::new();
    // The end of a terminal whose other side is closed is an error.
    _ = people.read_to_end(&mut shown);
    String::from_utf8(shown).expect("text").replace("\r\n", "\n")
}

#[test]
fn a_terminal_shows_control_characters_and_does_not_obey_them() {
    let mock = answering(TEXT);
    let url = mock.base_url();
    let call = ["call", "--provider", "openai", "--base-url", &url, "Hi."];
    let pictures = "a\u{241b}[2J\u{fffd}1mb\u{241b}]0;t\u{2407}\u{240d}c\u{2408}\td\n";
    assert_eq!(shown(&call), pictures);
    let outcome = shown(&[&call[..], &["--json"]].concat());
    assert!(!outcome.trim_end().contains(char::is_control), "{outcome:?}");
    // What is no terminal gets what the model said.
    assert_eq!(run(&mut steadfast(&call)).stdout, format!("{TEXT}\n"));
}

#[test]
fn a_stdout_that_takes_nothing_is_a_failure() {
    let mock = answering("Hello");
    let url = mock.base_url();
    let call = ["call", "--provider", "openai", "--base-url", &url, "Hi."];
    let json = [&call[..], &["--json"]].concat();
    let events = ["decode", "--framing", "sse", "/dev/null"];
    let answer = ["decode", "--dialect", "ollama", "/dev/null"];
    for arguments in [&call[..], &json, &events, &answer] {
        let full = OpenOptions::new().write(true).open("/dev/full").expect("a full device");
        let only_read = File::open("/dev/null").expect("a device");
        for (stdout, why) in [(full, "No space left on device"), (only_read, "Bad file descriptor")] {
            let child = steadfast(arguments).stdout(stdout).stderr(Stdio::piped()).spawn();
            let ran = finish(child.expect("the program starts"));
            assert_eq!(ran.code, Some(1), "{arguments:?}");
            let said = format!("steadfast: cannot write to stdout: {why}");
            assert!(ran.stderr.starts_with(&said), "{arguments:?}: {}", ran.stderr);
        }
    }
}
