//! The results for programs: one JSON object.

use std::time::Duration;

use serde_json::{Value, json};
use steadfast_scenario::{Expect, Observed};
use steadfast_suite::Played;
use steadfast_tokio::Outcome;

/// All results
pub(super) fn results(played: &[Played], elapsed: Duration) -> Value {
    json!({
        "ok": played.iter().all(Played::agrees),
        "elapsed": elapsed.as_secs_f64(),
        "scenarios": played.iter().map(scenario).collect::<Vec<_>>(),
    })
}

fn scenario(played: &Played) -> Value {
    let Played { scenario, driver, calls, seen, late, plays, differences } = played;
    json!({
        "name": scenario.name(),
        "about": scenario.about(),
        "driver": driver,
        "ok": differences.is_empty(),
        "tolerance": scenario.tolerance.as_secs_f64(),
        "expected": scenario.expect.iter().map(expected).collect::<Vec<_>>(),
        "calls": calls.iter().map(call).collect::<Vec<_>>(),
        "seen": {
            "connections": seen.connections,
            "requests": seen.requests,
            "received": seen.received,
            "blocked_for": seen.blocked.as_secs_f64(),
            "closed_by_peer": seen.closed_by_peer,
        },
        "late": late.as_secs_f64(),
        "plays": plays,
        "differences": differences,
    })
}

fn expected(expect: &Expect) -> Value {
    json!({
        "times": expect.times,
        "result": expect.result,
        "phase": expect.phase,
        "limit": seconds(expect.limit),
        "status": expect.status,
        "finish_reason": expect.finish_reason,
        "attempts": expect.attempts,
        "billing": expect.billing,
        "min_elapsed": seconds(expect.min_elapsed),
        "max_elapsed": seconds(expect.max_elapsed),
    })
}

fn call((observed, outcome): &(Observed, Outcome)) -> Value {
    json!({
        "result": observed.result,
        "phase": observed.phase,
        "limit": seconds(observed.limit),
        "waited": seconds(observed.waited),
        "status": observed.status,
        "finish_reason": observed.finish_reason,
        "text_bytes": observed.text.len(),
        "output_tokens": observed.output_tokens,
        "attempts": observed.attempts,
        "billing": observed.billing,
        "elapsed": observed.elapsed.as_secs_f64(),
        "turn_at": seconds(observed.turn_at),
        "timeline": outcome.timeline,
    })
}

fn seconds(duration: Option<Duration>) -> Option<f64> {
    duration.map(|duration| duration.as_secs_f64())
}
