//! Framing: bytes of a body to events, without copying.
//!
//! | file | framing |
//! |---|---|
//! | [`sse`] | `text/event-stream`, the event stream of WHATWG HTML |
//! | [`ndjson`] | newline-delimited JSON, one value a line |
//! | [`json_array`] | one JSON array, its elements as they close |
//!
//! All have one shape. Each call of `next` gives at most one event; an event that lies whole in the
//! input stays there, and only one that came in pieces is held. [`Framer`] is any of them.

mod buffer;
mod error;
mod event;
mod framer;
pub mod json_array;
pub mod ndjson;
pub mod sse;
#[cfg(test)]
mod testing;

pub(crate) use buffer::ByteOrderMark;
pub use error::{FramingError, TooLarge};
pub use event::{Event, Field, Located};
pub use framer::{Framer, Framing};
