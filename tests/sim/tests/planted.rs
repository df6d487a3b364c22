//! Every planted fault is found by an invariant, and the generator does not know which is on.

use steadfast::planted::{Fault, plant};
use steadfast_sim::random::Simulator;

/// Within so many runs
const MAX_RUNS: u64 = 20_000;

#[test]
fn every_fault_is_found_and_nothing_else() {
    let mut missed = Vec::new();
    println!("{:<32} {:>8}  invariant", "fault", "runs");
    for fault in Fault::ALL {
        plant(Some(*fault));
        let mut simulator = Simulator::new();
        let found = (1..=MAX_RUNS).find_map(|seed| Some((seed, simulator.run(seed).err()?)));
        match found {
            Some((runs, violation)) => {
                println!("{:<32} {runs:>8}  {}: {}", fault.name(), violation.invariant, violation.what);
            }
            None => missed.push(fault.name()),
        }
    }
    plant(None);
    let mut simulator = Simulator::new();
    for seed in 1..=MAX_RUNS {
        simulator.run(seed).expect("no fault is planted");
    }
    assert!(missed.is_empty(), "not found within {MAX_RUNS} runs: {missed:?}");
}
