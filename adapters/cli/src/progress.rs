//! How a call stands, in one line.

use std::time::Duration;

use steadfast::call::{self, State};
use steadfast::config::RequestConfig;
use steadfast::time::{Bound, Instant};

/// How a call stands
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    /// What it is doing
    pub(crate) phase: Phase,
    /// Which attempt this is, from 1
    pub(crate) attempt: u32,
    /// How many attempts there may be
    pub(crate) max_attempts: u32,
    /// Bytes received by this attempt
    pub(crate) bytes: u64,
    /// How long the present wait has lasted: in a stream, since the last byte came
    pub(crate) waited: Duration,
    /// How long that wait may last
    pub(crate) bound: Bound,
}

/// What a call is doing
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Opening a connection
    Connecting,
    /// Waiting for the response to begin
    Waiting,
    /// Receiving an answer in one piece
    Receiving,
    /// Receiving a stream
    Streaming,
    /// Pausing before the next attempt
    Pausing,
    /// Waiting for what may follow a complete answer
    Finishing,
}

impl Progress {
    /// How a call stood at `now`
    pub(crate) fn of(call: call::Progress, now: Instant, config: &RequestConfig) -> Self {
        let phase = match call.state {
            State::Idle | State::Connecting => Phase::Connecting,
            State::Waiting => Phase::Waiting,
            State::Reading | State::Refused => Phase::Receiving,
            State::Streaming => Phase::Streaming,
            State::Pausing => Phase::Pausing,
            State::Finished | State::Over => Phase::Finishing,
        };
        let bound = match call.deadline {
            Some((at, _)) => Bound::Limited(at - call.quiet_since),
            // What was delivered is in our hands; the clock that runs on the next byte is this one.
            None if phase == Phase::Streaming => config.stream_idle_timeout(),
            None if phase == Phase::Finishing => Bound::Limited(config.after_marker()),
            None => Bound::Unbounded,
        };
        let max_attempts = config.max_attempts().get();
        let waited = now - call.quiet_since;
        Self { phase, attempt: call.attempt, max_attempts, bytes: call.bytes, waited, bound }
    }

    /// The line that shows it
    pub(crate) fn line(&self) -> String {
        let Self { phase, attempt, max_attempts, bytes, waited, bound } = self;
        let waited = waited.as_secs_f64();
        let limit = match bound {
            Bound::Limited(limit) => {
                let limit = format!("{:.1}", limit.as_secs_f64());
                format!("of {} s", limit.strip_suffix(".0").unwrap_or(&limit))
            }
            Bound::Unbounded => "without a bound".to_owned(),
        };
        let received = if *bytes == 0 { String::new() } else { format!(" · {}", size(*bytes)) };
        let phase_name = phase.name();
        let quiet = if *phase == Phase::Streaming { "quiet for " } else { "" };
        format!("{phase_name} · attempt {attempt} of {max_attempts}{received} · {quiet}{waited:.1} s {limit}")
    }
}

impl Phase {
    const fn name(self) -> &'static str {
        match self {
            Self::Connecting => "connecting",
            Self::Waiting => "waiting for an answer",
            Self::Receiving | Self::Streaming => "receiving",
            Self::Pausing => "pausing before another attempt",
            Self::Finishing => "complete, finishing",
        }
    }
}

/// A number of bytes in its largest whole unit
fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut unit = 0;
    let mut amount = bytes as f64 / 1024.0;
    while amount >= 1024.0 && unit + 1 < UNITS.len() {
        amount /= 1024.0;
        unit += 1;
    }
    format!("{amount:.1} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_shows_phase_attempt_bytes_and_gap() {
        let start = Progress {
            phase: Phase::Connecting,
            attempt: 1,
            max_attempts: 3,
            bytes: 0,
            waited: Duration::from_millis(1_230),
            bound: Bound::Limited(Duration::from_secs(10)),
        };
        assert_eq!(start.line(), "connecting · attempt 1 of 3 · 1.2 s of 10 s");
        let streaming = Progress {
            phase: Phase::Streaming,
            attempt: 2,
            bytes: 12_700,
            bound: Bound::Limited(Duration::from_millis(1_500)),
            ..start
        };
        assert_eq!(streaming.line(), "receiving · attempt 2 of 3 · 12.4 KiB · quiet for 1.2 s of 1.5 s");
        let unbounded = Progress { phase: Phase::Waiting, bound: Bound::Unbounded, ..start };
        assert_eq!(unbounded.line(), "waiting for an answer · attempt 1 of 3 · 1.2 s without a bound");
    }

    #[test]
    fn the_gap_counts_from_the_last_byte_and_its_bound_is_the_next_deadline() {
        let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
        let call = call::Progress {
            state: State::Streaming,
            attempt: 1,
            bytes: 9,
            quiet_since: at(1_000),
            deadline: Some((at(1_300), call::Timer::StreamIdle)),
        };
        let config = RequestConfig::default();
        let progress = Progress::of(call, at(1_250), &config);
        assert_eq!(progress.phase, Phase::Streaming);
        assert_eq!(progress.waited, Duration::from_millis(250));
        assert_eq!(progress.bound, Bound::Limited(Duration::from_millis(300)));
        let delivered = Progress::of(call::Progress { deadline: None, ..call }, at(500), &config);
        assert_eq!((delivered.waited, delivered.bound), (Duration::ZERO, config.stream_idle_timeout()));
    }

    #[test]
    fn sizes_are_in_their_largest_whole_unit() {
        let sizes = [0, 1023, 1024, 1536, 1 << 20, 5 << 30, u64::MAX].map(size);
        assert_eq!(sizes, ["0 B", "1023 B", "1.0 KiB", "1.5 KiB", "1.0 MiB", "5.0 GiB", "16777216.0 TiB"]);
    }
}
