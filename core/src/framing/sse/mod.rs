//! Server-sent events: WHATWG HTML 9.2, "Parsing an event stream".
//!
//! Bytes in, places of bytes out: where a field lies whole in the input it is not copied. The
//! framer judges no text. Whether data is UTF-8, JSON or an error is the caller's business, and a
//! byte that is no UTF-8 comes out as it came in.

use std::fmt;
use std::time::Duration;

use memchr::{memchr, memchr2};

use super::buffer::{ByteOrderMark, keep};
use super::json_array::Extent;
pub use super::{Event, Field, Located, TooLarge};

#[cfg(test)]
mod tests;

/// Room for a name that is kept from event to event, in bytes; no provider has names so long
const USUAL_NAME: usize = 64;

/// Cuts the body of a stream into events, however its bytes are split
///
/// Memory held: at most `max_event_bytes` for the event that is under way, as many again for the
/// last event id and for a bare object of several lines, and nothing else between events.
///
/// ```
/// use steadfast::framing::sse::Framer;
///
/// let mut framer = Framer::new(1024);
/// let mut input: &[u8] = b"event: ping\ndata: {}\n\ndata: cut";
/// let (consumed, event) = framer.next(input)?;
/// let event = event.unwrap();
/// assert_eq!(framer.bytes(input, event.data), b"{}");
/// assert_eq!(framer.bytes(input, event.name.unwrap()), b"ping");
///
/// input = &input[consumed..];
/// assert_eq!(framer.next(input)?, (input.len(), None));
/// # Ok::<(), steadfast::framing::sse::TooLarge>(())
/// ```
pub struct Framer {
    max_event_bytes: usize,
    /// The pending event's data, if it could not stay in the input, and after it the unfinished line
    kept: Vec<u8>,
    /// The pending event's name, if it could not stay in the input
    kept_name: Vec<u8>,
    /// Data of the pending event: in `kept`, and within a call also in its input
    data: Option<Located>,
    /// Name of the pending event: in `kept_name`, and within a call also in its input
    name: Option<Located>,
    /// The id that the next blank line commits
    id: Option<Vec<u8>>,
    last_event_id: Vec<u8>,
    retry: Option<Duration>,
    /// A bare object whose end has not come yet
    bare: Option<Box<Bare>>,
    mark: ByteOrderMark,
    /// The last byte was a CR, so an LF that comes next belongs to it
    after_cr: bool,
    /// The event returned last may point to bytes in `kept` that are no longer needed
    lent: bool,
    failed: bool,
}

impl Framer {
    /// A framer at the start of a stream
    ///
    /// The size of an event is what must be held to tell it: its data, name and id so far, and the
    /// line that is being read. Line ends do not count.
    pub fn new(max_event_bytes: usize) -> Self {
        Self {
            max_event_bytes,
            kept: Vec::new(),
            kept_name: Vec::new(),
            data: None,
            name: None,
            id: None,
            last_event_id: Vec::new(),
            retry: None,
            bare: None,
            mark: ByteOrderMark::default(),
            after_cr: false,
            lent: false,
            failed: false,
        }
    }

    /// Reads on, to the end of the next event or of the input
    ///
    /// Returns how many bytes were used, and the event. Without an event all of the input was used;
    /// with one, the rest is for the next call.
    ///
    /// Errors: [`TooLarge`], for the same event however the bytes are split. What was held is freed,
    /// and every further call fails the same way.
    pub fn next(&mut self, input: &[u8]) -> Result<(usize, Option<Event>), TooLarge> {
        if self.failed {
            return Err(TooLarge { limit: self.max_event_bytes });
        }
        self.end_loan();
        if self.is_at_rest()
            && let Some((consumed, event)) = usual_event(input, self.max_event_bytes)
        {
            return Ok((consumed, Some(event)));
        }
        let result = self.read(input);
        if result.is_err() {
            self.failed = true;
            self.data = None;
            self.name = None;
            self.id = None;
            self.bare = None;
            self.kept = Vec::new();
            self.kept_name = Vec::new();
        }
        result
    }

