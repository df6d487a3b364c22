//! A timer of tokio.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use steadfast_driver::Timer;
use tokio::time::{Sleep, sleep_until};

/// A timer of tokio
#[derive(Debug)]
pub struct TokioTimer(Pin<Box<Sleep>>);

impl Timer for TokioTimer {
    fn at(at: Instant) -> Self {
        Self(Box::pin(sleep_until(at.into())))
    }

    fn reset(&mut self, at: Instant) {
        self.0.as_mut().reset(at.into());
    }

    fn poll_fire(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(cx)
    }
}
