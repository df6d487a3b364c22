//! The files of `scenarios`, compiled in.

use std::sync::LazyLock;

use crate::parse;
use crate::scenario::Scenario;

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../scenarios/", $name, ".toml")))),*]
    };
}

static SOURCES: &[(&str, &str)] = files![
    "anthropic-end-then-cancel",
    "anthropic-end-then-cut-chunk",
    "anthropic-end-then-fin",
    "anthropic-end-then-held",
    "anthropic-end-then-rst",
    "anthropic-end-then-tls-cut",
    "anthropic-pings-after-marker",
    "anthropic-stop-then-held",
    "cancel-before-start",
    "cancel-in-backoff",
    "cancel-in-connect",
    "cancel-in-header-wait",
    "cancel-mid-body",
    "chat-done-then-held",
    "chat-end-then-cancel",
    "chat-end-then-cut-chunk",
    "chat-end-then-fin",
    "chat-end-then-held",
    "chat-end-then-rst",
    "chat-end-then-tls-cut",
    "chat-pings-after-marker",
    "chat-usage-after-marker",
    "connect-full-backlog",
    "connect-full-backlog-deadline",
    "connect-refused",
    "connect-refused-retried",
    "connect-tls-mute",
    "consumer-back-after-deadline",
    "deadline-no-room-for-pause",
    "deadline-shared",
    "empty-stream",
    "empty-then-answer",
    "error-body-stalls",
    "fin-before-head",
    "gemini-blocked",
    "gemini-end-then-cancel",
    "gemini-end-then-cut-chunk",
    "gemini-end-then-eof",
    "gemini-end-then-fin",
    "gemini-end-then-held",
    "gemini-end-then-rst",
    "gemini-end-then-tls-cut",
    "gemini-heartbeats-after-marker",
    "length",
    "overload-after-delta",
    "overload-before-delta",
    "responses-end-then-cancel",
    "responses-end-then-cut-chunk",
    "responses-end-then-fin",
    "responses-end-then-held",
    "responses-end-then-rst",
    "responses-end-then-tls-cut",
    "responses-failed",
    "responses-incomplete",
    "retry-after-decimal",
    "retry-after-ms",
    "retry-after-seconds",
    "retry-after-too-long",
    "rst-after-delta",
    "rst-before-head-retried",
    "slow-consumer",
    "status-400",
    "status-429-quota",
    "status-503-one-attempt",
    "status-503-then-200",
    "status-503-then-200-stream",
    "status-503-three-times",
    "stream-bad-chunk",
    "stream-bad-json",
    "stream-comments-between",
    "stream-content-idle",
    "stream-deadline",
    "stream-happy",
    "stream-head-trickle",
    "stream-interim-then-mute",
    "stream-mute",
    "stream-mute-after-delta",
    "stream-mute-after-head",
    "stream-pings-between",
    "stream-slow-but-alive",
    "stream-trickle",
    "stream-unbounded-idle",
    "tls-happy",
    "tls-happy-stream",
    "truncated-fin",
    "truncated-no-terminal",
    "twenty-mute-at-once",
    "twenty-timeouts-then-answer",
    "unary-body-cut",
    "unary-happy",
    "unary-mute",
    "unary-mute-retried",
    "upload-413-held",
    "upload-413-then-rst",
    "upload-429-then-rst",
    "upload-never-read",
    "upload-read-slowly",
];

static SCENARIOS: LazyLock<Vec<Scenario>> = LazyLock::new(|| {
    let parse = |(name, text): &(&str, &str)| match Scenario::parse(text) {
        Ok(scenario) => scenario,
        Err(error) => panic!("the embedded file {name}.toml: {error}"),
    };
    SOURCES.iter().map(parse).collect()
});

/// Every scenario of `scenarios`, sorted by name
///
/// # Panics
///
/// If an embedded file does not parse, which a test excludes.
pub fn all() -> &'static [Scenario] {
    &SCENARIOS
}

/// The scenario of that name
///
/// # Panics
///
/// As [`all`].
pub fn find(name: &str) -> Option<&'static Scenario> {
    all().iter().find(|scenario| scenario.name() == name)
}

/// The known name that is most like `name`, for a message that it is not known
///
/// # Panics
///
/// As [`all`].
pub fn nearest(name: &str) -> &'static str {
    parse::nearest(name, all().iter().map(Scenario::name))
}

/// The names and texts of those files, sorted by name
pub fn sources() -> &'static [(&'static str, &'static str)] {
    SOURCES
}
