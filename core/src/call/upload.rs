//! The request as it goes out on one connection: its head, and its body in one buffer or through a window.

use std::io::Write as _;

use bytes::Bytes;

use crate::body::{Body, WINDOW_BYTES};
use crate::machine::Supply;

/// How far a request has gone out
#[derive(Debug)]
pub(super) struct Upload {
    /// None until the header fields of the attempt are made
    head: Option<Bytes>,
    /// Bytes of head and body that the connection took, those that frame the body included
    sent: u64,
    /// What is on its way of a body that is read as it goes out
    window: Option<Box<Window>>,
}

/// Bytes of a body between its source and the connection
#[derive(Debug)]
struct Window {
    bytes: Vec<u8>,
    /// How many of them the connection took
    taken: usize,
    /// Bytes that the source brought, in all
    supplied: u64,
    /// How many it has to bring; none where the body goes out in chunks
    length: Option<u64>,
    has_ended: bool,
}

impl Upload {
    pub(super) fn new(head: Option<Bytes>, body: &Body) -> Self {
        let window = body.as_bytes().is_none().then(|| {
            let length = body.len();
            Box::new(Window { bytes: Vec::new(), taken: 0, supplied: 0, length, has_ended: false })
        });
        Self { head, sent: 0, window }
    }

    /// Whether the connection took anything
    pub(super) fn is_begun(&self) -> bool {
        self.sent > 0
    }

    /// Whether the head is whole
    pub(super) fn has_head(&self) -> bool {
        self.head.is_some()
    }

    pub(super) fn set_head(&mut self, head: Bytes) {
        self.head = Some(head);
    }

    /// What is there to be written
    pub(super) fn outgoing<'a>(&'a self, body: &'a Body) -> [&'a [u8]; 2] {
        let Some(head) = &self.head else { return [&[], &[]] };
        let in_head = self.sent.min(head.len() as u64);
        let rest = match (&self.window, body.as_bytes()) {
            (Some(window), _) => &window.bytes[window.taken..],
            (None, Some(bytes)) => &bytes[at(self.sent - in_head)..],
            (None, None) => &[],
        };
        [&head[at(in_head)..], rest]
    }

    /// The connection took so many bytes of it
    pub(super) fn took(&mut self, sent: usize) {
        let left_of_head = self.head_bytes().saturating_sub(self.sent);
        self.sent += sent as u64;
        if let Some(window) = &mut self.window {
            window.taken += sent.saturating_sub(at(left_of_head));
            if window.taken == window.bytes.len() {
                window.taken = 0;
                window.bytes.clear();
            }
        }
    }

    /// Whether the connection took all of it
    pub(super) fn is_whole(&self, body: &Body) -> bool {
        let has_ended = self.window.as_ref().is_none_or(|window| window.has_ended) || planted!(KeptHalfSent);
        has_ended && self.has_head() && self.outgoing(body).iter().all(|part| part.is_empty())
    }

    /// How many bytes are wanted now: of the body, or header fields where the head is not whole
    ///
    /// None before the head is out: so nothing was read for a connection that takes not one byte. And none
    /// while half of the window is on its way: a read is worth its while then.
    pub(super) fn wants(&self) -> usize {
        match &self.window {
            _ if !self.has_head() => WINDOW_BYTES,
            Some(window) if self.sent >= self.head_bytes() && !window.has_ended => {
                let held = window.bytes.len() - window.taken;
                match held {
                    _ if planted!(WindowWithoutEnd) => WINDOW_BYTES,
                    _ if held > WINDOW_BYTES / 2 => 0,
                    _ => WINDOW_BYTES - held,
                }
            }
            Some(_) | None => 0,
        }
    }

    fn head_bytes(&self) -> u64 {
        self.head.as_ref().map_or(0, |head| head.len() as u64)
    }

    /// Takes in what the source brought
    ///
    /// Errors: what is wrong with it, for the caller, whose source it is.
    pub(super) fn supply(&mut self, supply: Supply<'_>) -> Result<(), String> {
        match (supply, &mut self.window) {
            (Supply::Bytes(bytes), Some(window)) => window.take(bytes),
            (Supply::End, Some(window)) => window.end(),
            (Supply::Failed(message), _) => Err(message),
            (Supply::Bytes(_) | Supply::End, None) | (Supply::Head(_), _) => Ok(()),
        }
    }
}

impl Window {
    fn take(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.supplied += bytes.len() as u64;
        self.bytes.drain(..std::mem::take(&mut self.taken));
        match self.length {
            Some(length) if self.supplied > length => {
                return Err(format!("the body has more than the {length} bytes that it should have"));
            }
            Some(_) => self.bytes.extend_from_slice(bytes),
            // An empty chunk would be the last one.
            None if bytes.is_empty() => {}
            None => {
                write!(self.bytes, "{:x}\r\n", bytes.len()).expect("a Vec takes all");
                self.bytes.extend_from_slice(bytes);
                self.bytes.extend_from_slice(b"\r\n");
            }
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), String> {
        self.has_ended = true;
        match self.length {
            Some(length) if self.supplied < length => {
                let supplied = self.supplied;
                return Err(format!(
                    "the body ended after {supplied} of the {length} bytes that it should have"
                ));
            }
            Some(_) => {}
            None => self.bytes.extend_from_slice(b"0\r\n\r\n"),
        }
        Ok(())
    }
}

fn at(offset: u64) -> usize {
    usize::try_from(offset).expect("a place in a buffer")
}
