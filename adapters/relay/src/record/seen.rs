//! One exchange, piece by piece.

use std::sync::Arc;

use steadfast::relay::{Capture, Captured, Exchanged, Tap};
use steadfast::time::Instant;
use steadfast_driver::Timekeeper;
use steadfast_tokio::Tokio;

use super::queue::{Over, Record, What};
use super::{Shared, since_epoch};
use crate::shared::{Relay, Seen};

/// Hands an exchange to the writer as it goes by
pub(super) struct Recording {
    shared: Arc<Shared>,
    key: i64,
    time: Timekeeper<Tokio>,
    /// When it was first seen, by the relay's clock
    seen: Instant,
    /// The same in microseconds since 1970
    seen_at: i64,
    /// When something was last recorded: a little later than its exchange was told of it
    last_at: i64,
    capture: Option<Capture>,
}

impl Recording {
    pub(super) fn new(shared: Arc<Shared>, relay: &Relay) -> Self {
        let time = relay.0.client.timekeeper();
        let (seen, wall) = (time.now(), since_epoch());
        let routes = relay.routes();
        let keys = routes.iter().filter_map(|(_, route)| Some(&route.key.as_ref()?.1));
        let capture = Some(Capture::new(shared.caps, keys));
        let seen_at = i64::try_from(wall.as_micros()).unwrap_or(i64::MAX);
        Self { key: shared.keys.next(wall), shared, time, seen, seen_at, last_at: seen_at, capture }
    }

    /// An instant in microseconds since 1970
    fn at(&self, instant: Instant) -> i64 {
        let micros = |from: Instant, to: Instant| (to - from).as_micros() as i64;
        match instant >= self.seen {
            true => self.seen_at.saturating_add(micros(self.seen, instant)),
            false => self.seen_at.saturating_sub(micros(instant, self.seen)),
        }
    }
}

impl Seen for Recording {
    fn tap(&mut self, tap: Tap<'_>) {
        let (key, at) = (self.key, self.at(self.time.now()));
        self.last_at = at;
        let queue = &self.shared.queue;
        if let Some(capture) = &mut self.capture {
            capture.tap(&tap, &mut |captured| queue.push(Record { key, at, what: What::of(captured) }));
        }
    }

    fn over(&mut self, exchanged: Exchanged) {
        let (key, at) = (self.key, self.at(exchanged.timeline.ended).max(self.last_at));
        let begun = self.at(exchanged.timeline.began);
        let queue = &self.shared.queue;
        let Some(capture) = self.capture.take() else { return };
        let (request, answer) =
            capture.finish(&mut |captured| queue.push(Record { key, at, what: What::of(captured) }));
        let over = Box::new(Over { exchanged, begun, request, answer });
        queue.push(Record { key, at, what: What::Over(over) });
    }
}

impl What {
    fn of(captured: Captured<'_>) -> Self {
        match captured {
            Captured::Request { method, target, fields } => Self::Request { method, target, fields },
            Captured::Answer { status, fields } => Self::Answer { status: status.as_u16(), fields },
            Captured::Body { side, offset, bytes } => Self::Piece { side, offset, bytes: bytes.to_vec() },
        }
    }
}
