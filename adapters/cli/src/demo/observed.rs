//! An outcome in the terms of scenarios.

use steadfast::outcome::{Billing, Phase};
use steadfast_scenario::{Billing as BillingSeen, End, Observed, Phase as PhaseSeen};
use steadfast_tokio::{CallError, Completion, Ending, ErrorKind, Outcome};

use super::driver::Ended;

/// How a call ended, in the terms of scenarios
pub(super) fn observed(ended: &Ended) -> Observed {
    let Ended { outcome, elapsed, turn_at } = ended;
    let turn = outcome.turn();
    let error = outcome.result.as_ref().err();
    let kind = error.map(|error| &error.kind);
    let timeout = if let Some(ErrorKind::Timeout(timeout)) = kind { Some(timeout) } else { None };
    let status = if let Some(ErrorKind::Status(status)) = kind { Some(status) } else { None };
    let refused = if let Some(ErrorKind::Blocked { reason }) = kind { Some(reason.as_str()) } else { None };
    Observed {
        result: end(outcome),
        phase: timeout.map(|timeout| phase(timeout.phase)),
        limit: timeout.map(|timeout| timeout.limit),
        waited: timeout.map(|timeout| timeout.elapsed),
        status: status.map(|status| status.status.as_u16()),
        body: status.map(|status| String::from_utf8_lossy(&status.body).into_owned()),
        finish_reason: refused.or(turn.finish_reason()).map(str::to_owned),
        text: turn.text().to_owned(),
        output_tokens: turn.usage.as_ref().and_then(|usage| usage.output_tokens),
        attempts: outcome.timeline.attempt_count(),
        billing: error.map(|error| match error.billing {
            Billing::NotSent => BillingSeen::NotSent,
            Billing::MaybeBilled => BillingSeen::MaybeBilled,
            Billing::Delivered => BillingSeen::Delivered,
        }),
        elapsed: *elapsed,
        turn_at: *turn_at,
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
