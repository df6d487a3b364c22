//! What is wrong with a request, and the status that says so.

use http::StatusCode;

use super::chunked::ChunkError;
use super::{MAX_CHUNK_LINE_BYTES, MAX_EMPTY_LINES, MAX_TRAILER_BYTES};

/// Bytes that are no request, or none that is taken
///
/// The texts say which rule was broken and never quote what the peer sent. Behind any of them the
/// connection is to be closed: where the next request begins is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestFault {
    /// The first bytes of a TLS handshake
    #[error("a TLS handshake came where plain HTTP is spoken: use an http:// URL")]
    TlsHandshake,
    /// The preface of HTTP/2 with prior knowledge (RFC 9113 3.4)
    #[error("HTTP/2 came where only HTTP/1.1 is spoken")]
    Http2,
    /// A version other than HTTP/1.0 and HTTP/1.1
    #[error("unsupported HTTP version: only 1.0 and 1.1 are spoken")]
    UnsupportedVersion,
    /// The first line is not a method, a target and a version, with one space between them
    #[error("bad request line: not a method, a target and an HTTP version")]
    BadRequestLine,
    /// More than [`MAX_EMPTY_LINES`] empty lines before a request
    #[error("over {MAX_EMPTY_LINES} empty lines before a request")]
    TooManyEmptyLines,
    /// CONNECT or TRACE
    #[error("unsupported method: neither CONNECT nor TRACE is taken")]
    UnsupportedMethod,
    /// The target is longer than [`RequestLimits::max_target_bytes`](super::RequestLimits::max_target_bytes),
    /// or the request line is longer than a head may be
    #[error("request target too long: over {limit} bytes")]
    TargetTooLong {
        /// The bound, in bytes
        limit: usize,
    },
    /// A target with a scheme and a host, as to a proxy
    #[error("bad request target: an absolute URL, but this is no proxy")]
    AbsoluteTarget,
    /// The target `*`
    #[error("bad request target: `*` names no resource")]
    AsteriskTarget,
    /// A target that begins with none of the above and not with a slash, such as `host:port`
    #[error("bad request target: it does not begin with a slash")]
    NoPath,
    /// A target with a `#`
    #[error("bad request target: it has a fragment")]
    Fragment,
    /// A target with a byte that is not visible ASCII
    #[error("bad request target: percent-encode all but visible ASCII")]
    BadTarget,
    /// An LF without a CR before it, in a head or a trailer section
    #[error("a bare line feed: lines end in CRLF")]
    BareLineFeed,
    /// A CR without an LF behind it, in a head or a trailer section
    #[error("a bare carriage return: lines end in CRLF")]
    BareCarriageReturn,
    /// A NUL or another control byte in a field's value
    #[error("a control byte in a header value")]
    ControlByte,
    /// A line that begins with white space: folding is obsolete, and read in more than one way
    #[error("a header line that begins with white space")]
    FoldedLine,
    /// A field line without a colon
    #[error("a header line without a colon")]
    NoColon,
    /// White space between a field's name and its colon
    #[error("white space before the colon of a header line")]
    SpaceBeforeColon,
    /// A field's name is empty, or has a byte that no name has
    #[error("bad header name")]
    BadFieldName,
    /// The head is longer than [`RequestLimits::max_head_bytes`](super::RequestLimits::max_head_bytes)
    #[error("request head too large: over {limit} bytes")]
    HeadTooLarge {
        /// The bound, in bytes
        limit: usize,
    },
    /// More field lines than [`RequestLimits::max_fields`](super::RequestLimits::max_fields), in the
    /// head or the trailer section
    #[error("request head too large: over {limit} header lines")]
    TooManyFields {
        /// The bound, in lines
        limit: usize,
    },
    /// An HTTP/1.1 request without `Host`
    #[error("no Host header")]
    NoHost,
    /// More than one `Host`
    #[error("more than one Host header")]
    RepeatedHost,
    /// A `Host` that is empty, or no name or address with perhaps a port
    #[error("bad Host header: not a name or an address, and perhaps a port")]
    BadHost,
    /// `Content-Length` beside `Transfer-Encoding`
    #[error("both Content-Length and Transfer-Encoding: the end of the body is ambiguous")]
    LengthAndTransferEncoding,
    /// More than one `Content-Length`, in lines or in a list, be they equal
    #[error("more than one Content-Length")]
    RepeatedContentLength,
    /// A `Content-Length` that is not a number of bytes in digits
    #[error("bad Content-Length: not a number of bytes")]
    BadContentLength,
    /// `Transfer-Encoding` in an HTTP/1.0 request, which has no such thing
    #[error("Transfer-Encoding in an HTTP/1.0 request")]
    TransferEncodingInHttp10,
    /// A `Transfer-Encoding` by which the end of the body cannot be told: not one line, not a list of
    /// codings, or `chunked` not exactly once and last
    #[error("bad Transfer-Encoding: not exactly \"chunked\"")]
    BadTransferEncoding,
    /// A `Transfer-Encoding` of other codings and then `chunked`
    #[error("unsupported Transfer-Encoding: only \"chunked\" is taken")]
    UnsupportedTransferEncoding,
    /// An `Expect` other than `100-continue`
    #[error("unsupported Expect header: only \"100-continue\" is taken")]
    UnsupportedExpectation,
    /// Something else where a chunk size was due
    #[error("bad chunk size: something else came where a chunk size was due")]
    BadChunkSize,
    /// A chunk size of more than 16 digits
    #[error("bad chunk size: over 16 digits")]
    ChunkSizeTooLong,
    /// A control byte, or a bare line feed, in a chunk extension
    #[error("bad chunk extension")]
    BadChunkExtension,
    /// A line with a chunk size and its extensions is longer than [`MAX_CHUNK_LINE_BYTES`]
    #[error("chunk size line too long: over {MAX_CHUNK_LINE_BYTES} bytes")]
    ChunkLineTooLong,
    /// The data of a chunk is not followed by CRLF: its size was wrong
    #[error("bad chunk: no CRLF after its data")]
    BadChunkEnd,
    /// The trailer section is longer than [`MAX_TRAILER_BYTES`]
    #[error("trailer section too large: over {MAX_TRAILER_BYTES} bytes")]
    TrailersTooLarge,
    /// The connection ended within the head
    #[error("the connection ended before the request head did, {got} bytes into it")]
    CutHead {
        /// Bytes of the head that came
        got: usize,
    },
    /// The connection ended within the body
    #[error("the connection ended inside the request body, {got} bytes into it")]
    CutBody {
        /// Bytes of body that came, without the chunk framing
        got: u64,
    },
}

