//! Framing: bytes of a body to events, without copying.
//!
//! | file | framing |
//! |---|---|
//! | [`sse`] | `text/event-stream`, the event stream of WHATWG HTML |

pub mod sse;
