//! The pull driver and the client that every async adapter shares.
//!
//! It drives any [`Machine`](steadfast::machine::Machine) with nothing but `std`'s `Poll` and
//! `Context`, so it belongs to no runtime. A runtime brings two things: a [`Socket`], and a
//! [`Runtime`] that knows the time, sleeps, and opens connections. For calls to a model there is a whole
//! [`Client`] with its pool, connect race and proxies, for any runtime that is a [`Network`].
//!
//! | file | what is in it |
//! |---|---|
//! | `driver` | [`Driver`]: the loop, in one screen |
//! | `connection` | [`Connection`]: a socket, plain or under TLS |
//! | `handshake` | [`Handshake`]: TLS from first to last flight |
//! | `tunnel` | [`Tunnelling`], [`Through`], [`Way`]: a tunnel through a proxy, and the sockets under it |
//! | `resting` | [`Resting`]: a connection between two exchanges |
//! | `client` | [`Client`]: makes calls over TCP and Unix sockets, on any runtime that is a [`Network`] |
//! | `chat` | [`Chat`], [`ToolLoop`]: turns of conversations, and the tools that models call |
//! | `calling` | [`CallStream`]: a call as a stream of pieces and an outcome, for its consumer |
//! | `headers` | [`headers()`]: header fields that a future makes for each attempt |
//! | `canceller` | [`Canceller`]: giving a call up from elsewhere |
//! | `service` | a client as a tower service; feature `tower` |
//! | `tcp` | [`set_up()`]: what is asked of the operating system for a TCP connection |
//! | `scratch` | the read buffers that all calls on a thread share |

mod calling;
mod canceller;
mod chat;
mod client;
mod connection;
mod driver;
mod handshake;
mod headers;
mod resting;
mod scratch;
#[cfg(feature = "tower")]
mod service;
mod tcp;
mod tunnel;

pub use calling::CallStream;
pub use canceller::Canceller;
pub use chat::{
    Chat, LoopEnd, Tool, ToolEnd, ToolError, ToolEvent, ToolFuture, ToolLoop, ToolRecord, ToolReport,
    ToolRun, tool,
};
pub use client::{
    Calls, Client, Connecting, Leased, MAX_LOOK_UPS, Network, Resolve, Resolving, Timekeeper, Timer, Turn,
    look_up,
};
pub use connection::{Ask, Connection, Read, Socket};
pub use driver::{Action, Driver, Later, MAX_ROUNDS_PER_POLL, Opening, Output, Release, Runtime};
pub use handshake::Handshake;
pub use headers::headers;
pub use resting::{Found, Resting};
pub use scratch::SCRATCH_BYTES;
#[cfg(feature = "tower")]
pub use service::{CallOutcome, ResponseBody, ServiceError};
pub use steadfast::call::Piece;
pub use steadfast::machine::io_failure;
pub use tcp::set_up;
pub use tunnel::{Through, Tunnelling, Way};
