//! The same events to a new call, and whether it takes the same steps (INV-9).

use super::reader::{Finish, Recorded, Trace};
use super::step::StepLine;
use crate::call::Call;
use crate::machine::{Drain, Machine, Step};
use crate::outcome::Outcome;
use crate::time::Instant;

/// What came of a replay
#[derive(Clone, Debug)]
pub struct Replay {
    /// Events that were fed
    pub events: u64,
    /// Steps that were taken, and were the recorded ones
    pub steps: u64,
    /// The first line that did not come out as it was recorded; none where all did
    pub difference: Option<Difference>,
    /// How the call ended, where the trace goes so far
    pub outcome: Option<Outcome>,
    /// How the trace ends
    pub finish: Finish,
}

/// A line that a replay did not come to
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The number of the line, from 1
    pub line: u64,
    /// The line, as it stands in the trace
    pub recorded: String,
    /// What happened in its place
    pub replayed: String,
}

/// A line of a replay as it is gone through
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// What the call is told, as the debug form of an event has it
    Event(&'a str),
    /// A step that it took, as in [`StepLine`]
    Step(&'a str),
}

impl Replay {
    /// Whether every step was the recorded one, as far as the trace goes
    pub fn is_identical(&self) -> bool {
        self.difference.is_none()
    }

    fn differ(&mut self, line: u64, recorded: &str, replayed: String) {
        self.difference = Some(Difference { line, recorded: recorded.to_owned(), replayed });
    }
}

impl Trace {
    /// Feeds the recorded events to a new call, and compares each step with the recorded one
    ///
    /// Stops at the first difference. Where the recorded driver took the steps after an event in several
    /// goes, so does this: an event comes after as many steps as it came after.
    pub fn replay(&self, mut observe: impl FnMut(Instant, Line<'_>)) -> Replay {
        let mut replay =
            Replay { events: 0, steps: 0, difference: None, outcome: None, finish: self.finish() };
        let mut call = self.call();
        let mut lines = self.lines.iter().peekable();
        while let Some((line, recorded)) = lines.next() {
            let happened = match recorded {
                Recorded::Event(happened) => happened,
                // Only before the first event: the steps after each are taken below.
                Recorded::Step(step) => {
                    replay.differ(*line, step, "nothing, before any event".to_owned());
                    return replay;
                }
            };
            let (at, event) = (happened.at, happened.event());
            let told = format!("{event:?}");
            observe(at, Line::Event(&told));
            let mut drain = match call.handle(at, event) {
                Ok(drain) => drain,
                Err(misuse) => {
                    replay.differ(*line, &told, format!("refused: {misuse}"));
                    return replay;
                }
            };
            replay.events += 1;
            while let Some((line, Recorded::Step(recorded))) =
                lines.next_if(|(_, recorded)| matches!(recorded, Recorded::Step(_)))
            {
                let replayed = step(&mut drain, &mut replay.outcome);
                if *replayed != **recorded {
                    replay.differ(*line, recorded, replayed);
                    return replay;
                }
                observe(at, Line::Step(&replayed));
                replay.steps += 1;
            }
        }
        // A recording is whole once the call is over, so its last step says so.
        if self.finish() == Finish::Whole && replay.outcome.is_none() {
            let last = self.lines.last().map_or(1, |(line, _)| *line);
            replay.differ(
                last + 1,
                "the end, with no step that ends the call",
                "the call is not over".to_owned(),
            );
        }
        replay
    }
}

/// Takes a step, and returns its line
fn step(drain: &mut Drain<'_, Call>, outcome: &mut Option<Outcome>) -> String {
    let step = drain.next();
    let line = StepLine::of(&step).to_string();
    if let Step::Done(done) = step {
        *outcome = Some(done);
    }
    line
}
