//! Every short sequence of events on the relay's exchange and on its model.

use steadfast_model::relay::{exhaust, walk};

/// As deep as a build gets in seconds
const K: usize = if cfg!(debug_assertions) { 8 } else { 14 };

#[test]
fn no_short_sequence_differs_from_the_rules() {
    let reports = exhaust(K).unwrap_or_else(|difference| panic!("{difference}"));
    for (name, report) in &reports {
        let (sequences, states, compared) = (report.sequences, report.states, report.compared);
        println!("model: relay, {name}: k={K}, sequences={sequences}, states={states}, compared={compared}");
        assert!(report.sequences > 500, "{name}");
    }
}

/// What the search merges by the model's state may differ by the exchange's own
#[test]
fn no_random_sequence_differs_though_nothing_is_merged() {
    let compared = walk(1, 1_000, 60).unwrap_or_else(|difference| panic!("{difference}"));
    println!("model: relay at random, nothing merged: compared={compared}");
}
