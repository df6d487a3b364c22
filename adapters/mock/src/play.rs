//! The steps of one connection.

use std::sync::Arc;
use std::time::Duration;

use steadfast_scenario::{Read, Step};

use crate::record::Closed;
use crate::request::Requests;
use crate::state::{State, entry};
use crate::wire::{Broken, Wire};

/// Plays the steps, and closes the connection when they are over or cannot go on
pub(crate) fn play(wire: Wire, connection: u64, steps: &[Step], state: &Arc<State>) {
    let requests = Requests::new(connection);
    let late = Duration::ZERO;
    let mut player =
        Player { connection, wire, requests, heads: 0, complete: 0, late, state: Arc::clone(state) };
    let played = player.steps(steps);
    let closed = match played {
        Ok(Flow::Reset) => player.wire.reset(),
        Ok(Flow::On | Flow::Close) => {
            player.wire.close();
            Ok(())
        }
        Err(broken) => {
            player.wire.close();
            Err(broken)
        }
    };
    player.requests.end(state);
    finish(connection, closed, state);
}

/// Records how a connection ended
pub(crate) fn finish(connection: u64, ended: Result<(), Broken>, state: &State) {
    // What breaks because the server stops says nothing about the peer.
    let stopping = state.stopping();
    let at = state.now();
    state.record(|recorded| {
        let entry = entry(recorded, connection);
        entry.ended = Some(at);
        match ended {
            Err(Broken::Closed(how)) if !stopping => entry.closed_by_peer = Some(Closed { how, at }),
            Err(Broken::Failed(what)) if !stopping => entry.failed = Some(what),
            Ok(()) | Err(Broken::Closed(_) | Broken::Failed(_)) => {}
        }
    });
    state.closed(connection);
}

struct Player {
    connection: u64,
    wire: Wire,
    requests: Requests,
    /// Heads and whole requests that read steps have asked for so far
    heads: u64,
    complete: u64,
    /// The most by which a pause was too long
    late: Duration,
    state: Arc<State>,
}

/// What follows a step
enum Flow {
    /// The next one
    On,
    /// The end, by a plain close
    Close,
    /// The end, by a reset
    Reset,
}

impl Player {
    fn steps(&mut self, steps: &[Step]) -> Result<Flow, Broken> {
        for step in steps {
            match self.step(step)? {
                Flow::On => {}
                end @ (Flow::Close | Flow::Reset) => return Ok(end),
            }
        }
        Ok(Flow::On)
    }

    fn step(&mut self, step: &Step) -> Result<Flow, Broken> {
        match step {
            Step::Read(read) => self.read(*read)?,
            Step::Send(bytes) => self.wire.send(bytes)?,
            Step::Pause(pause) => {
                let began = self.state.now();
                if !self.state.pause(Some(*pause)) {
                    return Ok(Flow::Close);
                }
                self.paused((self.state.now() - began).saturating_sub(*pause));
            }
            Step::Repeat { times, steps } => return self.repeat(*times, steps),
            Step::Fin => self.wire.fin()?,
            Step::CloseNotify => self.wire.close_notify()?,
            Step::AwaitClose => loop {
                self.wire.read(u64::MAX)?;
            },
            Step::Hold => {
                self.state.pause(None);
                return Ok(Flow::Close);
            }
            Step::Close => return Ok(Flow::Close),
            Step::Reset => return Ok(Flow::Reset),
        }
        Ok(Flow::On)
    }

    /// Records that a pause was so much too long, if none was before
    fn paused(&mut self, late: Duration) {
        if late > self.late {
            self.late = late;
            let connection = self.connection;
            self.state.record(|recorded| entry(recorded, connection).late = late);
        }
    }

    fn repeat(&mut self, times: Option<u32>, steps: &[Step]) -> Result<Flow, Broken> {
        let mut done = 0;
        while times.is_none_or(|times| done < times) {
            if self.state.stopping() {
                return Ok(Flow::Close);
            }
            match self.steps(steps)? {
                Flow::On => done = done.saturating_add(1),
                end @ (Flow::Close | Flow::Reset) => return Ok(end),
            }
        }
        Ok(Flow::On)
    }

    fn read(&mut self, read: Read) -> Result<(), Broken> {
        match read {
            Read::Bytes(mut left) => {
                while left > 0 {
                    left -= self.take_in(left)?;
                }
            }
            Read::Head => {
                self.heads += 1;
                while self.requests.heads < self.heads {
                    self.take_in(u64::MAX)?;
                }
            }
            Read::Request => {
                if self.heads == self.complete {
                    self.heads += 1;
                }
                self.complete = self.heads;
                while self.requests.complete < self.complete {
                    self.take_in(u64::MAX)?;
                }
            }
        }
        Ok(())
    }

    /// Reads some bytes and makes requests of them; how many bytes
    fn take_in(&mut self, most: u64) -> Result<u64, Broken> {
        let bytes = self.wire.read(most)?;
        self.requests.feed(&bytes, &self.state).map_err(Broken::Failed)?;
        Ok(bytes.len() as u64)
    }
}
