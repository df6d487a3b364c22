//! The lines of a trace that are neither events nor steps.

use std::time::Duration;

use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize};

use super::bodies::Bodies;
use super::event::HeadLine;
use crate::call::{AttemptId, Described, Env};
use crate::config::{Overrides, RequestConfig};
use crate::time::Instant;

/// The form of the lines that this crate writes and reads
pub(super) const VERSION: u32 = 1;

/// The first line: all that a call was made of
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Header {
    trace: u32,
    pub(super) bodies: Bodies,
    pub(super) request: Described,
    #[serde(deserialize_with = "effective")]
    pub(super) config: RequestConfig,
    seed: u64,
    unix_at_origin: Duration,
    pub(super) began: Instant,
    /// Its driver has a retry budget; traces from before there were any do not say
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) asks_before_retries: bool,
}

impl Header {
    pub(crate) fn new(
        bodies: Bodies,
        request: Described,
        config: RequestConfig,
        env: Env,
        began: Instant,
        asks_before_retries: bool,
    ) -> Self {
        let Env { seed, unix_at_origin } = env;
        Self { trace: VERSION, bodies, request, config, seed, unix_at_origin, began, asks_before_retries }
    }

    pub(super) fn env(&self) -> Env {
        Env { seed: self.seed, unix_at_origin: self.unix_at_origin }
    }
}

fn effective<'de, D: Deserializer<'de>>(deserializer: D) -> Result<RequestConfig, D::Error> {
    RequestConfig::default().with(&Overrides::deserialize(deserializer)?).map_err(D::Error::custom)
}

/// A line that tells how the recording ended
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Mark {
    /// The call is over
    End(Counts),
    /// The trace came to its bound
    Truncated { max_bytes: u64 },
}

/// How many lines there are of each kind
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Counts {
    pub(super) events: u64,
    pub(super) steps: u64,
}

/// The head of a response, for a reader: where bodies are not whole, nothing else shows it
#[derive(Clone, Debug, Serialize)]
pub(super) struct HeadNote {
    head: Head,
}

#[derive(Clone, Debug, Serialize)]
struct Head {
    link: AttemptId,
    #[serde(flatten)]
    head: HeadLine,
}

impl HeadNote {
    pub(super) fn new(link: AttemptId, head: HeadLine) -> Self {
        Self { head: Head { link, head } }
    }
}
