//! Many runs, one after the other.

use std::fmt::{self, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use steadfast::outcome::Outcome;
use steadfast::time::Instant;

use super::choices::Choices;
use super::coverage::Coverage;
use super::invariants::{Invariant, Violation};
use super::log::{Digest, Log};
use super::plan::Plan;
use super::shrink::shrink;
use super::world::World;

/// Plays plans and counts what they come to
///
/// It uses its memory again from run to run, so make one for each thread and keep it.
pub struct Simulator {
    world: World,
    plan: Plan,
    totals: Totals,
}

/// What all runs of a [`Simulator`] came to
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Runs that were played
    pub runs: u64,
    /// Calls in them
    pub calls: u64,
    /// Steps that the machines took
    pub steps: u64,
    /// Time that passed in the world
    pub time: Duration,
}

impl Totals {
    /// Adds what other runs came to
    pub fn add(&mut self, other: &Self) {
        self.runs += other.runs;
        self.calls += other.calls;
        self.steps += other.steps;
        self.time += other.time;
    }
}

/// A run that broke an invariant
#[derive(Clone, Debug)]
pub struct Failure {
    /// What was broken
    pub violation: Violation,
    /// The tape of the shortest plan that was found to break the same invariant
    pub tape: Vec<u32>,
    /// That plan
    pub plan: Plan,
    /// What happened in it: the trace of each of its calls
    pub log: String,
}

/// A run that was recorded
#[derive(Clone, Debug)]
pub struct Played {
    /// What was broken, if anything
    pub violation: Option<Violation>,
    /// The outcomes of its calls, in order
    pub outcomes: Vec<Outcome>,
    /// The trace of each of its calls, in order; that of a call that broke something ends there
    pub traces: Vec<Vec<u8>>,
    /// All of them as a number
    pub digest: Digest,
}

impl Played {
    /// The traces, each under its call's number
    pub fn log(&self) -> String {
        let mut log = String::new();
        for (number, trace) in self.traces.iter().enumerate() {
            // Writing to a string cannot fail.
            _ = write!(log, "call {}:\n{}", number + 1, String::from_utf8_lossy(trace));
        }
        log
    }
}

impl Simulator {
    /// A simulator that has played nothing
    pub fn new() -> Self {
        Self {
            world: World::new(),
            plan: Plan::draw(&mut Choices::from_tape(&[])),
            totals: Totals::default(),
        }
    }

    /// Plays the plan that `seed` gives
    ///
    /// # Errors
    ///
    /// The first invariant that did not hold. [`Simulator::explain`] has the schedule.
    pub fn run(&mut self, seed: u64) -> Result<(), Violation> {
        let mut plan = std::mem::replace(&mut self.plan, Plan::empty());
        plan.redraw(&mut Choices::from_seed(seed));
        let played = self.play(&plan);
        self.plan = plan;
        played
    }

    /// Plays a plan
    ///
    /// # Errors
    ///
    /// The first invariant that did not hold.
    pub fn play(&mut self, plan: &Plan) -> Result<(), Violation> {
        let world = &mut self.world;
        let played = catch_unwind(AssertUnwindSafe(|| world.play(plan)));
        let played = played.unwrap_or_else(|panic| {
            self.renew();
            let words = panic.downcast_ref::<String>().map(String::as_str);
            let words = words.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no words");
            let what = format!("a panic: {words}");
            Err(Violation { invariant: Invariant::Contract, what, call: 0, at: Instant::ORIGIN })
        });
        self.totals.runs += 1;
        self.totals.calls = self.world.calls;
        self.totals.steps = self.world.steps;
        self.totals.time += played.as_ref().copied().unwrap_or_default();
        played.map(|_| ())
    }

    /// After a panic nothing of the world can be relied on but its counts
    fn renew(&mut self) {
        let old = std::mem::replace(&mut self.world, World::new());
        (self.world.calls, self.world.steps) = (old.calls, old.steps);
        self.world.coverage = old.coverage;
        (self.world.log, self.world.outcomes) = (old.log, old.outcomes);
    }

    /// What all runs came to so far
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Which faults and transitions they met
    pub fn coverage(&self) -> &Coverage {
        &self.world.coverage
    }

    /// Keeps a digest of the traces of all calls from now on, which costs much of the speed
    #[must_use]
    pub fn digesting(mut self) -> Self {
        self.world.log = Log::digesting();
        self
    }

    /// The digest of all traces since [`Simulator::digesting`]
    pub fn digest(&self) -> Option<Digest> {
        self.world.log.digest()
    }

    /// Plays a plan, and records its calls
    pub fn record(plan: &Plan) -> Played {
        let mut simulator = Self::new();
        simulator.world.log = Log::of_traces();
        simulator.world.outcomes = Some(Vec::new());
        let violation = simulator.play(plan).err();
        let mut outcomes = simulator.world.outcomes.take().unwrap_or_default();
        outcomes.sort_by_key(|(number, _)| *number);
        let outcomes = outcomes.into_iter().map(|(_, outcome)| outcome).collect();
        let traces = simulator.world.log.traces();
        Played { violation, outcomes, traces, digest: simulator.digest().unwrap_or_default() }
    }

    /// The shortest plan that a bounded search finds to break the same invariant as that of `seed`
    ///
    /// `None` where that breaks none.
    pub fn explain(seed: u64) -> Option<Failure> {
        let mut choices = Choices::from_seed(seed).recorded();
        Plan::draw(&mut choices);
        Self::explain_tape(choices.into_tape())
    }

    /// As [`Simulator::explain`], for the plan that is drawn from `tape`
    pub fn explain_tape(tape: Vec<u32>) -> Option<Failure> {
        let mut simulator = Self::new();
        let invariant = simulator.play(&Plan::draw(&mut Choices::from_tape(&tape))).err()?.invariant;
        let tape = shrink(tape, |tape| {
            let plan = Plan::draw(&mut Choices::from_tape(tape));
            simulator.play(&plan).is_err_and(|violation| violation.invariant == invariant)
        });
        let plan = Plan::draw(&mut Choices::from_tape(&tape));
        let played = Self::record(&plan);
        let log = played.log();
        Some(Failure { violation: played.violation?, tape, plan, log })
    }
}

impl Default for Simulator {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Simulator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulator").field("totals", &self.totals).finish_non_exhaustive()
    }
}

impl Failure {
    /// The tape, as `steadfast sim --tape` takes it
    pub fn tape(&self) -> String {
        self.tape.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
    }
}

/// The invariant, the plan, what happens in it, and the command that plays it again
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n", self.violation)?;
        writeln!(f, "{}", self.plan)?;
        f.write_str(&self.log)?;
        writeln!(f, "that run alone: steadfast sim --tape {}", self.tape())
    }
}
