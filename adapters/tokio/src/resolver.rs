//! The system's resolver, on tokio's threads.

use std::io;
use std::sync::Arc;

use steadfast_driver::{MAX_LOOK_UPS, Resolve, Resolving, look_up};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

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
                let addresses = look_up(&host, port);
                drop(permit);
                addresses
            });
            look_up.await.unwrap_or_else(|error| Err(io::Error::other(error)))
        })
    }
}
