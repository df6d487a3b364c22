//! A runtime with virtual time, and sockets in memory.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io::{self, ErrorKind, IoSlice};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use steadfast::call::{AttemptId, Call, CloseMode, Command};
use steadfast::http1::Tail;
use steadfast::machine::IoFailure;
use steadfast::time::Instant;
use steadfast_driver::{Action, Connection, Handshake, Runtime, Socket};
use steadfast_tls::TlsConfig;

/// Everything there is, shared by a test and the runtime it drives
#[derive(Clone, Default)]
pub(crate) struct World(Arc<Mutex<State>>);

#[derive(Default)]
pub(crate) struct State {
    pub(crate) now: Instant,
    /// When the runtime's timer goes off, as the last poll armed it
    pub(crate) timer: Option<Instant>,
    /// Turns that the reactor made
    pub(crate) turns: usize,
    /// A turn shows the reactor nothing: another thread holds it
    pub(crate) turns_are_blind: bool,
    turning: bool,
    /// How often reads and connects may be ready before the runtime makes them look pending
    pub(crate) budget: Option<usize>,
    unbudgeted: bool,
    /// One for each connection asked for
    pub(crate) wires: Vec<Wire>,
    pub(crate) tls: Option<TlsConfig>,
    /// What the last connection that was given up still owed of its message
    pub(crate) tail: Option<Box<Tail>>,
}

/// One connection
#[derive(Default)]
pub(crate) struct Wire {
    pub(crate) id: Option<AttemptId>,
    pub(crate) open: Open,
    pub(crate) incoming: VecDeque<Incoming>,
    /// Comes again and again once the rest was read
    pub(crate) endless: Option<Vec<u8>>,
    /// The reactor has not heard of what came
    pub(crate) unseen: bool,
    /// What was written
    pub(crate) outgoing: Vec<u8>,
    /// How many bytes a write may still take; none means any number
    pub(crate) room: Option<usize>,
    /// What writes fail with once there is no room; to write zero is to take nothing and say so
    pub(crate) write_failure: Option<ErrorKind>,
    /// Reads that the system was asked for, past the reactor
    pub(crate) looks: usize,
    pub(crate) open_waker: Option<Waker>,
    pub(crate) read_waker: Option<Waker>,
    pub(crate) write_waker: Option<Waker>,
    /// The socket is gone, or what was to become one
    pub(crate) dropped: bool,
}

#[derive(Clone, Default)]
pub(crate) enum Open {
    #[default]
    Never,
    /// It is, but the reactor has not heard
    Unseen,
    Yes,
    Failed(IoFailure),
}

pub(crate) enum Incoming {
    Bytes(Vec<u8>),
    Eof,
    Failed(ErrorKind),
}

impl World {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // A test that failed tells more by what it said than by a poisoned lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection over a new wire
    pub(crate) fn connect(&self, wire: Wire) -> Connection<FakeSocket> {
        let mut state = self.lock();
        state.wires.push(wire);
        Connection::plain(FakeSocket { world: self.clone(), number: state.wires.len() - 1 })
    }

    pub(crate) fn advance(&self, by: Duration) {
        let mut state = self.lock();
        state.now = state.now + by;
    }
}

impl State {
    fn allowed(&mut self, cx: &Context<'_>) -> bool {
        if self.unbudgeted {
            return true;
        }
        match &mut self.budget {
            Some(0) => {
                cx.waker().wake_by_ref();
                false
            }
            Some(left) => {
                *left -= 1;
                true
            }
            None => true,
        }
    }
}

impl Wire {
    pub(crate) fn push(&mut self, bytes: impl AsRef<[u8]>) {
        // A read of nothing would be the end.
        if !bytes.as_ref().is_empty() {
            self.incoming.push_back(Incoming::Bytes(bytes.as_ref().to_vec()));
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.incoming.is_empty() {
            self.incoming.extend(self.endless.clone().map(Incoming::Bytes));
        }
        match self.incoming.pop_front() {
            None => Err(ErrorKind::WouldBlock.into()),
            Some(Incoming::Eof) => {
                self.incoming.push_front(Incoming::Eof);
                Ok(0)
            }
            Some(Incoming::Failed(kind)) => {
                self.incoming.push_front(Incoming::Failed(kind));
                Err(kind.into())
            }
            Some(Incoming::Bytes(bytes)) => {
                let fit = bytes.len().min(buffer.len());
                buffer[..fit].copy_from_slice(&bytes[..fit]);
                if fit < bytes.len() {
                    self.incoming.push_front(Incoming::Bytes(bytes[fit..].to_vec()));
                }
                Ok(fit)
            }
        }
    }
}

/// The runtime that a driver gets
pub(crate) struct Fake(pub(crate) World);

impl Runtime<Call> for Fake {
    type Socket = FakeSocket;

