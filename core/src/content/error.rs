//! Why a body cannot be decoded.

/// A `Content-Encoding` that cannot be decoded
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unsupported Content-Encoding {encoding:?}{HINT}")]
pub struct Unsupported {
    /// The field's value, cut short if it is long
    pub encoding: Box<str>,
}

const HINT: &str =
    if cfg!(feature = "content-decoding") { "" } else { " (built without the feature content-decoding)" };

/// A body that is not what its `Content-Encoding` says
///
/// The texts quote nothing of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContentError {
    /// The data is damaged, or in another format
    #[error("bad compressed body: {0}")]
    Corrupt(&'static str),
    /// The body ended before its data did; nothing that came was wrong
    #[error("the compressed body ended early, {got} bytes into it")]
    Incomplete {
        /// Bytes of the compressed body that came
        got: u64,
    },
}

impl Unsupported {
    const MAX_CHARS: usize = 64;

    pub(super) fn new(encoding: &str) -> Self {
        Self { encoding: encoding.chars().take(Self::MAX_CHARS).collect() }
    }
}
