//! Listens, accepts, drains.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpListener;

use crate::serving::serve;
use crate::shared::Relay;

/// How many connections may wait to be accepted
const BACKLOG: i32 = 1024;

/// How long to wait where the system has no room for another connection: 50 ms
const PAUSE_WHEN_FULL: Duration = Duration::from_millis(50);

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
    /// refused as `gateway_draining`, which an app understands better than a refused connection.
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
            relay.0.apps.send_modify(|open| *open += 1);
            let open = OpenApp(relay.clone());
            tokio::spawn(async move {
                let _open = open;
                serve(stream, relay).await;
            });
        }
    }
}

/// Counts a connection of an app for as long as it is open
struct OpenApp(Relay);

impl Drop for OpenApp {
    fn drop(&mut self) {
        self.0.0.apps.send_modify(|open| *open -= 1);
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
