//! Calls that a build recorded on sockets, under tokio, replay in every other (INV-9).
//!
//! The traces are committed: what a call decided on one machine, another build decides again, byte for byte.
//! Where the steps of a call are to change, `traces/record` makes them anew.

use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;

use steadfast::trace::{Finish, Trace};

#[test]
fn traces_of_other_builds_replay_byte_for_byte() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("traces");
    let (mut calls, mut events, mut steps) = (0, 0, 0);
    for entry in fs::read_dir(&folder).expect("the folder of the traces") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "jsonl") {
            continue;
        }
        let name = path.display();
        let trace = Trace::read(BufReader::new(File::open(&path).expect("a trace"))).expect("a trace");
        let replay = trace.replay(|_, _| {});
        assert_eq!(replay.difference, None, "{name}");
        assert_eq!(replay.finish, Finish::Whole, "{name}");
        assert!(replay.outcome.is_some(), "{name}");
        (calls, events, steps) = (calls + 1, events + replay.events, steps + replay.steps);
    }
    assert_eq!(calls, 8);
    println!("sim: {calls} calls recorded under tokio replayed, {events} events, {steps} steps");
}
