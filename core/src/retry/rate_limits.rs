//! What a server says about its rate limits, in the header fields of a response.
//!
//! | header fields | whose |
//! |---|---|
//! | `x-ratelimit-{limit,remaining,reset}-NAME` | OpenAI, Azure, Groq, Mistral, Cerebras and others: <https://platform.openai.com/docs/guides/rate-limits> |
//! | `x-ratelimit-{limit,remaining,reset}` | OpenRouter, GitHub; a limit without a name |
//! | `anthropic-ratelimit-NAME-{limit,remaining,reset}`, `anthropic-priority-NAME-…` | Anthropic: <https://docs.anthropic.com/en/api/rate-limits> |
//! | `RateLimit`, `RateLimit-Policy` | the IETF's, `draft-ietf-httpapi-ratelimit-headers`, in its present form and in that of its draft 7 |
//! | `RateLimit-{Limit,Remaining,Reset}` | the same, up to its draft 6 |
//! | `Retry-After` and its kin | see [`super::retry_after`] |

use std::time::Duration;

use http::HeaderMap;
use serde::{Serialize, Serializer};

use super::retry_after::{self, NANOS_PER_MILLISECOND, NANOS_PER_SECOND, number};
use super::rfc3339;

/// What a server says about its rate limits; empty where it says nothing
///
/// What cannot be read is passed over, and of several lines of one header the first that can counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RateLimits {
    /// Each limit once, in the order of the header; at most [`RateLimits::MAX_LIMITS`]
    pub limits: Vec<RateLimit>,
    /// How long the server asks us to wait, in seconds in JSON
    #[serde(serialize_with = "seconds")]
    pub retry_after: Option<Duration>,
}

/// One limit: how much of what, and when it is whole again
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RateLimit {
    /// What is limited, as the server names it: `requests`, `tokens`, `input-tokens`, `requests-day`
    ///
    /// Empty where it gives no name.
    pub name: String,
    /// How much there is in all
    pub limit: Option<u64>,
    /// How much of it is left
    pub remaining: Option<u64>,
    /// How long until it is whole again, from when the head of the response came; in seconds in JSON
    #[serde(serialize_with = "seconds")]
    pub resets_in: Option<Duration>,
    /// The time over which it is counted, in seconds in JSON
    #[serde(serialize_with = "seconds")]
    pub window: Option<Duration>,
}

impl RateLimits {
    /// The most limits that are kept; no provider is known to tell half as many
    pub const MAX_LIMITS: usize = 32;

    /// The most bytes of a limit's name; one with a longer name is passed over
    pub const MAX_NAME_BYTES: usize = 64;

    /// What these header fields say
    ///
    /// `unix_now` is the time since the Unix epoch, for points in time; one that is past is zero. A
    /// bare number is seconds from now, from 1e9 on seconds since the epoch, and from 1e12 on
    /// milliseconds since it.
    pub fn parse(headers: &HeaderMap, unix_now: Duration) -> Self {
        let mut limits = Self { retry_after: retry_after::parse(headers, unix_now), limits: Vec::new() };
        for (header, value) in headers {
            let Ok(value) = value.to_str() else { continue };
            match header.as_str() {
                "ratelimit" | "ratelimit-policy" => limits.structured(value),
                header => {
                    if let Some((name, part)) = split(header) {
                        limits.set(name, part, value, unix_now);
                    }
                }
            }
        }
        limits
    }

    /// Whether the server said nothing that could be read
    pub fn is_empty(&self) -> bool {
        self.limits.is_empty() && self.retry_after.is_none()
    }

    /// The limit of that name
    pub fn get(&self, name: &str) -> Option<&RateLimit> {
        self.limits.iter().find(|limit| limit.name == name)
    }

    /// The limit on requests, where it is named so
    pub fn requests(&self) -> Option<&RateLimit> {
        self.get("requests")
    }

    /// The limit on tokens of both directions together, where it is named so
    pub fn tokens(&self) -> Option<&RateLimit> {
        self.get("tokens")
    }

    fn set(&mut self, name: &str, part: Part, value: &str, unix_now: Duration) {
        // Up to its draft 6 the IETF's field listed policies behind the number.
        let value = value.split(',').next().unwrap_or_default().trim();
        match part {
            Part::Limit => self.put(name, |limit| &mut limit.limit, amount(value)),
            Part::Remaining => self.put(name, |limit| &mut limit.remaining, amount(value)),
            Part::Reset => self.put(name, |limit| &mut limit.resets_in, until(value, unix_now)),
        }
    }

