//! `steadfast mock`: a scenario's script, served to anyone's client.

use std::fs;
use std::sync::mpsc::sync_channel;
use std::thread;

use serde::Serialize;
use steadfast_mock::{Mock, Sighting};
use steadfast_scenario::{Script, Tally};

use crate::args::MockArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::interrupt::{Listen, on_interrupt};
use crate::output::{is_read, print_json};
use crate::usage::UsageError;

/// So many lines wait to be printed; then the server waits too
const WAITING_LINES: usize = 1024;

/// The first line: where to connect to, and whom to trust there
#[derive(Serialize)]
struct Listening {
    listening: String,
    base_url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    ca_pem: Option<String>,
}

/// The last line: what was seen in all
#[derive(Serialize)]
#[serde(tag = "event", rename = "summary")]
struct Summary {
    connections: u32,
    requests: u32,
    received: u64,
    blocked_for: f64,
    closed_by_peer: u32,
}

/// Runs the command
pub(crate) fn run(args: &MockArgs) -> Result<Exit, Failure> {
    let script = script(args)?;
    let (sender, lines) = sync_channel::<Sighting>(WAITING_LINES);
    // Lines for a reader that is gone are lost.
    let watcher = move |sighting| drop(sender.send(sighting));
    let port = (args.port > 0).then_some(args.port);
    let mock =
        Mock::watch(&script, port, watcher).map_err(|error| Failure::Listen { port: args.port, error })?;
    let listening = Listening {
        listening: mock.addr().to_string(),
        base_url: mock.base_url(),
        ca_pem: mock.ca_pem().map(str::to_owned),
    };
    let (stop, stopped) = sync_channel(1);
    let stopping = thread::spawn(move || {
        // The one who would have sent is gone only if the program ends anyway.
        _ = stopped.recv();
        mock.shutdown().tally()
    });
    let interrupt = stop.clone();
    on_interrupt(Listen::InterruptAndTerminate, move || {
        // Stopping already, if there is no room.
        _ = interrupt.try_send(());
    })?;
    let mut read = is_read(print_json(&listening))?;
    while read && let Ok(sighting) = lines.recv() {
        read = is_read(print_json(&sighting))?;
    }
    _ = stop.try_send(());
    drop(lines);
    let tally = stopping.join().expect("shutting down does not panic");
    is_read(print_json(&Summary::from(tally)))?;
    Ok(Exit::Completed)
}

fn script(args: &MockArgs) -> Result<Script, UsageError> {
    let path = args.script.display().to_string();
    let text = fs::read_to_string(&args.script)
        .map_err(|error| UsageError::Unreadable { path: path.clone(), error: error.to_string() })?;
    Script::parse(&text).map_err(|error| UsageError::Script { path, error })
}

impl From<Tally> for Summary {
    fn from(tally: Tally) -> Self {
        Self {
            connections: tally.connections,
            requests: tally.requests,
            received: tally.received,
            blocked_for: tally.blocked.as_secs_f64(),
            closed_by_peer: tally.closed_by_peer,
        }
    }
}
