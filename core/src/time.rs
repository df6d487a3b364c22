//! Time as the machines see it: points and bounds, never a clock.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A point in time: nanoseconds since an origin that the driver chose.
///
/// Machines never read a clock; each event carries the instant at which it happened. The type is
/// plain data, so a recorded run can be serialised and replayed. Arithmetic saturates: the far
/// end of the range, some 584 years after the origin, means "never".
///
/// ```
/// use std::time::Duration;
/// use steadfast::time::Instant;
///
/// const START: Instant = Instant::from_nanos(0);
/// let later = START + Duration::from_millis(250);
/// assert_eq!(later - START, Duration::from_millis(250));
/// assert_eq!(START - later, Duration::ZERO);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Instant(u64);

impl Instant {
    /// The driver's origin
    pub const ORIGIN: Self = Self(0);

    /// A point so many nanoseconds after the origin
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the origin
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Time since the origin
    pub const fn since_origin(self) -> Duration {
        Duration::from_nanos(self.0)
    }

    /// Time from `earlier` to `self`, zero if `earlier` is the later of the two
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The end of `bound`, counted from here; `None` where it is unbounded
    pub fn after(self, bound: Bound) -> Option<Self> {
        bound.limit().map(|limit| self + limit)
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(nanos))
    }
}

impl Sub for Instant {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.since(earlier)
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.since_origin())
    }
}

/// A limit on a wait: a positive duration, or none
///
/// Rule CFG-1: there are no sentinel durations. "For ever" is [`Bound::Unbounded`], and a limit
/// of zero cannot be made by [`Bound::seconds`].
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum Bound {
    /// The wait ends after this long
    Limited(Duration),
    /// The wait may last for ever
    Unbounded,
}

impl Bound {
    /// The largest finite limit, in seconds: 1e9, some 31 years
    pub const MAX_SECONDS: f64 = 1e9;

    /// A bound in seconds; `f64::INFINITY` is [`Bound::Unbounded`]
    ///
    /// Errors: `None` for NaN, zero, negative values, finite values over
    /// [`Bound::MAX_SECONDS`], and values that round to no nanosecond at all.
    pub fn seconds(seconds: f64) -> Option<Self> {
        if seconds == f64::INFINITY {
            return Some(Self::Unbounded);
        }
        if !(seconds > 0.0 && seconds <= Self::MAX_SECONDS) {
            return None;
        }
        let limit = Duration::from_secs_f64(seconds);
        (!limit.is_zero()).then_some(Self::Limited(limit))
    }

    /// The limit; `None` where there is none
    pub const fn limit(self) -> Option<Duration> {
        match self {
            Self::Limited(limit) => Some(limit),
            Self::Unbounded => None,
        }
    }
}

impl fmt::Debug for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limited(limit) => fmt::Debug::fmt(limit, f),
            Self::Unbounded => f.write_str("unbounded"),
        }
    }
}

/// Seconds, or `inf`: the form that configuration texts use
impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limited(limit) => write!(f, "{}", limit.as_secs_f64()),
            Self::Unbounded => f.write_str("inf"),
        }
    }
}

/// Seconds, or `"inf"`: JSON has no infinity
impl Serialize for Bound {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Limited(limit) => serializer.serialize_f64(limit.as_secs_f64()),
            Self::Unbounded => serializer.serialize_str("inf"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        let end = Instant::from_nanos(u64::MAX);
        assert_eq!(end + Duration::MAX, end);
        assert_eq!(Instant::ORIGIN - end, Duration::ZERO);
        assert_eq!(Instant::ORIGIN + Duration::MAX, end);
    }

    #[test]
    fn seconds_take_what_cfg_1_takes() {
        for refused in [f64::NAN, 0.0, -0.0, -1.0, f64::NEG_INFINITY, 1e9 + 1.0, 1e10, f64::MAX, 1e-12] {
            assert_eq!(Bound::seconds(refused), None, "{refused}");
        }
        assert_eq!(Bound::seconds(f64::INFINITY), Some(Bound::Unbounded));
        assert_eq!(Bound::seconds(0.25), Some(Bound::Limited(Duration::from_millis(250))));
        assert_eq!(Bound::seconds(1e9), Some(Bound::Limited(Duration::from_secs(1_000_000_000))));
    }
}
