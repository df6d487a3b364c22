//! Several parts in one body.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use http::HeaderValue;

use super::{Body, Kind, Piece};

/// A body of several parts: `multipart/form-data` (RFC 7578), or `multipart/related` (RFC 2387)
///
/// The boundary between them is drawn from the call's seed, so each call has its own, and equal seeds give
/// equal bytes. It is long enough not to come up in any content by chance.
#[derive(Clone, Debug, Default)]
pub struct Form {
    parts: Vec<Part>,
    is_related: bool,
}

/// A part of a form; its `Debug` form shows no byte of the content
#[derive(Clone, Debug)]
pub struct Part {
    name: Cow<'static, str>,
    file_name: Option<String>,
    content_type: Option<String>,
    body: Body,
}

impl Form {
    /// A form without parts
    pub fn new() -> Self {
        Self::default()
    }

    /// Parts that belong together and have no names, as Gemini takes a file and what is known of it
    pub fn related() -> Self {
        Self { parts: Vec::new(), is_related: true }
    }

    /// The same with a part of text
    #[must_use]
    pub fn text(self, name: impl Into<Cow<'static, str>>, value: impl Into<String>) -> Self {
        self.part(Part::new(name, value.into()))
    }

    /// The same with one more part
    #[must_use]
    pub fn part(mut self, part: Part) -> Self {
        self.parts.push(part);
        self
    }

    /// The value of `Content-Type`, with a boundary that is not the call's yet
    pub(crate) fn content_type(&self) -> HeaderValue {
        let kind = if self.is_related { "related" } else { "form-data" };
        let value = format!("multipart/{kind}; boundary={}", Boundary::UNSET);
        value.try_into().expect("it is visible ASCII")
    }

    /// The body that it is
    ///
    /// Errors: the content type of a part cannot be a header's value.
    pub(crate) fn into_body(self) -> Result<Body, FormError> {
        let Self { parts, is_related } = self;
        let (mut pieces, mut length, mut is_once) = (Vec::with_capacity(4 * parts.len() + 3), Some(0), false);
        let mut push = |piece: Piece, bytes: Option<u64>| {
            length = length.zip(bytes).and_then(|(sum, bytes): (u64, u64)| sum.checked_add(bytes));
            pieces.push(piece);
        };
        let mut before = String::from("--");
        for part in parts {
            push_text(&mut push, before);
            push(Piece::Boundary, Some(Boundary::BYTES as u64));
            push_text(&mut push, part.head(is_related)?);
            let bytes = part.body.len();
            is_once |= !part.body.is_replayable();
            match part.body.0 {
                Kind::Bytes(content) => push(Piece::Bytes(content), bytes),
                Kind::Streamed(streamed) => {
                    // The length is that of the whole part.
                    push(Piece::Bytes(Bytes::new()), bytes);
                    streamed.pieces.iter().for_each(|piece| push(piece.clone(), Some(0)));
                }
            }
            before = String::from("\r\n--");
        }
        push_text(&mut push, before);
        push(Piece::Boundary, Some(Boundary::BYTES as u64));
        push_text(&mut push, String::from("--\r\n"));
        Ok(Body::form(pieces, length, is_once))
    }
}

fn push_text(push: &mut impl FnMut(Piece, Option<u64>), text: String) {
    let bytes = Some(text.len() as u64);
    push(Piece::Bytes(text.into()), bytes);
}

impl Part {
    /// A part of that name
    pub fn new(name: impl Into<Cow<'static, str>>, body: impl Into<Body>) -> Self {
        Self { name: name.into(), file_name: None, content_type: None, body: body.into() }
    }

    /// The same as a file of that name
    #[must_use]
    pub fn file_name(self, name: impl Into<String>) -> Self {
        Self { file_name: Some(name.into()), ..self }
    }

    /// The same with a media type
    #[must_use]
    pub fn content_type(self, media_type: impl Into<String>) -> Self {
        Self { content_type: Some(media_type.into()), ..self }
    }

    /// What stands between its boundary and its content
    fn head(&self, is_related: bool) -> Result<String, FormError> {
        let mut head = String::from("\r\n");
        if !is_related {
            head.push_str("Content-Disposition: form-data; name=\"");
            push_quoted(&mut head, &self.name);
            head.push('"');
            if let Some(name) = &self.file_name {
                head.push_str("; filename=\"");
                push_quoted(&mut head, name);
                head.push('"');
            }
            head.push_str("\r\n");
        }
        if let Some(media_type) = &self.content_type {
            let is_sendable = HeaderValue::try_from(media_type.trim()).is_ok();
            if !is_sendable || !media_type.is_ascii() || media_type.trim().is_empty() {
                return Err(FormError);
            }
            head.push_str("Content-Type: ");
            head.push_str(media_type.trim());
            head.push_str("\r\n");
        }
        head.push_str("\r\n");
        Ok(head)
    }
}

/// A name in quotes, as browsers write it: what could end the quotes or the line is percent-encoded
/// (WHATWG HTML, "escape a multipart form data name")
fn push_quoted(head: &mut String, name: &str) {
    for char in name.chars() {
        match char {
            '"' => head.push_str("%22"),
            '\r' => head.push_str("%0D"),
            '\n' => head.push_str("%0A"),
            // No header field can hold these, and no name needs them.
            '\0' => head.push_str("%00"),
            char => head.push(char),
        }
    }
}

/// The content type of a part cannot be sent
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FormError;

/// What stands between the parts of a form
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Boundary([u8; Self::BYTES]);

impl Boundary {
    pub(crate) const BYTES: usize = 26;
    /// As long as each other one: no call has it
    pub(crate) const UNSET: Self = Self(*b"steadfast-0000000000000000");

    /// That of the call with this seed
    pub(crate) fn of(seed: u64) -> Self {
        // Not the seed itself, which stands in timelines.
        let drawn = fastrand::Rng::with_seed(seed ^ 0x626f_756e_6461_7279).u64(..);
        let mut boundary = Self::UNSET;
        boundary.0[Self::BYTES - 16..].copy_from_slice(format!("{drawn:016x}").as_bytes());
        boundary
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The head of a request with this boundary in the place of the unset one
    pub(crate) fn set_in(self, head: &Bytes) -> Bytes {
        let unset = [b"; boundary=", Self::UNSET.as_bytes()].concat();
        let Some(at) = memchr::memmem::find(head, &unset) else { return head.clone() };
        let mut head = head.to_vec();
        let end = at + unset.len();
        head[end - Self::BYTES..end].copy_from_slice(&self.0);
        head.into()
    }
}

impl fmt::Display for Boundary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{}", char::from(*byte)))
    }
}
