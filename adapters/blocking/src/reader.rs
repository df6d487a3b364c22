//! Readers that may wait, each on a thread of its own, as the body of a request.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use steadfast::body::{BodySource, Waker};

/// Bytes of one read
const PIECE_BYTES: usize = 16 * 1024;
/// Pieces that wait to be taken
const MAX_PIECES: usize = 2;

/// A reader that may wait, such as a pipe or a socket, as what a body is read from
///
/// It is read on a thread of its own, from the first time that the body is asked for, so the call's deadlines
/// hold while it waits. The thread ends with the reader's end, or at its next read after the call is over.
/// What never waits needs no thread: see [`Ready`](steadfast::body::Ready).
///
/// ```no_run
/// use steadfast_blocking::{Body, Request, reader};
///
/// let request =
///     Request::post("https://example.com/v1/files").body(Body::once(reader(std::io::stdin()))).build()?;
/// # Ok::<(), steadfast_blocking::RequestError>(())
/// ```
pub fn reader(reader: impl Read + Send + 'static) -> impl BodySource + 'static {
    Reading { unread: Some(Box::new(reader)), pieces: None, piece: Vec::new(), taken: 0 }
}

struct Reading {
    /// Until there is a thread for it
    unread: Option<Box<dyn Read + Send>>,
    pieces: Option<Pieces>,
    piece: Vec<u8>,
    taken: usize,
}

struct Pieces {
    receiver: Receiver<io::Result<Vec<u8>>>,
    waker: Shared,
}

/// Whom to wake when there is a piece
type Shared = Arc<Mutex<Option<Waker>>>;

impl BodySource for Reading {
    fn read(&mut self, waker: &Waker, buffer: &mut [u8]) -> Option<io::Result<usize>> {
        if self.taken == self.piece.len() {
            if let Some(reader) = self.unread.take() {
                match Pieces::of(reader) {
                    Ok(pieces) => self.pieces = Some(pieces),
                    Err(error) => return Some(Err(error)),
                }
            }
            self.taken = 0;
            self.piece.clear();
            // None after the end, or after a failure that was told.
            match self.pieces.as_ref().map_or(Some(Ok(Vec::new())), |pieces| pieces.next(waker))? {
                Ok(piece) => self.piece = piece,
                Err(error) => {
                    self.pieces = None;
                    return Some(Err(error));
                }
            }
        }
        let left = &self.piece[self.taken..];
        let taken = left.len().min(buffer.len());
        buffer[..taken].copy_from_slice(&left[..taken]);
        self.taken += taken;
        Some(Ok(taken))
    }
}

impl Pieces {
    fn of(reader: Box<dyn Read + Send>) -> io::Result<Self> {
        let (sender, receiver) = sync_channel(MAX_PIECES);
        let waker = Shared::default();
        let shared = Arc::clone(&waker);
        thread::Builder::new()
            .name("steadfast-body".to_owned())
            .spawn(move || pump(reader, &sender, &shared))?;
        Ok(Self { receiver, waker })
    }

    /// The next piece, empty at the end; none where there is none yet, and then `waker` is woken later
    fn next(&self, waker: &Waker) -> Option<io::Result<Vec<u8>>> {
        // Before the look: what comes between the two wakes.
        *self.waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(waker.clone());
        match self.receiver.try_recv() {
            Ok(piece) => Some(piece),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Ok(Vec::new())),
        }
    }
}

/// Reads until the end, or until nobody wants any more
fn pump(mut reader: Box<dyn Read + Send>, sender: &SyncSender<io::Result<Vec<u8>>>, waker: &Shared) {
    loop {
        let mut piece = vec![0; PIECE_BYTES];
        let read = reader.read(&mut piece);
        let is_last = match &read {
            Ok(read) => *read == 0,
            Err(error) => error.kind() != io::ErrorKind::Interrupted,
        };
        if matches!(&read, Err(error) if error.kind() == io::ErrorKind::Interrupted) {
            continue;
        }
        let piece = read.map(|read| {
            piece.truncate(read);
            piece
        });
        let is_wanted = sender.send(piece).is_ok();
        if let Some(waker) = waker.lock().unwrap_or_else(PoisonError::into_inner).take() {
            waker.wake();
        }
        if is_last || !is_wanted {
            return;
        }
    }
}
