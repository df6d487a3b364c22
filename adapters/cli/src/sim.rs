//! `steadfast sim`: random calls in virtual time, and what must always hold of them.

use std::fmt::Write as _;
use std::io::{IsTerminal, stderr};
use std::time::Instant;

use serde_json::{Map, Value, json};
use steadfast_sim::random::{Choices, Coverage, Failure as Found, Plan, Simulator, Violation};

use crate::args::SimArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{is_read, print, print_json};
use crate::plant;
#[cfg(feature = "planted-faults")]
use crate::plant::Plant;
#[cfg(feature = "planted-faults")]
use crate::usage::UsageError;

/// So many runs are played between two words about how far it is
const RUNS_PER_WORD: u64 = 8_192;

/// The most violations that are kept; the others are only counted
const MAX_KEPT: usize = 10;

/// What a command line asked for came to
struct Report {
    simulator: Simulator,
    violations: u64,
    /// The first of them, by their seeds
    kept: Vec<(u64, Violation)>,
    seconds: f64,
}

/// Runs the command
pub(crate) fn run(args: &SimArgs) -> Result<Exit, Failure> {
    #[cfg(feature = "planted-faults")]
    match args.plant {
        Some(Plant::All) if args.replay.is_some() || !args.tape.is_empty() => {
            return Err(UsageError::EveryFaultOnOneRun.into());
        }
        Some(Plant::All) => return plant::run_all(args),
        Some(Plant::One(fault)) => steadfast::planted::plant(Some(fault)),
        None => {}
    }
    if let Some(seed) = args.replay {
        let plan = Plan::draw(&mut Choices::from_seed(seed));
        return replay(args, &plan, Simulator::explain(seed).as_ref());
    }
    if !args.tape.is_empty() {
        return replay(args, &Plan::draw(&mut Choices::from_tape(&args.tape)), None);
    }
    let result = play(args);
    let missing = result.simulator.coverage().missing();
    if args.json {
        is_read(print_json(&result.json(args, &missing)))?;
    } else {
        is_read(print(&result.text(args)))?;
    }
    if !missing.is_empty() {
        eprintln!("{} rows were never met: {}", missing.len(), missing.join(", "));
        if args.runs < Coverage::MIN_RUNS {
            eprintln!("{} runs meet every row", Coverage::MIN_RUNS);
        }
    }
    Ok(if result.violations == 0 && missing.is_empty() { Exit::Completed } else { Exit::Failed })
}

fn play(args: &SimArgs) -> Report {
    let simulator = Simulator::new();
    let mut simulator = if args.digest { simulator.digesting() } else { simulator };
    let shows = stderr().is_terminal();
    let (mut violations, mut kept) = (0, Vec::new());
    let began = Instant::now();
    for number in 0..args.runs {
        let seed = args.seed.wrapping_add(number);
        if let Err(violation) = simulator.run(seed) {
            violations += 1;
            if kept.len() < MAX_KEPT {
                kept.push((seed, violation));
            }
        }
        if shows && number % RUNS_PER_WORD == 0 {
            eprint!("\r{number} of {} runs", args.runs);
        }
    }
    if shows {
        eprint!("\r\x1b[K");
    }
    Report { simulator, violations, kept, seconds: began.elapsed().as_secs_f64() }
}

/// One run, step by step, and the shortest that breaks the same invariant
fn replay(args: &SimArgs, plan: &Plan, found: Option<&Found>) -> Result<Exit, Failure> {
    let played = Simulator::record(plan);
    let exit = if played.violation.is_none() { Exit::Completed } else { Exit::Failed };
    if args.json {
        is_read(print_json(&json!({
            "violation": played.violation.as_ref().map(violation_json),
            "outcomes": played.outcomes,
            "digest": played.digest.to_string(),
            "shortest": found.map(|found| json!({ "tape": found.tape, "violation": violation_json(&found.violation) })),
        })))?;
        return Ok(exit);
    }
    let mut text = format!("{plan}\n{}", played.log());
    // Writing to a string cannot fail.
    if let Some(violation) = &played.violation {
        _ = writeln!(text, "violation: {violation}");
    }
    _ = writeln!(text, "violations={} digest={}", u8::from(played.violation.is_some()), played.digest);
    if let Some(found) = found {
        _ = writeln!(text, "\nThe shortest run that breaks it:\n\n{found}");
        let again = plant::again(args);
        if !again.is_empty() {
            _ = writeln!(text, "with{again}, too");
        }
    }
    is_read(print(&text))?;
    Ok(exit)
}

