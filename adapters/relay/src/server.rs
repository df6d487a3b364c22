//! Listens, accepts, drains.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpListener;
use tokio::time::timeout;

use crate::serving::serve;
use crate::shared::Relay;

/// How many connections may wait to be accepted
const BACKLOG: i32 = 1024;

/// How long to wait where the system has no room for another connection: 50 ms
const PAUSE_WHEN_FULL: Duration = Duration::from_millis(50);

/// How many connections past the cap are told so at once; those past them are closed without a word
///
/// Whoever opens connections to use them up gets no more than these.
pub const MAX_REFUSALS: usize = 32;

/// How long a connection past the cap may take to ask, and to take its refusal: 5 s
const REFUSED_WITHIN: Duration = Duration::from_secs(5);

/// A relay that listens
pub struct Server {
    listener: TcpListener,
    relay: Relay,
}

/// The relay cannot listen; the text names the fix
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The address cannot be had
    #[error("cannot listen on {address}: {source}; choose another with `listen`")]
    Listen {
        /// The address
        address: SocketAddr,
        /// The operating system's word
        source: io::Error,
    },
}

impl Server {
    /// Listens on `address`, which other processes of the relay may share where `shares` is set
    ///
    /// Port 0 takes a free one: see [`Server::address`].
    ///
    /// Errors: the address cannot be had. To be called within a tokio runtime.
    pub fn bind(address: SocketAddr, shares: bool, relay: Relay) -> Result<Self, ServerError> {
        let listener = listen(address, shares).map_err(|source| ServerError::Listen { address, source })?;
        Ok(Self { listener, relay })
    }

    /// Where it listens
    ///
    /// Errors: as the operating system's.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// The relay
    pub fn relay(&self) -> &Relay {
        &self.relay
    }

    /// Accepts and serves connections, each in a task of its own, until the relay drains
    ///
    /// Connections are accepted while it drains, too, for as long as this is polled: what they ask for is
    /// refused as `gateway_draining`, which an app understands better than a refused connection. Past the
    /// cap on connections of apps it is refused as `gateway_overloaded` likewise, up to [`MAX_REFUSALS`] at
    /// a time: nothing that is open is closed to make room.
    pub async fn run(&self) {
        loop {
            let stream = match self.listener.accept().await {
                Ok((stream, _)) => stream,
                // Out of descriptors, or the like: those that are open go on, and the next one waits.
                Err(_) => {
                    tokio::time::sleep(PAUSE_WHEN_FULL).await;
                    continue;
                }
            };
            // One without it is slower, and works.
            _ = stream.set_nodelay(true);
            let relay = self.relay.clone();
            let open = OpenApp::new(&relay);
            let past_cap = open.number.saturating_sub(relay.max_app_connections());
            if past_cap > MAX_REFUSALS {
                continue;
            }
            tokio::spawn(async move {
                let _open = open;
                if past_cap > 0 {
                    // One that takes longer is closed.
                    _ = timeout(REFUSED_WITHIN, serve(stream, relay, true)).await;
                } else {
                    serve(stream, relay, false).await;
                }
            });
        }
    }
}

/// Counts a connection of an app for as long as it is open
struct OpenApp {
    relay: Relay,
    /// How many were open when it came, itself included
    number: usize,
}

impl OpenApp {
    fn new(relay: &Relay) -> Self {
        let mut number = 0;
        relay.0.apps.send_modify(|open| {
            *open += 1;
            number = *open;
        });
        Self { relay: relay.clone(), number }
    }
}

impl Drop for OpenApp {
    fn drop(&mut self) {
        self.relay.0.apps.send_modify(|open| *open -= 1);
    }
}

fn listen(address: SocketAddr, shares: bool) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    if shares {
        socket.set_reuse_port(true)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}
