//! The body of a stream: bytes to events, events to findings.

use std::borrow::Cow;
use std::ops::Range;

use super::document::{Document, TooLarge};
use crate::dialect::findings::{Finding, Findings};
use crate::dialect::{Decode, Decoder, Dialect, Malformed, Progress, provider_error};
use crate::framing::{Event as Framed, Field, Framer, Framing, FramingError, Located};
use crate::outcome::{ErrorKind, ProtocolError};
use crate::time::Instant;

/// The layers under a stream, and the clocks over it
#[derive(Debug)]
pub(super) struct StreamBody {
    source: Source,
    /// The body of an event stream so far, while it may be one JSON document that is mislabelled
    document: Option<Box<Document>>,
    dialect: Dialect,
    /// An error on a bare line, which the document may have said
    bare_error: Option<String>,
    decoder: Decoder,
    pub(super) findings: Findings,
    event: Event,
    /// Text of an event that lies neither in the input nor in the framer: unary, tail, or repaired UTF-8
    own: String,
    own_name: String,
    /// The last byte, or the consumer's return
    pub(super) quiet_since: Instant,
    /// The last event that extended the answer, or the consumer's return from it; before that, the head
    pub(super) content_since: Instant,
    /// Whether any event extended the answer
    pub(super) had_content: bool,
    /// Whether the present event does
    pub(super) event_extends: bool,
    /// The completion marker, if it stands
    pub(super) marked_at: Option<Instant>,
    /// The body is over, and what was left of it has been decoded
    pub(super) over: bool,
    /// How the body ended before its time, to be told once its last findings are out
    pub(super) cut: Option<Box<ErrorKind>>,
    /// The server calls it JSON where events were asked for: until its first byte shows what it is, the
    /// cap on an event of it
    mislabelled: Option<usize>,
}

/// Whether a body that begins with this byte is an event stream: a field's name, or a comment
///
/// No JSON document begins so.
fn is_event_line(first: u8) -> bool {
    matches!(first, b'd' | b'e' | b'i' | b'r' | b':')
}

/// How many bytes were taken, and whether an event was decoded
type Taken = (usize, Result<bool, ProtocolError>);

/// What the end of a body left unterminated
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tail {
    Nothing,
    /// It was whole, and is the present event
    Taken,
    Dropped,
}

/// White space of JSON, which is less than that of ASCII: form feed is none
fn is_json_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

#[derive(Debug)]
enum Source {
    /// Events in whichever framing
    Events(Framer),
    /// One JSON document in place of the stream that was asked for
    Whole(Box<Document>),
}

/// The event whose findings are being given out
#[derive(Clone, Debug, Default)]
struct Event {
    /// Whether there is one, even where all its findings have been given out
    open: bool,
    data: Place,
    name: Option<Place>,
}

#[derive(Clone, Debug, Default)]
enum Place {
    #[default]
    Own,
    Input(Range<usize>),
    Framer(Located),
}

impl StreamBody {
    /// A body in that framing; without one, a single JSON document
    pub(super) fn new(
        framing: Option<Framing>,
        dialect: Dialect,
        max_event_bytes: usize,
        now: Instant,
    ) -> Self {
        let source = match framing {
            Some(framing) => Source::Events(Framer::new(framing, max_event_bytes)),
            None => Source::Whole(Box::new(Document::new(true))),
        };
        let streams_events = dialect.framing(None) == Some(Framing::Sse);
        Self {
            source,
            mislabelled: (framing != Some(Framing::Sse) && streams_events).then_some(max_event_bytes),
            document: (framing == Some(Framing::Sse)).then(|| Box::new(Document::new(false))),
            dialect,
            bare_error: None,
            decoder: Decoder::new(dialect),
            findings: Findings::default(),
            event: Event::default(),
            own: String::new(),
            own_name: String::new(),
            quiet_since: now,
            content_since: now,
            had_content: false,
            event_extends: false,
            marked_at: None,
            over: false,
            cut: None,
        }
    }

