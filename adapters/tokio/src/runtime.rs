//! tokio's clock, timer, reactor and sockets, as the shared driver wants them.

use std::future::{Future, poll_fn};
use std::io::{self, IoSlice, Read};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use socket2::SockRef;
use steadfast::call::{AttemptId, Call, CloseMode, Command, Origin};
use steadfast::http1::Tail;
use steadfast::time::Instant;
use steadfast_driver::{Action, Runtime, Socket};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::task::coop;
use tokio::time::{Sleep, sleep_until};

use crate::connect::Connector;
use crate::pool::{Carrier, Connections};

/// What a call needs of tokio
pub struct TokioRuntime {
    connector: Connector,
    connections: Connections,
    origin: Origin,
    sleep: Option<Pin<Box<Sleep>>>,
    turn: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

/// tokio's clock, which tests may pause, counted from the client's start
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(tokio::time::Instant);

impl Clock {
    pub(crate) fn start() -> Self {
        Self(tokio::time::Instant::now())
    }

    pub(crate) fn now(self) -> Instant {
        Instant::ORIGIN + self.0.elapsed()
    }

    /// The wall-clock time at our origin, given what it is now
    pub(crate) fn unix_at_origin(self, now: SystemTime) -> Duration {
        let since_epoch = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        since_epoch.saturating_sub(self.0.elapsed())
    }

    pub(crate) fn to_tokio(self, at: Instant) -> tokio::time::Instant {
        // Past what tokio can count to, a year is as good as never: the driver looks again then.
        const FAR: Duration = Duration::from_secs(365 * 24 * 3600);
        self.0.checked_add(at.since_origin()).unwrap_or_else(|| tokio::time::Instant::now() + FAR)
    }
}

impl TokioRuntime {
    pub(crate) fn new(connector: Connector, connections: Connections, origin: Origin) -> Self {
        Self { connector, connections, origin, sleep: None, turn: None }
    }

    /// Leaves a connection to a later call
    fn put(&self, id: AttemptId, tail: Option<Box<Tail>>) -> Action<AttemptId, Carrier> {
        let connections = self.connections.clone();
        Action::Release(id, Box::new(move |connection| connections.put(connection, tail)))
    }
}

impl Runtime<Call> for TokioRuntime {
    type Socket = Carrier;

    fn now(&self) -> Instant {
        self.connector.clock.now()
    }

    fn poll_until(&mut self, at: Instant, cx: &mut Context<'_>) -> Poll<()> {
        let at = self.connector.clock.to_tokio(at);
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(at)));
        // An idle bound moves with every byte. The timer is left where it is when it only has to
        // fire later: it then fires early, and the driver arms it afresh.
        if at < sleep.deadline() || sleep.is_elapsed() {
            sleep.as_mut().reset(at);
        }
        sleep.as_mut().poll(cx)
    }

    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let turn = self.turn.get_or_insert_with(|| Box::pin(tokio::task::yield_now()));
        let turned = turn.as_mut().poll(cx);
        if turned.is_ready() {
            self.turn = None;
        }
        turned
    }

    fn unbudgeted(&self, cx: &mut Context<'_>, poll: impl FnOnce(&mut Context<'_>)) {
        let mut poll = Some(poll);
        let once = pin!(coop::unconstrained(poll_fn(|cx| {
            if let Some(poll) = poll.take() {
                poll(cx);
            }
            Poll::Ready(())
        })));
        let _ = once.poll(cx);
    }

    fn act(&mut self, command: Command) -> Action<AttemptId, Carrier> {
        match command {
            Command::Connect(id) => {
                let open = self.connector.clone().connect(self.origin.clone());
                let connections = self.connections.clone();
                Action::Open(id, Box::pin(connections.get(self.origin.clone(), id.may_be_reused(), open)))
            }
            Command::Close(id, CloseMode::Abort) => Action::Close(id),
            Command::Close(id, CloseMode::Keep) => self.put(id, None),
            Command::Close(id, CloseMode::Finish(tail)) => self.put(id, Some(tail)),
        }
    }
}

/// A TCP connection of tokio
pub struct TcpSocket(TcpStream);

impl TcpSocket {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self(stream)
    }
}

impl Socket for TcpSocket {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(buffer);
        Pin::new(&mut self.0).poll_read(cx, &mut buffer).map_ok(|()| buffer.filled().len())
    }

    fn read_now(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&*SockRef::from(&self.0)).read(buffer)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, parts: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, parts)
    }
}
