//! Framing: bytes of a body to events, without copying.
