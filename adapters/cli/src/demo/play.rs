//! One scenario: its server, its calls, and where they differ from what the file says.

use std::time::Duration;

use serde::Serialize;
use steadfast::config::Overrides;
use steadfast_mock::Mock;
use steadfast_scenario::{Dialect, Mismatch, Observed, Scenario, Shape, Tally};
use steadfast_sim::observed;
use steadfast_tokio::{Outcome, Request};

use super::driver::{Driver, Part};
use crate::provider::Provider;

/// So long the server has to see what it must have seen; it learns of a close later than the caller
const SEEN_WITHIN: Duration = Duration::from_secs(5);

/// A server whose pauses were so much too long did not do what its script says
const LATE: Duration = Duration::from_millis(40);

/// So often a scenario is played at most, where its server is late each time
const MOST_PLAYS: u32 = 3;

/// What came of a scenario
pub(super) struct Played {
    /// The scenario
    pub(super) scenario: &'static Scenario,
    /// How its calls ended
    pub(super) calls: Vec<(Observed, Outcome)>,
    /// What its server saw
    pub(super) seen: Tally,
    /// The most by which a pause of its server was too long
    pub(super) late: Duration,
    /// How often it was played; the rest is about the last time
    pub(super) plays: u32,
    /// Where this differs from what the file says; empty if it agrees
    pub(super) differences: Vec<Difference>,
}

/// One way in which a scenario did not go as its file says
#[derive(Serialize)]
pub(super) struct Difference {
    /// The number of the call, from 0; none for what the server saw
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) call: Option<usize>,
    /// What differs
    #[serde(flatten)]
    pub(super) mismatch: Mismatch,
}

/// Plays a scenario on real sockets
///
/// Where it differs and the machine was too busy for its server to keep the script's times, it shows
/// nothing, and is played again.
pub(super) fn play(scenario: &'static Scenario, driver: &dyn Driver) -> Played {
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
    fn once(scenario: &'static Scenario, driver: &dyn Driver, plays: u32) -> Self {
        let mut played = Self {
            scenario,
            calls: Vec::new(),
            seen: Tally::default(),
            late: Duration::ZERO,
            plays,
            differences: Vec::new(),
        };
        if let Err(error) = played.play(driver) {
            let expected = "to be played".to_owned();
            played.differ(None, [Mismatch { field: "scenario", expected, got: error }]);
        }
        played
    }

    /// Whether it differs, and may do so only because its server was late
    fn shows_nothing(&self) -> bool {
        !self.differences.is_empty() && self.late >= LATE
    }

    fn play(&mut self, driver: &dyn Driver) -> Result<(), String> {
        let Scenario { script, call, seen, tolerance, .. } = self.scenario;
        let mock = Mock::start(script, None).map_err(|error| format!("no server: {error}"))?;
        let request = request(self.scenario, &mock.base_url())?;
        let ended = driver.play(&Part { call, request, ca_pem: mock.ca_pem() })?;
        let agrees = |tally: &Tally| seen.check(tally).is_empty();
        // What comes too much, comes until the server ends.
        mock.wait_for(SEEN_WITHIN, |recorded| agrees(&recorded.tally()));
        let recorded = mock.shutdown();
        (self.seen, self.late) = (recorded.tally(), recorded.late());
        self.differ(None, seen.check(&self.seen));
        for (number, ended) in ended.into_iter().enumerate() {
            let observed = observed(&ended.outcome, ended.elapsed, ended.turn_at);
            let call = u32::try_from(number).unwrap_or(u32::MAX);
            self.differ(Some(number), self.scenario.check(call, &observed, *tolerance));
            self.calls.push((observed, ended.outcome));
        }
        if self.calls.len() != call.calls as usize {
            let (expected, got) = (call.calls.to_string(), self.calls.len().to_string());
            self.differ(None, [Mismatch { field: "calls", expected, got }]);
        }
        Ok(())
    }

    fn differ(&mut self, call: Option<usize>, mismatches: impl IntoIterator<Item = Mismatch>) {
        self.differences.extend(mismatches.into_iter().map(|mismatch| Difference { call, mismatch }));
    }
}

