//! One JSON array, its elements handed out as they close: Gemini's stream without `alt=sse`.
//!
//! | what came | what is done |
//! |---|---|
//! | an element | handed out with its last byte; a number or a literal with the byte after it |
//! | an element that is no object, or no JSON at all | handed out: what it means is the caller's business |
//! | `{…}` in place of the array | handed out as the one element, as gateways send a whole answer |
//! | anything else in place of the array | [`FramingError::Broken`] |
//! | no comma between elements, one too many, or something else there | [`FramingError::Broken`] |
//! | anything but white space behind the array | [`FramingError::Broken`] |
//! | a byte order mark | skipped at the start of the body |
//! | the end of the body before an element's | that element is never handed out: there is no tail |
//!
//! Brackets are counted, not matched: an element such as `{]` closes, and its reader finds it broken.

use std::fmt;

use memchr::memchr2;

use super::buffer::{ByteOrderMark, keep};
use super::{Event, FramingError, Located, TooLarge};

#[cfg(test)]
mod tests;

/// Cuts a JSON array into its elements, however its bytes are split
///
/// Memory held: at most `max_event_bytes` for the element that is under way, and nothing between
/// elements. However deep an element is nested, that is only counted.
///
/// ```
/// use steadfast::framing::json_array::Framer;
///
/// let mut framer = Framer::new(1024);
/// let mut input: &[u8] = b"[{\n  \"text\": \"H}],{\"\n}\n,\r\n{\"te";
/// let (consumed, event) = framer.next(input)?;
/// assert_eq!(framer.bytes(input, event.unwrap().data), b"{\n  \"text\": \"H}],{\"\n}");
///
/// input = &input[consumed..];
/// assert_eq!(framer.next(input)?, (input.len(), None));
/// assert!(!framer.is_whole());
/// assert_eq!(framer.unfinished(), Some(&b"{\"te"[..]));
/// # Ok::<(), steadfast::framing::FramingError>(())
/// ```
pub struct Framer {
    max_event_bytes: usize,
    /// What came of the element under way in earlier inputs, or the element returned last
    kept: Vec<u8>,
    mark: ByteOrderMark,
    /// Where the next byte stands outside of elements: now, or behind the element under way
    place: Place,
    /// Where the next byte stands in the element under way
    element: Option<Element>,
    /// The event returned last points to `kept`
    lent: bool,
    failed: Option<FramingError>,
}

/// A place outside of elements
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Before the opening bracket
    Start,
    /// Behind the opening bracket
    First,
    /// Behind a comma
    Next,
    /// Behind an element
    Behind,
    /// Behind the closing bracket, or behind the one object in place of an array
    End,
}

/// A place in an element
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Element {
    /// In that many objects and arrays; in none only before the first byte
    Nested(usize),
    /// In a string in that many
    String(usize),
    /// Behind a backslash in such a string
    Escape(usize),
    /// In a number or a literal that is the element
    Scalar,
}

impl Framer {
    /// A framer at the start of a body
    ///
    /// The size of an event is that of its element, without the white space around it.
    pub fn new(max_event_bytes: usize) -> Self {
        Self {
            max_event_bytes,
            kept: Vec::new(),
            mark: ByteOrderMark::default(),
            place: Place::Start,
            element: None,
            lent: false,
            failed: None,
        }
    }

