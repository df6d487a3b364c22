//! Heads and trailer sections that arrive in pieces.

use std::fmt;

use http::{HeaderMap, HeaderName, HeaderValue};
use httparse::{EMPTY_HEADER, Header};

use super::Fields;

/// The most header lines that a head or a trailer section may have
pub const MAX_FIELDS: usize = 1024;

/// The longest trailer section, in bytes: 16 KiB
pub const MAX_TRAILER_BYTES: usize = 16 * 1024;

/// The lines that fit without an allocation
const USUAL_FIELDS: usize = 64;

/// What every status line begins with
const PREFIX: &[u8; 5] = b"HTTP/";

/// Lines up to and including an empty one
///
/// Finds the end in one pass over the bytes, however they are split, and holds a copy of them only
/// where they do not lie whole in one input.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Section {
    held: Vec<u8>,
    line: Line,
}

/// What is known of the line being read
#[derive(Clone, Copy, PartialEq, Eq)]
enum Line {
    /// No status line yet: so many bytes of [`PREFIX`]
    Prefix(u8),
    /// Something is on it
    Filled,
    /// Nothing is on it
    Empty,
    /// Only a CR is on it
    Cr,
}

/// Why the bytes are no section
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// The first line begins with something other than [`PREFIX`]
    Prefix,
    /// No end within the limit
    TooLong,
}

impl Section {
    /// A response head: a line that begins with `HTTP/`, perhaps after empty ones, then more lines
    pub(super) const fn head() -> Self {
        Self { held: Vec::new(), line: Line::Prefix(0) }
    }

    /// A trailer section: any lines, perhaps none, then an empty one
    pub(super) const fn trailers() -> Self {
        Self { held: Vec::new(), line: Line::Empty }
    }

    /// Takes in bytes: how many belong to the section, and the section once it is whole
    ///
    /// A section that is not whole takes all of `input`.
    pub(super) fn take<'s>(
        &'s mut self,
        input: &'s [u8],
        limit: usize,
    ) -> Result<(usize, Option<&'s [u8]>), Refused> {
        let room = limit.saturating_sub(self.held.len());
        let window = &input[..input.len().min(room)];
        let Some(end) = self.line.find_end(window)? else {
            if window.len() == room {
                return Err(Refused::TooLong);
            }
            self.held.extend_from_slice(window);
            return Ok((window.len(), None));
        };
        if self.held.is_empty() {
            return Ok((end, Some(&input[..end])));
        }
        self.held.extend_from_slice(&input[..end]);
        Ok((end, Some(&self.held)))
    }

    /// Bytes that are held because the section is not whole
    pub(super) fn len(&self) -> usize {
        self.held.len()
    }
}

impl fmt::Debug for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Section({} bytes)", self.held.len())
    }
}

impl Line {
    /// Where the section ends in `bytes`, which continue those of the calls before
    fn find_end(&mut self, bytes: &[u8]) -> Result<Option<usize>, Refused> {
        let mut at = 0;
        while at < bytes.len() {
            let byte = bytes[at];
            *self = match *self {
                Self::Prefix(0) if matches!(byte, b'\r' | b'\n') => Self::Prefix(0),
                Self::Prefix(matched) if byte != PREFIX[usize::from(matched)] => return Err(Refused::Prefix),
                Self::Prefix(matched) if usize::from(matched) + 1 == PREFIX.len() => Self::Filled,
                Self::Prefix(matched) => Self::Prefix(matched + 1),
                Self::Empty | Self::Cr if byte == b'\n' => return Ok(Some(at + 1)),
                Self::Empty if byte == b'\r' => Self::Cr,
                Self::Filled | Self::Empty | Self::Cr => match memchr::memchr(b'\n', &bytes[at..]) {
                    Some(line_feed) => {
                        at += line_feed;
                        Self::Empty
                    }
                    None => {
                        *self = Self::Filled;
                        return Ok(None);
                    }
                },
            };
            at += 1;
        }
        Ok(None)
    }
}

