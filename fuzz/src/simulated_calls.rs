//! Tapes into the simulator: a server, a network and clients that keep the driver's contract.

use steadfast_sim::random::{Choices, Plan, Simulator};

/// A tape, two bytes a number, from which a plan of the simulator is drawn
///
/// Every invariant of the simulator holds at every step.
pub fn simulated_calls(data: &[u8]) {
    let numbers = data.chunks_exact(2).map(|pair| u32::from(u16::from_le_bytes([pair[0], pair[1]])));
    let tape: Vec<u32> = numbers.collect();
    let plan = Plan::draw(&mut Choices::from_tape(&tape));
    if let Err(violation) = Simulator::new().play(&plan) {
        panic!("{violation}\n{plan:#?}\n{}", Simulator::record(&plan).log());
    }
}
