//! The results of several drivers for people: scenario by driver, with the time that each took.

use std::fmt::Write as _;
use std::time::Duration;

use steadfast_suite::Played;

use super::table::{GREEN, PLAIN, RED, told_apart, width};

/// One row for each scenario, one column for each of so many drivers; then what differs
///
/// A cell holds how long the slowest call took, in seconds: of its wait where a bound fired, else as
/// a whole. Under virtual time that is exact.
pub(super) fn results(played: &[Played], drivers: usize, elapsed: Duration, coloured: bool) -> String {
    let rows: Vec<&[Played]> = played.chunks(drivers).collect();
    let name = |row: &[Played]| row[0].scenario.name();
    let widest = rows.iter().map(|row| width(name(row))).max().unwrap_or_default();
    let cells: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(cell).collect()).collect();
    let heads = rows.first().map_or(&[][..], |row| row);
    let widths: Vec<usize> = (0..drivers)
        .map(|at| {
            let cells = cells.iter().map(|row| width(&row[at]));
            cells.chain(heads.get(at).map(|played| width(played.driver))).max().unwrap_or_default()
        })
        .collect();
    let mut text = format!("{:<widest$}", "scenario");
    for (played, widest) in heads.iter().zip(&widths) {
        _ = write!(text, "  {:>widest$}", played.driver);
    }
    text.push('\n');
    for (row, cells) in rows.iter().zip(&cells) {
        _ = write!(text, "{:<widest$}", name(row));
        for ((played, cell), widest) in row.iter().zip(cells).zip(&widths) {
            let (on, off) = match (coloured, played.agrees()) {
                (false, _) => ("", ""),
                (true, true) => (GREEN, PLAIN),
                (true, false) => (RED, PLAIN),
            };
            _ = write!(text, "  {on}{cell:>widest$}{off}");
        }
        text.push('\n');
    }
    text.push('\n');
    told_apart(&mut text, played);
    for (at, of) in heads.iter().enumerate() {
        let agree = rows.iter().filter(|row| row[at].agrees()).count();
        _ = writeln!(text, "{:<8}  {agree} of {} scenarios ended as they must", of.driver, rows.len());
    }
    let tolerances = rows.iter().map(|row| row[0].scenario.tolerance);
    let tolerance = tolerances.max().unwrap_or_default().as_secs_f64();
    let took = elapsed.as_secs_f64();
    _ = writeln!(
        text,
        "in {took:.1} s; a bound fires on time in sim, and within {tolerance} s of it on sockets"
    );
    text
}

fn cell(played: &Played) -> String {
    let took =
        |(observed, _): &(steadfast_scenario::Observed, _)| observed.waited.unwrap_or(observed.elapsed);
    let slowest = played.calls.iter().map(took).max();
    let slowest = slowest.map_or_else(String::new, |took| format!("{:.3}", took.as_secs_f64()));
    if played.agrees() { slowest } else { format!("DIFFERS {slowest}").trim_end().to_owned() }
}
