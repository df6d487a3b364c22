//! A timer of smol.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use steadfast_driver::Timer;

/// A timer of smol
#[derive(Debug)]
pub struct SmolTimer(smol::Timer);

impl Timer for SmolTimer {
    fn at(at: Instant) -> Self {
        Self(smol::Timer::at(at))
    }

    fn reset(&mut self, at: Instant) {
        self.0.set_at(at);
    }

    fn poll_fire(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.0).poll(cx).map(|_| ())
    }
}
