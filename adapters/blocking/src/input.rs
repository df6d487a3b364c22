//! What a call reads: bytes of its connection, and of the request's body where that is read as it goes out.

use std::sync::Arc;

use steadfast::body::{Feed, Waker, waker};
use steadfast::call::{AttemptId, Call};
use steadfast::machine::Event;

use crate::connection::READ_BYTES;
use crate::sleeper::Bell;

/// The buffer of one read, and what reads bodies
pub(crate) struct Input {
    pub(crate) buffer: Box<[u8]>,
    feed: Feed,
    /// Rings the bell when the body has more
    waker: Waker,
}

impl Input {
    pub(crate) fn new(bell: &Arc<Bell>) -> Self {
        let bell = Arc::clone(bell);
        let buffer = vec![0; READ_BYTES].into_boxed_slice();
        Self { buffer, feed: Feed::default(), waker: waker(move || bell.ring()) }
    }

    /// What comes next of the request, at most so many bytes, if it is asked for and there
    pub(crate) fn of_request(
        &mut self,
        call: &Call,
        id: AttemptId,
        wanted: usize,
    ) -> Option<Event<'_, Call>> {
        let room = wanted.min(self.buffer.len());
        if room == 0 {
            return None;
        }
        let supply = self.feed.supply(call.request(), id, &self.waker, &mut self.buffer[..room])?;
        Some(Event::Supplied(id, supply))
    }
}
