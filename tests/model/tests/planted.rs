//! Which faults of the call the model finds.

use steadfast::planted::{Fault, plant};
use steadfast_model::shortest;

#[test]
fn the_model_finds_planted_faults() {
    let mut missed = Vec::new();
    for fault in Fault::ALL {
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
            None => missed.push(fault.name()),
        }
    }
    println!("missed: {missed:?}");
    assert!(missed.is_empty());
}
