//! HTTP/1.1 over bytes: the client half of RFC 9112, with no socket in sight.
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
//! | `error.rs` | [`Http1Error`]: what a peer can break |
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

mod chunked;
mod error;
mod head;
mod keep_alive;
mod request;
mod response;
mod section;
mod tail;
#[cfg(test)]
mod tests;

pub use chunked::MAX_CHUNK_LINE_BYTES;
pub use error::{Http1Error, Incomplete};
pub use head::ResponseHead;
pub use keep_alive::keep_alive_timeout;
pub(crate) use request::with_fields;
pub use request::{RequestError, RequestHead};
pub use response::{End, Limits, MAX_INTERIM_RESPONSES, Part, ResponseDecoder};
pub use section::{FieldLine, MAX_FIELDS, MAX_TRAILER_BYTES};
pub use tail::{MAX_TAIL_BYTES, Tail, TailState};
