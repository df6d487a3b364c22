//! What a driver has to do in a scenario: make calls as the file says.

use std::time::Duration;

use steadfast::call::Request;
use steadfast::outcome::Outcome;
use steadfast_scenario::{Call, Scenario, Tally};
use steadfast_sim::Traces;

/// The caller's part of a scenario
#[derive(Debug)]
pub struct Part<'a> {
    /// What the caller does
    pub call: &'a Call,
    /// What each call asks for
    pub request: Request,
    /// Whom to trust, in PEM, where the server speaks TLS
    pub ca_pem: Option<&'a str>,
    /// What records the calls: each is replayed, and must take the same steps (INV-9)
    pub traces: &'a Traces,
}

/// How one call ended
#[derive(Clone, Debug)]
pub struct Ended {
    /// Its outcome
    pub outcome: Outcome,
    /// From its start to its end, by the driver's own clock
    pub elapsed: Duration,
    /// From its start to the delivery of its completed turn
    pub turn_at: Option<Duration>,
}

/// A driver, and with it a runtime
pub trait Driver: Sync {
    /// Its name, as the heading of a table has it
    fn name(&self) -> &'static str;

    /// Makes the calls, and returns how they ended, in the order in which they began
    ///
    /// `call.calls` of them, one after the other or all at once (`call.parallel`), with
    /// one client; connections that it keeps are closed on return.
    ///
    /// Errors: it cannot begin.
    fn play(&self, part: &Part<'_>) -> Result<Vec<Ended>, String>;

    /// As [`Driver::play`], for a driver that plays the server too, and has no sockets
    ///
    /// `None` for all others: a real server is started for them.
    fn play_both(&self, _scenario: &Scenario, _traces: &Traces) -> Option<(Vec<Ended>, Tally)> {
        None
    }
}