    /// Reads on, to the end of the next element or of the input
    ///
    /// Returns how many bytes were used, and the event. Without an event all of the input was used;
    /// with one, the rest is for the next call.
    ///
    /// Errors: after the same event however the bytes are split. What was held is freed, and every
    /// further call fails the same way.
    pub fn next(&mut self, input: &[u8]) -> Result<(usize, Option<Event>), FramingError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        if std::mem::take(&mut self.lent) {
            self.kept.clear();
        }
        let result = self.read(input);
        if let Err(error) = result {
            self.failed = Some(error);
            self.element = None;
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

    /// Whether the closing bracket, or the end of the one object in its place, has come
    pub fn is_whole(&self) -> bool {
        self.failed.is_none() && self.element.is_none() && self.place == Place::End
    }

    /// What has come of the element that is under way, once all input was used
    ///
    /// It is no event: even where it reads as JSON, as a number may, more of it may have been cut off.
    pub fn unfinished(&self) -> Option<&[u8]> {
        self.element.map(|_| &self.kept[..])
    }

    fn read(&mut self, input: &[u8]) -> Result<(usize, Option<Event>), FramingError> {
        let mut at = 0;
        if !self.mark.is_past() {
            let (used, look_alike) = self.mark.skip(input);
            if !look_alike.is_empty() {
                return Err(FramingError::Broken(NO_ARRAY));
            }
            at = used;
        }
        while at < input.len() {
            if let Some(element) = self.element {
                return self.read_element(element, input, at);
            }
            match input[at] {
                byte if is_space(byte) => at += 1,
                byte => at += usize::from(self.pass(byte)?),
            }
        }
        if self.element.is_none() {
            // A quiet stream owns no buffer, whatever its last event took.
            self.kept = Vec::new();
        }
        Ok((input.len(), None))
    }

    /// Reads on in the element under way, which goes on at `input[at]`
    fn read_element(
        &mut self,
        element: Element,
        input: &[u8],
        at: usize,
    ) -> Result<(usize, Option<Event>), FramingError> {
        let (length, open) = scan(element, &input[at..]);
        let (end, size) = (at + length, self.kept.len() + length);
        if size > self.max_event_bytes {
            return Err(TooLarge { limit: self.max_event_bytes }.into());
        }
        self.element = open;
        if open.is_none() && self.kept.is_empty() {
            return Ok((end, Some(Event::unnamed(Located::Input { start: at, end }))));
        }
        keep(&mut self.kept, &input[at..end], self.max_event_bytes);
        if open.is_some() {
            return Ok((end, None));
        }
        self.lent = true;
        Ok((end, Some(Event::unnamed(Located::Kept { start: 0, end: size }))))
    }

    /// Passes a byte outside of elements that is no white space; returns whether it is used up, or
    /// begins an element
    fn pass(&mut self, byte: u8) -> Result<bool, FramingError> {
        let broken = |reason| Err(FramingError::Broken(reason));
        (self.place, self.element) = match (self.place, byte) {
            (Place::Start, b'[') => (Place::First, None),
            (Place::Start, b'{') => (Place::End, Some(Element::Nested(0))),
            (Place::Start, _) => return broken(NO_ARRAY),
            (Place::First | Place::Next, b'{' | b'[' | b'"') => (Place::Behind, Some(Element::Nested(0))),
            (Place::First | Place::Next, _) if is_scalar(byte) => (Place::Behind, Some(Element::Scalar)),
            (Place::First | Place::Behind, b']') => (Place::End, None),
            (Place::First | Place::Next, _) => return broken("no value where an element was due"),
            (Place::Behind, b',') => (Place::Next, None),
            (Place::Behind, _) => return broken("no comma after an element"),
            (Place::End, _) => return broken("something follows its end"),
        };
        Ok(self.element.is_none())
    }
}

/// Where in one object or array the next byte stands
///
/// It tells where the value ends, and nothing of whether it is well-formed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent(Element);

impl Extent {
    /// Before the opening brace or bracket
    pub(crate) const fn new() -> Self {
        Self(Element::Nested(0))
    }

    /// Reads on; returns how many of the bytes belong to the value, if it ends among them
    pub(crate) fn end(&mut self, bytes: &[u8]) -> Option<usize> {
        let (length, open) = scan(self.0, bytes);
        let Some(element) = open else { return Some(length) };
        self.0 = element;
        None
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

const NO_ARRAY: &str = "the body begins with neither [ nor {";

/// Whether JSON has it for white space
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// Whether it may stand in a number or a literal
fn is_scalar(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.')
}

/// How many bytes at the front of `rest` belong to the element, and where in it the bytes that are
/// still to come stand; `None` if it ends here
fn scan(mut element: Element, rest: &[u8]) -> (usize, Option<Element>) {
    let mut at = 0;
    while at < rest.len() {
        let ahead = &rest[at..];
        let found = match element {
            Element::Nested(_) => {
                ahead.iter().position(|byte| matches!(byte, b'"' | b'{' | b'}' | b'[' | b']'))
            }
            Element::String(_) => memchr2(b'"', b'\\', ahead),
            Element::Escape(_) => Some(0),
            Element::Scalar => match ahead.iter().position(|byte| !is_scalar(*byte)) {
                Some(length) => return (at + length, None),
                None => None,
            },
        };
        let Some(length) = found else { break };
        at += length + 1;
        element = match (element, rest[at - 1]) {
            (Element::Nested(1), b'}' | b']') | (Element::String(0), b'"') => return (at, None),
            (Element::Nested(depth), b'"') | (Element::Escape(depth), _) => Element::String(depth),
            (Element::Nested(depth), b'{' | b'[') => Element::Nested(depth + 1),
            (Element::Nested(depth), _) => Element::Nested(depth - 1),
            (Element::String(depth), b'"') => Element::Nested(depth),
            (Element::String(depth), _) => Element::Escape(depth),
            (Element::Scalar, _) => Element::Scalar,
        };
    }
    (rest.len(), Some(element))
}
