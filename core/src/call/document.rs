//! One JSON document in place of the stream that was asked for.

use super::stream::text_of;
use crate::dialect::findings::{Finding, Findings};
use crate::dialect::{Decode, Decoder, Dialect};
use crate::framing::ByteOrderMark;
use crate::framing::json_array::Extent;

/// A body that is one JSON document, or may be
#[derive(Debug)]
pub(super) struct Document {
    mark: ByteOrderMark,
    /// The body so far, without a byte order mark and the white space at its start
    held: Vec<u8>,
    end: End,
    /// It is one whatever comes, since the server says so
    is_certain: bool,
}

/// What is known of the document's end
#[derive(Debug)]
enum End {
    /// The body has not begun
    Ahead,
    /// It is in an object or an array
    Open(Extent),
    /// The document ended behind so many held bytes
    At(usize),
    /// The body begins as no document that ends of itself
    Unknown,
}

impl Document {
    pub(super) fn new(is_certain: bool) -> Self {
        Self { mark: ByteOrderMark::default(), held: Vec::new(), end: End::Ahead, is_certain }
    }

    /// Takes bytes of the body; returns how many of them there are up to the document's end, if it is
    /// among them
    ///
    /// Where it may be none, bytes that show so are not held. Errors: more than `limit` bytes would be.
    pub(super) fn take(&mut self, bytes: &[u8], limit: usize) -> Result<Option<usize>, TooLarge> {
        let mut from = 0;
        if matches!(self.end, End::Ahead) {
            let (used, look_alike) = self.mark.skip(bytes);
            from = used + bytes[used..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            self.end = match bytes.get(from) {
                _ if !look_alike.is_empty() => End::Unknown,
                None => End::Ahead,
                Some(b'{' | b'[') => End::Open(Extent::new()),
                Some(_) => End::Unknown,
            };
            if self.is_none() {
                return Ok(None);
            }
            self.hold(look_alike, limit)?;
        }
        let bytes = &bytes[from..];
        let before = self.held.len();
        self.hold(bytes, limit)?;
        let End::Open(extent) = &mut self.end else { return Ok(None) };
        let end = extent.end(bytes);
        if let Some(length) = end {
            self.end = End::At(before + length);
        }
        Ok(end.map(|length| from + length))
    }

    /// Bytes that are held
    pub(super) fn len(&self) -> usize {
        self.held.len()
    }

    /// Whether what came shows that the body is no document
    pub(super) fn is_none(&self) -> bool {
        !self.is_certain && matches!(self.end, End::Unknown)
    }

    /// Whether the document has ended and says that it is all, or why there is none: a finish reason,
    /// an error, a refusal of the prompt
    ///
    /// One that says neither may be the first of several, or a line that a proxy put before events.
    pub(super) fn is_final(&self, dialect: Dialect) -> bool {
        let End::At(length) = self.end else { return false };
        let mut findings = Findings::default();
        let read = Decoder::new(dialect).unary(&text_of(&self.held[..length]), &mut findings);
        let mut is_final = false;
        while let Some(finding) = findings.take() {
            is_final |= matches!(finding, Finding::Finish { .. } | Finding::Error(_) | Finding::Blocked(_));
        }
        read.is_ok() && is_final
    }

    /// Leaves out what came behind a document that has ended
    pub(super) fn cut(&mut self) {
        if let End::At(length) = self.end {
            self.held.truncate(length);
        }
    }

    /// Whether all that came is one JSON value
    pub(super) fn is_json(&self) -> bool {
        serde_json::from_str::<serde::de::IgnoredAny>(&text_of(&self.held)).is_ok()
    }

    /// All that came, as text
    pub(super) fn into_text(self) -> String {
        text_of(&self.held).into_owned()
    }

    fn hold(&mut self, bytes: &[u8], limit: usize) -> Result<(), TooLarge> {
        if self.held.len() + bytes.len() > limit {
            return Err(TooLarge);
        }
        self.held.extend_from_slice(bytes);
        Ok(())
    }
}

/// A body is larger than may be held
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooLarge;
