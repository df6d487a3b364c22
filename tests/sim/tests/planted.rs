//! Every planted fault is found by an invariant, and every invariant finds one; the generator does not know
//! which is on.

use std::collections::BTreeSet;

use steadfast::planted::{Fault, plant};
use steadfast_sim::random::{Invariant, Simulator};

/// Within so many runs
const MAX_RUNS: u64 = 20_000;

#[test]
fn every_fault_is_found_and_every_invariant_finds_one() {
    let (mut missed, mut found_by) = (Vec::new(), BTreeSet::new());
    println!("{:<32} {:<14} {:>8}", "fault", "invariant", "runs");
    for fault in Fault::of_calls() {
        plant(Some(*fault));
        let mut simulator = Simulator::new();
        let found = (1..=MAX_RUNS).find_map(|seed| Some((seed, simulator.run(seed).err()?)));
        plant(None);
        // What fails without the fault as well has not found it.
        match found.filter(|(seed, _)| Simulator::new().run(*seed).is_ok()) {
            Some((runs, violation)) => {
                println!("{:<32} {:<14} {runs:>8}", fault.name(), violation.invariant.id());
                println!("    {}", violation.what);
                found_by.insert(violation.invariant);
            }
            None => missed.push(fault.name()),
        }
    }
    assert!(missed.is_empty(), "not found within {MAX_RUNS} runs: {missed:?}");
    let idle: Vec<_> = Invariant::ALL.into_iter().filter(|one| !found_by.contains(one)).collect();
    assert!(idle.is_empty(), "no fault is found by these: {idle:?}");
}
