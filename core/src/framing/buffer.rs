//! What a framer holds of a body: the mark at its start, and an event that came in pieces.

/// The byte order mark that may open a body (WHATWG HTML 9.2; RFC 8259 8.1 permits to ignore one)
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ByteOrderMark {
    /// Bytes of it seen so far; all of them once the body is past it
    seen: usize,
}

impl ByteOrderMark {
    const BYTES: [u8; 3] = [0xEF, 0xBB, 0xBF];

    /// Whether the body is past the place of a mark
    pub(super) fn is_past(self) -> bool {
        self.seen == Self::BYTES.len()
    }

    /// Passes over a mark, wherever it is cut; returns how many bytes of `input` were used, and what
    /// looked like one and is none, which comes before the rest of `input`
    pub(crate) fn skip(&mut self, input: &[u8]) -> (usize, &'static [u8]) {
        const MARK: &[u8] = &ByteOrderMark::BYTES;
        let mut at = 0;
        while !self.is_past() && at < input.len() {
            if input[at] != MARK[self.seen] {
                let look_alike = &MARK[..self.seen];
                self.seen = MARK.len();
                return (at, look_alike);
            }
            self.seen += 1;
            at += 1;
        }
        (at, &[])
    }
}

/// Adds `bytes` to `kept`, which grows by doubling but not past `limit` unless it must
pub(super) fn keep(kept: &mut Vec<u8>, bytes: &[u8], limit: usize) {
    let needed = kept.len() + bytes.len();
    if needed > kept.capacity() {
        let target = (2 * kept.capacity()).min(limit).max(needed);
        kept.reserve_exact(target - kept.len());
    }
    kept.extend_from_slice(bytes);
}
