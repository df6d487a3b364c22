//! `steadfast sim --plant`: mistakes that a build for it can switch on, and how each is found.

#[cfg(not(feature = "planted-faults"))]
pub(crate) use without::*;

#[cfg(feature = "planted-faults")]
pub(crate) use with::*;

#[cfg(not(feature = "planted-faults"))]
mod without {
    use crate::args::SimArgs;

    /// What can be planted in this build: nothing
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Plant {}

    /// Errors: always, and how to build the program that can.
    pub(crate) fn parse(_: &str) -> Result<Plant, String> {
        Err("this build has no faults to plant; one that has is run by \
             `cargo run --release --features planted-faults -- sim --plant FAULT`"
            .to_owned())
    }

    pub(crate) fn long_help() -> &'static str {
        "Switch a mistake on, to see it found; takes a build with `--features planted-faults`"
    }

    /// What a command line has to say again for the same fault
    pub(crate) fn again(_: &SimArgs) -> &'static str {
        ""
    }
}

#[cfg(feature = "planted-faults")]
mod with {
    use std::fmt::Write as _;

    use serde_json::json;
    use steadfast::planted::{Fault, plant};
    use steadfast_sim::random::Simulator;

    use crate::args::SimArgs;
    use crate::exit::Exit;
    use crate::failure::Failure;
    use crate::output::{is_read, print, print_json};

    /// What to switch on
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Plant {
        /// Each fault in turn
        All,
        /// This one
        One(Fault),
    }

    /// Errors: there is no fault of that name; the message lists those that there are.
    pub(crate) fn parse(name: &str) -> Result<Plant, String> {
        if name == "all" {
            return Ok(Plant::All);
        }
        let fault: Fault = name.parse().map_err(|error| format!("{error}; `all` plants each in turn"))?;
        if fault.is_of_the_relay() {
            return Err(format!("{name} is a fault of the relay, and calls are what is played here"));
        }
        Ok(Plant::One(fault))
    }

    pub(crate) fn long_help() -> String {
        let mut help = String::from(
            "Switch a mistake on, to see it found; `all` takes each in turn, and says after how many runs \
             which invariant found it:\n",
        );
        for fault in Fault::of_calls() {
            // Writing to a string cannot fail.
            _ = writeln!(help, "  {}", fault.name());
        }
        help
    }

    /// What a command line has to say again for the same fault
    pub(crate) fn again(args: &SimArgs) -> String {
        match args.plant {
            Some(Plant::One(fault)) => format!(" --plant {}", fault.name()),
            Some(Plant::All) | None => String::new(),
        }
    }

    /// Plants each fault in turn and plays until an invariant finds it, or for `--runs` runs
    pub(crate) fn run_all(args: &SimArgs) -> Result<Exit, Failure> {
        let (mut text, mut found, mut missed) = (String::new(), Vec::new(), Vec::new());
        _ = writeln!(text, "{:<32} {:>8}  invariant", "fault", "runs");
        for fault in Fault::of_calls() {
            plant(Some(*fault));
            let mut simulator = Simulator::new();
            let seeds = (0..args.runs).map(|number| args.seed.wrapping_add(number));
            let first = seeds.into_iter().find_map(|seed| Some((seed, simulator.run(seed).err()?)));
            plant(None);
            let runs = simulator.totals().runs;
            // What fails without the fault as well has not found it.
            match first.filter(|(seed, _)| Simulator::new().run(*seed).is_ok()) {
                Some((_, violation)) => {
                    let invariant = violation.invariant.id();
                    _ = writeln!(text, "{:<32} {runs:>8}  {invariant}", fault.name());
                    found.push(json!({
                        "fault": fault.name(),
                        "runs": runs,
                        "invariant": invariant,
                        "what": violation.what,
                    }));
                }
                None => {
                    _ = writeln!(text, "{:<32} {runs:>8}  not found", fault.name());
                    missed.push(fault.name());
                }
            }
        }
        _ = writeln!(text, "{} of {} faults found", found.len(), found.len() + missed.len());
        if args.json {
            is_read(print_json(&json!({ "found": found, "missed": missed })))?;
        } else {
            is_read(print(&text))?;
        }
        Ok(if missed.is_empty() { Exit::Completed } else { Exit::Failed })
    }
}
