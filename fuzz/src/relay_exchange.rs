//! Tapes into the simulator of the relay's exchange: an app, providers and a network, and a driver that keeps
//! the contract.

use steadfast_sim::relay::Simulator;

/// A tape, two bytes a number, from which a run is drawn
///
/// Every invariant of the exchange holds at every step.
pub fn relay_exchange(data: &[u8]) {
    let numbers = data.chunks_exact(2).map(|pair| u32::from(u16::from_le_bytes([pair[0], pair[1]])));
    let tape: Vec<u32> = numbers.collect();
    if let Err(violation) = Simulator::new().run_tape(&tape) {
        panic!("{violation}\n{}", Simulator::explain_tape(&tape).unwrap_or_default());
    }
}