    /// The IETF's list: `"default";r=50;t=30`, or in its draft 7 `limit=100, remaining=50, reset=5`
    fn structured(&mut self, list: &str) {
        for item in outside_quotes(list, ',') {
            let mut parameters = outside_quotes(item, ';').map(str::trim);
            let first = parameters.next().unwrap_or_default();
            let name = first.strip_prefix('"').and_then(|name| name.strip_suffix('"'));
            let name = match (name, first.split_once('=')) {
                (Some(name), _) => name,
                (None, Some((key, value))) => {
                    self.parameter("", key, value);
                    ""
                }
                (None, None) if amount(first).is_some() => {
                    self.put("", |limit| &mut limit.limit, amount(first));
                    ""
                }
                (None, None) => first,
            };
            for (key, value) in parameters.filter_map(|parameter| parameter.split_once('=')) {
                self.parameter(name, key, value);
            }
        }
    }

    fn parameter(&mut self, name: &str, key: &str, value: &str) {
        let (key, value) = (key.trim(), value.trim());
        let span = || number(value.as_bytes(), NANOS_PER_SECOND);
        match key {
            "q" | "limit" => self.put(name, |limit| &mut limit.limit, amount(value)),
            "r" | "remaining" => self.put(name, |limit| &mut limit.remaining, amount(value)),
            "t" | "reset" => self.put(name, |limit| &mut limit.resets_in, span()),
            "w" => self.put(name, |limit| &mut limit.window, span()),
            _ => {}
        }
    }

    /// Puts a value that could be read in its place, unless there is one
    fn put<T>(&mut self, name: &str, place: fn(&mut RateLimit) -> &mut Option<T>, value: Option<T>) {
        let Some(value) = value else { return };
        let at = match self.limits.iter().position(|limit| limit.name == name) {
            Some(at) => at,
            None if self.limits.len() == Self::MAX_LIMITS || name.len() > Self::MAX_NAME_BYTES => return,
            None => {
                self.limits.push(RateLimit { name: name.to_owned(), ..RateLimit::default() });
                self.limits.len() - 1
            }
        };
        place(&mut self.limits[at]).get_or_insert(value);
    }
}

/// What a header field tells of a limit
#[derive(Clone, Copy)]
enum Part {
    Limit,
    Remaining,
    Reset,
}

const PARTS: [(&str, Part); 3] =
    [("limit", Part::Limit), ("remaining", Part::Remaining), ("reset", Part::Reset)];

/// The name of the limit that a header field is about, and what it tells of it
fn split(header: &str) -> Option<(&str, Part)> {
    let leading = |rest: &'static str, header| split_leading(header, rest);
    if let Some(found) = leading("x-ratelimit-", header).or_else(|| leading("ratelimit-", header)) {
        return Some(found);
    }
    let name = ["anthropic-ratelimit-", "anthropic-priority-"]
        .into_iter()
        .find_map(|prefix| header.strip_prefix(prefix))?;
    PARTS
        .into_iter()
        .find_map(|(word, part)| name.strip_suffix(word)?.strip_suffix('-').map(|name| (name, part)))
}

/// `limit-NAME` or `limit` behind that prefix
fn split_leading<'a>(header: &'a str, prefix: &str) -> Option<(&'a str, Part)> {
    let rest = header.strip_prefix(prefix)?;
    PARTS.into_iter().find_map(|(word, part)| match rest.strip_prefix(word)? {
        "" => Some(("", part)),
        name => name.strip_prefix('-').map(|name| (name, part)),
    })
}

fn amount(text: &str) -> Option<u64> {
    let is_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_digits.then(|| text.parse().ok())?
}

/// From now until a limit is whole again
fn until(text: &str, unix_now: Duration) -> Option<Duration> {
    /// From this number on it is a point in time, in seconds or in milliseconds
    const SECONDS_SINCE_EPOCH: Duration = Duration::from_secs(1_000_000_000);
    const MILLISECONDS_SINCE_EPOCH: Duration = Duration::from_secs(1_000_000_000_000);
    let since_epoch = match number(text.as_bytes(), NANOS_PER_SECOND) {
        Some(span) if span < SECONDS_SINCE_EPOCH => return Some(span),
        Some(seconds) if seconds < MILLISECONDS_SINCE_EPOCH => seconds,
        Some(_) => number(text.as_bytes(), NANOS_PER_MILLISECOND)?,
        None => match units(text) {
            Some(span) => return Some(span),
            None => rfc3339::parse(text)?,
        },
    };
    Some(since_epoch.saturating_sub(unix_now))
}

