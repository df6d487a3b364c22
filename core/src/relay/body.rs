//! A request's body: on its way to the provider, and kept while it may have to be sent again.

use std::io::Write as _;

use crate::http1::BodyLength;

/// Room that an empty body keeps for the next piece
const SPARE: usize = 64 * 1024;

/// The body of one request, as it goes over the wire
pub(super) struct Body {
    length: BodyLength,
    /// What came and is not sent yet; where it is kept, all that came
    wire: Vec<u8>,
    /// Bytes of `wire` that the present connection took
    sent: usize,
    is_kept: bool,
    max_kept: usize,
    /// Bytes of body that came, without their framing
    payload: u64,
    has_ended: bool,
}

impl Body {
    pub(super) fn new(length: BodyLength, max_kept: usize) -> Self {
        Self {
            length,
            wire: Vec::new(),
            sent: 0,
            // One that will be too long is not kept at all.
            is_kept: !matches!(length, BodyLength::Length(length) if length > max_kept as u64),
            max_kept,
            payload: 0,
            has_ended: matches!(length, BodyLength::None | BodyLength::Length(0)),
        }
    }

    /// Bytes of body that came
    pub(super) fn payload(&self) -> u64 {
        self.payload
    }

    /// All of it has come
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// All of it has come, and gone out
    pub(super) fn is_sent(&self) -> bool {
        self.has_ended && self.unsent().is_empty()
    }

    /// What is still to be written
    pub(super) fn unsent(&self) -> &[u8] {
        &self.wire[self.sent..]
    }

    /// Whether it can be sent from its beginning, what is still to come included
    pub(super) fn can_be_sent_again(&self) -> bool {
        self.is_kept && (self.length != BodyLength::Chunked || self.has_ended)
    }

    /// Whether a piece may go straight from the driver's buffer to the socket
    pub(super) fn may_pass(&self) -> bool {
        !self.is_kept && matches!(self.length, BodyLength::Length(_)) && self.unsent().is_empty()
    }

    /// A piece came that goes straight on
    pub(super) fn passed(&mut self, bytes: usize) {
        self.came(bytes);
    }

    fn came(&mut self, bytes: usize) {
        self.payload += bytes as u64;
        self.has_ended |= self.length == BodyLength::Length(self.payload);
    }

    /// A piece came
    pub(super) fn push(&mut self, piece: &[u8]) {
        self.came(piece.len());
        match self.length {
            BodyLength::Chunked => {
                write!(self.wire, "{:x}\r\n", piece.len()).expect("writing to a Vec cannot fail");
                self.wire.extend_from_slice(piece);
                self.wire.extend_from_slice(b"\r\n");
            }
            BodyLength::None | BodyLength::Length(_) => self.wire.extend_from_slice(piece),
        }
        // With the framing: that of a body in tiny chunks is larger than the body.
        if self.wire.len() > self.max_kept {
            self.forget();
        }
    }

    /// What was not taken of a piece that went straight on
    pub(super) fn keep_rest(&mut self, rest: &[u8]) {
        self.wire.extend_from_slice(rest);
    }

    /// The last piece has come
    pub(super) fn end(&mut self) {
        self.has_ended = true;
        if self.length == BodyLength::Chunked {
            self.wire.extend_from_slice(b"0\r\n\r\n");
        }
    }

    /// The connection took so many bytes
    pub(super) fn sent(&mut self, bytes: usize) {
        self.sent += bytes;
        if !self.is_kept && self.unsent().is_empty() {
            self.sent = 0;
            self.wire.clear();
            self.wire.shrink_to(SPARE);
        }
    }

    /// It goes out once more, from its beginning
    pub(super) fn rewind(&mut self) {
        self.sent = 0;
    }

    /// It will not be sent again: what went out is dropped
    pub(super) fn forget(&mut self) {
        if self.is_kept {
            self.is_kept = false;
            self.wire.drain(..self.sent);
            self.wire.shrink_to(SPARE);
            self.sent = 0;
        }
    }

    /// No more of it goes out
    pub(super) fn discard(&mut self) {
        self.is_kept = false;
        self.wire = Vec::new();
        self.sent = 0;
    }

    /// Bytes that it holds
    pub(super) fn held(&self) -> usize {
        self.wire.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_kept_up_to_its_cap_and_then_only_what_is_on_its_way() {
        let mut body = Body::new(BodyLength::Length(10), 6);
        assert!(!body.can_be_sent_again(), "it will be too long");
        let mut body_in_time = Body::new(BodyLength::Length(6), 6);
        assert!(body_in_time.can_be_sent_again());
        body_in_time.push(b"abc");
        body_in_time.sent(3);
        body_in_time.rewind();
        assert_eq!(body_in_time.unsent(), b"abc");
        body.push(b"abcd");
        body.sent(2);
        assert!(!body.may_pass(), "a part of it waits");
        body.push(b"efgh");
        assert_eq!(body.unsent(), b"cdefgh");
        body.sent(6);
        assert_eq!(body.held(), 0);
        assert!(body.may_pass());
    }

    #[test]
    fn one_in_chunks_is_kept_until_it_is_too_long() {
        let mut body = Body::new(BodyLength::Chunked, 12);
        body.push(b"abcd");
        body.sent(9);
        assert_eq!(body.held(), 9);
        body.push(b"efgh");
        assert_eq!(body.unsent(), b"4\r\nefgh\r\n", "what went out is dropped");
        assert_eq!(body.held(), 9);
        body.end();
        assert!(!body.can_be_sent_again());
    }

    #[test]
    fn one_of_unknown_length_goes_out_in_chunks_and_again_once_it_is_whole() {
        let mut body = Body::new(BodyLength::Chunked, 100);
        body.push(b"0123456789abcdef");
        assert!(!body.can_be_sent_again());
        body.end();
        assert!(body.can_be_sent_again());
        assert_eq!(body.unsent(), b"10\r\n0123456789abcdef\r\n0\r\n\r\n");
        assert!(!body.may_pass());
        assert_eq!(body.payload(), 16);
    }
}