    /// Takes bytes of the body from `input[range]` until an event is decoded
    ///
    /// The findings of the event before must all have been given out. The bytes of an event that
    /// cannot be read are taken all the same.
    pub(super) fn take(&mut self, input: &[u8], range: Range<usize>, max_body_bytes: usize) -> Taken {
        let mut at = range.start;
        if let Some(max_event_bytes) = self.mislabelled {
            // What came of it in earlier reads is passed over as well: no split makes a difference.
            let blank = input[range.clone()].iter().take_while(|byte| is_json_space(**byte)).count();
            if let Some(first) = input[range.clone()].get(blank) {
                self.mislabelled = None;
                if is_event_line(*first) {
                    at += blank;
                    self.source = Source::Events(Framer::new(Framing::Sse, max_event_bytes));
                }
            }
        }
        if let Some(taken) = self.take_document(&input[range.clone()], max_body_bytes) {
            return taken;
        }
        let Source::Events(framer) = &mut self.source else { return (range.len(), Ok(false)) };
        loop {
            let (from, rest) = (at, &input[at..range.end]);
            let event = match framer.next(rest) {
                Ok((consumed, event)) => {
                    at += consumed;
                    event
                }
                Err(FramingError::TooLarge(error)) => {
                    return (range.len(), Err(ProtocolError::EventTooLarge { limit: error.limit }));
                }
                Err(error @ FramingError::Broken(_)) => return (range.len(), Err(error.into())),
            };
            let opened = match event {
                None => return (at - range.start, Ok(false)),
                Some(event) if event.field == Field::Bare => {
                    let line = framer.bytes(rest, event.data);
                    let error = is_error(line).then(|| String::from_utf8_lossy(line).into_owned());
                    // It may belong to a document: an event or the end shows.
                    if self.document.is_some() {
                        self.bare_error = error.or(self.bare_error.take());
                        continue;
                    }
                    let Some(error) = error else { continue };
                    self.open_error(error)
                }
                Some(event) => {
                    self.document = None;
                    match self.bare_error.take() {
                        Some(error) => self.open_error(error),
                        None => self.open_event(&event, from, input),
                    }
                }
            };
            return (at - range.start, opened.map(|()| true));
        }
    }

    /// Takes bytes of what is, or may be, one JSON document: once it is whole, and says that it is all,
    /// it is decoded without waiting for the end of the body, which a server may hold open
    ///
    /// `None` where the bytes are to be read on as they are.
    fn take_document(&mut self, bytes: &[u8], max_body_bytes: usize) -> Option<Taken> {
        let (document, is_certain) = match &mut self.source {
            Source::Whole(document) => (document, true),
            Source::Events(_) => (self.document.as_mut()?, false),
        };
        let taken = match document.take(bytes, max_body_bytes) {
            Ok(Some(taken)) if document.is_final(self.dialect) => taken,
            Ok(_) if !document.is_none() => return None,
            Err(TooLarge) if is_certain => {
                return Some((bytes.len(), Err(ProtocolError::BodyTooLarge { limit: max_body_bytes })));
            }
            Ok(_) | Err(TooLarge) => {
                self.document = None;
                return None;
            }
        };
        document.cut();
        self.enter_document();
        Some((taken, self.decode_document().map(|()| true)))
    }

    /// The body is over: decodes what is left of it
    ///
    /// An event without its blank line counts only after a proper end, and only if it is whole
    /// (rule STR-9).
    pub(super) fn end(&mut self, proper: bool) -> Result<Tail, ProtocolError> {
        self.over = true;
        // Some servers and proxies give any answer or error the type of the stream that was asked for.
        if self.document.as_ref().is_some_and(|document| document.is_json()) {
            self.enter_document();
        }
        if let (Some(error), Source::Events(_)) = (self.bare_error.take(), &self.source) {
            self.open_error(error)?;
            return Ok(Tail::Taken);
        }
        match &mut self.source {
            Source::Events(framer) => {
                let mut left = Tail::Nothing;
                while let Some(tail) = framer.tail() {
                    let data = framer.bytes(&[], tail.data);
                    let counts = match tail.field {
                        Field::Bare => is_error(data),
                        Field::Data | Field::Error => is_complete(String::from_utf8_lossy(data).trim_ascii()),
                    };
                    let counts = counts || planted!(PartialEventDispatched);
                    if proper && counts && !planted!(TailLost) {
                        self.open_event(&tail, 0, &[])?;
                        return Ok(Tail::Taken);
                    }
                    left = Tail::Dropped;
                }
                Ok(left)
            }
            Source::Whole(_) => self.decode_document().map(|()| Tail::Nothing),
        }
    }

