//! How much of bodies a trace holds.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::str::FromStr;

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize};

use crate::fnv::Fnv1a;

/// How much of what came, and of what was delivered, a trace holds
///
/// The request's own bytes are in no trace, only their number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bodies {
    /// Every byte; only such a trace can be replayed
    #[default]
    Whole,
    /// A length and a hash for each read and each delivery
    ///
    /// The hash (FNV-1a, 64 bits) shows whether two traces saw the same bytes, and where they part. It
    /// hides nothing from one who can guess: a short text is found by trying.
    Hashed,
    /// The length of each read and each delivery
    Lengths,
}

impl Bodies {
    /// All of them
    pub const ALL: [Self; 3] = [Self::Whole, Self::Hashed, Self::Lengths];

    /// The name, as it stands in a trace
    pub const fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Hashed => "hashed",
            Self::Lengths => "lengths",
        }
    }
}

impl fmt::Display for Bodies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// No mode of bodies has that name
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("bodies are recorded `whole`, `hashed` or as `lengths`")]
pub struct UnknownBodies;

impl FromStr for Bodies {
    type Err = UnknownBodies;

    fn from_str(name: &str) -> Result<Self, UnknownBodies> {
        Self::ALL.into_iter().find(|bodies| bodies.name() == name).ok_or(UnknownBodies)
    }
}

/// Bytes as a trace has them: their number, and what [`Bodies`] lets it say of them
///
/// Whole bytes are a JSON string where they are UTF-8, which nearly all are, so that a trace can be read
/// and searched; hexadecimal digits where they are not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Content<'a> {
    bytes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hex: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hash: Option<String>,
}

impl<'a> Content<'a> {
    pub(super) const EMPTY: Self = Self { bytes: 0, text: None, hex: None, hash: None };

    pub(super) fn of(bytes: &'a [u8], bodies: Bodies) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::of_text(text, bodies),
            Err(_) => {
                let hex = (bodies == Bodies::Whole).then(|| hex(bytes));
                Self { hex, ..Self::measured(bytes, bodies) }
            }
        }
    }

    pub(super) fn of_text(text: &'a str, bodies: Bodies) -> Self {
        let whole = (bodies == Bodies::Whole).then_some(Cow::Borrowed(text));
        Self { text: whole, ..Self::measured(text.as_bytes(), bodies) }
    }

    fn measured(bytes: &[u8], bodies: Bodies) -> Self {
        let hash = (bodies == Bodies::Hashed).then(|| {
            let mut hash = Fnv1a::new();
            hash.add(bytes);
            format!("{:016x}", hash.value())
        });
        Self { bytes: bytes.len() as u64, text: None, hex: None, hash }
    }

    /// The same as entries of a map that has others
    pub(super) fn entries<S: SerializeMap>(&self, out: &mut S) -> Result<(), S::Error> {
        out.serialize_entry("bytes", &self.bytes)?;
        for (name, value) in
            [("text", self.text.as_deref()), ("hex", self.hex.as_deref()), ("hash", self.hash.as_deref())]
        {
            if let Some(value) = value {
                out.serialize_entry(name, value)?;
            }
        }
        Ok(())
    }

    /// The bytes, where they are whole, and as many as their number says
    pub(super) fn whole(self) -> Option<Vec<u8>> {
        let bytes = match (self.text, self.hex) {
            (Some(text), None) => text.into_owned().into_bytes(),
            (None, Some(digits)) => unhex(&digits)?,
            (Some(_), Some(_)) | (None, None) => return None,
        };
        (bytes.len() as u64 == self.bytes).then_some(bytes)
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut digits = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        write!(digits, "{byte:02x}").expect("a string takes all");
    }
    digits
}

fn unhex(digits: &str) -> Option<Vec<u8>> {
    let value = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let bytes = pairs.iter().map(|[high, low]| Some(value(*high)? << 4 | value(*low)?)).collect();
    if rest.is_empty() { bytes } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_as_they_were() {
        for bytes in [&b""[..], b"data: \"\\\n\r\0\x7f", "fünf 字".as_bytes(), b"\xff\x00a", &[0xe5, 0xad]]
        {
            let json = serde_json::to_string(&Content::of(bytes, Bodies::Whole)).unwrap();
            let back: Content<'_> = serde_json::from_str(&json).unwrap();
            assert_eq!(back.whole().as_deref(), Some(bytes), "{json}");
        }
    }

    #[test]
    fn what_is_not_whole_does_not_pass_for_it() {
        for json in [
            r#"{"bytes":2}"#,
            r#"{"bytes":2,"hash":"00"}"#,
            r#"{"bytes":2,"text":"a"}"#,
            r#"{"bytes":1,"text":"a","hex":"61"}"#,
            r#"{"bytes":1,"hex":"6"}"#,
            r#"{"bytes":1,"hex":"6g"}"#,
            r#"{"bytes":1,"hex":"+6"}"#,
        ] {
            assert_eq!(serde_json::from_str::<Content<'_>>(json).unwrap().whole(), None, "{json}");
        }
    }

    #[test]
    fn less_than_whole_tells_no_bytes() {
        let json = |bodies| serde_json::to_string(&Content::of(b"foobar", bodies)).unwrap();
        assert_eq!(json(Bodies::Whole), r#"{"bytes":6,"text":"foobar"}"#);
        assert_eq!(json(Bodies::Hashed), r#"{"bytes":6,"hash":"85944171f73967e8"}"#);
        assert_eq!(json(Bodies::Lengths), r#"{"bytes":6}"#);
    }
}
