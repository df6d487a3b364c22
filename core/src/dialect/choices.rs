//! Which answers of a turn have opened and finished.

use super::findings::{Finding, Findings};
use super::tools::Tools;
use super::{Malformed, Progress};

/// The answers seen so far
#[derive(Debug, Default)]
pub struct Choices(Vec<Open>);

/// An answer that has begun
#[derive(Debug, Default)]
pub struct Open {
    index: u32,
    /// Whether its finish reason came
    pub finished: bool,
    /// Whether anything of it was said
    pub said: bool,
    /// Its tool calls
    pub tools: Tools,
}

/// More answers than any provider gives; what a peer sends beyond is refused
const MAX_CHOICES: usize = 1024;

impl Choices {
    /// The answer of that number, with [`Finding::Opened`] if it is new
    ///
    /// Errors: [`Malformed`] past the cap on answers.
    pub fn open(&mut self, index: u32, findings: &mut Findings) -> Result<&mut Open, Malformed> {
        let known = self.0.iter().position(|open| open.index == index);
        let at = match known {
            Some(at) => at,
            None if self.0.len() == MAX_CHOICES => {
                return Err(Malformed { reason: format!("more than {MAX_CHOICES} choices") });
            }
            None => {
                findings.push(Finding::Opened { choice: index });
                self.0.push(Open { index, ..Open::default() });
                self.0.len() - 1
            }
        };
        Ok(&mut self.0[at])
    }

    /// Marked once every answer seen is finished
    pub fn progress(&self) -> Progress {
        let whole = !self.0.is_empty() && self.0.iter().all(|open| open.finished);
        if whole { Progress::Marked } else { Progress::Open }
    }
}
