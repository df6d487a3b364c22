//! The system's resolver, on smol's threads for blocking work.

use std::sync::Arc;

use smol::lock::Semaphore;
use steadfast_driver::{MAX_LOOK_UPS, Resolve, Resolving, look_up};

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
            let permit = permits.acquire_arc().await;
            let look_up = smol::unblock(move || {
                let addresses = look_up(&host, port);
                drop(permit);
                addresses
            });
            look_up.await
        })
    }
}
