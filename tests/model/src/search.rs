//! Every sequence of events, depth first, with the call beside the model.

use std::collections::HashMap;
use std::fmt;

use steadfast::call::{Request, Timer};
use steadfast::time::Instant;

use crate::model::Model;
use crate::mutation::Mutation;
use crate::state::State;
use crate::subject::Subject;
use crate::terms::{BEGAN, Case, Input, Seen};

/// Seed of every call's pauses
const SEED: u64 = 7;

/// A search through the sequences of one case
///
/// Sequences that lead the model to the same state, with every instant counted from now, are gone on
/// with once only. That is sound as far as the call under test holds nothing that the model does not;
/// [`Search::walk`] takes random sequences with nothing merged, as a check on that.
pub struct Search<'c> {
    case: &'c Case,
    mutation: Option<Mutation>,
    request: Request,
    /// How many sequences lie behind a state with so many events left
    behind: HashMap<(State, usize), u64>,
    path: Vec<(Instant, Input)>,
    seen: Vec<Seen>,
    compared: u64,
}

/// What a search went through
#[derive(Clone, Copy, Debug, Default)]
pub struct Report {
    /// The longest sequences had so many events
    pub k: usize,
    /// Sequences that were covered, those that end early included
    pub sequences: u64,
    /// States of the model, each with the number of events left
    pub states: usize,
    /// Events after which call and model were compared
    pub compared: u64,
}

/// A sequence of events after which the call did what the model did not
#[derive(Clone, Debug)]
pub struct Difference {
    /// The case's name
    pub case: &'static str,
    /// Each event, what the rules say is seen of it, and what was seen
    pub steps: Vec<(Instant, Input, Vec<Seen>, Vec<Seen>)>,
}

impl<'c> Search<'c> {
    /// A search that has not begun, and which rule the model gets wrong
    pub fn new(case: &'c Case, mutation: Option<Mutation>) -> Self {
        Self {
            case,
            mutation,
            request: Subject::request(case),
            behind: HashMap::new(),
            path: Vec::new(),
            seen: Vec::new(),
            compared: 0,
        }
    }

    /// Goes through every sequence of up to `k` events
    ///
    /// Errors: the first [`Difference`] in order of the alphabet.
    pub fn exhaust(&mut self, k: usize) -> Result<Report, Difference> {
        self.behind.clear();
        self.compared = 0;
        let model = Model::new(self.case, self.mutation);
        let sequences = self.extend(&model, None, k)?;
        Ok(Report { k, sequences, states: self.behind.len(), compared: self.compared })
    }

    /// How many events were compared in the latest search
    pub fn compared(&self) -> u64 {
        self.compared
    }

    /// As [`Search::exhaust`], and where that finds a difference looks for the shortest one
    ///
    /// Errors: the shortest [`Difference`].
    pub fn deepen(&mut self, k: usize) -> Result<Report, Difference> {
        self.exhaust(k).map_err(|found| (1..k).find_map(|k| self.exhaust(k).err()).unwrap_or(found))
    }

    /// Takes `walks` random sequences of up to `length` events, each for itself
    ///
    /// Errors: the first [`Difference`].
    pub fn walk(&mut self, seed: u64, walks: u64, length: usize) -> Result<Report, Difference> {
        let mut rng = fastrand::Rng::with_seed(seed);
        self.compared = 0;
        for _ in 0..walks {
            self.path.clear();
            let mut model = Model::new(self.case, self.mutation);
            let mut subject = self.replay();
            for _ in 0..length {
                let allowed: Vec<Input> = self.allowed(&model).collect();
                let Some(input) = rng.choice(allowed) else { break };
                model = self.check(&model, &mut subject, input)?;
                self.path.push((model.now(), input));
                if model.is_over() {
                    self.check(&model, &mut subject, Input::Cancel)?;
                    break;
                }
            }
        }
        self.path.clear();
        Ok(Report { k: length, sequences: walks, states: 0, compared: self.compared })
    }

