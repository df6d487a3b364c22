//! What a peer can break, and where it can stop short.

use super::{MAX_CHUNK_LINE_BYTES, MAX_FIELDS, MAX_INTERIM_RESPONSES, MAX_TRAILER_BYTES};

/// A response that is not HTTP/1.1, or not all of it
///
/// The texts say which rule was broken and never quote what the peer sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Http1Error {
    /// What came is no status line of HTTP/1.0 or HTTP/1.1
    #[error("bad status line: this is not an HTTP/1.1 response")]
    BadStatusLine,
    /// A header line has no colon, a bad name, or a control byte in its value
    #[error("bad header line in the response head")]
    BadField,
    /// The head is longer than [`Limits::max_head_bytes`](super::Limits::max_head_bytes)
    #[error("response head too large: over {limit} bytes")]
    HeadTooLarge {
        /// The bound, in bytes
        limit: usize,
    },
    /// There are more than [`MAX_FIELDS`] header lines in a head or a trailer section
    #[error("response head too large: over {MAX_FIELDS} header lines")]
    TooManyFields,
    /// More than [`MAX_INTERIM_RESPONSES`] interim responses came before the final one
    #[error("over {MAX_INTERIM_RESPONSES} interim responses without a final one")]
    TooManyInterimResponses,
    /// Status 101, though no upgrade was asked for (RFC 9110 15.2.2)
    #[error("status 101: the server switched protocols without having been asked")]
    UnaskedUpgrade,
    /// A `Content-Length` that is not a number of bytes
    #[error("bad Content-Length: not a number of bytes")]
    BadContentLength,
    /// Several `Content-Length` values that differ
    #[error("conflicting Content-Length values")]
    ConflictingContentLength,
    /// `Content-Length` and `Transfer-Encoding` in one response: it may have been tampered with
    #[error("both Content-Length and Transfer-Encoding: the end of the body is ambiguous")]
    LengthAndTransferEncoding,
    /// A `Transfer-Encoding` that is not exactly `chunked`
    #[error("unsupported Transfer-Encoding: not exactly \"chunked\"")]
    UnsupportedTransferEncoding,
    /// Something else where a chunk size was due
    #[error("bad chunk size: something else came where a chunk size was due")]
    BadChunkSize,
    /// A chunk size that does not fit in 64 bits
    #[error("bad chunk size: too large to be true")]
    ChunkSizeOverflow,
    /// A control byte, or a bare line feed, in a chunk extension
    #[error("bad chunk extension")]
    BadChunkExtension,
    /// A line with a chunk size and its extensions is longer than [`MAX_CHUNK_LINE_BYTES`]
    #[error("chunk size line too long: over {MAX_CHUNK_LINE_BYTES} bytes")]
    ChunkLineTooLong,
    /// The data of a chunk is not followed by CRLF: its size was wrong
    #[error("bad chunk: no CRLF after its data")]
    BadChunkEnd,
    /// A trailer line has no colon, a bad name, a bare line feed, or a control byte in its value
    #[error("bad line in the trailer section")]
    BadTrailer,
    /// The trailer section is longer than [`MAX_TRAILER_BYTES`]
    #[error("trailer section too large: over {MAX_TRAILER_BYTES} bytes")]
    TrailersTooLarge,
    /// The connection ended too early; nothing that came was wrong
    #[error(transparent)]
    Incomplete(#[from] Incomplete),
}

/// Where a connection ended before the response did (RFC 9112 8)
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Incomplete {
    /// Before the end of the final response's head
    #[error("the connection ended before the response head did, {got} bytes into it")]
    Head {
        /// Bytes of the head in hand, interim responses not counted
        got: usize,
    },
    /// Before the body had the length that the head promised
    #[error("the connection ended inside the body: {got} of {expected} bytes came")]
    Body {
        /// Bytes of body that came
        got: u64,
        /// Bytes of body that `Content-Length` promised
        expected: u64,
    },
    /// Before the last chunk or the end of the trailer section
    #[error("the connection ended inside the chunked body, {got} bytes into it")]
    Chunked {
        /// Bytes of body that came, without the chunk framing
        got: u64,
    },
}
