//! From a host's name to its addresses.

use std::future::Future;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

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
/// use std::net::SocketAddr;
/// use steadfast_tokio::{Client, Resolving};
///
/// fn always_here(_host: &str, port: u16) -> Resolving {
///     Box::pin(async move { Ok(vec![SocketAddr::from(([127, 0, 0, 1], port))]) })
/// }
///
/// let client = Client::new().with_resolver(always_here);
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

/// The system's own resolver
pub(crate) struct System(Arc<Semaphore>);

impl Default for System {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MAX_LOOK_UPS)))
    }
}

impl Resolve for System {
    fn resolve(&self, host: &str, port: u16) -> Resolving {
        let (host, permits) = (host.to_owned(), self.0.clone());
        Box::pin(async move {
            let permit = permits.acquire_owned().await.expect("the semaphore is never closed");
            let look_up = spawn_blocking(move || {
                let addresses = (host.as_str(), port).to_socket_addrs().map(Iterator::collect);
                drop(permit);
                addresses
            });
            look_up.await.unwrap_or_else(|error| Err(io::Error::other(error)))
        })
    }
}
