//! What was measured, for people and for programs.

use std::fmt;
use std::time::Duration;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use steadfast::time::Bound;
use steadfast_tokio::Outcome;

use super::MOST;
use super::arrivals::{Gap, ROWS_FROM_MS, Seen};
use crate::exit::Exit;
use crate::message::failure;

/// One stream of one provider
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Run {
    pub(super) provider: &'static str,
    pub(super) model: String,
    /// From 1
    pub(super) number: u32,
}

/// A stream, and what was seen of it
#[derive(Clone, Debug, Serialize)]
pub(super) struct Measured {
    provider: &'static str,
    model: String,
    run: u32,
    /// The outcome in one word: the kind of the error, where it failed
    outcome: &'static str,
    /// What failed, if something did
    error: Option<String>,
    #[serde(serialize_with = "seconds")]
    wall_seconds: Option<Duration>,
    #[serde(serialize_with = "seconds")]
    first_byte_seconds: Option<Duration>,
    chunks: u64,
    bytes: u64,
    largest_gap: Option<Gap>,
    #[serde(serialize_with = "rows")]
    histogram: [u64; ROWS_FROM_MS.len()],
}

/// All streams, and what is to be made of them
#[derive(Debug)]
pub(super) struct Report {
    idle_bound: Bound,
    runs: Vec<Measured>,
}

/// What is to be made of a measurement
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    /// Streams were measured, and no gap was over [`MOST`]
    Ok,
    /// A gap was over [`MOST`]
    GapTooLong,
    /// No stream had two reads
    NothingMeasured,
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}, run {}", self.provider, self.model, self.number)
    }
}

impl Verdict {
    pub(super) const fn exit(self) -> Exit {
        match self {
            Self::Ok => Exit::Completed,
            Self::GapTooLong => Exit::Failed,
            Self::NothingMeasured => Exit::Usage,
        }
    }
}

impl Measured {
    pub(super) fn new(run: Run, outcome: &Outcome, seen: Seen) -> Self {
        // An error's body is no stream, however it comes.
        let streamed = outcome
            .timeline
            .attempts
            .last()
            .and_then(|attempt| attempt.status)
            .is_some_and(|status| (200..300).contains(&status));
        let Run { provider, model, number } = run;
        let measured = Self {
            provider,
            model,
            run: number,
            outcome: outcome.result.as_ref().map_or_else(|error| error.kind.name(), |_| outcome.word()),
            error: failure(outcome),
            wall_seconds: Some(outcome.timeline.elapsed()),
            first_byte_seconds: seen.first_byte,
            chunks: seen.chunks,
            bytes: seen.bytes,
            largest_gap: None,
            histogram: [0; ROWS_FROM_MS.len()],
        };
        if streamed {
            Self { largest_gap: seen.largest, histogram: seen.histogram, ..measured }
        } else {
            measured
        }
    }
}

impl Report {
    pub(super) fn new(idle_bound: Bound) -> Self {
        Self { idle_bound, runs: Vec::new() }
    }

    pub(super) fn add(&mut self, measured: Measured) {
        self.runs.push(measured);
    }

    pub(super) fn verdict(&self) -> Verdict {
        match self.largest() {
            None => Verdict::NothingMeasured,
            Some(gap) if gap.length > MOST => Verdict::GapTooLong,
            Some(_) => Verdict::Ok,
        }
    }

    fn largest(&self) -> Option<&Gap> {
        self.runs.iter().filter_map(|run| run.largest_gap.as_ref()).max_by_key(|gap| gap.length)
    }

    /// A gap against the idle bound in force
    fn against(&self, gap: &Gap) -> String {
        match self.idle_bound {
            Bound::Unbounded => "no idle bound".to_owned(),
            Bound::Limited(bound) => {
                let share = 100.0 * gap.length.as_secs_f64() / bound.as_secs_f64();
                format!("{share:.0} % of the idle bound of {} s", bound.as_secs_f64())
            }
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for run in &self.runs {
            let Measured { provider, model, run: number, outcome, chunks, bytes, .. } = run;
            writeln!(f, "{provider} {model}, run {number}: {outcome}")?;
            if let Some(error) = &run.error {
                writeln!(f, "  {error}")?;
            }
            let wall = run.wall_seconds.unwrap_or_default().as_secs_f64();
            let first = match run.first_byte_seconds {
                Some(first) => format!("first byte after {:.3} s", first.as_secs_f64()),
                None => "no byte".to_owned(),
            };
            writeln!(f, "  {chunks} chunks, {bytes} bytes, {wall:.3} s, {first}")?;
            let Some(gap) = &run.largest_gap else { continue };
            let after = gap.after.as_deref().map(|piece| format!(", after {}", piece.replace('_', " ")));
            writeln!(
                f,
                "  largest gap {:.3} s, at {:.3} s after chunk {} (byte {}){}: {}",
                gap.length.as_secs_f64(),
                gap.at.as_secs_f64(),
                gap.after_chunks,
                gap.after_bytes,
                after.unwrap_or_default(),
                self.against(gap)
            )?;
            histogram(f, &run.histogram)?;
        }
        match (self.verdict(), self.largest()) {
            (Verdict::Ok, _) => writeln!(f, "ok: no gap over {} s", MOST.as_secs()),
            (Verdict::GapTooLong, Some(gap)) => writeln!(
                f,
                "a gap of {:.3} s, over {} s: {}",
                gap.length.as_secs_f64(),
                MOST.as_secs(),
                self.against(gap)
            ),
            (Verdict::NothingMeasured | Verdict::GapTooLong, _) => writeln!(f, "nothing could be measured"),
        }
    }
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let bound = match self.idle_bound {
            Bound::Limited(bound) => Some(bound.as_secs_f64()),
            Bound::Unbounded => None,
        };
        let mut map = serializer.serialize_map(Some(4))?;
        map.serialize_entry("verdict", &self.verdict())?;
        map.serialize_entry("idle_bound_seconds", &bound)?;
        map.serialize_entry("largest_gap_seconds", &self.largest().map(|gap| gap.length.as_secs_f64()))?;
        map.serialize_entry("runs", &self.runs)?;
        map.end()
    }
}

