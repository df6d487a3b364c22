//! The HTTP response itself.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::{Method, StatusCode};
use serde::Serialize;
use steadfast::http1::{Fields, Http1Error, Incomplete, Limits, Part, ResponseDecoder};

use crate::exit::Exit;

/// A response, as far as it came
#[derive(Debug, Serialize)]
pub(super) struct Message {
    status: Option<u16>,
    headers: Vec<(String, String)>,
    interim: Vec<u16>,
    /// In base64
    body: String,
    outcome: Outcome,
    error_kind: Option<&'static str>,
    keep_alive: bool,
    trailers: Vec<(String, String)>,
    #[serde(skip)]
    error: Option<Http1Error>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    /// It came whole
    Complete,
    /// The connection ended before it did
    Incomplete,
    /// It is not HTTP/1.1, or past a bound
    Error,
    /// What follows its head is another protocol
    Upgrade,
}

impl Message {
    /// The exit code of a call that ends on this
    pub(super) fn exit(&self) -> Exit {
        match self.error {
            None => Exit::Completed,
            Some(Http1Error::Incomplete(_)) => Exit::Truncated,
            Some(_) => Exit::Protocol,
        }
    }
}

/// Decodes all reads of a connection that then ends
pub(super) fn decode<'a>(method: &Method, reads: impl Iterator<Item = &'a [u8]>) -> Message {
    let mut decoder = ResponseDecoder::new(method, Limits::default()).keep_fields();
    let mut message = Message {
        status: None,
        headers: Vec::new(),
        interim: Vec::new(),
        body: String::new(),
        outcome: Outcome::Complete,
        error_kind: None,
        keep_alive: false,
        trailers: Vec::new(),
        error: None,
    };
    let mut body = Vec::new();
    let ended = take(&mut decoder, reads, |part, read, fields| match part {
        Part::Interim(status) => message.interim.push(status.as_u16()),
        Part::Head(head) => {
            message.status = Some(head.status.as_u16());
            message.headers = printed(&fields);
        }
        Part::Body(range) => body.extend_from_slice(&read[range]),
        Part::End(end) => {
            message.keep_alive = end.reusable;
            message.trailers = printed(&fields);
        }
    })
    .and_then(|()| decoder.eof());
    let is_tunnel = *method == Method::CONNECT && message.status.is_some_and(|status| status / 100 == 2);
    message.error = ended.err();
    (message.outcome, message.error_kind) = match message.error {
        None if is_tunnel => (Outcome::Upgrade, None),
        None => (Outcome::Complete, None),
        // The head of a response that must not have come is not looked into.
        Some(Http1Error::UnaskedUpgrade) => {
            message.status = Some(StatusCode::SWITCHING_PROTOCOLS.as_u16());
            (Outcome::Upgrade, None)
        }
        Some(error @ Http1Error::Incomplete(_)) => (Outcome::Incomplete, Some(kind(&error))),
        Some(error) => (Outcome::Error, Some(kind(&error))),
    };
    message.body = BASE64_STANDARD.encode(body);
    message
}

/// Gives out all parts of the reads, each with what of its read was left, and with the fields of the
/// section that came last
fn take<'a>(
    decoder: &mut ResponseDecoder,
    reads: impl Iterator<Item = &'a [u8]>,
    mut part: impl FnMut(Part, &[u8], Fields),
) -> Result<(), Http1Error> {
    for mut read in reads {
        while let (consumed, Some(next)) = decoder.next(read)? {
            part(next, read, decoder.take_fields());
            read = &read[consumed..];
        }
    }
    Ok(())
}

/// Names and values, the latter in Latin-1, as HTTP had it
fn printed(fields: &Fields) -> Vec<(String, String)> {
    let latin_1 = |bytes: &[u8]| bytes.iter().copied().map(char::from).collect();
    fields.iter().map(|(name, value)| (name.to_owned(), latin_1(value))).collect()
}

/// One word for what was broken
fn kind(error: &Http1Error) -> &'static str {
    match error {
        Http1Error::BadStatusLine => "bad_status_line",
        Http1Error::BadField => "bad_header",
        Http1Error::HeadTooLarge { .. } => "head_too_large",
        Http1Error::TooManyFields => "too_many_headers",
        Http1Error::TooManyInterimResponses => "too_many_interim_responses",
        Http1Error::UnaskedUpgrade => "unasked_upgrade",
        Http1Error::BadContentLength => "bad_content_length",
        Http1Error::ConflictingContentLength => "conflicting_content_length",
        Http1Error::LengthAndTransferEncoding => "length_and_transfer_encoding",
        Http1Error::UnsupportedTransferEncoding => "unsupported_transfer_encoding",
        Http1Error::BadChunkSize => "bad_chunk_size",
        Http1Error::ChunkSizeOverflow => "chunk_size_overflow",
        Http1Error::BadChunkExtension | Http1Error::BadChunkEnd => "bad_chunk_terminator",
        Http1Error::ChunkLineTooLong => "chunk_line_too_long",
        Http1Error::BadTrailer => "bad_trailer",
        Http1Error::TrailersTooLarge => "trailers_too_large",
        Http1Error::Incomplete(Incomplete::Head { .. }) => "eof_in_head",
        Http1Error::Incomplete(Incomplete::Body { .. } | Incomplete::Chunked { .. }) => "eof_in_body",
    }
}
