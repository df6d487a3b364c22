//! What a client needs of an async runtime.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
#[cfg(unix)]
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant as SystemInstant;

use steadfast::connect::TcpSettings;

use crate::client::resolve::Resolve;
use crate::connection::Socket;

/// An async runtime, as a [`Client`](crate::Client) needs it
///
/// Implemented by a type without values: a runtime is found where a task runs.
pub trait Network: Copy + Send + Sync + Unpin + 'static {
    /// Its stream sockets: TCP, and on Unix local ones
    type Socket: Socket + Send + 'static;

    /// Its timers
    type Timer: Timer;

    /// What tells one of its reactors from another
    ///
    /// A socket belongs to the one with which it was opened, and might be awaited with another in vain.
    type Reactor: Clone + Eq + Send + Sync + 'static;

    /// The reactor of the task that runs; `None` outside of the runtime
    fn reactor() -> Option<Self::Reactor>;

    /// The time by its clock, which tests may pause
    fn now() -> SystemInstant;

    /// Connects to `address`, with [`set_up`](crate::set_up) of the connection
    fn connect(address: SocketAddr, settings: TcpSettings) -> Connecting<Self::Socket>;

    /// Connects to the Unix socket at `path`
    #[cfg(unix)]
    fn connect_unix(path: &Path) -> Connecting<Self::Socket>;

    /// The system's own resolver
    fn resolver() -> Arc<dyn Resolve>;

    /// Runs `task` beside the task that runs, within the runtime
    fn spawn(task: impl Future<Output = ()> + Send + 'static);

    /// Ready when the reactor has looked at all sockets once; see [`Runtime::poll_turn`]
    ///
    /// `None` for a runtime whose sockets ask the operating system each time they are polled.
    ///
    /// [`Runtime::poll_turn`]: crate::Runtime::poll_turn
    fn turn() -> Option<Turn>;

    /// Calls `poll` so that the runtime's fairness budget cannot make what is ready look pending
    fn unbudgeted(cx: &mut Context<'_>, poll: impl FnOnce(&mut Context<'_>));
}

/// A connection that is being opened
pub type Connecting<S> = Pin<Box<dyn Future<Output = io::Result<S>> + Send>>;

/// A turn of a reactor; see [`Network::turn`]
pub type Turn = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A runtime's timer
pub trait Timer: Send + Unpin + Sized + 'static {
    /// A timer that fires at `at`
    fn at(at: SystemInstant) -> Self;

    /// Fires at `at` from now on, whether it has fired before or not
    fn reset(&mut self, at: SystemInstant);

    /// Ready once it fires
    fn poll_fire(&mut self, cx: &mut Context<'_>) -> Poll<()>;
}
