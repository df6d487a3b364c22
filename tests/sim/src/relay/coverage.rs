//! How often each state, ending and fault was met.

use std::collections::BTreeMap;
use std::fmt;

use steadfast::relay::{Code, Ending, State, Timer};

/// What every long play has to meet
pub(super) const ROWS: &[&str] = &[
    "state idle",
    "state serving",
    "state connecting",
    "state waiting",
    "state pausing",
    "state answering",
    "state flushing",
    "state lingering",
    "state over",
    "ending passed",
    "ending served",
    "ending total",
    "ending silence",
    "ending broken",
    "ending app left",
    "ending stopped",
    "ending upstream_unreachable",
    "ending upstream_timeout",
    "ending upstream_failed",
    "ending gateway_overloaded",
    "ending gateway_draining",
    "ending not_found",
    "ending bad_request",
    "ending request_timeout",
    "timer total",
    "timer first byte",
    "timer silence",
    "timer connect",
    "timer request head",
    "timer pause",
    "timer linger",
    "timer keep alive",
    "connection fails",
    "connection hangs",
    "connection reused",
    "connection stale before a byte",
    "connection stale behind a byte",
    "connection kept",
    "answer length",
    "answer chunked",
    "answer until close",
    "answer without body",
    "answer interim",
    "answer overload",
    "answer early",
    "answer unasked",
    "answer surplus",
    "answer cut",
    "answer no http",
    "write fails",
    "provider stops reading",
    "sent again",
    "second exchange",
    "pipelined",
    "http/1.0",
    "expect",
    "chunked request",
    "half request",
    "app stalls",
    "app leaves",
    "draining",
    "cancel",
    "taps",
    "drain dropped",
    "late",
];

/// How often each row was met
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    rows: BTreeMap<&'static str, u64>,
}

impl Coverage {
    /// The rows that were never met
    pub fn missing(&self) -> Vec<&'static str> {
        ROWS.iter().copied().filter(|row| !self.rows.contains_key(row)).collect()
    }

    pub(super) fn met(&mut self, row: &'static str) {
        debug_assert!(ROWS.contains(&row), "{row} is no row");
        *self.rows.entry(row).or_default() += 1;
    }

    pub(super) fn state(&mut self, state: State) {
        self.met(match state {
            State::Idle => "state idle",
            State::Serving => "state serving",
            State::Connecting => "state connecting",
            State::Waiting => "state waiting",
            State::Pausing => "state pausing",
            State::Answering => "state answering",
            State::Flushing => "state flushing",
            State::Lingering => "state lingering",
            State::Over => "state over",
        });
    }

    pub(super) fn timer(&mut self, timer: Timer) {
        self.met(match timer {
            Timer::Total => "timer total",
            Timer::FirstByte => "timer first byte",
            Timer::Silence => "timer silence",
            Timer::Connect => "timer connect",
            Timer::RequestHead => "timer request head",
            Timer::Pause => "timer pause",
            Timer::Linger => "timer linger",
            Timer::KeepAlive => "timer keep alive",
        });
    }

    pub(super) fn ending(&mut self, ending: Ending) {
        let row = match ending {
            Ending::Passed => "ending passed",
            Ending::Served => "ending served",
            Ending::Limit(Timer::Total) => "ending total",
            Ending::Limit(_) => "ending silence",
            Ending::Broken => "ending broken",
            Ending::AppLeft => "ending app left",
            Ending::Stopped => "ending stopped",
            Ending::Refused(code) => match code {
                Code::UpstreamUnreachable => "ending upstream_unreachable",
                Code::UpstreamTimeout => "ending upstream_timeout",
                Code::UpstreamFailed => "ending upstream_failed",
                Code::GatewayOverloaded => "ending gateway_overloaded",
                Code::GatewayDraining => "ending gateway_draining",
                Code::NotFound => "ending not_found",
                Code::RequestTimeout => "ending request_timeout",
                Code::BadPath | Code::BadRequest(_) => "ending bad_request",
                Code::Unauthorized => return,
            },
        };
        self.met(row);
    }
}

/// A table
impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in ROWS {
            writeln!(f, "{row:<32} {:>12}", self.rows.get(row).copied().unwrap_or_default())?;
        }
        Ok(())
    }
}
