//! How long a server asks us to wait: `Retry-After`, RFC 9110 section 10.2.3, and its kin.

use std::time::Duration;

use http::HeaderMap;

use super::http_date;

/// Headers in milliseconds, which are finer and so beat seconds
const MILLISECONDS: [&str; 2] = ["retry-after-ms", "x-ms-retry-after-ms"];

/// How long a response asks us to wait, from now
///
/// `unix_now` is the time since the Unix epoch, for dates; one that is past is zero. Rule RTY-3:
/// `retry-after-ms`, then `x-ms-retry-after-ms`, then `Retry-After` in seconds or as a date. Numbers
/// may have decimals; one too large to hold is [`Duration::MAX`], which means too long. Whatever
/// else stands there is passed over. Of several lines of one header the largest counts, since
/// asking again too early is the worse mistake.
pub fn parse(headers: &HeaderMap, unix_now: Duration) -> Option<Duration> {
    let milliseconds = |header| largest(headers, header, |value| number(value, NANOS_PER_MILLISECOND));
    MILLISECONDS.into_iter().find_map(milliseconds).or_else(|| {
        largest(headers, "retry-after", |value| {
            number(value, NANOS_PER_SECOND).or_else(|| until(value, unix_now))
        })
    })
}

pub(super) const NANOS_PER_MILLISECOND: u128 = 1_000_000;
pub(super) const NANOS_PER_SECOND: u128 = 1_000_000_000;

fn largest(headers: &HeaderMap, header: &str, parse: impl Fn(&[u8]) -> Option<Duration>) -> Option<Duration> {
    // Responses have few fields: looking at each is quicker than hashing a name that is seldom among them.
    let values = headers.iter().filter(|(name, _)| name.as_str() == header).map(|(_, value)| value);
    values.filter_map(|value| parse(value.as_bytes().trim_ascii())).max()
}

/// `12` or `1.5` of a unit, and no other spelling of a number
///
/// Decimals beyond the nanosecond are dropped.
pub(super) fn number(text: &[u8], unit: u128) -> Option<Duration> {
    let text = std::str::from_utf8(text).ok()?;
    let (whole, decimals) = match text.split_once('.') {
        Some((whole, decimals)) => (whole, decimals),
        None => (text, "0"),
    };
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_digits(whole) || !is_digits(decimals) {
        return None;
    }
    let too_long = Some(Duration::MAX);
    let Ok(whole) = whole.parse::<u128>() else { return too_long };
    let Some(mut nanos) = whole.checked_mul(unit) else { return too_long };
    let mut weight = unit;
    for digit in decimals.bytes() {
        weight /= 10;
        nanos = nanos.saturating_add(u128::from(digit - b'0') * weight);
    }
    let Ok(seconds) = u64::try_from(nanos / NANOS_PER_SECOND) else { return too_long };
    let rest = u32::try_from(nanos % NANOS_PER_SECOND).ok()?;
    Some(Duration::new(seconds, rest))
}

/// From now until a date
fn until(text: &[u8], unix_now: Duration) -> Option<Duration> {
    let seconds = http_date::parse(text, unix_now)?;
    Some(Duration::from_secs(seconds.try_into().unwrap_or(0)).saturating_sub(unix_now))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    /// 2026-10-21 07:28:00 GMT
    const NOW: Duration = Duration::from_secs(1_792_567_680);

    fn parsed(lines: &[(&'static str, &str)]) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        parse(&headers, NOW)
    }

    fn retry_after(value: &str) -> Option<Duration> {
        parsed(&[("retry-after", value)])
    }

    #[test]
    fn j01_seconds() {
        assert_eq!(retry_after("7"), Some(Duration::from_secs(7)));
        assert_eq!(retry_after("0"), Some(Duration::ZERO));
        assert_eq!(retry_after("0.25"), Some(Duration::from_millis(250)));
        assert_eq!(retry_after("1.0"), Some(Duration::from_secs(1)));
        assert_eq!(retry_after("0.0000000019"), Some(Duration::from_nanos(1)));
        assert_eq!(parsed(&[]), None);
    }

    #[test]
    fn j02_dates() {
        for (value, seconds) in [
            ("Wed, 21 Oct 2026 07:28:30 GMT", 30),
            ("Wed, 21 Oct 2026 07:27:00 GMT", 0),
            ("Wednesday, 21-Oct-26 07:28:30 GMT", 30),
            ("Wed Oct 21 07:28:30 2026", 30),
            ("Thu, 01 Jan 1960 00:00:00 GMT", 0),
        ] {
            assert_eq!(retry_after(value), Some(Duration::from_secs(seconds)), "{value}");
        }
        let headers = HeaderMap::from_iter([(
            http::header::RETRY_AFTER,
            HeaderValue::from_static("Wed, 21 Oct 2026 07:28:30 GMT"),
        )]);
        let later = NOW + Duration::from_millis(100);
        assert_eq!(parse(&headers, later), Some(Duration::from_millis(29_900)), "a part of a second counts");
    }

    #[test]
    fn j03_milliseconds_beat_seconds() {
        let seconds = ("retry-after", "2");
        assert_eq!(parsed(&[("retry-after-ms", "1500"), seconds]), Some(Duration::from_millis(1500)));
        assert_eq!(parsed(&[("x-ms-retry-after-ms", "800"), seconds]), Some(Duration::from_millis(800)));
        assert_eq!(parsed(&[("retry-after-ms", "abc"), seconds]), Some(Duration::from_secs(2)));
        assert_eq!(parsed(&[("retry-after-ms", "0.5")]), Some(Duration::from_micros(500)));
        assert_eq!(
            parsed(&[("x-ms-retry-after-ms", "9"), ("retry-after-ms", "8")]),
            Some(Duration::from_millis(8))
        );
    }

    #[test]
    fn j04_garbage_is_passed_over() {
        for value in [
            "-1",
            "-0",
            "",
            "soon",
            "5 seconds",
            "0x10",
            "1_000",
            "1,2",
            "1e3",
            "inf",
            "Infinity",
            "nan",
            "+5",
            ".5",
            "5.",
            "1.2.3",
            "1.-2",
            ".",
            "Wed, 99 Foo 99999 99:99:99 GMT",
        ] {
            assert_eq!(retry_after(value), None, "{value:?}");
        }
        let headers =
            HeaderMap::from_iter([(http::header::RETRY_AFTER, HeaderValue::from_bytes(b"\xFF").unwrap())]);
        assert_eq!(parse(&headers, NOW), None);
    }

    #[test]
    fn j04_of_several_lines_the_largest_counts() {
        for values in [["3", "5"], ["5", "3"], ["5", "soon"]] {
            let lines = values.map(|value| ("retry-after", value));
            assert_eq!(parsed(&lines), Some(Duration::from_secs(5)), "{values:?}");
        }
    }

    #[test]
    fn j06_long_times_are_told_as_they_are() {
        assert_eq!(retry_after("1382400"), Some(Duration::from_secs(1_382_400)));
        assert_eq!(retry_after("18446744073709551615"), Some(Duration::from_secs(u64::MAX)));
        for value in ["18446744073709551616", "99999999999999999999999999999999999", &"9".repeat(400)] {
            assert_eq!(retry_after(value), Some(Duration::MAX), "{value}");
        }
    }
}
