//! Who closes connections that nobody uses.

use std::future::Future;
use std::pin::Pin;
use std::sync::Weak;
use std::task::{Context, Poll};

use tokio::time::{Sleep, sleep_until};

use crate::pool::Shared;
use crate::runtime::Clock;

/// A task that watches a client's resting connections, for as long as there are any
///
/// It reads the end of messages whose calls are over, closes what the peer closes, and what has been
/// idle or finishing for too long. It ends with the last of them, and with the client.
pub(crate) struct Janitor {
    connections: Weak<Shared>,
    clock: Clock,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Janitor {
    pub(crate) fn new(connections: Weak<Shared>, clock: Clock) -> Self {
        Self { connections, clock, sleep: None }
    }
}

impl Future for Janitor {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let Some(connections) = self.connections.upgrade() else { return Poll::Ready(()) };
            let Some(deadline) = connections.watch(cx) else {
                // Another one may watch from now on.
                self.connections = Weak::new();
                return Poll::Ready(());
            };
            let Some(at) = deadline else { return Poll::Pending };
            let at = self.clock.to_tokio(at);
            let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(at)));
            if sleep.deadline() != at || sleep.is_elapsed() {
                sleep.as_mut().reset(at);
            }
            if sleep.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }
}

impl Drop for Janitor {
    fn drop(&mut self) {
        if let Some(connections) = self.connections.upgrade() {
            connections.not_watched();
        }
    }
}
