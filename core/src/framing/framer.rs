//! One framer for whichever framing a body has.

use super::{Event, FramingError, Located, json_array, ndjson, sse};

/// The way a body is cut into events
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Server-sent events
    Sse,
    /// Newline-delimited JSON
    Ndjson,
    /// One JSON array
    JsonArray,
}

/// The framer of a body
#[derive(Debug)]
pub enum Framer {
    /// Of server-sent events
    Sse(sse::Framer),
    /// Of newline-delimited JSON
    Ndjson(ndjson::Framer),
    /// Of one JSON array
    JsonArray(json_array::Framer),
}

impl Framer {
    /// A framer at the start of a body
    pub fn new(framing: Framing, max_event_bytes: usize) -> Self {
        match framing {
            Framing::Sse => Self::Sse(sse::Framer::new(max_event_bytes)),
            Framing::Ndjson => Self::Ndjson(ndjson::Framer::new(max_event_bytes)),
            Framing::JsonArray => Self::JsonArray(json_array::Framer::new(max_event_bytes)),
        }
    }

    /// Reads on, to the end of the next event or of the input
    ///
    /// Returns how many bytes were used, and the event. Without an event all of the input was used;
    /// with one, the rest is for the next call. An event may use none: the byte that ends a number
    /// in an array is no part of it.
    ///
    /// Errors: after the same events however the bytes are split, and again at every further call.
    pub fn next(&mut self, input: &[u8]) -> Result<(usize, Option<Event>), FramingError> {
        match self {
            Self::Sse(framer) => Ok(framer.next(input)?),
            Self::Ndjson(framer) => Ok(framer.next(input)?),
            Self::JsonArray(framer) => framer.next(input),
        }
    }

    /// The bytes of a piece of the event that came last
    ///
    /// `input` is the input of the call that returned the event.
    ///
    /// # Panics
    ///
    /// If the piece is of another call or another framer, it may lie outside of what there is.
    pub fn bytes<'a>(&'a self, input: &'a [u8], located: Located) -> &'a [u8] {
        match self {
            Self::Sse(framer) => framer.bytes(input, located),
            Self::Ndjson(framer) => framer.bytes(input, located),
            Self::JsonArray(framer) => framer.bytes(input, located),
        }
    }

    /// Bytes that it holds of the event under way, or of the one that it returned last
    pub(crate) fn held(&self) -> usize {
        match self {
            Self::Sse(framer) => framer.held(),
            Self::Ndjson(framer) => framer.held(),
            Self::JsonArray(framer) => framer.held(),
        }
    }

    /// What the end of the body leaves unterminated; an array has none, since an element that is not
    /// closed is not whole
    pub fn tail(&mut self) -> Option<Event> {
        match self {
            Self::Sse(framer) => framer.tail(),
            Self::Ndjson(framer) => framer.tail(),
            Self::JsonArray(_) => None,
        }
    }
}
