//! Calls as rows.

use std::fmt::Write as _;

use steadfast_relay::record::Call;

use crate::output::for_terminal;

/// The widest target that is shown whole
const TARGET_WIDTH: usize = 44;

/// The line above the rows
pub(super) fn heading() -> String {
    format!(
        "{:<23}  {:<20}  {:<10}  {:<44}  {:>6}  {:<20}  {:>5}  {:>9}  {:>9}  {:>9}\n",
        "BEGUN (UTC)", "ID", "APP", "REQUEST", "STATUS", "ENDING", "SENDS", "TOOK", "ASKED", "ANSWERED"
    )
}

/// A call in one line
pub(super) fn row(call: &Call) -> String {
    let path = call.target.split('?').next().unwrap_or_default();
    let request = shortened(&format!("{} {path}", call.method), TARGET_WIDTH);
    let status = call.status.map_or_else(|| "-".to_owned(), |status| status.to_string());
    let took = call
        .ended
        .map_or_else(|| "-".to_owned(), |ended| format!("{:.3}s", (ended - call.begun) as f64 / 1e6));
    let mut row = String::new();
    // A string takes all.
    _ = writeln!(
        row,
        "{}  {:<20}  {:<10}  {request:<44}  {status:>6}  {:<20}  {:>5}  {took:>9}  {:>9}  {:>9}",
        utc(call.begun),
        call.name(),
        shortened(call.app.as_deref().unwrap_or("-"), 10),
        call.ending(),
        call.sends,
        size(call.request_bytes),
        size(call.answer_bytes),
    );
    for_terminal(&row).into_owned()
}

/// A number of bytes in three or four digits
pub(super) fn size(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} B"),
        10_000..10_000_000 => format!("{} KiB", bytes / 1_024),
        10_000_000.. => format!("{} MiB", bytes / (1_024 * 1_024)),
    }
}

/// Microseconds since 1970 as `2026-11-30T22:41:05.123`
pub(super) fn utc(at: i64) -> String {
    let (days, of_day) = (at.div_euclid(86_400_000_000), at.rem_euclid(86_400_000_000));
    // Years that begin in March end in the leap day: days are counted from 1 March of year 0.
    let day = days + 719_468;
    let (era, of_era) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let date = of_year - (153 * month + 2) / 5 + 1;
    let (year, month) = match month {
        0..10 => (year + era * 400, month + 3),
        _ => (year + era * 400 + 1, month - 9),
    };
    let (seconds, millis) = (of_day / 1_000_000, of_day % 1_000_000 / 1_000);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{date:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}")
}

fn shortened(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00.000"),
            (951_782_399, "2000-02-28T23:59:59.000"),
            (951_782_400, "2000-02-29T00:00:00.000"),
            (951_868_800, "2000-03-01T00:00:00.000"),
            (1_709_164_800, "2024-02-29T00:00:00.000"),
            (1_767_225_599, "2025-12-31T23:59:59.000"),
            (4_107_542_400, "2100-03-01T00:00:00.000"),
            (-1, "1969-12-31T23:59:59.000"),
        ] {
            assert_eq!(utc(seconds * 1_000_000), expected);
        }
        assert_eq!(utc(1_234), "1970-01-01T00:00:00.001");
    }

    #[test]
    fn sizes_and_long_texts_fit_their_columns() {
        assert_eq!(
            (size(9_999), size(10_240), size(64 << 20)),
            ("9999 B".into(), "10 KiB".into(), "64 MiB".into())
        );
        assert_eq!(shortened("abcdef", 6), "abcdef");
        assert_eq!(shortened("äbcdefg", 6), "äbcde…");
    }
}
