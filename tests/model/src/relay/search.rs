//! Every sequence of events, depth first, with the exchange beside the model.

use std::collections::HashMap;
use std::fmt;

use super::model::Model;
use super::state::State;
use super::subject::Subject;
use super::terms::{BEGAN, Case, Input, SECOND, Seen, cases};
use steadfast::relay::Timer;

/// What a search went through
#[derive(Clone, Copy, Debug, Default)]
pub struct Report {
    /// Sequences that were covered, those that end early included
    pub sequences: u64,
    /// States of the model, each with the number of events left
    pub states: usize,
    /// Events after which exchange and model were compared
    pub compared: u64,
}

/// A sequence of events after which the exchange did what the rules do not say
#[derive(Clone, Debug)]
pub struct Difference {
    /// The case's name
    pub case: &'static str,
    /// What happened, up to that
    pub inputs: Vec<Input>,
    /// When the last event came, in nanoseconds since the connection
    pub at: u64,
    /// What the rules say is seen of the last event
    pub expected: Seen,
    /// What was seen of it
    pub seen: Seen,
}

/// A search through the sequences of one case
///
/// Sequences that lead the model to the same state, with every instant counted from now, are gone on with
/// once only. That is sound as far as the exchange holds nothing that the model does not;
/// [`walk`] takes random sequences with nothing merged, as a check on that.
struct Search<'c> {
    case: &'c Case,
    behind: HashMap<(State, usize), u64>,
    path: Vec<(u64, Input)>,
    compared: u64,
}

/// Goes through every sequence of up to `k` events in every case
///
/// Errors: for the first case that has one, the shortest [`Difference`].
pub fn exhaust(k: usize) -> Result<Vec<(&'static str, Report)>, Box<Difference>> {
    let cases = cases();
    let search = |case: &Case| {
        let found = Search::new(case).run(k);
        found.map_err(|found| (1..k).find_map(|k| Search::new(case).run(k).err()).unwrap_or(found))
    };
    cases.iter().map(|case| Ok((case.name, search(case)?))).collect()
}

/// The shortest sequence of up to `most` events that shows a difference
pub fn shortest(most: usize) -> Option<Box<Difference>> {
    let cases = cases();
    (1..=most).find_map(|k| cases.iter().find_map(|case| Search::new(case).run(k).err()))
}

/// Takes `walks` random sequences of up to `length` events in every case, with nothing merged; how many
/// events were compared
///
/// Errors: the first [`Difference`].
pub fn walk(seed: u64, walks: u64, length: usize) -> Result<u64, Box<Difference>> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut compared = 0;
    for case in &cases() {
        for _ in 0..walks {
            let mut search = Search::new(case);
            let mut model = Model::new(case).0;
            let mut subject = search.replay();
            for _ in 0..length {
                let mut allowed = search.allowed(&model);
                // Else hardly a walk would be long.
                if rng.u8(..) > u8::MAX / 16 {
                    allowed.retain(|input| !matches!(input, Input::AppLeaves | Input::Cancel));
                }
                let Some(input) = rng.choice(allowed) else { break };
                model = search.check(&model, &mut subject, input)?;
            }
            compared += search.compared;
        }
    }
    Ok(compared)
}

impl<'c> Search<'c> {
    fn new(case: &'c Case) -> Self {
        Self { case, behind: HashMap::new(), path: Vec::new(), compared: 0 }
    }

    fn run(&mut self, k: usize) -> Result<Report, Box<Difference>> {
        let (model, expected) = Model::new(self.case);
        let mut seen = Seen::default();
        let subject = Subject::new(self.case, &mut seen);
        if seen != expected {
            let inputs = Vec::new();
            return Err(Box::new(Difference { case: self.case.name, inputs, at: 0, expected, seen }));
        }
        let sequences = self.extend(&model, Some(subject), k)?;
        Ok(Report { sequences, states: self.behind.len(), compared: self.compared })
    }

    fn allowed(&self, model: &Model<'c>) -> Vec<Input> {
        self.case.alphabet.iter().copied().filter(|input| model.allows(*input)).collect()
    }

    /// How many sequences of up to `left` more events there are from here, each of them checked
    fn extend(
        &mut self,
        model: &Model<'c>,
        mut subject: Option<Subject<'c>>,
        left: usize,
    ) -> Result<u64, Box<Difference>> {
        if left == 0 || model.is_over() {
            return Ok(1);
        }
        let key = (model.state.relative(), left);
        if let Some(behind) = self.behind.get(&key) {
            return Ok(*behind);
        }
        let mut sequences = 0_u64;
        for input in self.allowed(model) {
            let mut subject = subject.take().unwrap_or_else(|| self.replay());
            let next = self.check(model, &mut subject, input)?;
            sequences = sequences.saturating_add(self.extend(&next, Some(subject), left - 1)?);
            self.path.pop();
        }
        self.behind.insert(key, sequences);
        Ok(sequences)
    }

    /// An exchange that has come to the end of the present path
    fn replay(&self) -> Subject<'c> {
        let mut subject = Subject::new(self.case, &mut Seen::default());
        for (now, input) in &self.path {
            subject.step(*now, *input, &mut Seen::default());
        }
        subject
    }

    /// Lets `input` happen to both, and compares; it is on the path then
    fn check(
        &mut self,
        model: &Model<'c>,
        subject: &mut Subject<'c>,
        input: Input,
    ) -> Result<Model<'c>, Box<Difference>> {
        self.compared += 1;
        let now = model.time_of(input);
        let mut seen = Seen::default();
        subject.step(now, input, &mut seen);
        seen.app.push_str(&subject.app());
        let mut next = model.clone();
        let expected = next.step(input, pause_end(&seen));
        self.path.push((now, input));
        if expected == seen {
            return Ok(next);
        }
        let inputs = self.path.iter().map(|(_, input)| *input).collect();
        Err(Box::new(Difference { case: self.case.name, inputs, at: now - BEGAN, expected, seen }))
    }
}

/// When a pause ends, where the exchange says that it pauses
fn pause_end(seen: &Seen) -> Option<u64> {
    let (at, timer) = seen.wait.as_ref()?.deadline?;
    (timer == Timer::Pause).then_some(at)
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inputs: Vec<String> = self.inputs.iter().map(|input| format!("{input:?}")).collect();
        writeln!(f, "{}: {}, {:.3} s in", self.case, inputs.join(" "), self.at as f64 / SECOND as f64)?;
        writeln!(f, "    rules:    {:?}", self.expected)?;
        write!(f, "    exchange: {:?}", self.seen)
    }
}