    /// What may have been a document is one, and no events
    fn enter_document(&mut self) {
        if let Some(document) = self.document.take() {
            self.source = Source::Whole(document);
        }
    }

    /// Decodes the document, unless it is blank
    fn decode_document(&mut self) -> Result<(), ProtocolError> {
        let Source::Whole(document) = &mut self.source else { return Ok(()) };
        self.own = std::mem::replace(&mut **document, Document::new(true)).into_text();
        if self.own.trim_ascii().is_empty() {
            return Ok(());
        }
        self.findings.clear();
        self.event = Event { open: true, ..Event::default() };
        self.decoder.unary(&self.own, &mut self.findings).map_err(|error| malformed(&error, &self.own))
    }

    /// The connection was cut: takes a line of NDJSON that is whole and ends the turn, though its
    /// line end is missing (rule STR-9); returns whether there was one
    pub(super) fn end_by_cut(&mut self, dialect: Dialect) -> bool {
        let Source::Events(framer @ Framer::Ndjson(_)) = &mut self.source else { return false };
        let Some(tail) = framer.tail() else { return false };
        let Ok(data) = std::str::from_utf8(framer.bytes(&[], tail.data)) else { return false };
        let (mut trial, mut findings) = (Decoder::new(dialect), Findings::default());
        let is_read = trial.event("message", data, &mut findings).is_ok();
        let mut ends = trial.progress() == Progress::Ended;
        while let Some(finding) = findings.take() {
            ends |= matches!(finding, Finding::Error(_));
        }
        let is_last = is_read && ends;
        self.over = is_last;
        is_last && self.open_event(&tail, 0, &[]).is_ok()
    }

    /// Makes an event the present one; places in the input are counted from `from`
    fn open_event(&mut self, event: &Framed, from: usize, input: &[u8]) -> Result<(), ProtocolError> {
        let place = |located| match located {
            Located::Input { start, end } => Place::Input(from + start..from + end),
            Located::Kept { .. } => Place::Framer(located),
        };
        let name = match event.field {
            Field::Data => event.name.map(place),
            // A llama.cpp server reports failures in a field of this name, without an event around it, and
            // a bare line is taken only where it is an error.
            Field::Error | Field::Bare => {
                "error".clone_into(&mut self.own_name);
                Some(Place::Own)
            }
        };
        self.event = Event { open: true, data: place(event.data), name };
        let decoded = self.decode(input);
        if decoded.is_err() {
            self.event.open = false;
            self.findings.clear();
        }
        decoded
    }

    /// Makes an error the present event that came without an event around it
    fn open_error(&mut self, error: String) -> Result<(), ProtocolError> {
        self.own = error;
        "error".clone_into(&mut self.own_name);
        self.event = Event { open: true, data: Place::Own, name: Some(Place::Own) };
        self.decode(&[])
    }

    fn decode(&mut self, input: &[u8]) -> Result<(), ProtocolError> {
        self.findings.clear();
        let Source::Events(framer) = &self.source else { return Ok(()) };
        let bytes = match &self.event.data {
            Place::Input(range) => &input[range.clone()],
            Place::Framer(located) => framer.bytes(&[], *located),
            Place::Own => self.own.as_bytes(),
        };
        let name = match &self.event.name {
            Some(Place::Input(range)) => &input[range.clone()],
            Some(Place::Framer(located)) => framer.bytes(&[], *located),
            Some(Place::Own) => self.own_name.as_bytes(),
            None => b"message",
        };
        let name = std::str::from_utf8(name).unwrap_or("message");
        // Some proxies write a byte order mark in front of every payload. The replacement of what is no
        // UTF-8 is made per event, so it is the same for any split of the bytes.
        let data = match text_of(bytes) {
            Cow::Borrowed(data) if data.len() == bytes.len() => data,
            other @ (Cow::Borrowed(_) | Cow::Owned(_)) => {
                self.own = other.into_owned();
                self.event.data = Place::Own;
                &self.own
            }
        };
        self.decoder.event(name, data, &mut self.findings).map_err(|error| malformed(&error, data))
    }

    /// The answer ends here: half a character at the end of a piece is said as U+FFFD, in an event of
    /// its own; returns whether there is one
    pub(super) fn end_pieces(&mut self) -> bool {
        self.findings.clear();
        self.findings.end();
        let ends = !self.findings.is_empty();
        if ends {
            self.event = Event { open: true, ..Event::default() };
        }
        ends
    }

