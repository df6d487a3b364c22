//! How a call stands, in one line.

use std::time::Instant;

use steadfast::time::Bound;

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
    /// When the present wait began: in a stream, when the last byte came
    pub(crate) since: Instant,
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
    /// Receiving the answer
    Receiving,
    /// Pausing before the next attempt
    Pausing,
    /// Waiting for what may follow a complete answer
    Finishing,
}

impl Progress {
    /// The line that shows it
    pub(crate) fn line(&self, now: Instant) -> String {
        let Self { phase, attempt, max_attempts, bytes, since, bound } = self;
        let waited = now.saturating_duration_since(*since).as_secs_f64();
        let limit = match bound {
            Bound::Limited(limit) => format!("of {} s", limit.as_secs_f64()),
            Bound::Unbounded => "without a bound".to_owned(),
        };
        let received = if *bytes == 0 { String::new() } else { format!(" · {}", size(*bytes)) };
        let phase_name = phase.name();
        let quiet = if *phase == Phase::Receiving { "quiet for " } else { "" };
        format!("{phase_name} · attempt {attempt} of {max_attempts}{received} · {quiet}{waited:.1} s {limit}")
    }
}

impl Phase {
    const fn name(self) -> &'static str {
        match self {
            Self::Connecting => "connecting",
            Self::Waiting => "waiting for an answer",
            Self::Receiving => "receiving",
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
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_line_shows_phase_attempt_bytes_and_gap() {
        let since = Instant::now();
        let now = since + Duration::from_millis(1_230);
        let start = Progress {
            phase: Phase::Connecting,
            attempt: 1,
            max_attempts: 3,
            bytes: 0,
            since,
            bound: Bound::Limited(Duration::from_secs(10)),
        };
        assert_eq!(start.line(now), "connecting · attempt 1 of 3 · 1.2 s of 10 s");
        let streaming = Progress {
            phase: Phase::Receiving,
            attempt: 2,
            bytes: 12_700,
            bound: Bound::Limited(Duration::from_millis(1_500)),
            ..start
        };
        assert_eq!(streaming.line(now), "receiving · attempt 2 of 3 · 12.4 KiB · quiet for 1.2 s of 1.5 s");
        let unbounded = Progress { phase: Phase::Waiting, bound: Bound::Unbounded, ..start };
        assert_eq!(unbounded.line(now), "waiting for an answer · attempt 1 of 3 · 1.2 s without a bound");
        let clock_behind = Progress { since: now, ..start };
        assert_eq!(clock_behind.line(since), "connecting · attempt 1 of 3 · 0.0 s of 10 s");
    }

    #[test]
    fn sizes_are_in_their_largest_whole_unit() {
        let sizes = [0, 1023, 1024, 1536, 1 << 20, 5 << 30, u64::MAX].map(size);
        assert_eq!(sizes, ["0 B", "1023 B", "1.0 KiB", "1.5 KiB", "1.0 MiB", "5.0 GiB", "16777216.0 TiB"]);
    }
}
