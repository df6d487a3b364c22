//! From a host's name to its addresses.

use std::future::Future;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::pin::Pin;

/// The most look-ups that one client has under way with the system's resolver
///
/// A look-up that nobody waits for any more still counts until the system gives it up, so a name
/// server that does not answer cannot fill the runtime's pool of threads.
pub const MAX_LOOK_UPS: usize = 64;

/// The addresses of a host, as they become known
pub type Resolving = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send>>;

/// Looks up the addresses of hosts; see [`Client::with_resolver`](crate::Client::with_resolver)
///
/// Implemented by functions too:
///
/// ```
/// use std::net::{SocketAddr, ToSocketAddrs};
/// use steadfast_driver::{Client, Network, Resolving};
///
/// fn always_here(_host: &str, port: u16) -> Resolving {
///     Box::pin(async move { Ok(vec![SocketAddr::from(([127, 0, 0, 1], port))]) })
/// }
///
/// fn here<N: Network>(client: Client<N>) -> Client<N> {
///     client.with_resolver(always_here)
/// }
/// ```
pub trait Resolve: Send + Sync + 'static {
    /// The addresses of `host`, which is no address itself, each with `port`; likelier ones first
    ///
    /// `connect_timeout` bounds it, by dropping it. Errors and an empty list are failures at stage
    /// `Resolve`.
    fn resolve(&self, host: &str, port: u16) -> Resolving;
}

impl<F: Fn(&str, u16) -> Resolving + Send + Sync + 'static> Resolve for F {
    fn resolve(&self, host: &str, port: u16) -> Resolving {
        self(host, port)
    }
}

/// Asks the system for the addresses of `host`, and blocks the thread until it answers
///
/// Errors: as the system's; it may take as long as it likes, which nothing can cut short.
pub fn look_up(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    (host, port).to_socket_addrs().map(Iterator::collect)
}