/// What each call of a scenario asks of the server at `base_url`
fn request(scenario: &Scenario, base_url: &str) -> Result<Request, String> {
    let call = &scenario.call;
    let mut overrides = Overrides::new();
    for (name, value) in &call.config {
        overrides.set(name, &value.to_string()).map_err(|error| error.to_string())?;
    }
    let provider = match call.dialect {
        Dialect::OpenaiChat => Provider::OpenAi,
        Dialect::OpenaiResponses => Provider::Responses,
        Dialect::Anthropic => Provider::Anthropic,
        Dialect::Gemini => Provider::Gemini,
    };
    // All of the padding is in the prompt; what is around it only makes the body longer.
    let padding = usize::try_from(call.body_bytes).map_err(|error| error.to_string())?;
    let prompt = format!("Hi.{}", " ".repeat(padding));
    let profile = provider.profile();
    let request = profile.ask(base_url, profile.model, &prompt, call.shape == Shape::Stream);
    request.overrides(overrides).build().map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::on_tokio::Tokio;
    use super::*;

    /// What differs where a server that answers 503 once is expected to do `expected`
    fn differences(call: &str, expected: &str) -> Vec<String> {
        let text = format!(
            r#"
            name = "x"
            about = "503"
            [call]
            shape = "unary"
            dialect = "openai-chat"
            {call}
            [[connection]]
            steps = [{{ read = "request" }}, {{ answer = {{ head = ["503 No"], body = "no" }} }}, "await-close"]
            {expected}
            "#
        );
        let scenario = Box::leak(Box::new(Scenario::parse(&text).unwrap()));
        let differences = play(scenario, &Tokio).differences;
        differences
            .iter()
            .map(|difference| format!("{:?} {}", difference.call, difference.mismatch))
            .collect()
    }

    #[test]
    fn what_goes_otherwise_than_the_file_says_is_found() {
        const ONCE: &str = "config = { max_attempts = 1 }";
        let status = "[[expect]]\nresult = \"status\"\nstatus = 503\nbody = \"no\"\nattempts = 1\n";
        assert!(differences(ONCE, &format!("{status}[seen]\nrequests = 1")).is_empty());
        assert_eq!(
            differences(ONCE, "[[expect]]\nresult = \"completed\"\nattempts = 2"),
            ["Some(0) result: expected Completed, got Status", "Some(0) attempts: expected 2, got 1"]
        );
        assert_eq!(
            differences("config = { max_attempts = 0 }", status),
            [
                "None scenario: expected to be played, got max_attempts cannot be 0: it takes a whole number from 1"
            ]
        );
    }

    #[test]
    fn only_what_differs_with_a_late_server_is_played_again() {
        let scenario = steadfast_scenario::find("stream-happy").unwrap();
        let mut played = play(scenario, &Tokio);
        assert_eq!((played.plays, played.differences.len()), (1, 0));
        played.late = LATE;
        assert!(!played.shows_nothing());
        let (expected, got) = ("a".to_owned(), "b".to_owned());
        played.differ(None, [Mismatch { field: "text", expected, got }]);
        assert!(played.shows_nothing());
        played.late = LATE - Duration::from_millis(1);
        assert!(!played.shows_nothing());
    }

    #[test]
    fn what_the_server_saw_too_little_of_is_waited_for_and_then_found() {
        const ONCE: &str = "config = { max_attempts = 1 }";
        let status =
            "[[expect]]\nresult = \"status\"\nstatus = 503\n[seen]\nrequests = 2\nclosed_by_peer = 1";
        assert_eq!(differences(ONCE, status), ["None requests: expected 2, got 1"]);
    }
}
