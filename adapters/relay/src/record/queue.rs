//! What waits for the writer, bounded in bytes.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use steadfast::relay::{Counted, Exchanged, Side};

/// What a record weighs beside the bytes in it
const RECORD_BYTES: usize = 256;
/// Room for the ends of calls alone, where the queue is full of their bodies
const RESERVED_BYTES: usize = 8 << 20;

/// What became of records: each is the beginning of a call, a piece of a body, or its end
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordCounters {
    /// Those that the database has taken
    pub written: u64,
    /// Those that it has not, or that there was no room for
    pub dropped: u64,
    /// Those that wait for the writer
    pub queued: u64,
    /// What these weigh
    pub queued_bytes: usize,
}

/// A record, of the call with this key; times are microseconds since 1970
pub(super) struct Record {
    pub(super) key: i64,
    pub(super) at: i64,
    pub(super) what: What,
}

pub(super) enum What {
    Request { method: String, target: String, fields: Vec<(String, String)> },
    Answer { status: u16, fields: Vec<(String, String)> },
    Piece { side: Side, offset: u64, bytes: Vec<u8> },
    Over(Box<Over>),
}

/// The end of a call
pub(super) struct Over {
    pub(super) exchanged: Exchanged,
    /// When its first byte came, as the call's end is told
    pub(super) begun: i64,
    pub(super) request: Counted,
    pub(super) answer: Counted,
}

pub(super) enum Message {
    Record(Record),
    /// To be told once all before it is written
    Flush(SyncSender<()>),
}

/// The end of the queue that takes in
pub(super) struct Queue {
    sender: Sender<Message>,
    max_bytes: usize,
    state: Arc<State>,
}

/// The writer's end
pub(super) struct Inbox {
    receiver: Receiver<Message>,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    bytes: AtomicUsize,
    taken_in: AtomicU64,
    written: AtomicU64,
    lost: AtomicU64,
    dropped: AtomicU64,
    trouble: Mutex<Option<String>>,
}

impl Queue {
    pub(super) fn new(max_bytes: usize) -> (Self, Inbox) {
        let (sender, receiver) = mpsc::channel();
        let state = Arc::new(State::default());
        (Self { sender, max_bytes, state: state.clone() }, Inbox { receiver, state })
    }

    /// Takes the record in, or drops and counts it; never waits
    pub(super) fn push(&self, record: Record) {
        let weight = record.weight();
        let most = match record.what {
            What::Over(_) => self.max_bytes.saturating_add(RESERVED_BYTES),
            What::Request { .. } | What::Answer { .. } | What::Piece { .. } => self.max_bytes,
        };
        let before = self.state.bytes.fetch_add(weight, Ordering::Relaxed);
        if before + weight > most || self.sender.send(Message::Record(record)).is_err() {
            self.state.bytes.fetch_sub(weight, Ordering::Relaxed);
            self.state.dropped.fetch_add(1, Ordering::Relaxed);
        } else {
            self.state.taken_in.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn flush(&self, within: Duration) -> bool {
        let (done, told) = mpsc::sync_channel(1);
        self.sender.send(Message::Flush(done)).is_ok() && told.recv_timeout(within).is_ok()
    }

    pub(super) fn dropped(&self) -> u64 {
        self.counters().dropped
    }

    pub(super) fn counters(&self) -> RecordCounters {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (written, lost) = (count(&self.state.written), count(&self.state.lost));
        RecordCounters {
            written,
            dropped: count(&self.state.dropped) + lost,
            queued: count(&self.state.taken_in).saturating_sub(written + lost),
            queued_bytes: self.queued_bytes(),
        }
    }

    pub(super) fn queued_bytes(&self) -> usize {
        self.state.bytes.load(Ordering::Relaxed)
    }

    pub(super) fn trouble(&self) -> Option<String> {
        self.state.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Inbox {
    /// The next message before `until`; the error says whether there can be another
    pub(super) fn next(&self, until: Instant) -> Result<Message, RecvTimeoutError> {
        self.receiver.recv_timeout(until.saturating_duration_since(Instant::now()))
    }

    /// These records are written
    pub(super) fn written(&self, batch: &[Record]) {
        self.release(batch);
        self.state.written.fetch_add(batch.len() as u64, Ordering::Relaxed);
    }

    /// These could not be
    pub(super) fn lost(&self, batch: &[Record], why: &dyn std::fmt::Display) {
        self.release(batch);
        self.state.lost.fetch_add(batch.len() as u64, Ordering::Relaxed);
        self.troubled(why);
    }

    /// Whether somebody is left who could send a record
    pub(super) fn is_open(&self) -> bool {
        // The other end has the other one.
        Arc::strong_count(&self.state) > 1
    }

    fn release(&self, batch: &[Record]) {
        let weight: usize = batch.iter().map(Record::weight).sum();
        self.state.bytes.fetch_sub(weight, Ordering::Relaxed);
    }

    /// The database refused something
    pub(super) fn troubled(&self, why: &dyn std::fmt::Display) {
        *self.state.trouble.lock().unwrap_or_else(PoisonError::into_inner) = Some(why.to_string());
    }
}

impl Record {
    pub(super) fn weight(&self) -> usize {
        let of_fields = |fields: &[(String, String)]| -> usize {
            fields.iter().map(|(name, value)| name.len() + value.len() + 2 * size_of::<String>()).sum()
        };
        let held = match &self.what {
            What::Request { target, fields, .. } => target.len() + of_fields(fields),
            What::Answer { fields, .. } => of_fields(fields),
            What::Piece { bytes, .. } => bytes.len(),
            What::Over(over) => {
                let timeline = &over.exchanged.timeline;
                size_of::<Over>()
                    + size_of_val(timeline.spans.as_slice())
                    + size_of_val(timeline.attempts.as_slice())
            }
        };
        RECORD_BYTES + held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(bytes: usize) -> Record {
        let bytes = vec![0; bytes];
        Record { key: 1, at: 1, what: What::Piece { side: Side::Answer, offset: 0, bytes } }
    }

    #[test]
    fn what_does_not_fit_is_dropped_and_counted() {
        let (queue, inbox) = Queue::new(10_000);
        for _ in 0..30 {
            queue.push(piece(1_000));
        }
        assert_eq!(queue.dropped(), 23);
        assert!(queue.queued_bytes() <= 10_000);
        let mut batch = Vec::new();
        while let Ok(Message::Record(record)) = inbox.next(Instant::now()) {
            batch.push(record);
        }
        inbox.written(&batch);
        assert_eq!((batch.len(), queue.queued_bytes()), (7, 0));
        let counted = RecordCounters { written: 7, dropped: 23, queued: 0, queued_bytes: 0 };
        assert_eq!(queue.counters(), counted);
        queue.push(piece(20_000));
        assert_eq!(queue.dropped(), 24);
        inbox.lost(&[], &"disk full");
        assert_eq!(queue.trouble().as_deref(), Some("disk full"));
    }

    #[test]
    fn nothing_waits_for_a_writer_that_is_gone() {
        let (queue, inbox) = Queue::new(10_000);
        drop(inbox);
        queue.push(piece(1));
        assert_eq!((queue.dropped(), queue.queued_bytes()), (1, 0));
        assert!(!queue.flush(Duration::from_secs(60)));
    }
}
