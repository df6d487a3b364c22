//! A call under a driver in a fake world.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use serde_json::json;
use steadfast::call::{Call, Env, Request, State};
use steadfast::config::{Overrides, RequestConfig};
use steadfast::dialect::Dialect;
use steadfast::machine::Machine;
use steadfast::outcome::{ErrorKind, Outcome};
use steadfast::time::Instant;
use steadfast_driver::{Driver, Output, Piece};

use crate::fake::{Fake, Open, Wire, World};

pub(crate) const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
pub(crate) const STOP: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
pub(crate) const DONE: &str = "data: [DONE]\n\n";
pub(crate) const PING: &str = ": ping\n\n";

pub(crate) fn text(text: &str) -> String {
    format!(
        "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}},\"finish_reason\":null}}]}}\n\n"
    )
}

pub(crate) fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) struct Rig {
    pub(crate) world: World,
    pub(crate) driver: Driver<Call, Fake>,
    wakes: Arc<Wakes>,
}

/// A waker that counts
#[derive(Default)]
pub(crate) struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Rig {
    /// A stream of OpenAI Chat whose connections open as `world` says
    pub(crate) fn new(world: &World, overrides: Overrides) -> Self {
        Self::with_body(world, overrides, 0)
    }

    /// As [`Rig::new`], with a request body of at least so many bytes
    pub(crate) fn with_body(world: &World, overrides: Overrides, bytes: usize) -> Self {
        let request = Request::post("http://localhost/v1/chat/completions")
            .json(&json!({"stream": true, "padding": "x".repeat(bytes)}))
            .dialect(Dialect::OpenAiChat)
            .stream()
            .build()
            .unwrap();
        let config = RequestConfig::default().with(&overrides).unwrap();
        let call =
            Call::new(request, config, Env { seed: 1, unix_at_origin: Duration::ZERO }, Instant::ORIGIN);
        Self { world: world.clone(), driver: Driver::new(call, Fake(world.clone())), wakes: Arc::default() }
    }

    /// A call on a connection that opens at once, its request sent
    pub(crate) fn waiting(overrides: Overrides) -> Self {
        let world = World::default();
        world.lock().wires.push(Wire { open: Open::Yes, ..Wire::default() });
        let mut rig = Self::new(&world, overrides);
        rig.assert_pending();
        rig
    }

    /// As [`Rig::waiting`], with the head and these bytes to be read
    pub(crate) fn streaming(overrides: Overrides, begun: &str) -> Self {
        let rig = Self::waiting(overrides);
        rig.wire(|wire| {
            wire.push(HEAD);
            wire.push(begun);
        });
        rig
    }

    /// One poll; a pending one must have left a waker wherever the machine waits
    pub(crate) fn poll(&mut self) -> Poll<Output<Piece, Outcome>> {
        let wakes = self.wakes();
        {
            let mut state = self.world.lock();
            state.timer = None;
            for wire in &mut state.wires {
                (wire.open_waker, wire.read_waker, wire.write_waker) = (None, None, None);
            }
        }
        let waker = Waker::from(Arc::clone(&self.wakes));
        let polled = self.driver.poll(&mut Context::from_waker(&waker), |item| Piece::from(item));
        if polled.is_pending() && self.wakes() == wakes {
            self.check_wakers();
        }
        polled
    }

    fn check_wakers(&self) {
        let call = self.driver.machine();
        let state = self.world.lock();
        assert_eq!(state.timer, call.progress().deadline.map(|(at, _)| at), "the deadline wakes");
        let Some(wire) = state.wires.iter().rfind(|wire| wire.id.is_some()) else { return };
        let waits = |state: State| {
            matches!(
                state,
                State::Waiting | State::Reading | State::Refused | State::Streaming | State::Finished
            )
        };
        let connecting = call.state() == State::Connecting;
        let in_handshake = connecting && (wire.read_waker.is_some() || wire.write_waker.is_some());
        assert_eq!(wire.open_waker.is_some() || in_handshake, connecting, "an open connection wakes");
        assert!(in_handshake || wire.read_waker.is_some() == waits(call.state()), "bytes wake");
        let unsent = wire.id.is_some_and(|id| call.outgoing(id).iter().any(|part| !part.is_empty()));
        assert!(wire.write_waker.is_some() || !unsent, "room to write wakes");
    }

    /// Polls as a runtime does: again and again while the task was woken
    pub(crate) fn run(&mut self) -> Poll<Output<Piece, Outcome>> {
        for _ in 0..10_000 {
            let wakes = self.wakes();
            let polled = self.poll();
            if polled.is_ready() || self.wakes() == wakes {
                return polled;
            }
        }
        panic!("the driver spins")
    }

    /// The next piece, which must be text
    pub(crate) fn text(&mut self) -> String {
        match self.run() {
            Poll::Ready(Output::Item(piece @ Piece::Text { .. })) => piece.text().to_owned(),
            other => panic!("no text but {other:?}"),
        }
    }

    pub(crate) fn outcome(&mut self) -> Outcome {
        match self.run() {
            Poll::Ready(Output::Done(outcome)) => outcome,
            other => panic!("not over but {other:?}"),
        }
    }

    /// The outcome's failure
    pub(crate) fn failure(&mut self) -> ErrorKind {
        self.outcome().result.expect_err("a failure").kind
    }

    #[track_caller]
    pub(crate) fn assert_pending(&mut self) {
        match self.run() {
            Poll::Pending => {}
            Poll::Ready(output) => panic!("not pending but {output:?}"),
        }
    }

    pub(crate) fn wakes(&self) -> usize {
        self.wakes.0.load(Ordering::Relaxed)
    }

    /// Turns that the reactor made
    pub(crate) fn turns(&self) -> usize {
        self.world.lock().turns
    }

    /// Changes the present connection
    pub(crate) fn wire<T>(&self, change: impl FnOnce(&mut Wire) -> T) -> T {
        change(self.world.lock().wires.last_mut().expect("a connection"))
    }
}
