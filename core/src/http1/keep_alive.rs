//! How long a server means to keep a connection: `Keep-Alive`, RFC 2068 section 19.7.1.1.

use std::time::Duration;

use http::{HeaderMap, HeaderValue};

/// The `timeout` of `Keep-Alive: timeout=5, max=100`, in seconds; of several the shortest counts
///
/// A hint that no standard of today has, and that most servers send. What cannot be read is passed over.
pub fn keep_alive_timeout(headers: &HeaderMap) -> Option<Duration> {
    let values = headers.get_all("keep-alive").iter().map(HeaderValue::to_str);
    values.filter_map(Result::ok).flat_map(|value| value.split(',')).filter_map(timeout).min()
}

fn timeout(parameter: &str) -> Option<Duration> {
    let (name, seconds) = parameter.split_once('=')?;
    let seconds = seconds.trim();
    let is_number = !seconds.is_empty() && seconds.bytes().all(|byte| byte.is_ascii_digit());
    if !name.trim().eq_ignore_ascii_case("timeout") || !is_number {
        return None;
    }
    seconds.parse().ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_timeout_and_nothing_else() {
        for (lines, expected) in [
            (&["timeout=5"][..], Some(5)),
            (&["timeout=5, max=1000"], Some(5)),
            (&["max=1000, Timeout = 7"], Some(7)),
            (&["timeout=9", "timeout=3"], Some(3)),
            (&["timeout=0"], Some(0)),
            (&["max=5"], None),
            (&["5"], None),
            (&["timeout=-1"], None),
            (&["timeout=1.5"], None),
            (&["timeout=99999999999999999999"], None),
            (&["timeout="], None),
            (&[""], None),
            (&[], None),
        ] {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append("keep-alive", HeaderValue::from_static(line));
            }
            assert_eq!(keep_alive_timeout(&headers), expected.map(Duration::from_secs), "{lines:?}");
        }
    }
}
