//! Many scenarios with many drivers, at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use steadfast_scenario::Scenario;

use crate::driver::Driver;
use crate::play::{Played, play};

/// So many are played at once with each driver: most of their time they wait
pub const AT_ONCE: usize = 16;

/// Plays each scenario with each driver, and returns what came of it: scenario by scenario, and for
/// each in the order of the drivers
///
/// `progress` is told after each play how many are done.
pub fn play_all(
    scenarios: &[&'static Scenario],
    drivers: &[&dyn Driver],
    mut progress: impl FnMut(usize),
) -> Vec<Played> {
    let plays = scenarios.len() * drivers.len();
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    let worker = |sender: mpsc::Sender<(usize, Played)>| {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= plays {
                return;
            }
            let (scenario, driver) = (scenarios[number / drivers.len()], drivers[number % drivers.len()]);
            if sender.send((number, play(scenario, driver))).is_err() {
                return;
            }
        }
    };
    let mut played: Vec<(usize, Played)> = Vec::with_capacity(plays);
    thread::scope(|scope| {
        for _ in 0..(AT_ONCE * drivers.len()).min(plays) {
            let (sender, worker) = (sender.clone(), &worker);
            scope.spawn(move || worker(sender));
        }
        drop(sender);
        for done in receiver {
            played.push(done);
            progress(played.len());
        }
    });
    played.sort_by_key(|(number, _)| *number);
    played.into_iter().map(|(_, played)| played).collect()
}
