//! Why a body cannot be cut into events.

/// A body that cannot be cut into events
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FramingError {
    /// An event is larger than the limit
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// What came is not in this framing; the text says where, and quotes nothing of it
    #[error("not a JSON array: {0}")]
    Broken(&'static str),
}

/// An event is larger than the limit
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream is larger than max_event_bytes = {limit}")]
pub struct TooLarge {
    /// The limit, in bytes
    pub limit: usize,
}
