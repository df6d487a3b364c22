//! All cases, on as many threads as are wanted.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::cases::cases;
use crate::mutation::Mutation;
use crate::search::{Difference, Report, Search};
use crate::terms::Case;

/// What came of all cases
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// What each case went through, for those without a difference
    pub reports: Vec<(&'static str, Report)>,
    /// The shortest difference of each other case
    pub differences: Vec<Difference>,
}

/// Goes through every sequence of up to `k` events in every case
pub fn exhaust(k: usize, threads: usize) -> Totals {
    each(threads, |case| Search::new(case, None).deepen(k))
}

/// Takes `walks` random sequences of up to `length` events in every case, with no states merged
pub fn walk(seed: u64, walks: u64, length: usize, threads: usize) -> Totals {
    each(threads, |case| Search::new(case, None).walk(seed, walks, length))
}

/// The shortest sequence of up to `most` events that shows a difference, and how many events were
/// compared before it was found
pub fn shortest(most: usize, mutation: Option<Mutation>) -> Option<(Difference, u64)> {
    let cases = cases();
    let mut compared = 0;
    for k in 1..=most {
        for case in &cases {
            let mut search = Search::new(case, mutation);
            let found = search.exhaust(k);
            compared += search.compared();
            if let Err(difference) = found {
                return Some((difference, compared));
            }
        }
    }
    None
}

/// The results come in the order of the cases, whatever the threads do
fn each(threads: usize, check: impl Fn(&Case) -> Result<Report, Difference> + Sync) -> Totals {
    let cases = cases();
    let next = AtomicUsize::new(0);
    let results: Vec<_> = cases.iter().map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                while let Some(at) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|at| *at < cases.len())
                {
                    *results[at].lock().expect("no check panics") = Some(check(&cases[at]));
                }
            });
        }
    });
    let mut totals = Totals::default();
    for (case, result) in cases.iter().zip(results) {
        match result.into_inner().expect("no check panics").expect("every case is checked") {
            Ok(report) => totals.reports.push((case.name, report)),
            Err(difference) => totals.differences.push(difference),
        }
    }
    totals
}

/// Every difference, then one line of sums
impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for difference in &self.differences {
            writeln!(f, "{difference}")?;
        }
        let sum = |part: fn(&Report) -> u64| self.reports.iter().map(|(_, report)| part(report)).sum::<u64>();
        write!(
            f,
            "model: cases={}, k={}, sequences={}, states={}, compared={}, differences={}",
            self.reports.len() + self.differences.len(),
            self.reports.first().map_or(0, |(_, report)| report.k),
            sum(|report| report.sequences),
            sum(|report| report.states as u64),
            sum(|report| report.compared),
            self.differences.len(),
        )
    }
}
