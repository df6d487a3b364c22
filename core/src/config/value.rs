//! How the values of a configuration are written, and which of them can be.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;
use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::time::Bound;

/// A time as a caller writes it: seconds, a [`Duration`] or a [`Bound`]
///
/// Infinity means unbounded. Nothing is checked here; [`super::RequestConfig::with`] does that.
/// The time is held as an `f64`: exact to the nanosecond up to some 48 days, to 0.1 µs at 1e9 s.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Seconds(f64);

impl From<f64> for Seconds {
    fn from(seconds: f64) -> Self {
        Self(seconds)
    }
}

impl From<Duration> for Seconds {
    fn from(duration: Duration) -> Self {
        Self(duration.as_secs_f64())
    }
}

impl From<Bound> for Seconds {
    fn from(bound: Bound) -> Self {
        bound.limit().map_or(Self(f64::INFINITY), Self::from)
    }
}

/// Decimal digits, or `inf`
impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl FromStr for Seconds {
    type Err = std::num::ParseFloatError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

/// A number, or `"inf"`: JSON has no infinity
impl Serialize for Seconds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_finite() { serializer.serialize_f64(self.0) } else { serializer.collect_str(self) }
    }
}

/// A kind of value that a field can have
pub(super) trait Value: Copy {
    /// The form in which callers give it, and in which it is written
    type Given: Copy + FromStr + fmt::Display + Serialize;

    /// What can be given, to follow "it takes"
    const TAKES: &'static str;

    /// The value, if it can be (rule CFG-1)
    fn check(given: Self::Given) -> Option<Self>;

    /// The form that makes this value again
    fn given(self) -> Self::Given;
}

/// A wait
impl Value for Bound {
    type Given = Seconds;

    const TAKES: &'static str = "seconds over 0 and up to 1e9, or inf for no bound";

    fn check(given: Seconds) -> Option<Self> {
        Self::seconds(given.0)
    }

    fn given(self) -> Seconds {
        self.into()
    }
}

/// A wait that may be left out, and must end
impl Value for Duration {
    type Given = Seconds;

    const TAKES: &'static str = "seconds from 0, for no wait, up to 1e9";

    fn check(given: Seconds) -> Option<Self> {
        if given.0 == 0.0 { Some(Self::ZERO) } else { Bound::seconds(given.0)?.limit() }
    }

    fn given(self) -> Seconds {
        self.into()
    }
}

/// A count
impl Value for NonZeroU32 {
    type Given = u32;

    const TAKES: &'static str = "a whole number from 1";

    fn check(given: u32) -> Option<Self> {
        Self::new(given)
    }

    fn given(self) -> u32 {
        self.get()
    }
}

/// A size in bytes
impl Value for usize {
    type Given = usize;

    const TAKES: &'static str = "a whole number of bytes from 1";

    fn check(given: usize) -> Option<Self> {
        (given > 0).then_some(given)
    }

    fn given(self) -> usize {
        self
    }
}
