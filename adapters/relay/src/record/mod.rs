//! Recording: what goes through the relay, in a database, at no cost to a call.
//!
//! | file | what is in it |
//! |---|---|
//! | `mod` | [`Recorder`]: sees a relay's exchanges, and hands them to one writer |
//! | `seen` | one exchange, piece by piece |
//! | `queue` | what waits for the writer, bounded in bytes |
//! | `writer` | the thread that writes, and commits |
//! | `database` | [`Database`]: where records are, and what can be wrong with it |
//! | `sqlite` | records in a file |
//! | `postgres` | records in PostgreSQL, where several relays write |
//! | `postgres_rows` | a batch of records as its rows |
//! | `postgres_url` | [`PostgresUrl`]: where it is, and who asks it |
//! | `calls` | [`Calls`]: reads them again |
//!
//! Pieces go to the writer as they come, so that of a call at most the end of its answer is held. A record
//! that cannot be kept, because the writer is behind by [`RecordSettings::max_queued_bytes`] or the
//! database takes nothing, is dropped and counted: see [`Recorder::counters`]. No call waits for a record.
//! While PostgreSQL cannot be reached, records wait for it, as many as that.
//!
//! What a call said is committed no later than [`COMMIT_WITHIN`] after it is over, so that a relay that is
//! killed loses no more than that.

mod calls;
mod database;
mod postgres;
mod postgres_rows;
mod postgres_url;
mod queue;
mod seen;
mod sqlite;
mod writer;

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use steadfast::relay::Caps;

pub use self::calls::{Body, BodyPiece, Call, Calls};
pub use self::database::{Database, DatabaseError};
pub use self::postgres_url::PostgresUrl;
use self::queue::Queue;
pub use self::queue::RecordCounters;
use self::seen::Recording;
pub use self::writer::COMMIT_WITHIN;
use crate::shared::{Observer, Relay, Seen};

/// How much is recorded, and for how long
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordSettings {
    /// Of each call's bodies
    pub caps: Caps,
    /// How long a record is kept; 30 days
    pub max_age: Duration,
    /// What all records may take up in the database; 10 GiB. Past it the oldest ones go. In PostgreSQL it
    /// is what those of all relays weigh, without its indexes and the room of what was deleted
    pub max_bytes: u64,
    /// What may wait for the writer, in bytes; 64 MiB
    pub max_queued_bytes: usize,
}

impl Default for RecordSettings {
    fn default() -> Self {
        Self {
            caps: Caps::default(),
            max_age: Duration::from_secs(30 * 24 * 3600),
            max_bytes: 10 << 30,
            max_queued_bytes: 64 << 20,
        }
    }
}

/// Records a relay's exchanges
///
/// Cheap to clone, and all clones are one recorder. It is a relay's [`Observer`].
#[derive(Clone)]
pub struct Recorder(Arc<Shared>);

struct Shared {
    queue: Queue,
    caps: Caps,
    keys: Keys,
}

impl Recorder {
    /// Records in this database, which is made where there is none
    ///
    /// A server that cannot be reached is no error: see [`Recorder::trouble`].
    ///
    /// Errors: it cannot be opened, refuses who asks, or holds something else.
    pub fn open(database: &Database, settings: RecordSettings) -> Result<Self, DatabaseError> {
        let keys = Keys::new();
        let (store, trouble) = database.open(keys.salt as i32)?;
        let (queue, inbox) = Queue::new(settings.max_queued_bytes);
        if let Some(trouble) = trouble {
            inbox.troubled(&trouble);
        }
        writer::start(store, inbox, settings).map_err(DatabaseError::Thread)?;
        Ok(Self(Arc::new(Shared { queue, caps: settings.caps, keys })))
    }

    /// What became of records until now
    pub fn counters(&self) -> RecordCounters {
        self.0.queue.counters()
    }

    /// How many records were dropped: each is the beginning of a call, a piece of a body, or its end
    pub fn dropped(&self) -> u64 {
        self.0.queue.dropped()
    }

    /// Why the database took nothing when it last did not, in its words
    pub fn trouble(&self) -> Option<String> {
        self.0.queue.trouble()
    }

    /// How many bytes wait for the writer
    pub fn queued_bytes(&self) -> usize {
        self.0.queue.queued_bytes()
    }

    /// Blocks until all that was seen before is written or dropped, and says whether that was so in time
    pub fn flush(&self, within: Duration) -> bool {
        self.0.queue.flush(within)
    }
}

impl Observer for Recorder {
    fn begin(&self, relay: &Relay) -> Box<dyn Seen> {
        Box::new(Recording::new(self.0.clone(), relay))
    }
}

/// Makes the keys of calls: they rise with the time, and differ between relays that share a database
struct Keys {
    last: AtomicI64,
    /// Drawn once for each process
    salt: i64,
}

impl Keys {
    /// Bits of a key that tell relays apart; the others are the nanoseconds since 1970
    const SALT_BITS: u32 = 12;

    fn new() -> Self {
        let salt = RandomState::new().hash_one(0_u8) & ((1 << Self::SALT_BITS) - 1);
        Self { last: AtomicI64::new(0), salt: salt as i64 }
    }

    /// A key for a call that begins now
    fn next(&self, since_epoch: Duration) -> i64 {
        const STEP: i64 = 1 << Keys::SALT_BITS;
        let now = i64::try_from(since_epoch.as_nanos()).unwrap_or(i64::MAX - STEP) & !(STEP - 1);
        let next = |last: i64| Some(now.max((last & !(STEP - 1)) + STEP) | self.salt);
        let last = self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        last.ok().and_then(next).unwrap_or(now)
    }

    /// The least key of calls that begin then
    fn at(since_epoch: Duration) -> i64 {
        i64::try_from(since_epoch.as_nanos()).unwrap_or(i64::MAX)
    }
}

/// The time since 1970
fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_rise_where_the_clock_does_not() {
        let keys = Keys::new();
        let second = Duration::from_secs(1_800_000_000);
        let mut last = keys.next(second);
        assert!(last >= Keys::at(second) - (1 << Keys::SALT_BITS));
        for back in [0, 0, 5, 3600] {
            let next = keys.next(second - Duration::from_secs(back));
            assert!(next > last);
            last = next;
        }
        assert!(keys.next(second + Duration::from_millis(1)) >= Keys::at(second) + 900_000);
    }
}
