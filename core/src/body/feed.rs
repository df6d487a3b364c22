//! What a driver reads a body with.

use std::io;
use std::sync::Arc;
use std::task::Waker;

use super::form::Boundary;
use super::source::BodySource;
use super::{Kind, Piece, Streamed};
use crate::call::{AttemptId, HeaderSource, Request};
use crate::machine::Supply;

/// What a driver reads on with in the request of one call, whichever attempt asks for it
#[derive(Default)]
pub struct Feed {
    /// What makes the header fields of an attempt; none once they are made
    headers: Option<(AttemptId, Option<Box<dyn HeaderSource>>)>,
    reader: Option<(AttemptId, Reader)>,
}

impl Feed {
    /// Reads what is to be told by [`Event::Supplied`](crate::machine::Event::Supplied), as far as `buffer`
    /// has room: of [`Interest::supply`](crate::machine::Interest::supply) bytes, no more
    ///
    /// None where the source has nothing yet: `waker` is woken once it has. For each attempt header fields
    /// are made anew, where they are, and the body begins anew, as far as it was read.
    ///
    /// # Panics
    ///
    /// If `buffer` has no room.
    pub fn supply<'b>(
        &mut self,
        request: &Request,
        attempt: AttemptId,
        waker: &Waker,
        buffer: &'b mut [u8],
    ) -> Option<Supply<'b>> {
        assert!(!buffer.is_empty(), "a body is read into a buffer that has room");
        if let Some(maker) = request.header_maker() {
            let (of, source) =
                self.headers.get_or_insert_with(|| (attempt, Some(maker.start(request, attempt))));
            if *of != attempt {
                (*of, *source) = (attempt, Some(maker.start(request, attempt)));
            }
            if let Some(making) = source {
                let made = making.make(waker)?;
                *source = None;
                return Some(match made {
                    Ok(fields) => Supply::Head(fields),
                    Err(error) => Supply::Failed(format!("the headers cannot be made: {error}")),
                });
            }
        }
        let Kind::Streamed(streamed) = &request.body().0 else { return Some(Supply::End) };
        // What was opened and not read yet serves the next attempt too: some bodies cannot be opened again.
        let reader = match self.reader.take() {
            Some((of, reader)) if of == attempt || !reader.is_begun => reader,
            _ => Reader::new(streamed),
        };
        let (_, reader) = self.reader.insert((attempt, reader));
        Some(match reader.read(waker, buffer)? {
            Ok(0) => Supply::End,
            Ok(read) => {
                reader.is_begun = true;
                Supply::Bytes(&buffer[..read])
            }
            Err(error) => Supply::Failed(format!("the body cannot be read: {error}")),
        })
    }
}

/// A body as it is read, from its start
struct Reader {
    pieces: Arc<[Piece]>,
    boundary: Boundary,
    /// The piece that is read
    at: usize,
    /// How much of it was read, where it is in memory
    read: usize,
    source: Option<Box<dyn BodySource>>,
    is_begun: bool,
}

impl Reader {
    fn new(streamed: &Streamed) -> Self {
        Self {
            pieces: Arc::clone(&streamed.pieces),
            boundary: streamed.boundary,
            at: 0,
            read: 0,
            source: None,
            is_begun: false,
        }
    }

    fn read(&mut self, waker: &Waker, buffer: &mut [u8]) -> Option<io::Result<usize>> {
        let Self { pieces, boundary, at, read, source, .. } = self;
        while let Some(piece) = pieces.get(*at) {
            let taken = match piece {
                Piece::Bytes(bytes) => copy(&bytes[*read..], buffer),
                Piece::Boundary => copy(&boundary.as_bytes()[*read..], buffer),
                Piece::Source(origin) => {
                    let source = match source {
                        Some(source) => source,
                        None => match origin.open() {
                            Ok(opened) => source.insert(opened),
                            Err(error) => return Some(Err(error)),
                        },
                    };
                    match source.read(waker, buffer)? {
                        Ok(taken) if taken > buffer.len() => {
                            return Some(Err(io::Error::other("the source read more than it could")));
                        }
                        Ok(taken) => taken,
                        Err(error) => return Some(Err(error)),
                    }
                }
            };
            if taken > 0 {
                *read += taken;
                return Some(Ok(taken));
            }
            *at += 1;
            (*read, *source) = (0, None);
        }
        Some(Ok(0))
    }
}

fn copy(from: &[u8], to: &mut [u8]) -> usize {
    let taken = from.len().min(to.len());
    to[..taken].copy_from_slice(&from[..taken]);
    taken
}

impl std::fmt::Debug for Feed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Feed").field("of", &self.reader.as_ref().map(|(of, _)| of)).finish_non_exhaustive()
    }
}