    /// Bytes that it holds
    pub(super) fn held(&self) -> usize {
        let ids = self.last_event_id.len() + self.id.as_ref().map_or(0, Vec::len);
        let bare = self.bare.as_ref().map_or(0, |bare| bare.held.len());
        self.kept.len() + self.kept_name.len() + ids + bare
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

    /// What the end of the body leaves unterminated, as if its blank line had come
    ///
    /// The standard drops it, and so must a caller unless the body ended properly and the data is
    /// whole (rule STR-9). Ids and reconnection times do not count here. An `error` line or a bare
    /// object, ended or not, comes before the event it stands in, as a tail of its own; `None` once
    /// nothing is left. All its pieces are [`Located::Kept`].
    pub fn tail(&mut self) -> Option<Event> {
        self.end_loan();
        let line = Located::Kept { start: self.line_start(), end: self.kept.len() };
        let (field, value_at) = split_line(self.bytes(&[], line));
        let error = match field {
            _ if line.is_empty() => None,
            LineField::Data | LineField::Event | LineField::Error | LineField::Bare | LineField::Unknown => {
                self.take_field(&[], line, field, value_at)
            }
            LineField::Id | LineField::Retry | LineField::Comment => None,
        };
        if let Some(error) = error.or_else(|| self.end_bare(&[])) {
            return Some(error);
        }
        self.kept.truncate(self.line_start());
        self.dispatch()
    }

    /// The last event id as of the last blank line; empty where there is none
    pub fn last_event_id(&self) -> &[u8] {
        &self.last_event_id
    }

    /// The reconnection time that the stream asked for last
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Whether nothing of the stream bears on how the input is read
    fn is_at_rest(&self) -> bool {
        self.kept.is_empty()
            && self.data.is_none()
            && self.name.is_none()
            && self.id.is_none()
            && self.bare.is_none()
            && !self.after_cr
            && self.mark.is_past()
    }

    fn read(&mut self, input: &[u8]) -> Result<(usize, Option<Event>), TooLarge> {
        let mut at = 0;
        if !self.mark.is_past() {
            let (used, look_alike) = self.mark.skip(input);
            self.keep(look_alike);
            at = used;
        }
        if self.after_cr && at < input.len() {
            self.after_cr = false;
            at += usize::from(input[at] == b'\n');
        }
        while let Some(length) = line_length(&input[at..]) {
            let end = at + length;
            let line = if self.kept.len() == self.line_start() {
                Located::Input { start: at, end }
            } else {
                self.keep_line(&input[at..end])?;
                Located::Kept { start: self.line_start(), end: self.kept.len() }
            };
            at = end + 1;
            if input[end] == b'\r' {
                match input.get(at) {
                    Some(next) => at += usize::from(*next == b'\n'),
                    None => self.after_cr = true,
                }
            }
            if let Some(event) = self.take_line(input, line)? {
                return Ok((at, Some(event)));
            }
        }
        self.settle(input);
        self.keep_line(&input[at..])?;
        if self.kept.is_empty() && self.name.is_none() {
            // A quiet stream owns no buffer, whatever its last event took.
            self.kept = Vec::new();
            self.kept_name = Vec::new();
        }
        Ok((input.len(), None))
    }

    /// Takes in one whole line
    fn take_line(&mut self, input: &[u8], line: Located) -> Result<Option<Event>, TooLarge> {
        if line.is_empty() {
            self.bare = None;
            if let Some(id) = self.id.take() {
                self.last_event_id = id;
            }
            return Ok(self.dispatch());
        }
        self.check_room(line.len())?;
        let (field, value_at) = split_line(self.bytes(input, line));
        Ok(self.take_field(input, line, field, value_at))
    }

    /// Takes in the field of a line; an event comes of an `error` line and of a bare one alone
    fn take_field(
        &mut self,
        input: &[u8],
        line: Located,
        field: LineField,
        value_at: usize,
    ) -> Option<Event> {
        let value = line.skip(value_at);
        if !matches!(field, LineField::Unknown) {
            self.bare = None;
        }
        match field {
            LineField::Data => self.add_data(input, value),
            LineField::Event => self.set_name(value),
            LineField::Id => {
                let id = self.bytes(input, value);
                if memchr(0, id).is_none() {
                    self.id = Some(id.to_vec());
                }
            }
            LineField::Retry => {
                if let Some(retry) = milliseconds(self.bytes(input, value)) {
                    self.retry = Some(retry);
                }
            }
            LineField::Error => return Some(self.lend(input, value, Field::Error)),
            LineField::Bare => {
                let mut extent = Extent::new();
                if extent.end(self.bytes(input, line)).is_some() {
                    return Some(self.lend(input, line, Field::Bare));
                }
                self.add_bare(input, line, Box::new(Bare { extent, held: Vec::new() }));
            }
            LineField::Unknown => {
                if let Some(mut bare) = self.bare.take() {
                    let ends = bare.extent.end(self.bytes(input, line)).is_some();
                    self.add_bare(input, line, bare);
                    if ends && let Some(event) = self.end_bare(input) {
                        return Some(event);
                    }
                }
            }
            LineField::Comment => {}
        }
        self.kept.truncate(self.line_start());
        None
    }

    /// An event of one line, which leaves the pending one as it was
    fn lend(&mut self, input: &[u8], data: Located, field: Field) -> Event {
        self.settle(input);
        self.lent = true;
        Event { data, name: None, field }
    }

    /// Adds a line to a bare object, or forgets that if it is too large: the standard passes over it
    fn add_bare(&mut self, input: &[u8], line: Located, mut bare: Box<Bare>) {
        if self.check_room(bare.held.len() + line.len() + 1).is_ok() {
            keep(&mut bare.held, self.bytes(input, line), self.max_event_bytes);
            keep(&mut bare.held, b"\n", self.max_event_bytes);
            self.bare = Some(bare);
        }
    }

    /// The bare object of several lines that is held, as far as it came
    fn end_bare(&mut self, input: &[u8]) -> Option<Event> {
        let Bare { held, .. } = *self.bare.take()?;
        self.kept.truncate(self.line_start());
        self.settle(input);
        let start = self.kept.len();
        self.keep(&held);
        let data = Located::Kept { start, end: self.kept.len() };
        Some(self.lend(input, data, Field::Bare))
    }

    fn add_data(&mut self, input: &[u8], value: Located) {
        let Some(data) = self.data else {
            self.data = Some(value);
            return;
        };
        let (start, joint) = match data {
            Located::Kept { start, end } => (start, end),
            Located::Input { start, end } => {
                self.keep(&input[start..end]);
                (0, self.kept.len())
            }
        };
        match value {
            Located::Input { start, end } => {
                self.keep(b"\n");
                self.keep(&input[start..end]);
            }
            Located::Kept { start, end } => {
                // The field's name, which stands between, leaves room for the LF.
                self.kept[joint] = b'\n';
                self.kept.copy_within(start..end, joint + 1);
                self.kept.truncate(joint + 1 + (end - start));
            }
        }
        self.data = Some(Located::Kept { start, end: self.kept.len() });
    }

    fn set_name(&mut self, value: Located) {
        self.kept_name.clear();
        self.name = match value {
            _ if value.is_empty() => None,
            Located::Input { .. } => Some(value),
            Located::Kept { start, end } => {
                self.kept_name.extend_from_slice(&self.kept[start..end]);
                Some(Located::Kept { start: 0, end: end - start })
            }
        };
    }

    /// Ends the pending event, which is one only if there is data
    fn dispatch(&mut self) -> Option<Event> {
        let (data, mut name) = (self.data.take(), self.name.take());
        let mut kept_name = std::mem::take(&mut self.kept_name);
        if let (Some(_), Some(Located::Kept { .. })) = (data, name) {
            let start = self.kept.len();
            self.keep(&kept_name);
            name = Some(Located::Kept { start, end: self.kept.len() });
        }
        if kept_name.capacity() <= USUAL_NAME {
            kept_name.clear();
            self.kept_name = kept_name;
        }
        let data = data?;
        self.lent = !self.kept.is_empty();
        Some(Event { data, name, field: Field::Data })
    }

    /// Copies what is pending out of the input, which is about to go away
    fn settle(&mut self, input: &[u8]) {
        if let Some(Located::Input { start, end }) = self.data {
            self.keep(&input[start..end]);
            self.data = Some(Located::Kept { start: 0, end: end - start });
        }
        if let Some(Located::Input { start, end }) = self.name {
            self.kept_name.clear();
            self.kept_name.extend_from_slice(&input[start..end]);
            self.name = Some(Located::Kept { start: 0, end: end - start });
        }
    }

    /// Forgets what only the event returned last pointed to
    fn end_loan(&mut self) {
        if self.lent {
            self.lent = false;
            self.kept.truncate(self.line_start());
        }
    }

    /// Where in `kept` an unfinished line begins
    fn line_start(&self) -> usize {
        match self.data {
            Some(Located::Kept { end, .. }) => end,
            Some(Located::Input { .. }) | None => 0,
        }
    }

    /// Errors: a line of so many bytes does not fit beside what is held
    fn check_room(&self, line: usize) -> Result<(), TooLarge> {
        let pending = self.data.map_or(0, Located::len)
            + self.name.map_or(0, Located::len)
            + self.id.as_ref().map_or(0, Vec::len);
        if pending + line > self.max_event_bytes {
            return Err(TooLarge { limit: self.max_event_bytes });
        }
        Ok(())
    }

    /// Adds to the unfinished line
    fn keep_line(&mut self, bytes: &[u8]) -> Result<(), TooLarge> {
        self.check_room(self.kept.len() - self.line_start() + bytes.len())?;
        self.keep(bytes);
        Ok(())
    }

    fn keep(&mut self, bytes: &[u8]) {
        keep(&mut self.kept, bytes, self.max_event_bytes);
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

/// The lines so far of an object that stands in the stream without a field
struct Bare {
    extent: Extent,
    held: Vec<u8>,
}

/// The field that a line is for
#[derive(Clone, Copy)]
enum LineField {
    Data,
    Event,
    Id,
    Retry,
    Error,
    Bare,
    Comment,
    Unknown,
}

/// The event at the front of `input`, and its length, where it lies there whole in the form that
/// most have: perhaps `event: …`, then `data: …` and a blank line, each ended by LF
///
/// A short cut for what [`Framer::read`] would find too, in twice the time; `None` leaves it to that.
fn usual_event(input: &[u8], max_event_bytes: usize) -> Option<(usize, Event)> {
    const EVENT: &[u8] = b"event: ";
    const DATA: &[u8] = b"data: ";
    let line_end = |from: usize| Some(from + memchr2(b'\n', b'\r', input.get(from..)?)?);

    let mut line = 0;
    let mut name = None;
    let mut name_length = 0;
    if input.starts_with(EVENT) {
        let end = line_end(EVENT.len())?;
        name_length = end - EVENT.len();
        if input[end] != b'\n' || end > max_event_bytes || name_length == 0 {
            return None;
        }
        name = Some(Located::Input { start: EVENT.len(), end });
        line = end + 1;
    }
    if !input[line..].starts_with(DATA) {
        return None;
    }
    let start = line + DATA.len();
    let end = line_end(start)?;
    if input.get(end..end + 2) != Some(b"\n\n") || name_length + (end - line) > max_event_bytes {
        return None;
    }
    Some((end + 2, Event { data: Located::Input { start, end }, name, field: Field::Data }))
}

/// How long the line at the front of `rest` is, if its end is there
fn line_length(rest: &[u8]) -> Option<usize> {
    match rest.first() {
        // Half of all lines are blank: for them a search costs more than a look.
        Some(b'\n' | b'\r') => Some(0),
        _ => memchr2(b'\n', b'\r', rest),
    }
}

/// The field of a line, and where its value begins: after the colon and at most one space
fn split_line(line: &[u8]) -> (LineField, usize) {
    let (field, colon) = match line {
        [b'd', b'a', b't', b'a', ..] => (LineField::Data, 4),
        [b'e', b'v', b'e', b'n', b't', ..] => (LineField::Event, 5),
        [b'i', b'd', ..] => (LineField::Id, 2),
        [b'r', b'e', b't', b'r', b'y', ..] => (LineField::Retry, 5),
        [b'e', b'r', b'r', b'o', b'r', ..] => (LineField::Error, 5),
        [b':', ..] => (LineField::Comment, 0),
        // The line itself is the value.
        [b'{', ..] => return (LineField::Bare, 0),
        _ => (LineField::Unknown, 0),
    };
    match (line.get(colon), line.get(colon + 1)) {
        (None, _) => (field, colon),
        (Some(b':'), Some(b' ')) => (field, colon + 2),
        (Some(b':'), _) => (field, colon + 1),
        (Some(_), _) => (LineField::Unknown, 0),
    }
}

/// A reconnection time: ASCII digits and nothing else
fn milliseconds(value: &[u8]) -> Option<Duration> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let fold = |sum: u64, digit: &u8| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
    Some(Duration::from_millis(value.iter().fold(0, fold)))
}