impl RequestFault {
    /// The status to answer with (RFC 9110 15.5 and 15.6, RFC 6585 5)
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Http2 | Self::UnsupportedVersion => StatusCode::HTTP_VERSION_NOT_SUPPORTED,
            Self::UnsupportedMethod | Self::UnsupportedTransferEncoding => StatusCode::NOT_IMPLEMENTED,
            Self::TargetTooLong { .. } => StatusCode::URI_TOO_LONG,
            Self::HeadTooLarge { .. } | Self::TooManyFields { .. } | Self::TrailersTooLarge => {
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
            }
            Self::UnsupportedExpectation => StatusCode::EXPECTATION_FAILED,
            Self::TlsHandshake
            | Self::BadRequestLine
            | Self::TooManyEmptyLines
            | Self::AbsoluteTarget
            | Self::AsteriskTarget
            | Self::NoPath
            | Self::Fragment
            | Self::BadTarget
            | Self::BareLineFeed
            | Self::BareCarriageReturn
            | Self::ControlByte
            | Self::FoldedLine
            | Self::NoColon
            | Self::SpaceBeforeColon
            | Self::BadFieldName
            | Self::NoHost
            | Self::RepeatedHost
            | Self::BadHost
            | Self::LengthAndTransferEncoding
            | Self::RepeatedContentLength
            | Self::BadContentLength
            | Self::TransferEncodingInHttp10
            | Self::BadTransferEncoding
            | Self::BadChunkSize
            | Self::ChunkSizeTooLong
            | Self::BadChunkExtension
            | Self::ChunkLineTooLong
            | Self::BadChunkEnd
            | Self::CutHead { .. }
            | Self::CutBody { .. } => StatusCode::BAD_REQUEST,
        }
    }
}

impl From<ChunkError> for RequestFault {
    fn from(error: ChunkError) -> Self {
        match error {
            ChunkError::BadSize => Self::BadChunkSize,
            ChunkError::SizeOverflow => Self::ChunkSizeTooLong,
            ChunkError::BadExtension => Self::BadChunkExtension,
            ChunkError::LineTooLong => Self::ChunkLineTooLong,
            ChunkError::BadEnd => Self::BadChunkEnd,
        }
    }
}
