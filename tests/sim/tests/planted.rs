//! Every planted fault is found by an invariant, and the generator does not know which is on.

use steadfast::planted::{Fault, plant};
use steadfast_sim::random::Simulator;

/// Within so many runs
const MAX_RUNS: u64 = 20_000;

#[test]
fn every_fault_is_found() {
    let mut missed = Vec::new();
    for fault in Fault::ALL {
        plant(Some(*fault));
        let mut simulator = Simulator::new();
        let found = (1..=MAX_RUNS).find_map(|seed| Some((seed, simulator.run(seed).err()?)));
        plant(None);
        // What fails without the fault as well has not found it.
        match found.filter(|(seed, _)| Simulator::new().run(*seed).is_ok()) {
            Some((runs, violation)) => {
                println!("sim, planted {}: {runs} runs, {}", fault.name(), violation.invariant.id());
                println!("    {}", violation.what);
            }
            None => missed.push(fault.name()),
        }
    }
    assert!(missed.is_empty(), "not found within {MAX_RUNS} runs: {missed:?}");
}
