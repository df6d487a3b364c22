//! The bounds of one exchange through the relay, as data (rule RLY and its table).

use std::time::Duration;

use http::StatusCode;

use super::answer::Shape;
use crate::time::Bound;

/// How long each part of an exchange may take, and what is tried again
///
/// Each has a value of its own for every route. The defaults are the table of rule RLY.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Opening one connection to the provider: name look-up, TCP, TLS and a proxy; 10 s
    pub connect: Bound,
    /// From the start of the request to the head of the provider's answer, all attempts together; 610 s
    pub first_byte: Bound,
    /// From the head on: the longest time in which no part of the answer reaches the app, whichever side
    /// is quiet; 900 s
    pub silence: Bound,
    /// From the start of the request to the last byte of the answer; 3,600 s
    pub total: Bound,
    /// What is sent again
    pub retries: Retries,
}

/// What is sent again, and it is safe: nothing was sent, or the provider said that it did nothing
/// (rule RLY-2)
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Retries {
    /// How often a connection that could not be opened is opened anew, before each send; 1
    pub connects: u32,
    /// How often a request is sent again that a provider refused because it is overloaded; 2
    pub overloads: u32,
    /// The pause before the first of these, doubled for each that follows; 200 ms
    pub pause: Duration,
    /// How much of a pause is drawn at random, as a part of it to either side; 0.1
    pub jitter: f64,
    /// The longest body that is kept to be sent again, in bytes; 4 MiB
    pub max_body_bytes: usize,
}

/// The values of the table of rule RLY
impl Default for Limits {
    fn default() -> Self {
        let seconds = |seconds| Bound::Limited(Duration::from_secs(seconds));
        Self {
            connect: seconds(10),
            first_byte: seconds(610),
            silence: seconds(15 * 60),
            total: seconds(60 * 60),
            retries: Retries::default(),
        }
    }
}

/// The values of rule RLY-2
impl Default for Retries {
    fn default() -> Self {
        Self {
            connects: 1,
            overloads: 2,
            pause: Duration::from_millis(200),
            jitter: 0.1,
            max_body_bytes: 4 * 1024 * 1024,
        }
    }
}

impl Retries {
    /// The pause after the `sent`th send was refused, in which `random` is of 0..1
    pub(super) fn pause_after(&self, sent: u32, random: f64) -> Duration {
        let doubled = self.pause * 2_u32.saturating_pow(sent.saturating_sub(1)).min(1 << 10);
        doubled.mul_f64(1.0 + self.jitter * (2.0 * random - 1.0))
    }
}

/// Whether this status says that the provider did nothing because it has too much to do: 503, and 529
/// where the provider is Anthropic
pub(super) fn is_overload(status: StatusCode, shape: Shape) -> bool {
    status == StatusCode::SERVICE_UNAVAILABLE || (status.as_u16() == 529 && shape == Shape::Anthropic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_and_vary_a_little() {
        let retries = Retries::default();
        assert_eq!(retries.pause_after(1, 0.5), Duration::from_millis(200));
        assert_eq!(retries.pause_after(2, 0.5), Duration::from_millis(400));
        assert_eq!(retries.pause_after(1, 0.0), Duration::from_millis(180));
        assert_eq!(retries.pause_after(2, 1.0), Duration::from_millis(440));
    }

    #[test]
    fn only_anthropic_says_it_by_529() {
        let status = |code| StatusCode::from_u16(code).unwrap();
        assert!(is_overload(status(503), Shape::OpenAi));
        assert!(is_overload(status(529), Shape::Anthropic));
        assert!(!is_overload(status(529), Shape::OpenAi));
        assert!(!is_overload(status(429), Shape::Anthropic));
    }
}
