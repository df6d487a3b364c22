//! Random runs of the relay's exchange: nothing is broken, and everything is met.

use steadfast_sim::relay::Simulator;

/// So many runs; as many as a debug build plays in seconds, and ten times that in a release build
const RUNS: u64 = if cfg!(debug_assertions) { 20_000 } else { 200_000 };

#[test]
fn nothing_is_broken_and_every_row_is_met() {
    let mut simulator = Simulator::new();
    for seed in 1..=RUNS {
        if let Err(violation) = simulator.run(seed) {
            panic!("seed {seed}: {violation}\n{}", Simulator::explain(seed).unwrap_or_default());
        }
    }
    let missing = simulator.coverage().missing();
    assert!(missing.is_empty(), "never met: {missing:?}");
    println!("relay: {RUNS} runs, {} steps, no violation\n{}", simulator.steps(), simulator.coverage());
}
