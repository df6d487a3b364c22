//! A connection between two exchanges.

use std::task::{Context, Poll, Waker};

use steadfast::http1::{Tail, TailState};

use crate::connection::{Ask, Connection, Read, Socket};
use crate::scratch;

/// The most reads of one look: a peer that always has more to say is not worth the wait
const MAX_READS: usize = 64;

/// A connection that carries no exchange, and perhaps has yet to end the message of the last one
pub struct Resting<S> {
    connection: Connection<S>,
    tail: Option<Box<Tail>>,
}

/// What a look at a [`Resting`] connection found
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing is owed, and nothing has come: another request may follow
    Ready,
    /// The message has yet to end
    Finishing,
    /// The peer has ended it, broken it, or sent what nobody asked for: it is of no use
    Dead,
}

impl<S: Socket> Resting<S> {
    /// A connection whose exchange is over, and what its message still owes
    pub fn new(connection: Connection<S>, tail: Option<Box<Tail>>) -> Self {
        Self { connection, tail }
    }

    /// Reads what has come, and says what that makes of the connection
    ///
    /// Where the reactor is asked, it wakes the task when more comes.
    pub fn look(&mut self, ask: Ask, cx: &mut Context<'_>) -> Found {
        scratch::with(|buffer| {
            for _ in 0..MAX_READS {
                match self.connection.poll_read(ask, cx, buffer) {
                    Poll::Ready(Ok(Read::Bytes(0))) => {}
                    Poll::Ready(Ok(Read::Bytes(read))) => {
                        let Some(tail) = &mut self.tail else { return Found::Dead };
                        match tail.receive(&buffer[..read]) {
                            TailState::Open => {}
                            TailState::Ended => self.tail = None,
                            TailState::Broken => return Found::Dead,
                        }
                    }
                    Poll::Ready(Ok(Read::Ended(_)) | Err(_)) => return Found::Dead,
                    Poll::Pending => {
                        return match (self.connection.poll_flush(cx), &self.tail) {
                            (Poll::Ready(Err(_)), _) => Found::Dead,
                            (_, Some(_)) => Found::Finishing,
                            (_, None) => Found::Ready,
                        };
                    }
                }
            }
            Found::Dead
        })
    }

    /// What the message still owes
    pub fn tail(&self) -> Option<&Tail> {
        self.tail.as_deref()
    }

    /// The connection
    pub fn connection(&self) -> &Connection<S> {
        &self.connection
    }

    /// The connection, for the next exchange
    pub fn into_connection(self) -> Connection<S> {
        self.connection
    }

    /// Closes it as politely as can be done at once
    pub fn close(mut self) {
        self.connection.close(&mut Context::from_waker(Waker::noop()));
    }
}
