//! The program, run as a process against scripted servers.

use std::io::{Read, Write};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use steadfast_mock::Mock;
use steadfast_scenario::{Dialect, Script, Shape};

/// No wait of these tests is meant to take so long
pub(crate) const CAP: Duration = Duration::from_secs(30);

/// The program with these arguments and nothing in its environment
pub(crate) fn steadfast(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_steadfast"));
    command.args(arguments).env_clear().stdin(Stdio::null());
    command
}

/// What a run of the program came to
#[derive(Debug, PartialEq)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("text");
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

pub(crate) fn run(command: &mut Command) -> Ran {
    command.output().expect("the program runs").into()
}

/// Waits for the end of a child whose output goes to pipes
pub(crate) fn finish(child: Child) -> Ran {
    child.wait_with_output().expect("the program ends").into()
}

/// Starts the program with its output in pipes
pub(crate) fn spawn(command: &mut Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts")
}

/// Reads from a pipe until `text` has come
pub(crate) fn await_text(pipe: &mut impl Read, text: &str) {
    let mut read = Vec::new();
    while !String::from_utf8_lossy(&read).contains(text) {
        let mut byte = [0];
        assert_eq!(pipe.read(&mut byte).expect("a pipe"), 1, "it ended with {read:?}");
        read.extend(byte);
    }
}

/// What `decode` with these arguments makes of `input`, given on stdin
pub(crate) fn decode(arguments: &[&str], input: &[u8]) -> Ran {
    let mut child = spawn(steadfast(&["decode"]).args(arguments).arg("-").stdin(Stdio::piped()));
    // One that does not like its arguments does not read.
    _ = child.stdin.take().expect("a pipe").write_all(input);
    finish(child)
}

/// Sends a signal, such as `INT`
pub(crate) fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status();
    assert!(sent.expect("a shell's kill").success());
}

/// Waits for the end of a child, and kills it where it takes too long
pub(crate) fn end_of(child: &mut Child, mut meanwhile: impl FnMut(&Child)) -> Option<i32> {
    let until = Instant::now() + CAP;
    loop {
        if let Some(status) = child.try_wait().expect("a child") {
            return status.code();
        }
        if Instant::now() > until {
            child.kill().expect("it can be killed");
            panic!("the program did not end");
        }
        meanwhile(child);
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A server that plays this script, given as TOML without its name
pub(crate) fn server(text: &str) -> Mock {
    let script = Script::parse(&format!("name = \"x\"\nabout = \"a test\"\n{text}")).expect("a valid script");
    Mock::start(&script, None).expect("the server starts")
}

/// The server of an embedded scenario, and the arguments of `call` that make its call
pub(crate) fn scenario(name: &str) -> (Mock, Vec<String>) {
    let scenario = steadfast_scenario::find(name).expect("a scenario of that name");
    let mock = Mock::start(&scenario.script, None).expect("the server starts");
    let provider = match scenario.call.dialect {
        Dialect::OpenaiChat => "openai",
        Dialect::OpenaiResponses => "responses",
        Dialect::Anthropic => "anthropic",
        Dialect::Gemini => "gemini",
    };
    let mut arguments: Vec<String> =
        ["call", "--provider", provider, "--base-url", &mock.base_url(), "Hi."].map(str::to_owned).into();
    for (name, value) in &scenario.call.config {
        arguments.extend(["--config".to_owned(), format!("{name}={value}")]);
    }
    if scenario.call.shape == Shape::Unary {
        arguments.push("--no-stream".to_owned());
    }
    (mock, arguments)
}

/// Runs `call` as an embedded scenario has it
pub(crate) fn call_scenario(name: &str, more: &[&str]) -> Ran {
    let (_mock, arguments) = scenario(name);
    run(steadfast(&[]).args(arguments).args(more))
}
