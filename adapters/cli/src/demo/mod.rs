//! `steadfast demo`: every embedded scenario over real sockets, and whether each ended as it must.
//!
//! | file | subject |
//! |---|---|
//! | `play` | one scenario: its server, its calls, and where they differ from what the file says |
//! | `driver` | what a driver has to do in a scenario |
//! | `on_tokio` | the driver on tokio |
//! | `table` | the results for people |
//! | `json` | the results for programs |

mod driver;
mod json;
mod on_tokio;
mod play;
mod table;

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use steadfast_scenario::Scenario;

use crate::args::DemoArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{is_read, print, print_json};
use crate::usage::UsageError;

use driver::Driver;
use on_tokio::Tokio;
use play::{Played, play};

/// So many scenarios are played at once
const AT_ONCE: usize = 16;

/// Runs the command
pub(crate) fn run(args: &DemoArgs) -> Result<Exit, Failure> {
    let scenarios = chosen(&args.only)?;
    if args.list {
        is_read(print(&table::list(&scenarios)))?;
        return Ok(Exit::Completed);
    }
    let began = Instant::now();
    let played = play_all(&scenarios, &Tokio);
    let elapsed = began.elapsed();
    is_read(if args.json {
        print_json(&json::results(&played, elapsed))
    } else {
        let coloured = io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        print(&table::results(&played, elapsed, coloured))
    })?;
    let agree = played.iter().all(|played| played.differences.is_empty());
    Ok(if agree { Exit::Completed } else { Exit::Failed })
}

/// The scenarios of those names, or all of them
fn chosen(only: &[String]) -> Result<Vec<&'static Scenario>, UsageError> {
    if only.is_empty() {
        return Ok(steadfast_scenario::all().iter().collect());
    }
    let find = |name: &String| {
        steadfast_scenario::find(name).ok_or_else(|| UsageError::NoScenario {
            name: name.clone(),
            nearest: steadfast_scenario::nearest(name),
        })
    };
    only.iter().map(find).collect()
}

/// Plays them all, [`AT_ONCE`] at a time, and returns them in the order given
fn play_all(scenarios: &[&'static Scenario], driver: &dyn Driver) -> Vec<Played> {
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    let worker = |sender: mpsc::Sender<(usize, Played)>| {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(scenario) = scenarios.get(number) else { return };
            if sender.send((number, play(scenario, driver))).is_err() {
                return;
            }
        }
    };
    let mut played: Vec<(usize, Played)> = thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(scenarios.len()) {
            let (sender, worker) = (sender.clone(), &worker);
            scope.spawn(move || worker(sender));
        }
        drop(sender);
        let counter = Counter { shown: io::stderr().is_terminal(), of: scenarios.len() };
        receiver
            .into_iter()
            .enumerate()
            .inspect(|(count, _)| counter.show(count + 1))
            .map(|(_, done)| done)
            .collect()
    });
    played.sort_by_key(|(number, _)| *number);
    played.into_iter().map(|(_, played)| played).collect()
}

/// Counts on a terminal how many scenarios are done
struct Counter {
    shown: bool,
    of: usize,
}

impl Counter {
    fn show(&self, count: usize) {
        if self.shown {
            // A terminal that is gone is no reason to stop.
            _ = write!(io::stderr(), "\r\x1b[2K{count} of {} scenarios played", self.of);
        }
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        if self.shown {
            _ = write!(io::stderr(), "\r\x1b[2K");
        }
    }
}
