//! Content decoding: `gzip` and `deflate` bodies, as they stream.
//!
//! We ask for `identity`; some servers and proxies compress all the same (rule STR-10). With the
//! crate's feature `content-decoding` such a body is decoded, each block as soon as it was flushed;
//! without it, its coding is [`Unsupported`] before any of it is read.
//!
//! | what came | what is done |
//! |---|---|
//! | no coding, `identity` | there is nothing to decode |
//! | `gzip`, `x-gzip`, in any case | decoded, checksum and length verified |
//! | `deflate` | decoded with its zlib wrapper (RFC 9110 8.4.1.2), or without, as some servers send it |
//! | another coding, or two of them one over the other | [`Unsupported`] |
//! | several gzip members in a row | decoded as one (RFC 1952 2.2) |
//! | anything else behind the end | ignored: what came before it was whole |
//! | not a byte | an empty body |
//! | damage | what stood before it is decoded, then [`ContentError::Corrupt`] |
//! | the end of the body before that of the data | what came is decoded, then [`ContentError::Incomplete`] |
//!
//! However the body is split, the decoded bytes and the error behind them are the same.

#[cfg(feature = "content-decoding")]
mod crc;
#[cfg(feature = "content-decoding")]
mod decoder;
mod error;
#[cfg(feature = "content-decoding")]
mod gzip;
#[cfg(feature = "content-decoding")]
mod inflate;
#[cfg(not(feature = "content-decoding"))]
mod none;
#[cfg(test)]
mod tests;

use http::HeaderMap;
use http::header::CONTENT_ENCODING;

#[cfg(feature = "content-decoding")]
pub use decoder::Decoder;
pub use error::{ContentError, Unsupported};
#[cfg(not(feature = "content-decoding"))]
pub use none::Decoder;

/// What a call of [`Decoder::decode`] did
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// Bytes of the input that were used
    pub consumed: usize,
    /// Bytes that were written to the output
    pub produced: usize,
    /// Whether there is more, bytes or an error, for a call with the rest of the input, which may be
    /// empty
    ///
    /// If not, all of the input was used and all that it gives was written.
    pub more: bool,
}

/// A coding that can be decoded
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    Gzip,
    Deflate,
}

impl Decoder {
    /// A decoder for a body with this `Content-Encoding`; `None` if there is nothing to decode
    ///
    /// Several header lines count as one list, joined by commas: see [`Decoder::for_headers`].
    pub fn new(encoding: &str) -> Result<Option<Self>, Unsupported> {
        let unsupported = || Unsupported::new(encoding);
        let mut coding = None;
        for name in encoding.split(',').map(str::trim_ascii) {
            let next = match name.to_ascii_lowercase().as_str() {
                "" | "identity" => continue,
                "gzip" | "x-gzip" => Coding::Gzip,
                "deflate" => Coding::Deflate,
                _ => return Err(unsupported()),
            };
            if coding.replace(next).is_some() {
                return Err(unsupported());
            }
        }
        match coding {
            None => Ok(None),
            Some(coding) => Self::of(coding).map(Some).ok_or_else(unsupported),
        }
    }

    /// A decoder for the body behind these headers; `None` if there is nothing to decode
    pub fn for_headers(headers: &HeaderMap) -> Result<Option<Self>, Unsupported> {
        let lines =
            headers.get_all(CONTENT_ENCODING).iter().map(|line| String::from_utf8_lossy(line.as_bytes()));
        Self::new(&lines.collect::<Vec<_>>().join(","))
    }
}
