//! Which faults of the call the model finds.

use steadfast::planted::{Fault, plant};
use steadfast_model::shortest;

/// Faults of what the model does not speak of, which the simulator finds
const NOT_SPOKEN_OF: [Fault; 3] = [
    // The calls of the model share no budget, make no header fields, and no proxy forwards them.
    Fault::RefusedRetrySent,
    Fault::FieldsOfEarlierAttemptKept,
    Fault::ProxyTakenForServer,
];

#[test]
fn the_model_finds_planted_faults() {
    let mut missed = Vec::new();
    for fault in Fault::of_calls() {
        plant(Some(*fault));
        let found = shortest(9, None);
        plant(None);
        match found {
            Some((difference, compared)) => println!(
                "model, planted {}: {} events of \"{}\", {compared} compared",
                fault.name(),
                difference.steps.len(),
                difference.case
            ),
            None => missed.push(*fault),
        }
    }
    assert_eq!(missed, NOT_SPOKEN_OF);
}