fn violation_json(violation: &Violation) -> Value {
    json!({
        "invariant": violation.invariant.id(),
        "what": violation.what,
        "call": violation.call,
        "at": violation.at.since_origin().as_secs_f64(),
    })
}

impl Report {
    fn virtual_hours(&self) -> f64 {
        self.simulator.totals().time.as_secs_f64() / 3_600.0
    }

    fn per_second(&self, count: u64) -> f64 {
        (count as f64 / self.seconds.max(f64::MIN_POSITIVE)).round()
    }

    fn text(&self, args: &SimArgs) -> String {
        let totals = self.simulator.totals();
        let mut text = format!(
            "runs={} steps={} virtual_hours={:.1} violations={} runs_per_s={:.0}\ncalls={} calls_per_s={:.0}",
            totals.runs,
            totals.steps,
            self.virtual_hours(),
            self.violations,
            self.per_second(totals.runs),
            totals.calls,
            self.per_second(totals.calls)
        );
        // Writing to a string cannot fail.
        if let Some(digest) = self.simulator.digest() {
            _ = write!(text, " digest={digest}");
        }
        _ = writeln!(text, "\n\n{}", self.simulator.coverage());
        for (seed, violation) in &self.kept {
            _ = writeln!(text, "seed {seed}: {violation}");
        }
        if let Some((seed, _)) = self.kept.first() {
            if let Some(found) = Simulator::explain(*seed) {
                _ = writeln!(text, "\nThe shortest run that breaks the first:\n\n{found}");
            }
            let again = plant::again(args);
            if !again.is_empty() {
                _ = writeln!(text, "with{again}, too");
            }
            _ = writeln!(text, "replay: steadfast sim{again} --replay {seed}");
        }
        text
    }

    fn json(&self, args: &SimArgs, missing: &[String]) -> Value {
        let totals = self.simulator.totals();
        let coverage = self.simulator.coverage();
        let faults = coverage.faults().map(|(fault, hits)| (fault.name().to_owned(), hits.into()));
        let transitions =
            coverage.transitions().map(|((from, to), hits)| (format!("{from:?} -> {to:?}"), hits.into()));
        let kept = self.kept.iter().map(|(seed, violation)| {
            let mut kept = violation_json(violation);
            kept["seed"] = (*seed).into();
            kept
        });
        let first = self.kept.first().map(|(seed, _)| *seed);
        let shortest = first.and_then(Simulator::explain).map(|found| {
            json!({
                "tape": found.tape,
                "violation": violation_json(&found.violation),
                "schedule": found.to_string(),
            })
        });
        json!({
            "runs": totals.runs,
            "calls": totals.calls,
            "steps": totals.steps,
            "virtual_hours": self.virtual_hours(),
            "violations": self.violations,
            "first_violations": kept.collect::<Vec<_>>(),
            "replay": first.map(|seed| format!("steadfast sim{} --replay {seed}", plant::again(args))),
            "shortest": shortest,
            "runs_per_s": self.per_second(totals.runs),
            "calls_per_s": self.per_second(totals.calls),
            "digest": self.simulator.digest().map(|digest| digest.to_string()),
            "faults": faults.collect::<Map<_, _>>(),
            "transitions": transitions.collect::<Map<_, _>>(),
            "never_met": missing,
        })
    }
}
