//! Which faults of the relay's exchange its model finds.

use steadfast::planted::{Fault, plant};
use steadfast_model::relay::shortest;

#[test]
fn the_model_finds_the_faults_planted_in_the_relay() {
    let mut missed = Vec::new();
    for fault in Fault::of_the_relay() {
        plant(Some(*fault));
        let found = shortest(12);
        plant(None);
        match found {
            Some(difference) => {
                let (events, case) = (difference.inputs.len(), difference.case);
                println!("model, planted {}: {events} events of \"{case}\"", fault.name());
            }
            None => missed.push(fault.name()),
        }
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
}
