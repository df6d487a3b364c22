//! HTTP/1.1 over bytes: both halves of RFC 9112, with no socket in sight.
//!
//! A client sends requests and decodes responses; a relay also decodes requests and forwards both.
//!
//! | file | subject |
//! |---|---|
//! | `request.rs` | [`RequestHead`]: a request head as one run of bytes |
//! | `response.rs` | [`ResponseDecoder`]: bytes as they come to parts of a response |
//! | `head.rs` | [`ResponseHead`]: what a head says, and what it says about the body |
//! | `chunked.rs` | the chunked transfer coding |
//! | `section.rs` | heads and trailer sections that arrive in pieces |
//! | `tail.rs` | [`Tail`]: the end of a response whose call is over |
//! | `keep_alive.rs` | [`keep_alive_timeout()`]: how long a server means to keep a connection |
//! | `request_decoder.rs` | [`RequestDecoder`]: bytes as they come to parts of requests |
//! | `incoming_request.rs` | [`IncomingRequest`]: what a request's head says |
//! | `request_fault.rs` | [`RequestFault`]: why a request is refused, and by which status |
//! | `lines.rs` | lines of a request that arrive in pieces |
//! | `fields.rs` | [`Fields`]: header fields as they came |
//! | `forward.rs` | [`ForwardedRequest`], [`ForwardedResponse`]: heads passed on |
//! | `error.rs` | [`Http1Error`]: what a peer can break |
//!
//! # Responses
//!
//! Where RFC 9112 leaves a choice, this client takes:
//!
//! | what came | what is done |
//! |---|---|
//! | a head line that ends in a bare LF | read as a line (2.2 permits it); refused in chunk framing and trailers |
//! | a bare CR, or another control byte, in a head | refused |
//! | empty lines before the status line | skipped, within the bound on the head |
//! | a status line without a reason phrase, or without the space before it | read |
//! | a version other than 1.0 and 1.1 | refused |
//! | a space before a field's colon, a line without a colon | refused |
//! | a folded field line (`obs-fold`) | joined with one space (5.2); refused in trailers |
//! | equal `Content-Length` values, in a list or in lines | read as one; different ones are refused |
//! | `Content-Length` beside `Transfer-Encoding` | refused (rule STR-10) |
//! | `Transfer-Encoding` other than exactly `chunked` | refused: no other coding was asked for |
//! | `Transfer-Encoding: chunked` from an HTTP/1.0 server | decoded, and the connection is not used again |
//! | blanks after a chunk size | skipped |
//! | chunk extensions | skipped unread, whatever their syntax; control bytes are refused |
//! | status 101 | refused: no upgrade is ever asked for through this module |
//!
//! # Requests
//!
//! Two servers that read one request differently can be made to see two requests in it. So a request
//! that can be read in more than one way is refused, by the status of its [`RequestFault`]:
//!
//! | what came | what is done |
//! |---|---|
//! | a bare LF or CR, a control byte, a folded line, a space before a colon | refused |
//! | empty lines before the request line | at most [`MAX_EMPTY_LINES`] are skipped |
//! | a version other than 1.0 and 1.1, the preface of HTTP/2, a TLS handshake | refused, each by its name |
//! | a target other than a path and a query, CONNECT, TRACE | refused: this is no open proxy |
//! | a `Host` that is repeated, empty or no authority; none in HTTP/1.1 | refused |
//! | a `Content-Length` that is repeated or listed, be it equal, or not digits alone | refused |
//! | `Content-Length` beside `Transfer-Encoding` | refused |
//! | `Transfer-Encoding` other than exactly `chunked`, or in HTTP/1.0 | refused |
//! | chunk sizes of more than 16 digits, blanks behind one without an extension | refused |
//! | chunk extensions | skipped unread; control bytes are refused |
//! | trailers | read as strictly as a head, and dropped |
//! | `Expect` other than `100-continue` | refused; in HTTP/1.0 that is ignored |

mod chunked;
mod error;
mod fields;
mod forward;
mod head;
mod incoming_request;
mod keep_alive;
mod lines;
mod request;
mod request_decoder;
mod request_fault;
mod response;
mod section;
mod tail;
#[cfg(test)]
mod tests;

pub use chunked::{CHUNK_END, ChunkHead, LAST_CHUNK, MAX_CHUNK_LINE_BYTES};
pub use error::{Http1Error, Incomplete};
pub use fields::Fields;
pub use forward::{ForwardError, ForwardedBody, ForwardedRequest, ForwardedResponse};
pub use head::ResponseHead;
pub use incoming_request::{BodyLength, IncomingRequest};
pub use keep_alive::keep_alive_timeout;
pub(crate) use request::with_fields;
pub use request::{RequestError, RequestHead};
pub use request_decoder::{MAX_EMPTY_LINES, RequestDecoder, RequestLimits, RequestPart};
pub use request_fault::RequestFault;
pub use response::{End, Limits, MAX_INTERIM_RESPONSES, Part, ResponseDecoder};
pub use section::{MAX_FIELDS, MAX_TRAILER_BYTES};
pub use tail::{MAX_TAIL_BYTES, Tail, TailState};
