//! smol as the shared client wants it.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Context;
use std::time::Instant;

use steadfast_driver::{Connecting, Network, Resolve, Turn};

use crate::resolver::System;
use crate::socket::TcpSocket;
use crate::timer::SmolTimer;

/// smol, whose reactor is one for the whole process
#[derive(Clone, Copy, Debug)]
pub struct Smol;

impl Network for Smol {
    type Socket = TcpSocket;
    type Timer = SmolTimer;
    type Reactor = ();

    fn reactor() -> Option<()> {
        Some(())
    }

    fn now() -> Instant {
        Instant::now()
    }

    fn connect(address: SocketAddr) -> Connecting<TcpSocket> {
        Box::pin(TcpSocket::connect(address))
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
