//! What a driver has to do in a scenario: make calls as the file says.

use std::time::Duration;

use steadfast_scenario::Call;
use steadfast_tokio::{Outcome, Request};

/// The caller's part of a scenario
pub(super) struct Part<'a> {
    /// What the caller does
    pub(super) call: &'a Call,
    /// What each call asks for
    pub(super) request: Request,
    /// Whom to trust, in PEM, where the server speaks TLS
    pub(super) ca_pem: Option<&'a str>,
}

/// How one call ended
pub(super) struct Ended {
    /// Its outcome
    pub(super) outcome: Outcome,
    /// From its start to its end, by the driver's own clock
    pub(super) elapsed: Duration,
    /// From its start to the delivery of its completed turn
    pub(super) turn_at: Option<Duration>,
}

/// A driver, and with it a runtime
pub(super) trait Driver: Sync {
    /// Makes the calls, and returns how they ended, in the order in which they began
    ///
    /// Errors: it cannot begin.
    fn play(&self, part: &Part<'_>) -> Result<Vec<Ended>, String>;
}
