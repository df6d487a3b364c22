//! What is asked of the operating system for a TCP connection.

use std::time::Duration;

/// How a TCP connection finds out that its peer is gone while nothing is sent
///
/// They work beside the bounds of a call, and below them: a call that waits for a slow model hears of a dead
/// peer long before its own bound, and a middlebox that forgets quiet connections is reminded of this
/// one. By default probes are sent after a minute of silence, as the SDKs of OpenAI and Anthropic do.
///
/// ```
/// use std::time::Duration;
/// use steadfast::connect::TcpSettings;
///
/// let settings = TcpSettings::default().keep_alive(None).user_timeout(Some(Duration::from_secs(20)));
/// assert_eq!(settings.user_timeout_after(), Some(Duration::from_secs(20)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct TcpSettings {
    keep_alive: Option<Duration>,
    user_timeout: Option<Duration>,
}

impl TcpSettings {
    /// Longest times that Linux takes; longer ones are cut to them
    const MOST: Duration = Duration::from_secs(32_767);

    /// After how long a silence, and then how often, probes ask whether the peer is there (RFC 9293
    /// section 3.8.4); `None` for never
    ///
    /// Operating systems count whole seconds: a part of one is rounded up, and the least is one.
    pub fn keep_alive(self, every: Option<Duration>) -> Self {
        let whole = |every: Duration| {
            let seconds = every.as_secs().saturating_add(u64::from(every.subsec_nanos() > 0)).max(1);
            Duration::from_secs(seconds).min(Self::MOST)
        };
        Self { keep_alive: every.map(whole), ..self }
    }

    /// How long what was written may go without an acknowledgement (RFC 5482, Linux' `TCP_USER_TIMEOUT`);
    /// `None` for the system's own, which on Linux is some quarter of an hour
    ///
    /// At least a millisecond. Without effect on systems that have no such option.
    pub fn user_timeout(self, most: Option<Duration>) -> Self {
        Self { user_timeout: most.map(|most| most.clamp(Duration::from_millis(1), Self::MOST)), ..self }
    }

    /// The time between probes, as it is asked of the operating system
    pub fn keep_alive_every(&self) -> Option<Duration> {
        self.keep_alive
    }

    /// The user timeout, as it is asked of the operating system
    pub fn user_timeout_after(&self) -> Option<Duration> {
        self.user_timeout
    }
}

/// Probes after each minute of silence, and the system's own user timeout
impl Default for TcpSettings {
    fn default() -> Self {
        Self { keep_alive: Some(Duration::from_secs(60)), user_timeout: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_ones_that_an_operating_system_takes() {
        let most = Duration::from_secs(32_767);
        for (asked, probes, user_timeout) in [
            (Duration::ZERO, Duration::from_secs(1), Duration::from_millis(1)),
            (Duration::from_millis(1_500), Duration::from_secs(2), Duration::from_millis(1_500)),
            (Duration::from_secs(60), Duration::from_secs(60), Duration::from_secs(60)),
            (Duration::MAX, most, most),
        ] {
            let settings = TcpSettings::default().keep_alive(Some(asked)).user_timeout(Some(asked));
            assert_eq!(settings.keep_alive_every(), Some(probes));
            assert_eq!(settings.user_timeout_after(), Some(user_timeout));
        }
        let off = TcpSettings::default().keep_alive(None);
        assert_eq!((off.keep_alive_every(), off.user_timeout_after()), (None, None));
    }
}
