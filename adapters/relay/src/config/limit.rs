//! The limits that a file can set, by name: what each takes, and where its value comes from.

use std::str::FromStr;
use std::time::Duration;

use steadfast::relay::{Limits, Route};
use steadfast::time::Bound;

use super::Source;

/// A limit of a route, or what of it is sent again
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// [`Limits::connect`]
    Connect,
    /// [`Limits::first_byte`]
    FirstByte,
    /// [`Limits::silence`]
    Silence,
    /// [`Limits::total`]
    Total,
    /// [`steadfast::relay::Retries::connects`]
    Connects,
    /// [`steadfast::relay::Retries::overloads`]
    Overloads,
    /// [`steadfast::relay::Retries::pause`]
    Pause,
    /// [`steadfast::relay::Retries::jitter`]
    Jitter,
    /// [`steadfast::relay::Retries::max_body_bytes`]
    MaxBodyBytes,
    /// [`Route::may_resend`]
    MayResend,
}

/// The limits of a route, and where each comes from
#[derive(Clone, Debug, PartialEq)]
pub struct RouteLimits {
    /// How long each part may take, and what is tried again
    pub limits: Limits,
    /// Whether the app may be left to send again what may have been billed
    pub may_resend: bool,
    sources: [Source; Limit::ALL.len()],
}

impl Limit {
    /// All of them: those of the table `limits`, then those of the table `retries`
    pub const ALL: [Self; 10] = [
        Self::Connect,
        Self::FirstByte,
        Self::Silence,
        Self::Total,
        Self::Connects,
        Self::Overloads,
        Self::Pause,
        Self::Jitter,
        Self::MaxBodyBytes,
        Self::MayResend,
    ];

    /// The name as it stands in a file
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::FirstByte => "first_byte",
            Self::Silence => "silence",
            Self::Total => "total",
            Self::Connects => "connects",
            Self::Overloads => "overloads",
            Self::Pause => "pause",
            Self::Jitter => "jitter",
            Self::MaxBodyBytes => "max_body_bytes",
            Self::MayResend => "may_resend",
        }
    }

    /// The table of a file that has it: `limits` or `retries`
    pub const fn table(self) -> &'static str {
        match self {
            Self::Connect | Self::FirstByte | Self::Silence | Self::Total => "limits",
            Self::Connects
            | Self::Overloads
            | Self::Pause
            | Self::Jitter
            | Self::MaxBodyBytes
            | Self::MayResend => "retries",
        }
    }

    /// What it takes, to follow "it takes"
    pub const fn takes(self) -> &'static str {
        match self {
            Self::Connect | Self::FirstByte | Self::Silence | Self::Total => {
                "seconds over 0 and up to 1e9, or inf for no bound"
            }
            Self::Connects | Self::Overloads => "a whole number from 0",
            Self::Pause => "seconds from 0, for no pause, up to 1e9",
            Self::Jitter => "a number from 0 to 1",
            Self::MaxBodyBytes => "a whole number of bytes from 0",
            Self::MayResend => "true or false",
        }
    }

    /// What it bounds, in a few words
    pub const fn about(self) -> &'static str {
        match self {
            Self::Connect => "Opening a connection to the provider: name look-up, TCP, TLS and a proxy",
            Self::FirstByte => "From the request to the head of the answer, all attempts together",
            Self::Silence => "The longest time in which no part of an answer reaches the app",
            Self::Total => "From the request to the last byte of the answer",
            Self::Connects => "How often a connection that could not be opened is opened anew",
            Self::Overloads => "How often a request is sent again that an overloaded provider refused",
            Self::Pause => "The pause before the first of these, doubled for each that follows",
            Self::Jitter => "The part of a pause that is drawn at random, to either side",
            Self::MaxBodyBytes => "The longest body that is kept to be sent again",
            Self::MayResend => "Whether the app may send again what may have been billed",
        }
    }

    const fn index(self) -> usize {
        self as usize
    }
}

/// The table of rule RLY
impl Default for RouteLimits {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            may_resend: false,
            sources: [const { Source::BuiltIn }; Limit::ALL.len()],
        }
    }
}

