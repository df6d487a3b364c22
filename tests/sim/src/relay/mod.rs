//! The relay's exchange under random play: one app's connection, providers that do what providers do, and
//! a network between them, in virtual time.
//!
//! | file | subject |
//! |---|---|
//! | `plan.rs` | [`Plan`]: what the app and the providers do, drawn from a tape |
//! | `messages.rs` | requests and answers as they go over the wire, and what is to become of them |
//! | `peers.rs` | both ends: what has come, what they take, and when |
//! | `world.rs` | one run: the driver, and the order of events |
//! | `watch.rs` | the invariants that hold at each step |
//! | `ruling.rs` | the invariants of an exchange that is over |
//! | `coverage.rs` | how often each state, ending and fault was met |
//!
//! What happens when is drawn from the same tape as the plan, so a tape alone replays a run, and a shorter
//! one is a simpler run.

mod coverage;
mod messages;
mod peers;
mod plan;
mod ruling;
mod watch;
mod world;

use std::fmt;

use steadfast::time::Instant;

pub use self::coverage::Coverage;
pub use self::plan::Plan;
use self::world::World;
use crate::random::{Choices, shrink};

/// What holds of every exchange
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Invariant {
    /// Every wait has a deadline, and it is the one that the limits say
    Deadline,
    /// The run ends, and each expiry gets on
    Ends,
    /// One `Over` for each request that began, one `Done`, nothing behind it
    Once,
    /// Nothing is sent again but what rule RLY-2 allows
    Resend,
    /// What the app got is what the provider sent, or one answer of the relay's own
    Answer,
    /// What the provider got is what the app sent
    Request,
    /// What is told of an exchange is what happened
    Ruling,
    /// Every connection is closed once, and kept only where it can carry another request
    Closed,
    /// A side is not read while bytes for the other side wait
    BackPressure,
    /// What is held is one read, the heads, and the body that is kept
    Memory,
    /// A driver that keeps the contract is not told that it breaks it
    Contract,
    /// The same events give the same steps
    Same,
}

impl Invariant {
    /// All of them
    pub const ALL: [Self; 12] = [
        Self::Deadline,
        Self::Ends,
        Self::Once,
        Self::Resend,
        Self::Answer,
        Self::Request,
        Self::Ruling,
        Self::Closed,
        Self::BackPressure,
        Self::Memory,
        Self::Contract,
        Self::Same,
    ];
}

/// An invariant that did not hold
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which
    pub invariant: Invariant,
    /// What was seen
    pub what: String,
    /// When
    pub at: Instant,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {:?}: {}", self.invariant, self.at.since_origin(), self.what)
    }
}

/// Plays run after run, and counts what is met
#[derive(Default)]
pub struct Simulator {
    coverage: Coverage,
    steps: u64,
}

impl Simulator {
    /// One that has met nothing
    pub fn new() -> Self {
        Self::default()
    }

    /// Plays the run of a seed, twice where it is one of [`REPLAYED`]
    ///
    /// Errors: an invariant that did not hold.
    pub fn run(&mut self, seed: u64) -> Result<(), Violation> {
        let (first, ended) = self.play(Choices::from_seed(seed));
        ended?;
        if seed.is_multiple_of(REPLAYED) {
            let (again, ended) = Self::new().play(Choices::from_seed(seed));
            ended?;
            if first != again {
                let what = "a second run of the same seed took other steps".to_owned();
                return Err(Violation { invariant: Invariant::Same, what, at: Instant::ORIGIN });
            }
        }
        Ok(())
    }

    /// Plays the run of a tape
    ///
    /// Errors: an invariant that did not hold.
    pub fn run_tape(&mut self, tape: &[u32]) -> Result<(), Violation> {
        self.play(Choices::from_tape(tape)).1
    }

    fn play(&mut self, choices: Choices<'_>) -> (u64, Result<(), Violation>) {
        let mut world = World::new(choices, &mut self.coverage, false);
        let ended = world.run();
        self.steps += world.steps();
        (world.digest(), ended)
    }

    /// How often each row was met
    pub fn coverage(&self) -> &Coverage {
        &self.coverage
    }

    /// Steps that were taken
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The shortest run that fails as the run of `seed` does: its tape, its plan and its events
    pub fn explain(seed: u64) -> Option<String> {
        let mut coverage = Coverage::default();
        let mut world = World::new(Choices::from_seed(seed).recorded(), &mut coverage, false);
        let violation = world.run().err()?;
        let fails = |tape: &[u32]| {
            let found = Simulator::new().run_tape(tape);
            found.is_err_and(|found| found.invariant == violation.invariant)
        };
        let tape = shrink(world.into_tape(), fails);
        Self::explain_tape(&tape)
    }

    /// What is wrong with the run of a tape, and its events
    pub fn explain_tape(tape: &[u32]) -> Option<String> {
        let mut coverage = Coverage::default();
        let mut world = World::new(Choices::from_tape(tape), &mut coverage, true);
        let violation = world.run().err()?;
        Some(format!("{violation}\ntape {tape:?}\n{}", world.log()))
    }
}

/// One in so many seeds is played twice
pub const REPLAYED: u64 = 8;
