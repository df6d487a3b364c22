//! In place of the decoder, where the crate is built without one.

use super::{Coding, ContentError, Decoded};

/// Decodes a compressed body; there is none without the feature `content-decoding`
#[derive(Debug)]
pub enum Decoder {}

impl Decoder {
    pub(super) fn of(_: Coding) -> Option<Self> {
        None
    }

    /// Decodes on
    pub fn decode(&mut self, _input: &[u8], _output: &mut [u8]) -> Result<Decoded, ContentError> {
        match *self {}
    }

    /// Whether all came, once the body is over
    pub fn finish(&self) -> Result<(), ContentError> {
        match *self {}
    }
}