impl RouteLimits {
    /// The value as it is written, in seconds where it is a time
    pub fn get(&self, limit: Limit) -> String {
        let Limits { connect, first_byte, silence, total, retries } = &self.limits;
        match limit {
            Limit::Connect => connect.to_string(),
            Limit::FirstByte => first_byte.to_string(),
            Limit::Silence => silence.to_string(),
            Limit::Total => total.to_string(),
            Limit::Connects => retries.connects.to_string(),
            Limit::Overloads => retries.overloads.to_string(),
            Limit::Pause => retries.pause.as_secs_f64().to_string(),
            Limit::Jitter => retries.jitter.to_string(),
            Limit::MaxBodyBytes => retries.max_body_bytes.to_string(),
            Limit::MayResend => self.may_resend.to_string(),
        }
    }

    /// Where the value comes from
    pub fn source(&self, limit: Limit) -> &Source {
        &self.sources[limit.index()]
    }

    /// Sets a limit to what a file says
    ///
    /// Errors: `None`, the limit cannot be that; [`Limit::takes`] says what it can be.
    pub(super) fn set(&mut self, limit: Limit, text: &str, source: Source) -> Option<()> {
        let Limits { connect, first_byte, silence, total, retries } = &mut self.limits;
        match limit {
            Limit::Connect => *connect = bound(text)?,
            Limit::FirstByte => *first_byte = bound(text)?,
            Limit::Silence => *silence = bound(text)?,
            Limit::Total => *total = bound(text)?,
            Limit::Connects => retries.connects = parsed(text)?,
            Limit::Overloads => retries.overloads = parsed(text)?,
            Limit::Pause => retries.pause = pause(text)?,
            Limit::Jitter => retries.jitter = parsed(text).filter(|part| (0.0..=1.0).contains(part))?,
            Limit::MaxBodyBytes => retries.max_body_bytes = parsed(text)?,
            Limit::MayResend => self.may_resend = parsed(text)?,
        }
        self.sources[limit.index()] = source;
        Some(())
    }

    /// Gives a route these limits
    pub(super) fn put_in_force(&self, route: &mut Route) {
        route.limits = self.limits;
        route.may_resend = self.may_resend;
    }
}

/// Seconds, or `inf`
pub(super) fn bound(text: &str) -> Option<Bound> {
    Bound::seconds(parsed(text)?)
}

fn pause(text: &str) -> Option<Duration> {
    let seconds: f64 = parsed(text)?;
    if seconds == 0.0 { Some(Duration::ZERO) } else { Bound::seconds(seconds)?.limit() }
}

pub(super) fn parsed<T: FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(limit: Limit, text: &str) -> Option<String> {
        let mut limits = RouteLimits::default();
        limits.set(limit, text, Source::BuiltIn)?;
        Some(limits.get(limit))
    }

    #[test]
    fn each_limit_takes_what_it_says_and_nothing_else() {
        for limit in Limit::ALL {
            let (good, bad): (&[&str], &[&str]) = match limit {
                Limit::Connect | Limit::FirstByte | Limit::Silence | Limit::Total => (
                    &["0.25", "3", "inf", "1000000000"],
                    &["0", "-1", "NaN", "-inf", "1e10", "", "soon", "true"],
                ),
                Limit::Connects | Limit::Overloads => {
                    (&["0", "7"], &["-1", "1.5", "inf", "NaN", "", "4294967296"])
                }
                Limit::Pause => (&["0", "0.2", "5"], &["-0.1", "NaN", "inf", "1e10", ""]),
                Limit::Jitter => (&["0", "0.5", "1"], &["-0.1", "1.1", "NaN", "inf", ""]),
                Limit::MaxBodyBytes => (&["0", "4194304"], &["-1", "0.5", "inf", "NaN", ""]),
                Limit::MayResend => (&["true", "false"], &["1", "yes", ""]),
            };
            for text in good {
                assert_eq!(set(limit, text).as_deref(), Some(*text), "{}", limit.name());
            }
            for text in bad {
                assert_eq!(set(limit, text), None, "{} = {text}", limit.name());
            }
        }
    }

    #[test]
    fn the_defaults_are_those_of_the_route() {
        assert_eq!(RouteLimits::default().limits, Limits::default());
        let written = Limit::ALL.map(|limit| RouteLimits::default().get(limit));
        assert_eq!(written, ["10", "610", "900", "3600", "1", "2", "0.2", "0.1", "4194304", "false"]);
    }
}
