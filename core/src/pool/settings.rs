//! What a pool may do, and what it has done.

use std::num::NonZeroUsize;
use std::time::Duration;

use crate::time::Bound;

/// What a pool may do
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How long a connection may be idle before it is closed (rule POOL-2), if its server did not say that
    /// it closes it sooner: see [`Pool::kept_for`](super::Pool::kept_for)
    pub idle_timeout: Bound,
    /// The most idle connections for one origin; the one idle longest is closed when there are more
    pub max_idle: usize,
    /// The most connections for one origin, whatever they are doing; `None` is no cap (rule POOL-1)
    pub max_connections: Option<NonZeroUsize>,
}

impl Settings {
    /// One minute: many load balancers close what is idle for longer, and do not tell in time
    pub const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

    /// As many as a busy client has use for, and few beside the file descriptors of a process
    pub const MAX_IDLE: usize = 128;
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            idle_timeout: Bound::Limited(Self::IDLE_TIMEOUT),
            max_idle: Self::MAX_IDLE,
            max_connections: None,
        }
    }
}

/// What is in a pool now, and what it has done since it was made
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Connections that are handed out now, being opened or in use
    pub in_use: usize,
    /// Connections that are idle now
    pub idle: usize,
    /// Connections that are done with now but have yet to end their message
    pub finishing: usize,
    /// How many wait in line now
    pub waiting: usize,
    /// Connections handed out to be opened
    pub opened: u64,
    /// Times that an idle connection was handed out, and was still good
    pub reused: u64,
    /// Times that someone had to wait in line
    pub waited: u64,
    /// Connections closed because they were idle for too long, or one too many
    pub expired: u64,
    /// Connections that were found dead while they were idle
    pub lost: u64,
    /// Connections that did not end their message in time, or not well
    pub unfinished: u64,
}
