//! TLS from the first flight to the last.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use steadfast::machine::IoFailure;
use steadfast_tls::{TlsConfig, TlsConnection, TlsServerConfig};

use crate::connection::{Connection, Socket};

/// A TLS handshake over an open socket, as a future of the [`Connection`]
///
/// It has no bound of its own: the machine's `connect_timeout`, or whoever has accepted it, drops it.
#[must_use = "futures do nothing unless polled"]
pub struct Handshake<S>(Option<Connection<S>>);

impl<S: Socket> Handshake<S> {
    /// Starts a handshake with `host`, a name or an address, as the certificate must name it
    ///
    /// Errors: `host` is neither.
    pub fn new(socket: S, config: &TlsConfig, host: &str) -> Result<Self, IoFailure> {
        Ok(Self(Some(Connection::secure(socket, TlsConnection::client(config, host)?))))
    }

    /// Waits for the handshake of a client that was accepted
    ///
    /// Errors: the TLS library refuses its configuration.
    pub fn accept(socket: S, config: &TlsServerConfig) -> Result<Self, IoFailure> {
        Ok(Self(Some(Connection::secure(socket, TlsConnection::server(config)?))))
    }
}

impl<S: Socket> Future for Handshake<S> {
    type Output = Result<Connection<S>, IoFailure>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let connection = self.0.as_mut().expect("a future is not polled after it was ready");
        let result = ready!(connection.poll_handshake(cx));
        let connection = self.0.take().expect("taken once, here");
        Poll::Ready(result.map(|()| connection))
    }
}
