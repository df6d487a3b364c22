//! smol as the shared client wants it.

use std::future::Future;
use std::net::SocketAddr;
#[cfg(unix)]
use std::path::Path;
use std::sync::Arc;
use std::task::Context;
use std::time::Instant;

use steadfast::connect::TcpSettings;
use steadfast_driver::{Connecting, Network, Resolve, Turn};

use crate::resolver::System;
use crate::socket::StreamSocket;
use crate::timer::SmolTimer;

/// smol, whose reactor is one for the whole process
#[derive(Clone, Copy, Debug)]
pub struct Smol;

impl Network for Smol {
    type Socket = StreamSocket;
    type Timer = SmolTimer;
    type Reactor = ();

    fn reactor() -> Option<()> {
        Some(())
    }

    fn now() -> Instant {
        Instant::now()
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
        smol::spawn(task).detach();
    }

    fn turn() -> Option<Turn> {
        None
    }

    fn unbudgeted(cx: &mut Context<'_>, poll: impl FnOnce(&mut Context<'_>)) {
        poll(cx);
    }
}
