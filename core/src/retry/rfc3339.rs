//! Points in time as RFC 3339 writes them.

use std::time::Duration;

use super::http_date::unix_seconds;

/// The time since the Unix epoch of `2026-10-21T07:28:00Z`, with or without a part of a second, and
/// in any offset
///
/// `None` for anything else, and for times before the epoch. A leap second is the second after it.
pub fn parse(text: &str) -> Option<Duration> {
    let (date, rest) = text.split_once(['T', 't'])?;
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let (time, offset) = rest.split_at(rest.find(['Z', 'z', '+', '-'])?);
    let (time, fraction) = time.split_once('.').map_or((time, None), |(time, digits)| (time, Some(digits)));
    let time = numbers(time, ':', [2, 2, 2])?;
    let local = unix_seconds([year, month, day], time)?;
    let offset = match offset.split_at_checked(1)? {
        ("Z" | "z", "") => 0,
        (sign, offset) => {
            let [hours, minutes] = numbers(offset, ':', [2, 2])?;
            let seconds = hours * 3600 + minutes * 60;
            if hours > 23 || minutes > 59 {
                return None;
            }
            if sign == "-" { -seconds } else { seconds }
        }
    };
    let whole = Duration::from_secs(u64::try_from(local - offset).ok()?);
    Some(whole + fraction.map_or(Some(Duration::ZERO), part_of_a_second)?)
}

/// Numbers of so many digits each, between separators
fn numbers<const N: usize>(text: &str, separator: char, lengths: [usize; N]) -> Option<[i64; N]> {
    let mut pieces = text.split(separator);
    let mut numbers = [0; N];
    for (number, length) in numbers.iter_mut().zip(lengths) {
        *number = pieces.next().filter(|piece| piece.len() == length && is_digits(piece))?.parse().ok()?;
    }
    pieces.next().is_none().then_some(numbers)
}

/// Digits behind the point; those past the nanosecond are dropped
fn part_of_a_second(digits: &str) -> Option<Duration> {
    if digits.is_empty() || !is_digits(digits) {
        return None;
    }
    let nanos = digits.bytes().chain(std::iter::repeat(b'0')).take(9);
    Some(Duration::from_nanos(nanos.fold(0, |nanos, digit| nanos * 10 + u64::from(digit - b'0'))))
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_forms() {
        for (text, expected) in [
            ("1994-11-06T08:49:37Z", Some(Duration::from_secs(784_111_777))),
            ("1994-11-06t08:49:37z", Some(Duration::from_secs(784_111_777))),
            ("1994-11-06T10:49:37+02:00", Some(Duration::from_secs(784_111_777))),
            ("1994-11-06T03:19:37-05:30", Some(Duration::from_secs(784_111_777))),
            ("1994-11-06T08:49:37.25Z", Some(Duration::from_millis(784_111_777_250))),
            ("1970-01-01T00:00:00.0000000019Z", Some(Duration::from_nanos(1))),
            ("2016-12-31T23:59:60Z", Some(Duration::from_secs(1_483_228_800))),
            ("1969-12-31T23:59:59Z", None),
            ("1994-11-06T08:49:37", None),
            ("1994-11-06 08:49:37Z", None),
            ("1994-11-06T08:49:37.Z", None),
            ("1994-11-06T08:49:37+0200", None),
            ("1994-11-06T08:49:37+24:00", None),
            ("1994-11-31T08:49:37Z", None),
            ("1994-00-06T08:49:37Z", None),
            ("94-11-06T08:49:37Z", None),
            ("1994-11-06T8:49:37Z", None),
            ("1994-11-06T24:49:37Z", None),
            ("", None),
            ("T", None),
            ("1994-11-06T08:49:37é", None),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
    }
}
