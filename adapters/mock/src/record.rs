//! What a server saw.

use std::time::Duration;

use serde::{Serialize, Serializer};
use steadfast_scenario::Tally;

/// What a server saw so far; times count from its start
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Recorded {
    /// The connections accepted, in order
    pub connections: Vec<ConnectionRecord>,
    /// The requests whose head came, in order of that
    pub requests: Vec<RequestRecord>,
}

impl Recorded {
    /// The sums that a scenario states expectations of
    pub fn tally(&self) -> Tally {
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let closed = |connection: &&ConnectionRecord| connection.closed_by_peer.is_some();
        Tally {
            connections: count(self.connections.len()),
            requests: count(self.requests.len()),
            blocked: self.connections.iter().map(|connection| connection.blocked_for).sum(),
            received: self.connections.iter().map(|connection| connection.received).sum(),
            closed_by_peer: count(self.connections.iter().filter(closed).count()),
        }
    }
}

impl Recorded {
    /// The most by which any pause lasted longer than the script says
    ///
    /// A server that was late did not do what its script says, and what comes of that shows nothing.
    pub fn late(&self) -> Duration {
        self.connections.iter().map(|connection| connection.late).max().unwrap_or_default()
    }
}

/// Something that a server saw, told as it happens
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Sighting {
    /// A connection was accepted
    Opened {
        /// Its number, from 0
        connection: u64,
        /// When
        #[serde(serialize_with = "seconds")]
        at: Duration,
    },
    /// A request came whole, or its connection ended before it did
    Request(RequestRecord),
    /// A connection's script is over and its socket closed
    Closed(ConnectionRecord),
}

/// What became of one connection
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ConnectionRecord {
    /// Its number, from 0
    pub connection: u64,
    /// When it was accepted
    #[serde(serialize_with = "seconds")]
    pub at: Duration,
    /// Bytes read, after TLS
    pub received: u64,
    /// Bytes that the kernel took, before TLS
    pub sent: u64,
    /// The times when sending was held up because the peer did not read; the first 1,000
    pub blocked: Vec<Blocked>,
    /// For how long sending was held up, as far as that is over; in all, not only in those
    #[serde(serialize_with = "seconds")]
    pub blocked_for: Duration,
    /// The close by the peer, where the script looked far enough to see it
    pub closed_by_peer: Option<Closed>,
    /// What kept the script from going on
    pub failed: Option<String>,
    /// The most by which a pause lasted longer than the script says: a busy machine
    #[serde(serialize_with = "seconds")]
    pub late: Duration,
    /// When the script was over and the socket closed
    #[serde(serialize_with = "maybe_seconds")]
    pub ended: Option<Duration>,
}

/// One time when sending was held up
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Blocked {
    /// Bytes that the connection had taken by then, of those that go over the wire
    pub taken: u64,
    /// When it took no more
    #[serde(serialize_with = "seconds")]
    pub at: Duration,
    /// When it took more again
    #[serde(serialize_with = "maybe_seconds")]
    pub resumed: Option<Duration>,
}

/// How and when a peer closed
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Closed {
    /// How
    pub how: Close,
    /// When the server saw it
    #[serde(serialize_with = "seconds")]
    pub at: Duration,
}

/// How a peer closed
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Close {
    /// A FIN; over TLS a `close_notify` before it
    Fin,
    /// A FIN over TLS with no `close_notify` before it
    FinWithoutCloseNotify,
    /// A reset
    Reset,
}

/// One request
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RequestRecord {
    /// The connection it came on, from 0
    pub connection: u64,
    /// When its head was complete
    #[serde(serialize_with = "seconds")]
    pub at: Duration,
    /// The method
    pub method: String,
    /// The target, with credentials in its query replaced
    pub target: String,
    /// Names in lower case and values, in order, with credentials replaced
    pub headers: Vec<(String, String)>,
    /// Bytes of the body that came, without any chunk framing
    pub body_len: u64,
    /// The first 64 KiB of the body
    #[serde(serialize_with = "lossy")]
    pub body: Vec<u8>,
    /// Whether the whole request came
    pub complete: bool,
}

impl RequestRecord {
    /// The value of the first header of that name, given in lower case
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

fn seconds<S: Serializer>(at: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(at.as_secs_f64())
}

fn maybe_seconds<S: Serializer>(at: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    at.map(|at| at.as_secs_f64()).serialize(serializer)
}

fn lossy<S: Serializer>(body: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&String::from_utf8_lossy(body))
}
