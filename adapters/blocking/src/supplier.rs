//! The body of a request that is read as it goes out.

use std::sync::Arc;

use steadfast::body::{Feed, Waker, waker};
use steadfast::call::{AttemptId, Call};
use steadfast::machine::{Event, Interest};

use crate::sleeper::Bell;

/// Reads on in the body of one call, wherever that asks for it
pub(crate) struct Supplier {
    feed: Feed,
    /// Rings the bell when there is more
    waker: Waker,
}

impl Supplier {
    pub(crate) fn new(bell: &Arc<Bell>) -> Self {
        let bell = Arc::clone(bell);
        Self { feed: Feed::default(), waker: waker(move || bell.ring()) }
    }

    /// What comes next of the body, if it is asked for and there
    pub(crate) fn next<'b>(
        &mut self,
        call: &Call,
        interest: Option<Interest<AttemptId>>,
        buffer: &'b mut [u8],
    ) -> Option<Event<'b, Call>> {
        let Interest { link, supply, .. } = interest.filter(|interest| interest.supply > 0)?;
        let room = supply.min(buffer.len());
        let supply = self.feed.supply(call.request(), link, &self.waker, &mut buffer[..room])?;
        Some(Event::Supplied(link, supply))
    }
}