/// Runs `parse` with room for the usual number of header lines, then with room for the most
pub(super) fn with_room<'b, T>(
    mut parse: impl FnMut(&mut [Header<'b>]) -> Result<T, httparse::Error>,
) -> Result<T, httparse::Error> {
    match parse(&mut [EMPTY_HEADER; USUAL_FIELDS]) {
        Err(httparse::Error::TooManyHeaders) => parse(&mut vec![EMPTY_HEADER; MAX_FIELDS]),
        parsed => parsed,
    }
}

/// Copies parsed header lines into a map, and into `kept` where they are asked for as they came; `None`
/// where one is out of the map's bounds
pub(super) fn to_map(lines: &[Header<'_>], mut kept: Option<&mut Fields>) -> Option<HeaderMap> {
    let mut map = HeaderMap::with_capacity(lines.len());
    for field in lines {
        let name = HeaderName::from_bytes(field.name.as_bytes()).ok()?;
        let value = match memchr::memchr(b'\n', field.value) {
            Some(_) => HeaderValue::from_maybe_shared(unfold(field.value)),
            None => HeaderValue::from_bytes(field.value),
        };
        let value = value.ok()?;
        if let Some(kept) = &mut kept {
            kept.push(field.name, value.as_bytes());
        }
        map.try_append(name, value).ok()?;
    }
    Some(map)
}

/// Joins the lines of a folded value with one space each (RFC 9112 5.2)
fn unfold(value: &[u8]) -> bytes::Bytes {
    let lines = value.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    let lines: Vec<&[u8]> = lines.filter(|line| !line.is_empty()).collect();
    lines.join(&b' ').into()
}

/// Shows the names of header fields and none of their values
pub(super) struct Names<'a>(pub(super) &'a HeaderMap);

impl fmt::Debug for Names<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.keys().map(HeaderName::as_str)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sections that `pieces` make, and what the last call left unread
    fn feed(
        mut section: Section,
        pieces: &[&[u8]],
        limit: usize,
    ) -> Result<Option<(Vec<u8>, usize)>, Refused> {
        for piece in pieces {
            let (used, whole) = section.take(piece, limit)?;
            if let Some(whole) = whole {
                return Ok(Some((whole.to_vec(), piece.len() - used)));
            }
            assert_eq!(used, piece.len());
        }
        Ok(None)
    }

    #[test]
    fn a_section_ends_at_its_first_empty_line_wherever_it_is_cut() {
        for text in ["HTTP/1.1 200 OK\r\nA: b\r\n\r\nrest", "\r\n\nHTTP/1.1 200 OK\nA: b\n\nrest"] {
            let bytes = text.as_bytes();
            let expected = Some((bytes[..bytes.len() - 4].to_vec(), 4));
            assert_eq!(feed(Section::head(), &[bytes], 100), Ok(expected));
            for cut in 0..bytes.len() - 4 {
                let (first, second) = bytes.split_at(cut);
                let whole = feed(Section::head(), &[first, second], 100).unwrap().unwrap();
                assert_eq!(whole, (bytes[..bytes.len() - 4].to_vec(), 4), "cut at {cut}");
            }
        }
        assert_eq!(feed(Section::trailers(), &[b"\r\nHTTP"], 100), Ok(Some((b"\r\n".to_vec(), 4))));
    }

    #[test]
    fn a_carriage_return_alone_does_not_make_a_line_empty() {
        assert_eq!(feed(Section::head(), &[b"HTTP/1.1 200 OK\r\n\r", b"A\n"], 100), Ok(None));
        assert_eq!(feed(Section::head(), &[b"HTTP/1.1 200 OK\r\n\r\r\n"], 100), Ok(None));
    }

    #[test]
    fn the_limit_counts_the_empty_line() {
        let head = b"HTTP/1.1 200 OK\r\n\r\n";
        assert!(feed(Section::head(), &[head], head.len()).unwrap().is_some());
        assert_eq!(feed(Section::head(), &[head], head.len() - 1), Err(Refused::TooLong));
        assert_eq!(feed(Section::head(), &[&head[..8], &head[8..]], head.len() - 1), Err(Refused::TooLong));
    }

    #[test]
    fn other_protocols_are_refused_at_their_first_wrong_byte() {
        assert_eq!(feed(Section::head(), &[b"SSH-2.0-OpenSSH_9.6"], 100), Err(Refused::Prefix));
        assert_eq!(feed(Section::head(), &[b"HTTP", b"S"], 100), Err(Refused::Prefix));
        assert_eq!(feed(Section::head(), &[b"HT", b"TP"], 100), Ok(None));
    }

    #[test]
    fn folded_lines_are_joined_with_one_space() {
        assert_eq!(&unfold(b"a\r\n b")[..], b"a b");
        assert_eq!(&unfold(b"a \t\r\n\t \r\n  b c\n d")[..], b"a b c d");
    }
}
