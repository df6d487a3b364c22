//! `steadfast demo`: every embedded scenario, and whether each ended as it must.
//!
//! | file | subject |
//! |---|---|
//! | `on_tokio`, `on_smol`, `on_blocking` | the drivers on real sockets |
//! | `table` | the results for people |
//! | `matrix` | the results of several drivers for people: scenario by driver |
//! | `json` | the results for programs |

mod json;
mod matrix;
mod on_blocking;
mod on_smol;
mod on_tokio;
mod table;

use std::io::{self, IsTerminal, Write};
use std::time::Instant;

use steadfast_scenario::Scenario;
use steadfast_suite::{Driver, Played, Simulated, play_all};

use crate::args::{DemoArgs, DemoDriver};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{is_read, print, print_json};
use crate::usage::UsageError;

use on_blocking::Blocking;
use on_smol::Smol;
use on_tokio::Tokio;

/// All drivers, in the order of the table's columns
const DRIVERS: [&dyn Driver; 4] = [&Simulated, &Tokio, &Smol, &Blocking];

/// Runs the command
pub(crate) fn run(args: &DemoArgs) -> Result<Exit, Failure> {
    let scenarios = chosen(&args.only)?;
    if args.list {
        is_read(print(&table::list(&scenarios)))?;
        return Ok(Exit::Completed);
    }
    let drivers = drivers(&args.driver);
    let began = Instant::now();
    let counter = Counter { shown: io::stderr().is_terminal(), of: scenarios.len() * drivers.len() };
    let played = play_all(&scenarios, &drivers, |count| counter.show(count));
    drop(counter);
    let elapsed = began.elapsed();
    is_read(if args.json {
        print_json(&json::results(&played, elapsed))
    } else {
        let coloured = io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        print(&if drivers.len() == 1 {
            table::results(&played, elapsed, coloured)
        } else {
            matrix::results(&played, drivers.len(), elapsed, coloured)
        })
    })?;
    Ok(if played.iter().all(Played::agrees) { Exit::Completed } else { Exit::Failed })
}

/// The drivers of those names, each once and in the order of the columns
fn drivers(names: &[DemoDriver]) -> Vec<&'static dyn Driver> {
    let is_chosen = |driver: &&dyn Driver| {
        names.iter().any(|name| match name {
            DemoDriver::All => true,
            DemoDriver::Sim => driver.name() == "sim",
            DemoDriver::Tokio => driver.name() == "tokio",
            DemoDriver::Smol => driver.name() == "smol",
            DemoDriver::Blocking => driver.name() == "blocking",
        })
    };
    DRIVERS.into_iter().filter(is_chosen).collect()
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

/// Counts on a terminal how many scenarios are done
struct Counter {
    shown: bool,
    of: usize,
}

impl Counter {
    fn show(&self, count: usize) {
        if self.shown {
            // A terminal that is gone is no reason to stop.
            _ = write!(io::stderr(), "\r\x1b[2K{count} of {} played", self.of);
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