/// A length of time as Go prints it, which OpenAI and Groq send: `6m0s`, `1h2m3.5s`, `120ms`
fn units(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut sum = Duration::ZERO;
    while !rest.is_empty() || text.is_empty() {
        let (digits, behind) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit() && c != '.')?);
        let unit_end = behind.find(|c: char| c.is_ascii_digit()).unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(unit_end);
        let nanos = match unit {
            "ns" => 1,
            "us" => 1_000,
            "ms" => NANOS_PER_MILLISECOND,
            "s" => NANOS_PER_SECOND,
            "m" => 60 * NANOS_PER_SECOND,
            "h" => 3_600 * NANOS_PER_SECOND,
            "d" => 86_400 * NANOS_PER_SECOND,
            _ => return None,
        };
        sum = sum.saturating_add(number(digits.as_bytes(), nanos)?);
        rest = behind;
    }
    Some(sum)
}

/// The pieces between separators, those within quotation marks aside
fn outside_quotes(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut is_quoted = false;
    text.split(move |c: char| {
        is_quoted ^= c == '"';
        c == separator && !is_quoted
    })
}

fn seconds<S: Serializer>(span: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    span.map(|span| span.as_secs_f64()).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    /// 2026-10-21 07:28:00 GMT
    const NOW: Duration = Duration::from_secs(1_792_567_680);

    fn parsed(lines: &[(&'static str, &str)]) -> RateLimits {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        RateLimits::parse(&headers, NOW)
    }

    fn limit(name: &str, limit: u64, remaining: u64, resets_in: Duration) -> RateLimit {
        let [limit, remaining] = [limit, remaining].map(Some);
        RateLimit { name: name.to_owned(), limit, remaining, resets_in: Some(resets_in), window: None }
    }

    #[test]
    fn openai_s_and_those_of_its_kin() {
        let limits = parsed(&[
            ("x-ratelimit-limit-requests", "60"),
            ("x-ratelimit-limit-tokens", "150000"),
            ("x-ratelimit-remaining-requests", "59"),
            ("x-ratelimit-remaining-tokens", "149984"),
            ("x-ratelimit-reset-requests", "1s"),
            ("x-ratelimit-reset-tokens", "6m0s"),
            ("retry-after", "2"),
        ]);
        assert_eq!(limits.requests(), Some(&limit("requests", 60, 59, Duration::from_secs(1))));
        assert_eq!(limits.tokens(), Some(&limit("tokens", 150_000, 149_984, Duration::from_secs(360))));
        assert_eq!((limits.limits.len(), limits.retry_after), (2, Some(Duration::from_secs(2))));
        let limits = parsed(&[
            ("x-ratelimit-remaining-requests-day", "7"),
            ("x-ratelimit-reset-requests-day", "33011.382867"),
        ]);
        let day = limits.get("requests-day").unwrap();
        assert_eq!((day.limit, day.remaining), (None, Some(7)));
        assert_eq!(day.resets_in, Some(Duration::from_nanos(33_011_382_867_000)));
    }

    #[test]
    fn when_it_is_whole_again_in_every_form() {
        for (value, expected) in [
            ("120ms", Some(Duration::from_millis(120))),
            ("7.66s", Some(Duration::from_millis(7_660))),
            ("2m59.56s", Some(Duration::from_millis(179_560))),
            ("1h0m5s", Some(Duration::from_secs(3_605))),
            ("1d", Some(Duration::from_secs(86_400))),
            ("250µs", None),
            ("250us", Some(Duration::from_micros(250))),
            ("0", Some(Duration::ZERO)),
            ("12", Some(Duration::from_secs(12))),
            ("1792567690", Some(Duration::from_secs(10))),
            ("1792567690500", Some(Duration::from_millis(10_500))),
            ("1792567000", Some(Duration::ZERO)),
            ("2026-10-21T07:28:30Z", Some(Duration::from_secs(30))),
            ("2026-10-21T09:28:30.5+02:00", Some(Duration::from_millis(30_500))),
            ("2026-10-21T07:27:30Z", Some(Duration::ZERO)),
            ("", None),
            ("soon", None),
            ("-1", None),
            ("1e3", None),
            ("s", None),
            ("1s2", None),
            ("1x", None),
            ("1.2.3s", None),
            ("2026-13-21T07:28:30Z", None),
        ] {
            let headers: HeaderMap = [("x-ratelimit-reset-tokens", value)]
                .into_iter()
                .map(|(name, value)| {
                    (name.parse().unwrap(), HeaderValue::from_bytes(value.as_bytes()).unwrap())
                })
                .collect();
            let found = RateLimits::parse(&headers, NOW).tokens().and_then(|limit| limit.resets_in);
            assert_eq!(found, expected, "{value:?}");
        }
    }

    #[test]
    fn anthropic_s() {
        let limits = parsed(&[
            ("anthropic-ratelimit-requests-limit", "50"),
            ("anthropic-ratelimit-requests-remaining", "49"),
            ("anthropic-ratelimit-requests-reset", "2026-10-21T07:28:01Z"),
            ("anthropic-ratelimit-input-tokens-limit", "40000"),
            ("anthropic-ratelimit-input-tokens-remaining", "39000"),
            ("anthropic-ratelimit-input-tokens-reset", "2026-10-21T07:29:00Z"),
            ("anthropic-ratelimit-unified-status", "allowed"),
        ]);
        assert_eq!(
            limits.limits,
            [
                limit("requests", 50, 49, Duration::from_secs(1)),
                limit("input-tokens", 40_000, 39_000, Duration::from_secs(60)),
            ]
        );
    }

    #[test]
    fn the_ietf_s_in_its_forms() {
        let limits = parsed(&[
            ("ratelimit-policy", r#""burst";q=100;w=60, "daily, all";q=1000;w=86400;qu="requests""#),
            ("ratelimit", r#""burst";r=50;t=30, "daily, all";r=900"#),
        ]);
        let burst = RateLimit {
            window: Some(Duration::from_secs(60)),
            ..limit("burst", 100, 50, Duration::from_secs(30))
        };
        assert_eq!(limits.get("burst"), Some(&burst));
        let daily = limits.get("daily, all").unwrap();
        assert_eq!((daily.limit, daily.remaining, daily.resets_in), (Some(1000), Some(900), None));
        let unnamed = limit("", 100, 50, Duration::from_secs(5));
        let draft_7 = parsed(&[("ratelimit", "limit=100, remaining=50, reset=5")]);
        assert_eq!(draft_7.limits, std::slice::from_ref(&unnamed));
        let draft_7 = parsed(&[("ratelimit-policy", "100;w=60")]);
        assert_eq!(draft_7.limits[0].window, Some(Duration::from_secs(60)));
        let draft_6 = parsed(&[
            ("ratelimit-limit", "100, 100;w=60"),
            ("ratelimit-remaining", "50"),
            ("ratelimit-reset", "5"),
        ]);
        assert_eq!(draft_6.limits, std::slice::from_ref(&unnamed));
        let github = parsed(&[
            ("x-ratelimit-limit", "100"),
            ("x-ratelimit-remaining", "50"),
            ("x-ratelimit-reset", "1792567685"),
        ]);
        assert_eq!(github.limits, [unnamed]);
    }

    #[test]
    fn garbage_is_passed_over_and_memory_is_bounded() {
        for (name, value) in [
            ("x-ratelimit-limit-requests", "many"),
            ("x-ratelimit-limit-requests", "-1"),
            ("x-ratelimit-limit-requests", "99999999999999999999"),
            ("x-ratelimit-limits-requests", "1"),
            ("x-ratelimit-requests", "1"),
            ("anthropic-ratelimit-limit", "1"),
            ("ratelimit", "=;=,\"\";r=;t=x"),
        ] {
            assert!(parsed(&[(name, value)]).is_empty(), "{name}: {value}");
        }
        let several =
            parsed(&[("x-ratelimit-limit", "x"), ("x-ratelimit-limit", "1"), ("x-ratelimit-limit", "2")]);
        assert_eq!(several.limits[0].limit, Some(1));
        let list: Vec<String> = (0..1000).map(|n| format!("\"n{n}\";r=1")).collect();
        assert_eq!(parsed(&[("ratelimit", &list.join(","))]).limits.len(), RateLimits::MAX_LIMITS);
        assert!(parsed(&[("ratelimit", &format!("\"{}\";r=1", "n".repeat(65)))]).is_empty());
    }

    proptest! {
        #[test]
        fn anything_is_taken_or_passed_over(value in "[ -~]{0,40}", span in "([0-9]{0,20}\\.?[0-9]{0,9}(ns|us|ms|s|m|h|d)?){0,3}") {
            for name in ["ratelimit", "ratelimit-policy", "x-ratelimit-reset", "anthropic-ratelimit-tokens-reset"] {
                parsed(&[(name, &value)]);
                parsed(&[(name, &span)]);
            }
        }
    }
}
