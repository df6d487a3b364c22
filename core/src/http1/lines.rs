//! Lines of a request that arrive in pieces, each ended by CRLF and by nothing else.

use std::fmt;

use super::RequestFault;

/// Gives out lines as they come, and holds a copy only of one that does not lie whole in one input
///
/// A byte is looked at once, however the bytes are split.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Lines {
    /// The line that is being read, or the one that was given out last
    held: Vec<u8>,
    state: State,
    /// Bytes that may still come, line ends included
    room: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// In front of a line
    Fresh,
    /// Within a line
    Within,
    /// Behind its CR
    CarriageReturn,
}

/// Why the bytes are no lines
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoLine {
    /// A CR without an LF behind it
    BareCarriageReturn,
    /// An LF without a CR before it
    BareLineFeed,
    /// There is more than there is room for
    TooLong,
}

impl Lines {
    /// So many bytes of lines at most
    pub(super) const fn new(room: usize) -> Self {
        Self { held: Vec::new(), state: State::Fresh, room }
    }

    /// Whether the next byte is the first of a line
    pub(super) fn is_fresh(&self) -> bool {
        self.state == State::Fresh
    }

    /// Bytes that may still come
    pub(super) fn room(&self) -> usize {
        self.room
    }

    /// Bytes of the line that is not whole
    pub(super) fn held(&self) -> usize {
        if self.is_fresh() { 0 } else { self.held.len() }
    }

    /// Takes in bytes: how many belong to the line, and the line without its end once it is whole
    ///
    /// A line that is not whole takes all of `input`.
    pub(super) fn take<'s>(&'s mut self, input: &'s [u8]) -> Result<(usize, Option<&'s [u8]>), NoLine> {
        if self.is_fresh() {
            self.held.clear();
        }
        let window = &input[..input.len().min(self.room)];
        let Some(end) = self.find_end(window)? else {
            if window.len() == self.room {
                return Err(NoLine::TooLong);
            }
            self.room -= window.len();
            self.held.extend_from_slice(window);
            return Ok((window.len(), None));
        };
        self.room -= end;
        if self.held.is_empty() {
            return Ok((end, Some(&input[..end - 2])));
        }
        self.held.extend_from_slice(&input[..end]);
        Ok((end, Some(&self.held[..self.held.len() - 2])))
    }

    /// Where the line ends in `bytes`, behind its LF
    fn find_end(&mut self, bytes: &[u8]) -> Result<Option<usize>, NoLine> {
        let mut at = 0;
        if self.state != State::CarriageReturn {
            match find_line_byte(bytes) {
                None if bytes.is_empty() => return Ok(None),
                None => {
                    self.state = State::Within;
                    return Ok(None);
                }
                Some(found) if bytes[found] == b'\n' => return Err(NoLine::BareLineFeed),
                Some(found) => at = found + 1,
            }
        }
        match bytes.get(at) {
            Some(b'\n') => {
                self.state = State::Fresh;
                Ok(Some(at + 1))
            }
            Some(_) => Err(NoLine::BareCarriageReturn),
            None => {
                self.state = State::CarriageReturn;
                Ok(None)
            }
        }
    }
}

impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lines({} bytes held, room for {})", self.held(), self.room)
    }
}

/// Where the first CR or LF is
fn find_line_byte(bytes: &[u8]) -> Option<usize> {
    let found = memchr::memchr2(b'\r', b'\n', bytes);
    #[cfg(test)]
    tests::SEARCHED.with(|searched| searched.set(searched.get() + found.map_or(bytes.len(), |at| at + 1)));
    found
}

/// Splits a field line into its name and its value, the latter without the white space around it
pub(super) fn field_line(line: &[u8]) -> Result<(&str, &[u8]), RequestFault> {
    if matches!(line.first(), Some(b' ' | b'\t')) {
        return Err(RequestFault::FoldedLine);
    }
    let colon = memchr::memchr(b':', line).ok_or(RequestFault::NoColon)?;
    let (name, value) = (&line[..colon], &line[colon + 1..]);
    if matches!(name.last(), Some(b' ' | b'\t')) {
        return Err(RequestFault::SpaceBeforeColon);
    }
    let name = token(name).ok_or(RequestFault::BadFieldName)?;
    if value.iter().any(|&byte| byte != b'\t' && byte.is_ascii_control()) {
        return Err(RequestFault::ControlByte);
    }
    // Only blanks and tabs are left of what `trim_ascii` takes for white space.
    Ok((name, value.trim_ascii()))
}

