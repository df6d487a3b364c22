//! The relay's own keys: who may use it, known by hashes alone.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use ring::digest::{SHA256, SHA256_OUTPUT_LEN, digest};
use steadfast::http1::Fields;
use steadfast::relay::{APP_KEY_FIELD, AppKey, Gate};
use subtle::ConstantTimeEq;

/// The fields in which SDKs send the key they were given, and what comes before it there
const FIELDS: [(&str, &str); 4] =
    [(APP_KEY_FIELD, ""), ("authorization", "Bearer "), ("x-api-key", ""), ("x-goog-api-key", "")];

/// What a hash begins with, as it is written
const PREFIX: &str = "sha256:";

/// The SHA-256 of a key, written as `sha256:` and 64 hexadecimal digits
///
/// Keys are to be long and random, as `openssl rand -hex 32` makes them: then a hash tells nothing, and needs
/// no salt.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct KeyHash([u8; SHA256_OUTPUT_LEN]);

/// A text that is no hash; it is not kept, for it may be a key
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no hash of a key: a hash is `sha256:` and 64 hexadecimal digits")]
pub struct NotAHash;

impl KeyHash {
    /// The hash of this key
    pub fn of(key: &[u8]) -> Self {
        let mut hash = [0; SHA256_OUTPUT_LEN];
        hash.copy_from_slice(digest(&SHA256, key).as_ref());
        Self(hash)
    }

    /// Whether both are one, found in a time that tells nothing of where they differ
    fn is(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl FromStr for KeyHash {
    type Err = NotAHash;

    fn from_str(text: &str) -> Result<Self, NotAHash> {
        let digits = text.strip_prefix(PREFIX).ok_or(NotAHash)?.as_bytes();
        let mut hash = [0; SHA256_OUTPUT_LEN];
        if digits.len() != 2 * hash.len() {
            return Err(NotAHash);
        }
        let digit = |byte: u8| char::from(byte).to_digit(16).ok_or(NotAHash);
        for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = (digit(pair[0])? * 16 + digit(pair[1])?) as u8;
        }
        Ok(Self(hash))
    }
}

impl fmt::Display for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The keys that let an app in, each under its label
///
/// An app shows its key in `x-steadfast-key`, or where its SDK sends the key it was given: `authorization`
/// as a bearer's, `x-api-key`, `x-goog-api-key`, or `key` in the query. Wherever the key stands, that is not
/// passed on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Keys(Vec<(Arc<str>, KeyHash)>);

impl Keys {
    /// Adds a key
    ///
    /// Errors: the label that has this key already.
    pub fn add(&mut self, label: &str, hash: KeyHash) -> Result<(), Arc<str>> {
        match self.0.iter().find(|(_, known)| *known == hash) {
            Some((taken, _)) => Err(taken.clone()),
            None => {
                self.0.push((label.into(), hash));
                Ok(())
            }
        }
    }

    /// Whether there is none
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The labels, in their order
    pub fn labels(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(label, _)| &**label)
    }

    /// Whose key this is; all are compared, whichever it is
    fn label(&self, key: &[u8]) -> Option<&Arc<str>> {
        let hash = KeyHash::of(key);
        self.0.iter().fold(None, |found, (label, known)| if known.is(&hash) { Some(label) } else { found })
    }
}

impl Gate for Keys {
    fn admit(&self, fields: &Fields, parameters: &[Vec<u8>]) -> Option<AppKey> {
        let key = |label: &Arc<str>| AppKey { label: label.clone(), fields: Vec::new(), is_in_query: false };
        let mut admitted: Option<AppKey> = None;
        for (field, before) in FIELDS {
            for value in fields.get_all(field) {
                let plain = after(value, before).and_then(|key| self.label(key));
                let Some(label) = plain.or_else(|| self.label(&password(value)?)) else { continue };
                let key = admitted.get_or_insert_with(|| key(label));
                if !key.fields.contains(&field) {
                    key.fields.push(field);
                }
            }
        }
        for label in parameters.iter().filter_map(|parameter| self.label(parameter)) {
            admitted.get_or_insert_with(|| key(label)).is_in_query = true;
        }
        admitted
    }
}

