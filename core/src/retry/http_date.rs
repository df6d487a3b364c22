//! HTTP dates, RFC 9110 section 5.6.7.

use std::time::Duration;

const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

const SECONDS_PER_DAY: i64 = 86_400;
/// The mean year of the Gregorian calendar: 365.2425 days
const SECONDS_PER_YEAR: i64 = 31_556_952;

/// Seconds since the Unix epoch of an HTTP date, in any of its three forms
///
/// The forms are strict, as the RFC has them: IMF-fixdate, RFC 850 and asctime, in GMT. A name of a
/// day that does not fit the date is let pass, and a leap second is the second after it. A year of
/// two digits is the latest one that is at most 50 after the year of `unix_now`. `None` for anything else.
pub fn parse(text: &[u8], unix_now: Duration) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    match text.split_once(", ") {
        Some((day, rest)) if DAYS.iter().any(|name| name[..3] == *day) => imf_fixdate(rest),
        Some((day, rest)) if DAYS.contains(&day) => rfc850(rest, unix_now),
        Some(_) => None,
        None => {
            let (day, rest) = text.split_at_checked(3)?;
            DAYS.iter().any(|name| name[..3] == *day).then(|| asctime(rest))?
        }
    }
}

/// `06 Nov 1994 08:49:37 GMT`
fn imf_fixdate(text: &str) -> Option<i64> {
    let rest = text.strip_suffix(" GMT")?;
    let [day, month, year, time] = fields(rest, " ")?;
    named(digits(year, 4)?, month, digits(day, 2)?, time)
}

/// `06-Nov-94 08:49:37 GMT`
fn rfc850(text: &str, unix_now: Duration) -> Option<i64> {
    let rest = text.strip_suffix(" GMT")?;
    let [date, time] = fields(rest, " ")?;
    let [day, month, year] = fields(date, "-")?;
    let (day, short) = (digits(day, 2)?, digits(year, 2)?);
    // RFC 9110: not more than 50 years in the future, or it is the most recent such year in the past.
    let now = i64::try_from(unix_now.as_secs()).ok()?;
    let latest = 1970 + now / SECONDS_PER_YEAR + 50;
    let year = latest - (latest - short).rem_euclid(100);
    named(year, month, day, time)
}

/// ` Nov  6 08:49:37 1994`
fn asctime(text: &str) -> Option<i64> {
    let text = text.strip_prefix(' ')?;
    let (month, rest) = text.split_at_checked(3)?;
    let (day, rest) = rest.strip_prefix(' ')?.split_at_checked(2)?;
    let day = match day.strip_prefix(' ') {
        Some(day) => digits(day, 1)?,
        None => digits(day, 2)?,
    };
    let [time, year] = fields(rest.strip_prefix(' ')?, " ")?;
    named(digits(year, 4)?, month, day, time)
}

/// The pieces between the separators, if there are exactly so many
fn fields<'a, const N: usize>(text: &'a str, separator: &str) -> Option<[&'a str; N]> {
    let mut pieces = text.split(separator);
    let mut fields = [""; N];
    for field in &mut fields {
        *field = pieces.next()?;
    }
    pieces.next().is_none().then_some(fields)
}

/// A number of exactly so many ASCII digits
fn digits(text: &str, count: usize) -> Option<i64> {
    (text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

/// Seconds since the epoch of a date with its month's name, at the time `08:49:37`
fn named(year: i64, month: &str, day: i64, time: &str) -> Option<i64> {
    let month = 1 + MONTHS.iter().position(|name| *name == month)?;
    let [hour, minute, second] = fields(time, ":")?;
    let time = [digits(hour, 2)?, digits(minute, 2)?, digits(second, 2)?];
    unix_seconds([year, i64::try_from(month).ok()?, day], time)
}

/// Seconds since the epoch of a year, month and day that the calendar has, at an hour, minute and second
pub(super) fn unix_seconds([year, month, day]: [i64; 3], [hour, minute, second]: [i64; 3]) -> Option<i64> {
    let is_time = hour <= 23 && minute <= 59 && second <= 60;
    if !is_time || !(1..=12).contains(&month) || !(1..=days_in_month(year, month)).contains(&day) {
        return None;
    }
    let days = days_since_epoch(year, month, day);
    Some(days * SECONDS_PER_DAY + hour * 3600 + minute * 60 + second)
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 to a date of the Gregorian calendar
fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    // Counted in years that begin in March, so that the leap day is a year's last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    365 * year + leap_days + (153 * month + 2) / 5 + day - 719_469
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use proptest::prelude::*;

    use super::*;

    /// 2026-10-21 07:28:00 GMT
    const NOW: Duration = Duration::from_secs(1_792_567_680);

    #[test]
    fn the_three_forms_are_one_date() {
        for text in
            ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"]
        {
            assert_eq!(parse(text.as_bytes(), NOW), Some(784_111_777), "{text}");
        }
    }

    #[test]
    fn two_digits_of_a_year_are_at_most_50_years_ahead() {
        let year = |short: &str, now| {
            let seconds = parse(format!("Monday, 15-Jun-{short} 00:00:00 GMT").as_bytes(), now).unwrap();
            1970 + seconds.div_euclid(SECONDS_PER_YEAR)
        };
        assert_eq!(["76", "77", "26", "00"].map(|short| year(short, NOW)), [2076, 1977, 2026, 2000]);
        assert_eq!(["20", "21", "70"].map(|short| year(short, Duration::ZERO)), [2020, 1921, 1970]);
    }

    #[test]
    fn only_dates_of_the_calendar_count() {
        for (text, expected) in [
            ("Thu, 29 Feb 2024 00:00:00 GMT", Some(1_709_164_800)),
            ("Wed, 29 Feb 2023 00:00:00 GMT", None),
            ("Mon, 28 Feb 2100 00:00:00 GMT", Some(4_107_456_000)),
            ("Mon, 29 Feb 2100 00:00:00 GMT", None),
            ("Sat, 31 Dec 2016 23:59:60 GMT", Some(1_483_228_800)),
            ("Sat, 31 Dec 2016 23:59:61 GMT", None),
            ("Wed, 99 Foo 99999 99:99:99 GMT", None),
        ] {
            assert_eq!(parse(text.as_bytes(), NOW), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn agrees_with_httpdate(seconds in 0_u32..=u32::MAX) {
            let text = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds.into()));
            prop_assert_eq!(parse(text.as_bytes(), NOW), Some(i64::from(seconds)));
        }

        #[test]
        fn anything_is_taken_or_refused(text in "[A-Za-z]{0,9},? ?[0-9 ]{0,2}[ -][A-Z][a-z]{2}[ -].{0,24}") {
            parse(text.as_bytes(), NOW);
        }
    }
}
