//! Bodies of requests: one buffer, a source that is read as the body goes out, or a form of several parts.
//!
//! | file | what is in it |
//! |---|---|
//! | `source` | [`BodySource`]: what a body is read from |
//! | `form` | [`Form`]: several parts in one body (RFC 7578, RFC 2387) |
//! | `feed` | [`Feed`]: what a driver reads a body with |
//!
//! The call machine reads nothing: it asks its driver for so many bytes
//! ([`Interest::supply`](crate::machine::Interest::supply)), and holds no more than [`WINDOW_BYTES`] that
//! are on their way out. So a body may be of any size, and goes out as fast as the connection takes it.
//!
//! Another attempt needs the body again (rule RTY-9). A buffer is there again, and a [`Body::source`] is
//! opened again; after the first read of a [`Body::once`] its call makes no other attempt.
//!
//! ```
//! use std::io::Cursor;
//! use steadfast::body::{Body, Form, Part, Ready};
//! use steadfast::verb::{Service, openai};
//!
//! // A file would be `Ready(std::fs::File::open("batch.jsonl")?)`.
//! let lines = Body::source(|| Ok(Ready(Cursor::new("{}\n{}\n")))).length(6);
//! let form = Form::new()
//!     .text("purpose", "batch")
//!     .part(Part::new("file", lines).file_name("batch.jsonl").content_type("application/jsonl"));
//! let request = Service::openai("sk-example").request(&openai::FILE_UPLOAD, []).form(form).build()?;
//! assert!(request.body().is_replayable());
//! # Ok::<(), steadfast::call::RequestError>(())
//! ```

mod feed;
mod form;
mod source;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

pub use feed::Feed;
pub(crate) use form::{Boundary, FormError};
pub use form::{Form, Part};
use source::Origin;
pub use source::{BodySource, Ready, waker};
pub use std::task::Waker;

/// The most bytes of a streamed body that a call holds on their way out, without what frames them
pub const WINDOW_BYTES: usize = 64 * 1024;

/// The body of a request
///
/// Its `Debug` form shows no byte of it.
#[derive(Clone)]
pub struct Body(pub(crate) Kind);

#[derive(Clone)]
pub(crate) enum Kind {
    /// In one buffer
    Bytes(Bytes),
    /// Read as it goes out
    Streamed(Streamed),
}

/// A body that is read piece by piece
#[derive(Clone)]
pub(crate) struct Streamed {
    /// None where that is known only at its end
    pub(crate) length: Option<u64>,
    /// It can be read once
    pub(crate) is_once: bool,
    pieces: Arc<[Piece]>,
    boundary: Boundary,
}

#[derive(Clone)]
enum Piece {
    Bytes(Bytes),
    /// The boundary of the form, which each call has of its own
    Boundary,
    Source(Origin),
}

impl Body {
    /// A body that is read from what `open` gives, anew for each attempt
    ///
    /// `open` is called on the thread that drives the call and must not wait: where opening takes time, the
    /// source does it when it is first read. Its errors, and those of the source, end the call as
    /// [`Consumer`](crate::outcome::ErrorKind::Consumer).
    pub fn source<S: BodySource + 'static>(
        open: impl Fn() -> std::io::Result<S> + Send + Sync + 'static,
    ) -> Self {
        Self::streamed(Origin::again(move || open().map(|source| Box::new(source) as _)), false)
    }

    /// A body that can be read only once
    ///
    /// After the first read of it the call makes no other attempt (rule RTY-9), and neither does a call
    /// with a clone of the request.
    pub fn once(source: impl BodySource + 'static) -> Self {
        Self::streamed(Origin::once(Box::new(source)), true)
    }

    fn streamed(origin: Origin, is_once: bool) -> Self {
        let pieces = Arc::new([Piece::Source(origin)]);
        Self(Kind::Streamed(Streamed { length: None, is_once, pieces, boundary: Boundary::UNSET }))
    }

    /// The same, of so many bytes
    ///
    /// It goes out with a `Content-Length` then, and in chunks otherwise, which not every server takes. A
    /// source that brings more or less ends the call as [`Consumer`](crate::outcome::ErrorKind::Consumer).
    /// A body in one buffer knows its length.
    #[must_use]
    pub fn length(mut self, length: u64) -> Self {
        if let Kind::Streamed(streamed) = &mut self.0 {
            streamed.length = Some(length);
        }
        self
    }

    /// How many bytes it has; none where that is known only at its end
    pub fn len(&self) -> Option<u64> {
        match &self.0 {
            Kind::Bytes(bytes) => Some(bytes.len() as u64),
            Kind::Streamed(streamed) => streamed.length,
        }
    }

    /// Whether it is known to have no byte
    pub fn is_empty(&self) -> bool {
        self.len() == Some(0)
    }

    /// Whether it can be sent again from its start
    pub fn is_replayable(&self) -> bool {
        match &self.0 {
            Kind::Bytes(_) => true,
            Kind::Streamed(streamed) => !streamed.is_once,
        }
    }

    /// Its bytes, where they are in one buffer
    pub fn as_bytes(&self) -> Option<&Bytes> {
        match &self.0 {
            Kind::Bytes(bytes) => Some(bytes),
            Kind::Streamed(_) => None,
        }
    }

    /// One of which nothing but this is known: it stands for another in a replay
    pub(crate) fn blank(length: Option<u64>, is_once: bool) -> Self {
        let pieces = Arc::new([]);
        Self(Kind::Streamed(Streamed { length, is_once, pieces, boundary: Boundary::UNSET }))
    }

    fn form(pieces: Vec<Piece>, length: Option<u64>, is_once: bool) -> Self {
        Self(Kind::Streamed(Streamed { length, is_once, pieces: pieces.into(), boundary: Boundary::UNSET }))
    }

    /// Gives a form the boundary of its call
    ///
    /// Returns whether it is one.
    pub(crate) fn set_boundary(&mut self, boundary: Boundary) -> bool {
        let Kind::Streamed(streamed) = &mut self.0 else { return false };
        streamed.boundary = boundary;
        streamed.pieces.iter().any(|piece| matches!(piece, Piece::Boundary))
    }
}

impl Default for Body {
    fn default() -> Self {
        Self(Kind::Bytes(Bytes::new()))
    }
}

impl<B: Into<Bytes>> From<B> for Body {
    fn from(bytes: B) -> Self {
        Self(Kind::Bytes(bytes.into()))
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body")
            .field("length", &self.len())
            .field("is_replayable", &self.is_replayable())
            .finish_non_exhaustive()
    }
}
