//! Header values into the parser of `Retry-After`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{HeaderMap, HeaderName, HeaderValue};
use steadfast::retry::{http_date, retry_after};

const NAMES: [&str; 3] = ["retry-after", "retry-after-ms", "x-ms-retry-after-ms"];
/// The most lines that are looked at
const MAX_LINES: usize = 6;
/// How far a duration may be from what floating point has for it
const TOLERANCE: f64 = 1.5e-9;

/// Header lines: four bytes of wall-clock time, then lines, each a byte that names it and a value
///
/// What is asked for is the largest of what the first kind of line that asks for anything asks for. A
/// number is taken exactly if it is digits, perhaps with decimals, and then for what floating point
/// says that it is. A date that httpdate reads too is the same second to both, and a date in each of its
/// three forms is read.
pub fn retry_after(data: &[u8]) {
    let Some((clock, lines)) = data.split_first_chunk() else { return };
    let now = Duration::from_secs(u32::from_le_bytes(*clock).into());
    check_dates_of(now);
    let mut headers = HeaderMap::new();
    for line in lines.split(|byte| *byte == b'\n').take(MAX_LINES) {
        let Some((name, value)) = line.split_first() else { continue };
        let Ok(value) = HeaderValue::from_bytes(value) else { continue };
        headers.append(HeaderName::from_static(NAMES[usize::from(*name) % NAMES.len()]), value);
    }
    for value in headers.values() {
        check_number(value, now);
        check_date(value, now);
    }
    let asked = |name: &str| {
        let each = headers.get_all(name).iter().filter_map(|value| alone(name, value, now));
        each.max()
    };
    let expected = asked(NAMES[1]).or_else(|| asked(NAMES[2])).or_else(|| asked(NAMES[0]));
    assert_eq!(retry_after::parse(&headers, now), expected, "{headers:?}");
}

/// What a line asks for where it is the only one
fn alone(name: &str, value: &HeaderValue, now: Duration) -> Option<Duration> {
    let headers = HeaderMap::from_iter([(HeaderName::try_from(name).expect("a name"), value.clone())]);
    retry_after::parse(&headers, now)
}

fn check_number(value: &HeaderValue, now: Duration) {
    let text = String::from_utf8_lossy(value.as_bytes().trim_ascii()).into_owned();
    let (whole, decimals) = text.split_once('.').unwrap_or((&text, "0"));
    let is_number = [whole, decimals]
        .iter()
        .all(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()));
    for (name, unit) in NAMES.into_iter().zip([1.0, 1e-3, 1e-3]) {
        let asked = alone(name, value, now);
        if name != NAMES[0] {
            assert_eq!(asked.is_some(), is_number, "{name}: {text}");
        }
        let (true, Some(asked)) = (is_number, asked) else { continue };
        let float = text.parse::<f64>().expect("it is a number") * unit;
        if asked == Duration::MAX {
            assert!(float > 1e18, "{name}: {text} is not too long");
        } else {
            let error = (asked.as_secs_f64() - float).abs();
            assert!(error <= TOLERANCE.max(float * TOLERANCE), "{name}: {text} is {asked:?}");
        }
    }
}

fn check_date(value: &HeaderValue, now: Duration) {
    let text = value.as_bytes().trim_ascii();
    let ours = http_date::parse(text, now);
    if let Some(seconds) = ours {
        let until = Duration::from_secs(seconds.try_into().unwrap_or(0)).saturating_sub(now);
        assert_eq!(alone(NAMES[0], value, now), Some(until), "{value:?}");
    }
    let Ok(text) = std::str::from_utf8(text) else { return };
    // It lets some blanks be anything, and takes two digits of a year from a fixed pivot, where the RFC
    // counts from the present.
    let is_rfc850 = text.split(',').next().is_some_and(|day| day.ends_with("day"));
    if !is_rfc850 && let (Some(ours), Ok(theirs)) = (ours, httpdate::parse_http_date(text)) {
        assert_eq!(ours, unix(theirs), "{text}");
    }
}

/// A date is read in each of its three forms
fn check_dates_of(now: Duration) {
    let written = httpdate::fmt_http_date(UNIX_EPOCH + now);
    let fields: Vec<&str> = written.split([',', ' ']).filter(|field| !field.is_empty()).collect();
    let [day_name, day, month, year, time, zone] = fields[..] else { panic!("{written}") };
    let days = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
    let long_name = days.into_iter().find(|name| name.starts_with(day_name)).expect("it is a day");
    let number: u32 = day.parse().expect("it is a number");
    for form in [
        written.clone(),
        format!("{long_name}, {day}-{month}-{} {time} {zone}", &year[2..]),
        format!("{day_name} {month} {number:2} {time} {year}"),
    ] {
        let read = http_date::parse(form.as_bytes(), now);
        assert_eq!(read.and_then(|seconds| u64::try_from(seconds).ok()), Some(now.as_secs()), "{form}");
    }
}

fn unix(date: SystemTime) -> i64 {
    let seconds = |duration: Duration| i64::try_from(duration.as_secs()).expect("a date of four digits");
    match date.duration_since(UNIX_EPOCH) {
        Ok(after) => seconds(after),
        Err(before) => -seconds(before.duration()),
    }
}