    fn allowed<'s>(&'s self, model: &Model<'c>) -> impl Iterator<Item = Input> + use<'s, 'c> {
        let model = model.clone();
        self.case.alphabet.iter().copied().filter(move |input| model.allows(*input))
    }

    /// How many sequences of up to `left` more events there are from here, each of them checked
    fn extend(
        &mut self,
        model: &Model<'c>,
        mut subject: Option<Subject<'c>>,
        left: usize,
    ) -> Result<u64, Difference> {
        if left == 0 {
            return Ok(1);
        }
        if let (true, Some(mut subject)) = (model.is_over(), subject.take()) {
            // Whatever is told now, nothing more comes of it (INV-2).
            return self.check(model, &mut subject, Input::Cancel).map(|_| 1);
        }
        let key = (model.state(), left);
        if let Some(behind) = self.behind.get(&key) {
            return Ok(*behind);
        }
        let mut sequences = 0_u64;
        for input in self.allowed(model).collect::<Vec<_>>() {
            let mut subject = subject.take().unwrap_or_else(|| self.replay());
            let next = self.check(model, &mut subject, input)?;
            self.path.push((next.now(), input));
            let behind = self.extend(&next, Some(subject), left - 1)?;
            self.path.pop();
            sequences = sequences.saturating_add(behind);
        }
        self.behind.insert(key, sequences);
        Ok(sequences)
    }

    /// A call that has come to the end of the present path
    fn replay(&mut self) -> Subject<'c> {
        let mut subject = Subject::new(self.case, &self.request, SEED);
        for (now, input) in &self.path {
            self.seen.clear();
            subject.step(*now, *input, &mut self.seen);
        }
        subject
    }

    /// Lets `input` happen to both, and compares
    fn check(
        &mut self,
        model: &Model<'c>,
        subject: &mut Subject<'c>,
        input: Input,
    ) -> Result<Model<'c>, Difference> {
        self.compared += 1;
        self.seen.clear();
        subject.step(model.time_of(input), input, &mut self.seen);
        let mut next = model.clone();
        if next.step(input, pause_end(&self.seen)) == self.seen {
            return Ok(next);
        }
        let inputs: Vec<Input> = self.path.iter().map(|(_, input)| *input).chain([input]).collect();
        self.path.clear();
        Err(self.difference(&inputs))
    }

    fn difference(&self, inputs: &[Input]) -> Difference {
        let mut subject = Subject::new(self.case, &self.request, SEED);
        let mut model = Model::new(self.case, self.mutation);
        let mut steps = Vec::new();
        for input in inputs {
            let mut seen = Vec::new();
            let now = model.time_of(*input);
            subject.step(now, *input, &mut seen);
            let expected = model.step(*input, pause_end(&seen));
            steps.push((now, *input, expected, seen));
        }
        Difference { case: self.case.name, steps }
    }
}

/// When a pause ends, where the call says that it pauses
fn pause_end(seen: &[Seen]) -> Option<Instant> {
    match seen.last() {
        Some(Seen::Wait(wait)) => {
            wait.deadline.filter(|(_, timer)| *timer == Timer::Backoff).map(|(at, _)| at)
        }
        _ => None,
    }
}

/// The sequence, then both traces side by side; one line where they agree
impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inputs: Vec<String> = self.steps.iter().map(|step| format!("{:?}", step.1)).collect();
        writeln!(f, "{}: {}", self.case, inputs.join(" "))?;
        for (now, input, expected, seen) in &self.steps {
            writeln!(f, "  {:?} {input:?}", *now - BEGAN)?;
            for line in 0..expected.len().max(seen.len()) {
                let [rules, call] = [expected, seen].map(|side| side.get(line).map(text).unwrap_or_default());
                if rules == call {
                    writeln!(f, "    {rules}")?;
                } else {
                    writeln!(f, "    rules: {rules}\n    call:  {call}")?;
                }
            }
        }
        Ok(())
    }
}

/// One line, with instants counted from the call's beginning
fn text(seen: &Seen) -> String {
    match seen {
        Seen::Wait(wait) => {
            let deadline = wait.deadline.map(|(at, timer)| (at - BEGAN, timer));
            format!(
                "Wait(deadline {deadline:?}, (link, read, write, supply) {:?}, taken {})",
                wait.io, wait.taken
            )
        }
        Seen::Connect(_)
        | Seen::Close(..)
        | Seen::Delta
        | Seen::Thought
        | Seen::RawByte
        | Seen::Finished
        | Seen::Done(_)
        | Seen::Other(_) => {
            format!("{seen:?}")
        }
    }
}
