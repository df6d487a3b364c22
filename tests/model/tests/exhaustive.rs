//! Every short sequence of events on the call and on the model, and what that can find.

use steadfast_model::{Mutation, exhaust, shortest, walk};

/// As many as the machine of a continuous integration has
const THREADS: usize = 2;

/// The program goes deeper, and takes its time
const K: usize = if cfg!(debug_assertions) { 7 } else { 10 };

#[test]
fn no_short_sequence_differs_from_the_model() {
    let all = exhaust(K, THREADS);
    println!("{all}");
    assert!(all.differences.is_empty());
    assert!(all.reports.iter().all(|(_, report)| report.sequences > 500));
}

/// What the search merges by the model's state may differ by the call's own
#[test]
fn no_random_sequence_differs_though_nothing_is_merged() {
    let random = walk(1, 400, 40, THREADS);
    println!("at random, nothing merged: {random}");
    assert!(random.differences.is_empty());
}

/// A check that cannot fail is worth nothing
#[test]
fn a_model_that_is_wrong_in_one_rule_is_found_out() {
    for mutation in Mutation::ALL {
        let (difference, compared) =
            shortest(10, Some(*mutation)).unwrap_or_else(|| panic!("{mutation:?} makes no difference"));
        let last = difference.steps.last().expect("a difference has a last step");
        assert_ne!(last.2, last.3, "{difference}");
        println!("model, wrong in {mutation:?}: {} events, {compared} compared", difference.steps.len());
    }
}
