//! The chunked transfer coding (RFC 9112 7.1), without its trailer section.

use std::io::Write as _;
use std::num::NonZeroUsize;
use std::ops::{Deref, Range};

use super::Http1Error;

/// The longest line with a chunk size and its extensions, in bytes: 4 KiB
pub const MAX_CHUNK_LINE_BYTES: u16 = 4 * 1024;

/// What follows the data of a chunk that is sent
pub const CHUNK_END: &[u8] = b"\r\n";

/// The end of a chunked body that is sent: the last chunk, and no trailers
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// The line before the data of a chunk that is sent
///
/// ```
/// use steadfast::http1::{CHUNK_END, ChunkHead, LAST_CHUNK};
///
/// let data = b"a piece of a body";
/// let mut out = Vec::new();
/// if let Some(length) = data.len().try_into().ok() {
///     for part in [&ChunkHead::new(length), &data[..], CHUNK_END] {
///         out.extend_from_slice(part);
///     }
/// }
/// out.extend_from_slice(LAST_CHUNK);
/// assert_eq!(out, b"11\r\na piece of a body\r\n0\r\n\r\n");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkHead {
    bytes: [u8; MAX_CHUNK_HEAD_BYTES],
    length: usize,
}

/// The digits of the largest size, and CRLF
const MAX_CHUNK_HEAD_BYTES: usize = 18;

impl ChunkHead {
    /// The line before so many bytes of data; before none it would end the body
    pub fn new(length: NonZeroUsize) -> Self {
        let mut bytes = [0; MAX_CHUNK_HEAD_BYTES];
        let mut room = &mut bytes[..];
        write!(room, "{length:x}\r\n").expect("sixteen digits fit");
        let left = room.len();
        Self { bytes, length: MAX_CHUNK_HEAD_BYTES - left }
    }
}

impl Deref for ChunkHead {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// The most digits of a chunk size in a request: those of the largest size there is
const MAX_REQUEST_DIGITS: u16 = 16;

/// Where in the chunk framing the next byte lies
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunked {
    state: State,
    /// The size read so far, then the bytes of data still to come
    size: u64,
    /// Bytes of the size line so far
    line: u16,
    /// Whether this is a request's body
    request: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The first digit of a size
    FirstDigit,
    /// The further digits
    Digits,
    /// Blanks behind the size
    Blanks,
    /// Behind a semicolon
    Extension,
    /// The LF behind the CR that ends the size line
    SizeLineFeed,
    /// The data
    Data,
    /// The CR behind the data
    DataCarriageReturn,
    /// The LF behind that
    DataLineFeed,
}

/// What is wrong with the framing
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChunkError {
    /// Something else where a size was due
    BadSize,
    /// A size that does not fit in 64 bits, or of too many digits
    SizeOverflow,
    /// A control byte in an extension
    BadExtension,
    /// A line longer than [`MAX_CHUNK_LINE_BYTES`]
    LineTooLong,
    /// No CRLF behind the data
    BadEnd,
}

/// What was found in the framing
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Data, as a range of the input
    Data(Range<usize>),
    /// The last chunk's line: the trailer section follows
    Last,
}

impl Chunked {
    /// The front of a response's chunked body
    pub(super) const fn response() -> Self {
        Self { state: State::FirstDigit, size: 0, line: 0, request: false }
    }

    /// The front of a request's chunked body, in which a size has at most 16 digits, and blanks behind
    /// it only where an extension follows
    ///
    /// Who stands before us may have read such a size in another way, and so have seen another
    /// request behind this one.
    pub(super) const fn request() -> Self {
        Self { request: true, ..Self::response() }
    }

    /// Reads to the first data or the last chunk; `None` where the input ends before
    pub(super) fn next(&mut self, input: &[u8]) -> Result<(usize, Option<Found>), ChunkError> {
        let mut at = 0;
        while let Some(&byte) = input.get(at) {
            if self.state == State::Data {
                let length = usize::try_from(self.size).unwrap_or(usize::MAX).min(input.len() - at);
                self.size -= length as u64;
                if self.size == 0 {
                    self.state = State::DataCarriageReturn;
                }
                return Ok((at + length, Some(Found::Data(at..at + length))));
            }
            at += 1;
            self.framing(byte)?;
            if self.state == State::Data && self.size == 0 {
                return Ok((at, Some(Found::Last)));
            }
        }
        Ok((at, None))
    }

    /// Takes in one byte that is not data
    fn framing(&mut self, byte: u8) -> Result<(), ChunkError> {
        use State::{
            Blanks, Data, DataCarriageReturn, DataLineFeed, Digits, Extension, FirstDigit, SizeLineFeed,
        };
        self.line += 1;
        if self.line > MAX_CHUNK_LINE_BYTES {
            return Err(ChunkError::LineTooLong);
        }
        self.state = match (self.state, byte) {
            (FirstDigit | Digits, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                if self.request && self.line > MAX_REQUEST_DIGITS {
                    return Err(ChunkError::SizeOverflow);
                }
                self.size = push_digit(self.size, byte)?;
                Digits
            }
            (Digits, b'\r') => SizeLineFeed,
            (Blanks, b'\r') if !self.request => SizeLineFeed,
            (Digits | Blanks, b';') => Extension,
            (Digits | Blanks, b' ' | b'\t') => Blanks,
            (FirstDigit | Digits | Blanks, _) => return Err(ChunkError::BadSize),
            // A quoted value may hold semicolons but no line end, so what an extension says need
            // not be read to find where it ends.
            (Extension, b'\r') => SizeLineFeed,
            (Extension, b'\t' | 0x20..=0x7E | 0x80..) => Extension,
            (Extension, _) => return Err(ChunkError::BadExtension),
            (SizeLineFeed, b'\n') => {
                self.line = 0;
                Data
            }
            (SizeLineFeed, _) => return Err(ChunkError::BadSize),
            (DataCarriageReturn, b'\r') => DataLineFeed,
            (DataLineFeed, b'\n') => {
                self.size = 0;
                self.line = 0;
                FirstDigit
            }
            (Data | DataCarriageReturn | DataLineFeed, _) => return Err(ChunkError::BadEnd),
        };
        Ok(())
    }
}