    fn now(&self) -> Instant {
        self.0.lock().now
    }

    fn poll_until(&mut self, at: Instant, _: &mut Context<'_>) -> Poll<()> {
        let mut state = self.0.lock();
        if at <= state.now {
            return Poll::Ready(());
        }
        state.timer = Some(at);
        Poll::Pending
    }

    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.0.lock();
        state.turning = !state.turning;
        if state.turning {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        state.turns += 1;
        if !state.turns_are_blind {
            for wire in &mut state.wires {
                wire.unseen = false;
                if matches!(wire.open, Open::Unseen) {
                    wire.open = Open::Yes;
                }
            }
        }
        Poll::Ready(())
    }

    fn unbudgeted(&self, cx: &mut Context<'_>, poll: impl FnOnce(&mut Context<'_>)) {
        self.0.lock().unbudgeted = true;
        poll(cx);
        self.0.lock().unbudgeted = false;
    }

    fn act(&mut self, command: Command) -> Action<Call, FakeSocket> {
        match command {
            Command::Connect(id) => {
                let mut state = self.0.lock();
                // A test may have laid out what this connection will be.
                let number = id.number() as usize - 1;
                if state.wires.len() <= number {
                    state.wires.resize_with(number + 1, Wire::default);
                }
                state.wires[number].id = Some(id);
                let socket = FakeSocket { world: self.0.clone(), number };
                Action::Open(id, Box::pin(open(socket, state.tls.clone())))
            }
            Command::Retry(_) => Action::Nothing,
            Command::Close(id, mode) => {
                if let CloseMode::Finish(tail) = mode {
                    self.0.lock().tail = Some(tail);
                }
                Action::Close(id)
            }
        }
    }
}

async fn open(socket: FakeSocket, tls: Option<TlsConfig>) -> Result<Connection<FakeSocket>, IoFailure> {
    poll_fn(|cx| {
        let mut state = socket.world.lock();
        let allowed = state.allowed(cx);
        let wire = &mut state.wires[socket.number];
        match &wire.open {
            Open::Yes if allowed => Poll::Ready(Ok(())),
            Open::Failed(failure) if allowed => Poll::Ready(Err(failure.clone())),
            Open::Never | Open::Unseen | Open::Yes | Open::Failed(_) => {
                wire.open_waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    })
    .await?;
    match tls {
        None => Ok(Connection::plain(socket)),
        Some(tls) => {
            let mut handshake = std::pin::pin!(Handshake::new(socket, &tls, "localhost")?);
            poll_fn(|cx| handshake.as_mut().poll(cx)).await
        }
    }
}

pub(crate) struct FakeSocket {
    world: World,
    number: usize,
}

impl Drop for FakeSocket {
    fn drop(&mut self) {
        self.world.lock().wires[self.number].dropped = true;
    }
}

impl Socket for FakeSocket {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut state = self.world.lock();
        let allowed = state.allowed(cx);
        let wire = &mut state.wires[self.number];
        let read = if wire.unseen { Err(ErrorKind::WouldBlock.into()) } else { wire.read(buffer) };
        match read {
            read if !allowed || read.as_ref().is_err_and(|error| error.kind() == ErrorKind::WouldBlock) => {
                if let Ok(n) = read
                    && n > 0
                {
                    wire.incoming.push_front(Incoming::Bytes(buffer[..n].to_vec()));
                }
                wire.read_waker = Some(cx.waker().clone());
                Poll::Pending
            }
            read => Poll::Ready(read),
        }
    }

    fn read_now(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut state = self.world.lock();
        let wire = &mut state.wires[self.number];
        wire.looks += 1;
        wire.read(buffer)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, parts: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let mut state = self.world.lock();
        let wire = &mut state.wires[self.number];
        match wire.write_failure {
            Some(_) if wire.room.is_some_and(|room| room > 0) => {}
            Some(ErrorKind::WriteZero) => return Poll::Ready(Ok(0)),
            Some(kind) => return Poll::Ready(Err(kind.into())),
            None => {}
        }
        ready!(match wire.room {
            Some(0) => {
                wire.write_waker = Some(cx.waker().clone());
                Poll::Pending
            }
            Some(_) | None => Poll::Ready(()),
        });
        let whole: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
        let taken = whole.len().min(wire.room.unwrap_or(usize::MAX));
        wire.room = wire.room.map(|room| room - taken);
        wire.outgoing.extend_from_slice(&whole[..taken]);
        Poll::Ready(Ok(taken))
    }
}
