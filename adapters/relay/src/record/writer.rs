//! The thread that writes, and commits.

use std::io;
use std::sync::mpsc::{RecvTimeoutError, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use super::database::Store;
use super::queue::{Inbox, Message, Record};
use super::{Keys, RecordSettings, since_epoch};

/// How long a record may wait to be committed, where the database keeps up: 500 ms
pub const COMMIT_WITHIN: Duration = Duration::from_millis(500);

/// How long records are gathered for one commit: half of that, so that the commit itself has time
const GATHER: Duration = Duration::from_millis(250);
/// The most bytes of one commit, but for its last record
const MAX_BATCH_BYTES: usize = 8 << 20;
/// How often what is too old or too much is looked for while there are records, unless somebody waits
const RETAIN_AT_MOST_EVERY: Duration = Duration::from_secs(1);
/// How long a database that cannot be reached is left alone: 250 ms at first, and twice that each time
const RETRY_AFTER: Duration = Duration::from_millis(250);
/// The longest of these
const MAX_RETRY_AFTER: Duration = Duration::from_secs(5);
/// How often records that are too old are looked for, where nothing is recorded
const RETAIN_EVERY: Duration = Duration::from_secs(60);
/// How many of the oldest calls go at once
const RETAIN_STEP: u32 = 64;
/// How many such steps are taken between two commits
const MAX_RETAIN_STEPS: u32 = 16;

/// Starts the writer, which ends once nobody is left who could send it a record
///
/// Errors: the system has no thread for it.
pub(super) fn start(store: Store, inbox: Inbox, settings: RecordSettings) -> io::Result<()> {
    let writer = Writer { store, inbox, settings, gather: GATHER };
    thread::Builder::new().name("steadfast-recorder".to_owned()).spawn(|| writer.run())?;
    Ok(())
}

struct Writer {
    store: Store,
    inbox: Inbox,
    settings: RecordSettings,
    /// The less the longer the last batch took to be written
    gather: Duration,
}

/// What is written together
#[derive(Default)]
struct Batch {
    records: Vec<Record>,
    bytes: usize,
    waiting: Option<SyncSender<()>>,
}

impl Writer {
    fn run(mut self) {
        let mut is_open = true;
        let mut retained: Option<Instant> = None;
        while is_open {
            let mut batch = Batch::default();
            is_open = self.gather(&mut batch);
            if !batch.records.is_empty() {
                let began = Instant::now();
                self.write(&batch.records);
                self.gather = GATHER.saturating_sub(began.elapsed());
            }
            let is_due = retained.is_none_or(|at| at.elapsed() >= RETAIN_AT_MOST_EVERY);
            if is_due || batch.waiting.is_some() {
                if let Err(error) = self.retain() {
                    self.inbox.troubled(&error);
                }
                retained = Some(Instant::now());
            }
            if let Some(waiting) = batch.waiting {
                // Whoever asked may have waited long enough.
                _ = waiting.send(());
            }
        }
    }

    /// Writes these, while the queue fills where the database cannot be reached for a time
    fn write(&mut self, records: &[Record]) {
        let mut pause = RETRY_AFTER;
        loop {
            match self.store.write(records) {
                Ok(()) => return self.inbox.written(records),
                Err(error) if error.may_pass() && self.inbox.is_open() => self.inbox.troubled(&error),
                Err(error) => return self.inbox.lost(records, &error),
            }
            thread::sleep(pause);
            pause = (2 * pause).min(MAX_RETRY_AFTER);
        }
    }

    /// Gathers what comes, for a while after the first record; whether more can come
    fn gather(&self, batch: &mut Batch) -> bool {
        let mut until = Instant::now() + RETAIN_EVERY;
        while batch.bytes < MAX_BATCH_BYTES {
            match self.inbox.next(until) {
                Ok(Message::Record(record)) => {
                    if batch.records.is_empty() {
                        until = Instant::now() + self.gather;
                    }
                    batch.bytes += record.weight();
                    batch.records.push(record);
                }
                Ok(Message::Flush(waiting)) => {
                    batch.waiting = Some(waiting);
                    return true;
                }
                Err(RecvTimeoutError::Timeout) => return true,
                Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
        true
    }

    /// Deletes the oldest calls while they are too old, or all are too much
    fn retain(&mut self) -> Result<(), super::DatabaseError> {
        let oldest = Keys::at(since_epoch().saturating_sub(self.settings.max_age));
        for _ in 0..MAX_RETAIN_STEPS {
            let is_too_old = self.store.delete_before(oldest, RETAIN_STEP)? > 0;
            let is_too_much = self.store.bytes()? > self.settings.max_bytes;
            if is_too_much {
                self.store.delete_before(i64::MAX, RETAIN_STEP)?;
            }
            if !is_too_old && !is_too_much {
                break;
            }
        }
        Ok(())
    }
}
