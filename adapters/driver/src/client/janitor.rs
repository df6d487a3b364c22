//! Who closes connections that nobody uses.

use std::future::Future;
use std::pin::Pin;
use std::sync::Weak;
use std::task::{Context, Poll};

use crate::client::network::Network;
use crate::client::pool::Shared;
use crate::client::time::{Alarm, Clock};

/// A task that watches a client's resting connections, for as long as there are any
///
/// It reads the end of messages whose calls are over, closes what the peer closes, and what has been
/// idle or finishing for too long. It ends with the last of them, and with the client.
pub(crate) struct Janitor<N: Network> {
    connections: Weak<Shared<N>>,
    clock: Clock<N>,
    alarm: Alarm<N>,
}

impl<N: Network> Janitor<N> {
    pub(crate) fn new(connections: Weak<Shared<N>>, clock: Clock<N>) -> Self {
        Self { connections, clock, alarm: Alarm::new() }
    }
}

impl<N: Network> Future for Janitor<N> {
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
            let Self { clock, alarm, .. } = &mut *self;
            if alarm.poll_until(*clock, at, cx).is_pending() {
                return Poll::Pending;
            }
        }
    }
}

impl<N: Network> Drop for Janitor<N> {
    fn drop(&mut self) {
        if let Some(connections) = self.connections.upgrade() {
            connections.not_watched();
        }
    }
}
