//! One scenario: its server, its calls, and where they differ from what the file says.

use std::time::Duration;

use serde::Serialize;
use steadfast::outcome::Outcome;
use steadfast_mock::Mock;
use steadfast_scenario::{Mismatch, Observed, Scenario, Tally};
use steadfast_sim::{Traces, observed, request_to};

use crate::driver::{Driver, Ended, Part};

/// So long the server has to see what it must have seen; it learns of a close later than the caller
pub const SEEN_WITHIN: Duration = Duration::from_secs(5);

/// A server whose pauses were so much too long did not do what its script says
pub const LATE: Duration = Duration::from_millis(40);

/// So often a scenario is played at most, where its server is late each time
pub const MOST_PLAYS: u32 = 3;

/// What came of a scenario
#[derive(Clone, Debug)]
pub struct Played {
    /// The scenario
    pub scenario: &'static Scenario,
    /// The driver's name
    pub driver: &'static str,
    /// How its calls ended
    pub calls: Vec<(Observed, Outcome)>,
    /// What its server saw
    pub seen: Tally,
    /// The most by which a pause of its server was too long
    pub late: Duration,
    /// How often it was played; the rest is about the last time
    pub plays: u32,
    /// Where this differs from what the file says; empty if it agrees
    pub differences: Vec<Difference>,
}

/// One way in which a scenario did not go as its file says
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The number of the call, from 0; none for what the server saw
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<u32>,
    /// What differs
    #[serde(flatten)]
    pub mismatch: Mismatch,
}

/// Plays a scenario with a driver
///
/// Under virtual time its times have to be exact, on sockets within [`Scenario::tolerance`]. Where it
/// differs and the machine was too busy for its server to keep the script's times ([`LATE`]), it
/// shows nothing, and is played again, [`MOST_PLAYS`] times at the most.
///
/// # Panics
///
/// If the scenario is none that a [`Request`](steadfast::call::Request) can be made of: see
/// [`request_to`].
pub fn play(scenario: &'static Scenario, driver: &dyn Driver) -> Played {
    let mut plays = 1;
    loop {
        let played = Played::once(scenario, driver, plays);
        if !played.shows_nothing() || plays == MOST_PLAYS {
            return played;
        }
        plays += 1;
    }
}

impl Played {
    /// Whether it went as its file says
    pub fn agrees(&self) -> bool {
        self.differences.is_empty()
    }

    fn once(scenario: &'static Scenario, driver: &dyn Driver, plays: u32) -> Self {
        let mut played = Self {
            scenario,
            driver: driver.name(),
            calls: Vec::new(),
            seen: Tally::default(),
            late: Duration::ZERO,
            plays,
            differences: Vec::new(),
        };
        let traces = Traces::default();
        if let Some((ended, seen)) = driver.play_both(scenario, &traces) {
            played.seen = seen;
            played.compare(ended, &traces, Duration::ZERO);
        } else if let Err(error) = played.on_sockets(driver) {
            played.differ(None, [mismatch("scenario", "to be played", error)]);
        }
        played
    }

    /// Whether it differs, and may do so only because its server was late
    fn shows_nothing(&self) -> bool {
        !self.agrees() && self.late >= LATE
    }

    fn on_sockets(&mut self, driver: &dyn Driver) -> Result<(), String> {
        let Scenario { script, call, seen, tolerance, .. } = self.scenario;
        let mock = Mock::start(script, None).map_err(|error| format!("no server: {error}"))?;
        let request = request_to(self.scenario, &mock.base_url());
        let traces = Traces::default();
        let ended = driver.play(&Part { call, request, ca_pem: mock.ca_pem(), traces: &traces });
        if ended.is_ok() {
            // What comes too much, comes until the server ends.
            mock.wait_for(SEEN_WITHIN, |recorded| seen.check(&recorded.tally()).is_empty());
        }
        let recorded = mock.shutdown();
        (self.seen, self.late) = (recorded.tally(), recorded.late());
        self.compare(ended?, &traces, *tolerance);
        Ok(())
    }

