//! The end of a response whose call is over.

use std::time::Duration;

use super::response::{Part, ResponseDecoder};
use crate::time::Instant;

/// The most bytes of a response that are read and dropped once its call is over: 64 KiB
///
/// Past them a new connection costs less than what is still to come.
pub const MAX_TAIL_BYTES: usize = 64 * 1024;

/// What a connection still owes of a response whose call is over
///
/// A stream's call is done at the sentinel, often a read before the end of its message. Until that
/// has come, another response on that connection could not be told from the rest of this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tail {
    decoder: ResponseDecoder,
    /// Bytes of the body at the front of what comes next
    body_left: usize,
    /// Bytes that may still be dropped
    room: usize,
    until: Option<Instant>,
    keep_for: Option<Duration>,
}

/// Where a [`Tail`] is
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TailState {
    /// More has to come
    Open,
    /// The message has ended, and the connection may carry another request
    Ended,
    /// It cannot carry another one: close it
    Broken,
}

impl Tail {
    /// The rest of the response that `decoder` reads, until when it may come, and for how long the server
    /// keeps the connection then, if it said so
    ///
    /// `body_left` bytes of the body that the decoder has told of are at the front of what comes
    /// next. `None` where the connection cannot carry another request, whatever comes.
    pub(crate) fn new(
        decoder: ResponseDecoder,
        body_left: usize,
        until: Option<Instant>,
        keep_for: Option<Duration>,
    ) -> Option<Self> {
        decoder.can_be_reused().then_some(Self { decoder, body_left, room: MAX_TAIL_BYTES, until, keep_for })
    }

    /// Until when the message may end; `None` where that is not bounded
    pub fn until(&self) -> Option<Instant> {
        self.until
    }

    /// For how long the server keeps the connection behind the message, where it said so
    pub fn keep_for(&self) -> Option<Duration> {
        self.keep_for
    }

    /// Takes in what came; nothing is kept of it
    ///
    /// Once it said [`TailState::Ended`], any further byte makes it [`TailState::Broken`].
    pub fn receive(&mut self, mut bytes: &[u8]) -> TailState {
        if bytes.len() > self.room {
            self.room = 0;
            return TailState::Broken;
        }
        self.room -= bytes.len();
        let of_body = self.body_left.min(bytes.len());
        self.body_left -= of_body;
        bytes = &bytes[of_body..];
        if self.body_left > 0 {
            return TailState::Open;
        }
        loop {
            match self.decoder.next(bytes) {
                Ok((_, Some(Part::End(end)))) if !end.reusable => return TailState::Broken,
                Ok((consumed, Some(_))) => bytes = &bytes[consumed..],
                Ok((_, None)) if self.decoder.has_ended() => {
                    return if bytes.is_empty() { TailState::Ended } else { TailState::Broken };
                }
                Ok((_, None)) => return TailState::Open,
                Err(_) => return TailState::Broken,
            }
        }
    }
}