/// The widest bar, in characters
const BAR: u64 = 40;

fn histogram(f: &mut fmt::Formatter<'_>, rows: &[u64; ROWS_FROM_MS.len()]) -> fmt::Result {
    let most = rows.iter().copied().max().unwrap_or(0).max(1);
    for (row, count) in rows.iter().enumerate() {
        let bar = "#".repeat((count * BAR).div_ceil(most) as usize);
        writeln!(f, "{}", format!("  {:>16} {count:>7} {bar}", name(row)).trim_end())?;
    }
    Ok(())
}

fn name(row: usize) -> String {
    let spoken = |ms: u64| if ms < 1000 { format!("{ms} ms") } else { format!("{} s", ms / 1000) };
    match ROWS_FROM_MS.get(row + 1) {
        Some(to) => format!("under {}", spoken(*to)),
        None => format!("{} and over", spoken(ROWS_FROM_MS[row])),
    }
}

fn seconds<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    duration.map(|duration| duration.as_secs_f64()).serialize(serializer)
}

fn rows<S: Serializer>(rows: &[u64; ROWS_FROM_MS.len()], serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Row {
        from_seconds: f64,
        gaps: u64,
    }
    let rows = ROWS_FROM_MS.iter().zip(rows);
    serializer.collect_seq(rows.map(|(from, gaps)| Row { from_seconds: *from as f64 / 1000.0, gaps: *gaps }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(gaps: &[Option<u64>]) -> Report {
        let mut report = Report::new(Bound::Limited(Duration::from_secs(120)));
        for (number, gap) in (1..).zip(gaps) {
            let gap = gap.map(|ms| Gap {
                length: Duration::from_millis(ms),
                at: Duration::from_millis(1500),
                after_chunks: 3,
                after_bytes: 900,
                after: Some("tool_call".to_owned()),
            });
            report.add(Measured {
                provider: "openai",
                model: "m".to_owned(),
                run: number,
                outcome: "completed",
                error: None,
                wall_seconds: Some(Duration::from_secs(80)),
                first_byte_seconds: gap.is_some().then_some(Duration::from_millis(1500)),
                chunks: if gap.is_some() { 4 } else { 0 },
                bytes: 1000,
                largest_gap: gap,
                histogram: [40, 0, 1, 0, 0, 0, 0, 80],
            });
        }
        report
    }

    #[test]
    fn one_gap_over_a_minute_decides_and_none_at_all_is_no_measurement() {
        let cases: [(&[Option<u64>], Verdict, u8); 5] = [
            (&[], Verdict::NothingMeasured, 2),
            (&[None, None], Verdict::NothingMeasured, 2),
            (&[None, Some(60_000)], Verdict::Ok, 0),
            (&[Some(60_001), Some(20)], Verdict::GapTooLong, 1),
            (&[Some(20), None, Some(61_000)], Verdict::GapTooLong, 1),
        ];
        for (gaps, verdict, code) in cases {
            let report = report(gaps);
            assert_eq!((report.verdict(), report.verdict().exit().code()), (verdict, code), "{gaps:?}");
        }
    }

    #[test]
    fn the_report_says_how_long_where_and_against_what() {
        let expected = "\
openai m, run 1: completed
  4 chunks, 1000 bytes, 80.000 s, first byte after 1.500 s
  largest gap 72.000 s, at 1.500 s after chunk 3 (byte 900), after tool call: 60 % of the idle bound of 120 s
       under 10 ms      40 ####################
      under 100 ms       0
         under 1 s       1 #
         under 5 s       0
        under 15 s       0
        under 30 s       0
        under 60 s       0
     60 s and over      80 ########################################
a gap of 72.000 s, over 60 s: 60 % of the idle bound of 120 s
";
        assert_eq!(report(&[Some(72_000)]).to_string(), expected);
    }
}
