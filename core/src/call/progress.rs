//! Where a call is, for a live display.

use super::{Call, Inner, State, Timer};
use crate::time::Instant;

/// Where a call is, as a live display shows it
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Where the call is
    pub state: State,
    /// The present attempt, from 1
    pub attempt: u32,
    /// Bytes that came in it
    pub bytes: u64,
    /// Since when nothing has come, or when the present phase began
    pub quiet_since: Instant,
    /// The next deadline, and why it exists
    pub deadline: Option<(Instant, Timer)>,
}

impl Call {
    /// Bytes that came in the present attempt, and since when nothing has come; for a live display
    pub fn progress(&self) -> Progress {
        let (attempt, bytes, quiet_since) = match &self.inner {
            Inner::Attempting(attempt) => {
                let quiet_since = attempt.quiet_since().unwrap_or(attempt.phase_began);
                (self.attempts_made, attempt.record.bytes_received, quiet_since)
            }
            Inner::Pausing(pause) => (self.attempts_made, 0, pause.began),
            Inner::Idle | Inner::Ending(_) | Inner::Over => (self.attempts_made, 0, self.now),
        };
        Progress { state: self.state(), attempt, bytes, quiet_since, deadline: self.deadline() }
    }
}