    /// Notes where the calls and what the server saw differ from the file, and their replays from them
    fn compare(&mut self, ended: Vec<Ended>, traces: &Traces, tolerance: Duration) {
        let Scenario { call, seen, .. } = self.scenario;
        self.differ(None, seen.check(&self.seen));
        let not_replayed = traces.differences(call.calls).into_iter();
        self.differ(
            None,
            not_replayed.map(|found| mismatch("trace", "to replay with the same steps", found)),
        );
        if ended.len() != call.calls as usize {
            self.differ(None, [mismatch("calls", &call.calls.to_string(), ended.len().to_string())]);
        }
        for (number, ended) in (0..call.calls).zip(ended) {
            let observed = observed(&ended.outcome, ended.elapsed, ended.turn_at);
            self.differ(Some(number), self.scenario.check(number, &observed, tolerance));
            self.calls.push((observed, ended.outcome));
        }
    }

    fn differ(&mut self, call: Option<u32>, mismatches: impl IntoIterator<Item = Mismatch>) {
        self.differences.extend(mismatches.into_iter().map(|mismatch| Difference { call, mismatch }));
    }
}

fn mismatch(field: &'static str, expected: &str, got: String) -> Mismatch {
    Mismatch { field, expected: expected.to_owned(), got }
}

#[cfg(test)]
mod tests {
    use steadfast_scenario::find;

    use super::*;
    use crate::simulated::Simulated;

    /// A scenario in which a server answers 503 once and something is expected
    fn scenario(expected: &str) -> &'static Scenario {
        let text = format!(
            r#"
            name = "x"
            about = "503"
            [call]
            shape = "unary"
            dialect = "openai-chat"
            config = {{ max_attempts = 1 }}
            [[connection]]
            steps = [{{ read = "request" }}, {{ answer = {{ head = ["503 No"], body = "no" }} }}, "await-close"]
            [[expect]]
            {expected}
            "#
        );
        Box::leak(Box::new(Scenario::parse(&text).unwrap()))
    }

    fn told(played: &Played) -> Vec<String> {
        let tell = |difference: &Difference| format!("{:?} {}", difference.call, difference.mismatch);
        played.differences.iter().map(tell).collect()
    }

    #[test]
    fn what_goes_otherwise_than_the_file_says_is_found() {
        let status = "result = \"status\"\nstatus = 503\nbody = \"no\"\nattempts = 1";
        assert!(play(scenario(&format!("{status}\n[seen]\nrequests = 1")), &Simulated).agrees());
        let other = play(scenario("result = \"completed\"\nattempts = 2\n[seen]\nrequests = 2"), &Simulated);
        assert_eq!(
            told(&other),
            [
                "None requests: expected 2, got 1",
                "Some(0) result: expected Completed, got Status",
                "Some(0) attempts: expected 2, got 1"
            ]
        );
    }

    /// Makes no call
    struct Idle;

    impl Driver for Idle {
        fn name(&self) -> &'static str {
            "idle"
        }

        fn play(&self, _: &Part<'_>) -> Result<Vec<Ended>, String> {
            Ok(Vec::new())
        }
    }

    #[test]
    fn calls_that_were_not_made_are_missed() {
        let played = play(scenario("result = \"completed\"\n[seen]\nrequests = 0"), &Idle);
        assert_eq!(
            (told(&played), played.driver),
            (
                vec![
                    "None trace: expected to replay with the same steps, got 0 traces of 1 calls".to_owned(),
                    "None calls: expected 1, got 0".to_owned(),
                ],
                "idle"
            )
        );
    }

    #[test]
    fn only_what_differs_with_a_late_server_is_played_again() {
        let mut played = play(find("stream-happy").unwrap(), &Simulated);
        assert_eq!((played.plays, played.differences.len()), (1, 0));
        played.late = LATE;
        assert!(!played.shows_nothing());
        played.differ(None, [mismatch("text", "a", "b".to_owned())]);
        assert!(played.shows_nothing());
        played.late = LATE - Duration::from_millis(1);
        assert!(!played.shows_nothing());
    }
}
