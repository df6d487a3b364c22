//! Scenarios under virtual time, where nothing is late and every time is exact.

use steadfast_scenario::{Scenario, Tally};
use steadfast_sim::{Sim, Traces, request};

use crate::driver::{Driver, Ended, Part};

/// `steadfast-sim`, which needs no sockets
#[derive(Clone, Copy, Debug)]
pub struct Simulated;

impl Driver for Simulated {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn play(&self, _: &Part<'_>) -> Result<Vec<Ended>, String> {
        Err("the simulator plays the server too".to_owned())
    }

    fn play_both(&self, scenario: &Scenario, traces: &Traces) -> Option<(Vec<Ended>, Tally)> {
        let mut sim = Sim::new(&scenario.script).traces(traces);
        let ended = (0..scenario.call.calls).map(|_| {
            let played = sim.play(request(scenario), &scenario.call);
            let observed = played.observed();
            Ended { outcome: played.outcome, elapsed: observed.elapsed, turn_at: observed.turn_at }
        });
        let ended = ended.collect();
        Some((ended, sim.tally()))
    }
}
