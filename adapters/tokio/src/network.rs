//! tokio as the shared client wants it.

use std::future::{Future, poll_fn};
use std::net::SocketAddr;
#[cfg(unix)]
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use steadfast::connect::TcpSettings;
use steadfast_driver::{Connecting, Network, Resolve, Turn};
use tokio::runtime::{Handle, Id};
use tokio::task::{coop, yield_now};

use crate::resolver::System;
use crate::socket::StreamSocket;
use crate::timer::TokioTimer;

/// The tokio runtime that a task runs in
#[derive(Clone, Copy, Debug)]
pub struct Tokio;

impl Network for Tokio {
    type Socket = StreamSocket;
    type Timer = TokioTimer;
    type Reactor = Id;

    fn reactor() -> Option<Id> {
        Handle::try_current().ok().map(|handle| handle.id())
    }

    fn now() -> Instant {
        tokio::time::Instant::now().into_std()
    }

    fn connect(address: SocketAddr, settings: TcpSettings) -> Connecting<StreamSocket> {
        Box::pin(StreamSocket::connect(address, settings))
    }

    #[cfg(unix)]
    fn connect_unix(path: &Path) -> Connecting<StreamSocket> {
        Box::pin(StreamSocket::connect_unix(path.to_owned()))
    }

    fn resolver() -> Arc<dyn Resolve> {
        Arc::new(System::default())
    }

    fn spawn(task: impl Future<Output = ()> + Send + 'static) {
        tokio::spawn(task);
    }

    fn turn() -> Option<Turn> {
        Some(Box::pin(yield_now()))
    }

    fn unbudgeted(cx: &mut Context<'_>, poll: impl FnOnce(&mut Context<'_>)) {
        let mut poll = Some(poll);
        let once = pin!(coop::unconstrained(poll_fn(|cx| {
            if let Some(poll) = poll.take() {
                poll(cx);
            }
            Poll::Ready(())
        })));
        let _ = once.poll(cx);
    }
}
