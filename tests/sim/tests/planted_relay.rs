//! Every fault that is planted in the relay's exchange is found, by a generator that does not know which is on.

use steadfast::planted::{Fault, plant};
use steadfast_sim::relay::Simulator;

/// Within so many runs
const MAX_RUNS: u64 = 20_000;

#[test]
fn every_fault_of_the_relay_is_found() {
    let mut missed = Vec::new();
    println!("{:<28} {:<14} {:>8}", "fault", "invariant", "runs");
    for fault in Fault::of_the_relay() {
        plant(Some(*fault));
        let mut simulator = Simulator::new();
        let found = (1..=MAX_RUNS).find_map(|seed| Some((seed, simulator.run(seed).err()?)));
        plant(None);
        // What fails without the fault as well has not found it.
        match found.filter(|(seed, _)| Simulator::new().run(*seed).is_ok()) {
            Some((runs, violation)) => {
                println!("{:<28} {:<14} {runs:>8}", fault.name(), format!("{:?}", violation.invariant));
            }
            None => missed.push(fault.name()),
        }
    }
    assert!(missed.is_empty(), "not found within {MAX_RUNS} runs: {missed:?}");
}