impl From<ChunkError> for Http1Error {
    fn from(error: ChunkError) -> Self {
        match error {
            ChunkError::BadSize => Self::BadChunkSize,
            ChunkError::SizeOverflow => Self::ChunkSizeOverflow,
            ChunkError::BadExtension => Self::BadChunkExtension,
            ChunkError::LineTooLong => Self::ChunkLineTooLong,
            ChunkError::BadEnd => Self::BadChunkEnd,
        }
    }
}

/// `size` with one more hexadecimal digit
fn push_digit(size: u64, digit: u8) -> Result<u64, ChunkError> {
    if size > u64::MAX >> 4 {
        return Err(ChunkError::SizeOverflow);
    }
    let value = match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    };
    Ok(size << 4 | u64::from(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The data of a whole body, and what follows its last chunk line
    fn decode(input: &[u8]) -> Result<(Vec<u8>, &[u8]), ChunkError> {
        decode_as(Chunked::response(), input)
    }

    fn decode_as(mut chunked: Chunked, input: &[u8]) -> Result<(Vec<u8>, &[u8]), ChunkError> {
        let (mut data, mut at) = (Vec::new(), 0);
        loop {
            let (used, found) = chunked.next(&input[at..])?;
            match found {
                Some(Found::Data(range)) => data.extend_from_slice(&input[at..][range]),
                Some(Found::Last) => return Ok((data, &input[at + used..])),
                None => panic!("{:?} is not whole", input.escape_ascii().to_string()),
            }
            at += used;
        }
    }

    #[test]
    fn sizes_are_hexadecimal_in_either_case_with_leading_zeros() {
        let body = b"a\r\n0123456789\r\n00B;x\r\nabcdefghijk\r\n0\r\nrest";
        assert_eq!(decode(body), Ok((b"0123456789abcdefghijk".to_vec(), &b"rest"[..])));
        let zeros = [&[b'0'; 40][..], b"1\r\nx\r\n0\r\n"].concat();
        assert_eq!(decode(&zeros), Ok((b"x".to_vec(), &b""[..])));
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for line in [
            "\r\n", "-1\r\n", "+1\r\n", "0x1\r\n", "1_0\r\n", "1 1\r\n", "1\n", "1 \n", " 1\r\n", "1\rX", "g",
        ] {
            assert_eq!(decode(line.as_bytes()), Err(ChunkError::BadSize), "{line:?}");
        }
        assert_eq!(decode(b"10000000000000000\r\n"), Err(ChunkError::SizeOverflow));
    }

    #[test]
    fn the_largest_size_is_taken() {
        let mut chunked = Chunked::response();
        assert_eq!(chunked.next(b"ffffffffffffffff\r\nab"), Ok((20, Some(Found::Data(18..20)))));
        assert_eq!(chunked.size, u64::MAX - 2);
    }

    #[test]
    fn line_feeds_alone_are_refused_in_every_place() {
        assert_eq!(decode(b"1;a\nb\r\n"), Err(ChunkError::BadExtension));
        assert_eq!(decode(b"1;a\rb"), Err(ChunkError::BadSize));
        assert_eq!(decode(b"1\r\nx\n0\r\n"), Err(ChunkError::BadEnd));
        assert_eq!(decode(b"1\r\nx\r0\r\n"), Err(ChunkError::BadEnd));
        assert_eq!(decode(b"1\r\nxy\r\n0\r\n"), Err(ChunkError::BadEnd));
    }

    #[test]
    fn the_size_line_is_bounded() {
        let longest = usize::from(MAX_CHUNK_LINE_BYTES);
        let line = |length: usize| [b"0;", &vec![b'x'; length - 4][..], b"\r\n"].concat();
        assert_eq!(decode(&line(longest)), Ok((Vec::new(), &b""[..])));
        assert_eq!(decode(&line(longest + 1)), Err(ChunkError::LineTooLong));
    }

    #[test]
    fn a_request_is_read_more_strictly() {
        let request = |text: &'static str| decode_as(Chunked::request(), text.as_bytes());
        assert_eq!(request("1 ;a\r\nx\r\n0 \t;b=\"c\"\r\n"), Ok((b"x".to_vec(), &b""[..])));
        assert_eq!(request("0000000000000001\r\nx\r\n0\r\n"), Ok((b"x".to_vec(), &b""[..])));
        assert_eq!(request("00000000000000001\r\nx"), Err(ChunkError::SizeOverflow));
        assert_eq!(request("1\r\nx\r\n00000000000000000\r\n"), Err(ChunkError::SizeOverflow));
        assert_eq!(request("1 \r\nx"), Err(ChunkError::BadSize));
        assert_eq!(request("1\r\nx\r\n1\t\r\nx"), Err(ChunkError::BadSize));
    }
}