    /// The next finding's place in [`StreamBody::findings`]
    pub(super) fn next_finding(&mut self) -> Option<usize> {
        self.findings.take_index()
    }

    /// Whether an event has been decoded and what it means for the turn's end is still to be asked
    pub(super) fn close_event(&mut self) -> bool {
        std::mem::take(&mut self.event.open)
    }

    /// Whether one JSON document came in place of events
    pub(super) fn is_whole(&self) -> bool {
        matches!(self.source, Source::Whole(_))
    }

    pub(super) fn progress(&self) -> Progress {
        self.decoder.progress()
    }

    /// The finding at `index`, with the data that its spans point into
    pub(super) fn finding<'a>(&'a self, index: usize, input: &'a [u8]) -> (&'a Finding, &'a [u8]) {
        (self.findings.get(index), self.place(&self.event.data, input))
    }

    /// Name and data of the present event
    pub(super) fn raw_event<'a>(&'a self, input: &'a [u8]) -> (&'a str, &'a str) {
        let name = match &self.event.name {
            None => "message",
            Some(Place::Own) => &self.own_name,
            Some(place) => std::str::from_utf8(self.place(place, input)).unwrap_or("message"),
        };
        (name, std::str::from_utf8(self.place(&self.event.data, input)).unwrap_or(""))
    }

    /// Copies the present event out of `input`, which is about to go away, if it is still needed
    pub(super) fn detach(&mut self, input: &[u8]) {
        if planted!(DeltaLostOnDrop) {
            self.findings.clear();
        }
        if self.findings.is_empty() {
            return;
        }
        if let Place::Input(range) = &self.event.data {
            self.own.clear();
            self.own.push_str(std::str::from_utf8(&input[range.clone()]).unwrap_or(""));
            self.event.data = Place::Own;
        }
        if let Some(Place::Input(range)) = &self.event.name {
            self.own_name.clear();
            self.own_name.push_str(std::str::from_utf8(&input[range.clone()]).unwrap_or("message"));
            self.event.name = Some(Place::Own);
        }
    }

    fn place<'a>(&'a self, place: &Place, input: &'a [u8]) -> &'a [u8] {
        match (place, &self.source) {
            (Place::Input(range), _) => &input[range.clone()],
            (Place::Framer(located), Source::Events(framer)) => framer.bytes(&[], *located),
            (Place::Own | Place::Framer(_), _) => self.own.as_bytes(),
        }
    }

    /// Bytes that are held of events, and of one JSON document in place of them
    pub(super) fn held(&self) -> (usize, usize) {
        let own = self.own.len() + self.own_name.len();
        let found = self.findings.held() + self.bare_error.as_ref().map_or(0, String::len);
        let document = self.document.as_ref().map_or(0, |document| document.len());
        match &self.source {
            Source::Events(framer) => (framer.held() + own + found, document),
            Source::Whole(whole) => (found, whole.len() + own + document),
        }
    }

    /// Bytes of the answer that the decoder has yet to hand over
    pub(super) fn decoder_held(&self) -> usize {
        self.decoder.held()
    }
}

/// Whether a bare line in an event stream is an error, and so no noise
fn is_error(line: &[u8]) -> bool {
    std::str::from_utf8(line).is_ok_and(|line| provider_error::from_raw(line).is_some())
}

/// Whether data without its blank line is all there: JSON, or the sentinel that gateways end
/// streams of every dialect with
fn is_complete(data: &str) -> bool {
    data == "[DONE]" || serde_json::from_str::<serde::de::IgnoredAny>(data).is_ok()
}

const BYTE_ORDER_MARK: [u8; 3] = *b"\xEF\xBB\xBF";

/// A whole body as text, without the byte order mark that some servers write in front of JSON
pub(super) fn text_of(body: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(body.strip_prefix(&BYTE_ORDER_MARK).unwrap_or(body))
}

/// A body that cannot be read as its dialect
pub(super) fn malformed(error: &Malformed, data: &str) -> ProtocolError {
    ProtocolError::Malformed {
        reason: error.reason.clone(),
        snippet: ProtocolError::snippet(data.as_bytes()),
    }
}
