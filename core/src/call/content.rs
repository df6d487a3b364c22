//! A body whose content is encoded, on its way to whoever reads it.

use std::fmt;
use std::ops::Range;

use crate::content::{ContentError, Decoder};

/// The most decoded bytes that wait at a time
const WINDOW: usize = 16 * 1024;

/// Decodes a body piece by piece; what is decoded is read from here instead of from the input
pub(super) struct Content {
    decoder: Decoder,
    decoded: Box<[u8]>,
    unread: Range<usize>,
    /// The decoder has more to give without more input
    more: bool,
}

impl Content {
    pub(super) fn new(decoder: Decoder) -> Self {
        Self { decoder, decoded: vec![0; WINDOW].into(), unread: 0..0, more: false }
    }

    /// The buffer, and what of it is still to be read
    pub(super) fn unread(&self) -> (&[u8], Range<usize>) {
        (&self.decoded, self.unread.clone())
    }

    pub(super) fn buffer(&self) -> &[u8] {
        &self.decoded
    }

    pub(super) fn read(&mut self, count: usize) {
        self.unread.start += count;
    }

    /// Whether there is something to read, or to decode without more input
    pub(super) fn has_more(&self) -> bool {
        self.more || !self.unread.is_empty()
    }

    /// Decodes into the buffer, all of which has been read; returns how many bytes of `input` it took
    pub(super) fn decode(&mut self, input: &[u8]) -> Result<usize, ContentError> {
        let decoded = self.decoder.decode(input, &mut self.decoded)?;
        self.unread = 0..decoded.produced;
        self.more = decoded.more;
        Ok(decoded.consumed)
    }

    /// The body is over
    ///
    /// Errors: what was encoded was not.
    pub(super) fn finish(&self) -> Result<(), ContentError> {
        self.decoder.finish()
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Content").field("unread", &self.unread.len()).field("more", &self.more).finish()
    }
}