/// The password that a browser sends (RFC 7617), whoever is named with it
fn password(value: &[u8]) -> Option<Vec<u8>> {
    let decoded = BASE64_STANDARD.decode(after(value, "Basic ")?).ok()?;
    let colon = decoded.iter().position(|byte| *byte == b':')?;
    Some(decoded[colon + 1..].to_vec())
}

/// What follows `before`, which is compared without regard to case
fn after<'v>(value: &'v [u8], before: &str) -> Option<&'v [u8]> {
    let (start, key) = value.split_at_checked(before.len())?;
    start.eq_ignore_ascii_case(before.as_bytes()).then(|| key.trim_ascii())
}

#[cfg(test)]
mod tests {
    use steadfast::http1::{RequestDecoder, RequestLimits, RequestPart};

    use super::*;

    fn keys() -> Keys {
        let mut keys = Keys::default();
        keys.add("laptop", KeyHash::of(b"key-1")).unwrap();
        keys.add("ci", KeyHash::of(b"key-2")).unwrap();
        keys
    }

    fn admitted(lines: &str) -> Option<(String, Vec<&'static str>)> {
        let head = format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n");
        let mut decoder = RequestDecoder::new(RequestLimits::default());
        let (_, Some(RequestPart::Head(request))) = decoder.next(head.as_bytes()).unwrap() else {
            panic!("a head")
        };
        keys().admit(&request.fields, &[]).map(|key| (key.label.to_string(), key.fields))
    }

    #[test]
    fn a_key_is_found_wherever_an_app_sends_it() {
        for (lines, label, fields) in [
            ("x-steadfast-key: key-1\r\n", "laptop", &["x-steadfast-key"][..]),
            ("Authorization: Bearer key-2\r\n", "ci", &["authorization"]),
            ("authorization: bearer  key-2 \r\n", "ci", &["authorization"]),
            ("Authorization: basic YW55OmtleS0x\r\n", "laptop", &["authorization"]),
            ("X-Api-Key: key-1\r\n", "laptop", &["x-api-key"]),
            ("x-goog-api-key: key-1\r\n", "laptop", &["x-goog-api-key"]),
            (
                "Authorization: Bearer sk-provider\r\nX-Steadfast-Key: key-1\r\n",
                "laptop",
                &["x-steadfast-key"],
            ),
            (
                "Authorization: Bearer key-1\r\nX-Steadfast-Key: key-1\r\n",
                "laptop",
                &["x-steadfast-key", "authorization"],
            ),
            ("x-api-key: no\r\nx-api-key: key-1\r\n", "laptop", &["x-api-key"]),
        ] {
            assert_eq!(admitted(lines), Some((label.to_owned(), fields.to_vec())), "{lines}");
        }
        let in_query = |keys_shown: &[&[u8]]| {
            let shown: Vec<_> = keys_shown.iter().map(|key| key.to_vec()).collect();
            keys().admit(&Fields::default(), &shown)
        };
        let expected = AppKey { label: "ci".into(), fields: Vec::new(), is_in_query: true };
        assert_eq!(in_query(&[b"no", b"key-2"]), Some(expected));
        assert_eq!(in_query(&[b"no", b""]), None);
        for lines in [
            "",
            "x-steadfast-key: key-3\r\n",
            "Authorization: key-1\r\n",
            "x-steadfast-key:\r\n",
            "x: key-1\r\n",
        ] {
            assert_eq!(admitted(lines), None, "{lines}");
        }
    }

    #[test]
    fn a_hash_is_read_as_it_is_written_and_shows_no_key() {
        // FIPS 180-2, B.1
        let abc = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(KeyHash::of(b"abc").to_string(), abc);
        assert_eq!(abc.parse(), Ok(KeyHash::of(b"abc")));
        assert_eq!(abc.to_uppercase().replace("SHA256", "sha256").parse(), Ok(KeyHash::of(b"abc")));
        for text in
            ["", "key-1", &abc[7..], &abc[..70], &format!("{abc}0"), &abc.replace("ba", "bx"), "sha256:ä"]
        {
            assert_eq!(text.parse::<KeyHash>(), Err(NotAHash), "{text}");
        }
        assert_eq!(keys().add("other", KeyHash::of(b"key-1")), Err("laptop".into()));
    }
}
