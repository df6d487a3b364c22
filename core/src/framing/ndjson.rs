//! Newline-delimited JSON: one value a line, as Ollama streams it.
//!
//! | what came | what is done |
//! |---|---|
//! | LF | ends a line, and nothing else does: not CR, not U+2028 or U+0085 |
//! | CR before LF | belongs to the line end |
//! | a line of nothing but JSON's white space | skipped |
//! | a byte order mark | skipped at the start of the body |
//! | a last line without LF | handed over by [`Framer::tail`] |
//!
//! The framer judges no text: whether a line is UTF-8 or JSON is the caller's business.

use std::fmt;

use memchr::memchr;

use super::buffer::{ByteOrderMark, keep};
use super::{Event, Located, TooLarge};

#[cfg(test)]
mod tests;

/// Cuts the body of a stream into lines, however its bytes are split
///
/// Memory held: at most `max_event_bytes` for the line that is under way, and nothing between lines.
///
/// ```
/// use steadfast::framing::ndjson::Framer;
///
/// let mut framer = Framer::new(1024);
/// let mut input: &[u8] = b"{\"done\":false}\r\n\n{\"done\":tr";
/// let (consumed, event) = framer.next(input)?;
/// assert_eq!(framer.bytes(input, event.unwrap().data), b"{\"done\":false}");
///
/// input = &input[consumed..];
/// assert_eq!(framer.next(input)?, (input.len(), None));
/// # Ok::<(), steadfast::framing::TooLarge>(())
/// ```
pub struct Framer {
    max_event_bytes: usize,
    /// The unfinished line, or the one returned last
    kept: Vec<u8>,
    mark: ByteOrderMark,
    /// The event returned last points to `kept`
    lent: bool,
    failed: bool,
}

impl Framer {
    /// A framer at the start of a body
    ///
    /// The size of an event is that of its line, up to the LF.
    pub fn new(max_event_bytes: usize) -> Self {
        Self { max_event_bytes, kept: Vec::new(), mark: ByteOrderMark::default(), lent: false, failed: false }
    }

    /// Reads on, to the end of the next line that is not blank, or of the input
    ///
    /// Returns how many bytes were used, and the event. Without an event all of the input was used;
    /// with one, the rest is for the next call.
    ///
    /// Errors: [`TooLarge`], for the same line however the bytes are split. What was held is freed,
    /// and every further call fails the same way.
    pub fn next(&mut self, input: &[u8]) -> Result<(usize, Option<Event>), TooLarge> {
        if self.failed {
            return Err(TooLarge { limit: self.max_event_bytes });
        }
        self.end_loan();
        let result = self.read(input);
        if result.is_err() {
            self.failed = true;
            self.kept = Vec::new();
        }
        result
    }

    /// Bytes that it holds
    pub(super) fn held(&self) -> usize {
        self.kept.len()
    }

    /// The bytes of a piece of the event that came last
    ///
    /// `input` is the input of the call that returned the event.
    ///
    /// # Panics
    ///
    /// If the piece is of another call or another framer, it may lie outside of what there is.
    pub fn bytes<'a>(&'a self, input: &'a [u8], located: Located) -> &'a [u8] {
        located.of(input, &self.kept)
    }

    /// The last line, if the body ended without its LF
    ///
    /// It may be cut anywhere: a caller takes it only if it is whole JSON, after a cut only if it
    /// ends the turn as well (rule STR-9). [`Located::Kept`]; `None` once it was told.
    pub fn tail(&mut self) -> Option<Event> {
        self.end_loan();
        let end = line_end(&self.kept)?;
        self.lent = true;
        Some(Event::unnamed(Located::Kept { start: 0, end }))
    }

    fn read(&mut self, input: &[u8]) -> Result<(usize, Option<Event>), TooLarge> {
        let mut at = 0;
        if !self.mark.is_past() {
            let (used, look_alike) = self.mark.skip(input);
            self.keep_line(look_alike)?;
            at = used;
        }
        while let Some(length) = memchr(b'\n', &input[at..]) {
            let start = at;
            at += length + 1;
            if self.kept.is_empty() {
                self.check_room(length)?;
                if let Some(length) = line_end(&input[start..start + length]) {
                    let line = Located::Input { start, end: start + length };
                    return Ok((at, Some(Event::unnamed(line))));
                }
            } else {
                self.keep_line(&input[start..start + length])?;
                if let Some(end) = line_end(&self.kept) {
                    self.lent = true;
                    return Ok((at, Some(Event::unnamed(Located::Kept { start: 0, end }))));
                }
                self.kept.clear();
            }
        }
        self.keep_line(&input[at..])?;
        if self.kept.is_empty() {
            // A quiet stream owns no buffer, whatever its last event took.
            self.kept = Vec::new();
        }
        Ok((input.len(), None))
    }

    /// Forgets the line that only the event returned last pointed to
    fn end_loan(&mut self) {
        if self.lent {
            self.lent = false;
            self.kept.clear();
        }
    }

    /// Errors: a line of so many bytes is too large
    fn check_room(&self, line: usize) -> Result<(), TooLarge> {
        if line > self.max_event_bytes {
            return Err(TooLarge { limit: self.max_event_bytes });
        }
        Ok(())
    }

    /// Adds to the unfinished line
    fn keep_line(&mut self, bytes: &[u8]) -> Result<(), TooLarge> {
        self.check_room(self.kept.len() + bytes.len())?;
        keep(&mut self.kept, bytes, self.max_event_bytes);
        Ok(())
    }
}

/// Sizes only: what a stream says is not for a log
impl fmt::Debug for Framer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Framer")
            .field("max_event_bytes", &self.max_event_bytes)
            .field("kept", &self.kept.len())
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}

/// How long a line is without the CR of its line end; `None` for a blank line
fn line_end(line: &[u8]) -> Option<usize> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    line.iter().any(|byte| !matches!(byte, b' ' | b'\t' | b'\r')).then_some(line.len())
}
