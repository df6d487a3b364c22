//! What came of a call, in the terms of scenarios.

use std::time::Duration;

use steadfast::call::{Command, Request};
use steadfast::config::Overrides;
use steadfast::dialect::Dialect;
use steadfast::outcome::{Billing, CallError, Completion, Ending, ErrorKind, Outcome, Phase, Turn};
use steadfast::time::Instant;
use steadfast_scenario::{
    Billing as BillingSeen, Dialect as Dialects, End, Observed, Phase as PhaseSeen, Scenario, Shape,
};

/// What came of a simulated call
#[derive(Clone, Debug)]
pub struct Played {
    /// Its outcome
    pub outcome: Outcome,
    /// The turn that its deltas make, in the order in which they were delivered
    pub turn_of_deltas: Turn,
    /// When the completed turn was delivered
    pub turn_at: Option<Instant>,
    /// What the machine asked for, and when
    pub commands: Vec<(Instant, Command)>,
}

impl Played {
    /// The same in the terms of scenarios
    pub fn observed(&self) -> Observed {
        let timeline = &self.outcome.timeline;
        observed(&self.outcome, timeline.elapsed(), self.turn_at.map(|at| at - timeline.began))
    }
}

/// The request that a scenario's caller makes of a simulated server
///
/// # Panics
///
/// If the scenario names a setting that does not exist, or a value out of its range.
pub fn request(scenario: &Scenario) -> Request {
    request_to(scenario, "http://scenario.invalid")
}

/// The request that a scenario's caller makes of the server at `base_url`
///
/// # Panics
///
/// As [`request`], and if no request can be made to that URL.
pub fn request_to(scenario: &Scenario, base_url: &str) -> Request {
    let call = &scenario.call;
    let mut overrides = Overrides::new();
    for (name, value) in &call.config {
        overrides
            .set(name, &value.to_string())
            .unwrap_or_else(|error| panic!("{}: {error}", scenario.name()));
    }
    let dialect = match call.dialect {
        Dialects::OpenaiChat => Dialect::OpenAiChat,
        Dialects::OpenaiResponses => Dialect::OpenAiResponses,
        Dialects::Anthropic => Dialect::Anthropic,
        Dialects::Gemini => Dialect::Gemini,
    };
    let length = usize::try_from(call.body_bytes).expect("a body that fits in memory");
    let request = Request::post(&format!("{base_url}/v1"))
        .body(vec![b' '; length])
        .dialect(dialect)
        .overrides(overrides);
    let request = match call.shape {
        Shape::Stream => request.stream(),
        Shape::Unary => request,
    };
    request.build().unwrap_or_else(|error| panic!("{}: {error}", scenario.name()))
}

/// An outcome in the terms of scenarios
///
/// # Panics
///
/// If scenarios have no word for how it ended.
pub fn observed(outcome: &Outcome, elapsed: Duration, turn_at: Option<Duration>) -> Observed {
    let turn = outcome.turn();
    let error = outcome.result.as_ref().err();
    let kind = error.map(|error| &error.kind);
    let timeout = match kind {
        Some(ErrorKind::Timeout(timeout)) => Some(timeout),
        _ => None,
    };
    let status = match kind {
        Some(ErrorKind::Status(status)) => Some(status),
        _ => None,
    };
    let blocked = match kind {
        Some(ErrorKind::Blocked { reason }) => Some(reason.clone()),
        _ => None,
    };
    Observed {
        result: end(outcome),
        phase: timeout.map(|timeout| phase(timeout.phase)),
        limit: timeout.map(|timeout| timeout.limit),
        waited: timeout.map(|timeout| timeout.elapsed),
        status: status.map(|status| status.status.as_u16()),
        body: status.map(|status| String::from_utf8_lossy(&status.body).into_owned()),
        finish_reason: blocked.or_else(|| turn.finish_reason().map(str::to_owned)),
        text: turn.text().to_owned(),
        output_tokens: turn.usage.as_ref().and_then(|usage| usage.output_tokens),
        attempts: outcome.timeline.attempt_count(),
        billing: error.map(|error| match error.billing {
            Billing::NotSent => BillingSeen::NotSent,
            Billing::MaybeBilled => BillingSeen::MaybeBilled,
            Billing::Delivered => BillingSeen::Delivered,
        }),
        elapsed,
        turn_at,
    }
}

fn end(outcome: &Outcome) -> End {
    let kind = match &outcome.result {
        Ok(Completion { ending: Ending::Completed, .. }) => return End::Completed,
        Ok(Completion { ending: Ending::Incomplete(_), .. }) => return End::Incomplete,
        Err(CallError { kind, .. }) => kind,
    };
    match kind {
        ErrorKind::Timeout(_) => End::Timeout,
        ErrorKind::Status(_) => End::Status,
        ErrorKind::InBand(_) => End::InBand,
        ErrorKind::Truncated(_) => End::Truncated,
        ErrorKind::Empty => End::Empty,
        ErrorKind::Blocked { .. } => End::Blocked,
        ErrorKind::Transport(_) => End::Transport,
        ErrorKind::Proxy(_) => End::Proxy,
        ErrorKind::Protocol(_) => End::Protocol,
        ErrorKind::Cancelled => End::Cancelled,
        ErrorKind::Consumer(_) => End::Consumer,
        kind => panic!("scenarios have no word for {}", kind.name()),
    }
}

fn phase(phase: Phase) -> PhaseSeen {
    match phase {
        Phase::Connect => PhaseSeen::Connect,
        Phase::Request => PhaseSeen::Request,
        Phase::StreamIdle => PhaseSeen::StreamIdle,
        Phase::Deadline => PhaseSeen::Deadline,
        Phase::ContentIdle => PhaseSeen::ContentIdle,
        Phase::FirstContent => PhaseSeen::FirstContent,
        phase => panic!("scenarios have no word for {}", phase.name()),
    }
}