/// The bytes as a token (RFC 9110 5.6.2), where they are one
pub(super) fn token(bytes: &[u8]) -> Option<&str> {
    let is_token = !bytes.is_empty() && bytes.iter().all(|&byte| is_token_byte(byte));
    if is_token { std::str::from_utf8(bytes).ok() } else { None }
}

/// Whether a token may have this byte
pub(super) fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
pub(super) mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        /// Bytes in which line ends were looked for
        pub(in super::super) static SEARCHED: Cell<usize> = const { Cell::new(0) };
    }

    /// The lines that `pieces` make, and how the last one ended
    fn feed(pieces: &[&[u8]], room: usize) -> (Vec<Vec<u8>>, Result<usize, NoLine>) {
        let mut lines = Lines::new(room);
        let mut told = Vec::new();
        for piece in pieces {
            let mut rest = *piece;
            loop {
                match lines.take(rest) {
                    Ok((used, Some(line))) => {
                        told.push(line.to_vec());
                        rest = &rest[used..];
                    }
                    Ok((used, None)) => {
                        assert_eq!(used, rest.len());
                        break;
                    }
                    Err(error) => return (told, Err(error)),
                }
            }
        }
        (told, Ok(lines.held()))
    }

    #[test]
    fn lines_are_the_same_wherever_they_are_cut() {
        for (text, lines, end) in [
            ("a\r\n\r\nbc\r\nd", &["a", "", "bc"][..], Ok(1)),
            ("a\r\n", &["a"], Ok(0)),
            ("a\r\nb\n", &["a"], Err(NoLine::BareLineFeed)),
            ("\n", &[], Err(NoLine::BareLineFeed)),
            ("a\r\nb\rc\n", &["a"], Err(NoLine::BareCarriageReturn)),
            ("a\r\r\n", &[], Err(NoLine::BareCarriageReturn)),
            ("a\r", &[], Ok(2)),
            ("0123456789012345678\r\n", &[], Err(NoLine::TooLong)),
            ("012345678901234567\r\n", &["012345678901234567"], Err(NoLine::TooLong)),
        ] {
            let bytes = text.as_bytes();
            let lines = lines.iter().map(|line| line.as_bytes().to_vec()).collect::<Vec<_>>();
            let expected = (lines, end);
            for cut in 0..=bytes.len() {
                let (first, second) = bytes.split_at(cut);
                assert_eq!(feed(&[first, second], 20), expected, "{text:?} cut at {cut}");
            }
            let single: Vec<_> = bytes.chunks(1).collect();
            assert_eq!(feed(&single, 20), expected, "{text:?}");
        }
    }

    #[test]
    fn field_lines_are_strict() {
        assert_eq!(field_line(b"A:b"), Ok(("A", &b"b"[..])));
        assert_eq!(field_line(b"x-Y_z:  \t b: c\xFF\t"), Ok(("x-Y_z", &b"b: c\xFF"[..])));
        assert_eq!(field_line(b"a:"), Ok(("a", &b""[..])));
        for (line, fault) in [
            (&b" a: b"[..], RequestFault::FoldedLine),
            (b"\ta: b", RequestFault::FoldedLine),
            (b"a", RequestFault::NoColon),
            (b"a : b", RequestFault::SpaceBeforeColon),
            (b"a\t: b", RequestFault::SpaceBeforeColon),
            (b": b", RequestFault::BadFieldName),
            (b"a b: c", RequestFault::BadFieldName),
            (b"a\0: c", RequestFault::BadFieldName),
            (b"\xE9: c", RequestFault::BadFieldName),
            (b"(a): c", RequestFault::BadFieldName),
            (b"a: b\0", RequestFault::ControlByte),
            (b"a: \x0Bb", RequestFault::ControlByte),
            (b"a:\x0C", RequestFault::ControlByte),
            (b"a: b\x7F", RequestFault::ControlByte),
        ] {
            assert_eq!(field_line(line), Err(fault), "{}", line.escape_ascii());
        }
    }
}
