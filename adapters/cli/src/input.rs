//! What comes from stdin, or from a file.

use std::io::{self, Read};

/// All that there is to read
///
/// Errors: those of the reader, and more than `limit` bytes.
pub(crate) fn read_all(reader: impl Read, limit: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(limit as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > limit {
        let text = format!("larger than {} MiB, the most that is read", limit >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_bounded() {
        assert_eq!(read_all(&b"abc"[..], 3).unwrap(), b"abc");
        let error = read_all(io::repeat(0), 2 << 20).unwrap_err();
        assert_eq!(error.to_string(), "larger than 2 MiB, the most that is read");
    }
}
