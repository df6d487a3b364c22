//! The handshake that turns a connection to a proxy into one to the origin.

use std::fmt;

use super::http_connect::HttpConnect;
use super::proxy::{Proxy, ProxyScheme};
use super::socks5::Socks5;
use crate::call::Origin;
use crate::machine::{FailureKind, IoFailure, Stage};

/// The set-up of a tunnel through a proxy
///
/// The driver writes [`Tunnel::outgoing`] and hands over what it reads, until [`Tunnel::is_open`].
/// What the peer is made to send is bounded, and so is what is held of it.
///
/// ```
/// use steadfast::call::Request;
/// use steadfast::connect::{Proxy, Tunnel};
///
/// let request = Request::post("https://api.example/v1").build()?;
/// let mut tunnel = Tunnel::new(&Proxy::new("http://proxy.example:3128")?, request.origin())?;
/// assert!(tunnel.outgoing().starts_with(b"CONNECT api.example:443 HTTP/1.1\r\n"));
/// tunnel.sent(tunnel.outgoing().len());
///
/// let input = b"HTTP/1.1 200 OK\r\n\r\nhello";
/// let used = tunnel.received(input)?;
/// assert!(tunnel.is_open());
/// assert_eq!(&input[used..], b"hello");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub struct Tunnel {
    outgoing: Vec<u8>,
    sent: usize,
    handshake: Handshake,
}

#[derive(Debug)]
enum Handshake {
    HttpConnect(HttpConnect),
    Socks5(Socks5),
    Open,
}

impl Tunnel {
    /// A tunnel to `origin` through `proxy`, whose connection is open
    ///
    /// Errors: the origin's name is too long for SOCKS5.
    pub fn new(proxy: &Proxy, origin: &Origin) -> Result<Self, IoFailure> {
        let mut outgoing = Vec::new();
        let handshake = match proxy.scheme() {
            ProxyScheme::Http | ProxyScheme::Https => {
                Handshake::HttpConnect(HttpConnect::start(proxy, origin, &mut outgoing))
            }
            ProxyScheme::Socks5 => Handshake::Socks5(Socks5::start(proxy, origin, &mut outgoing)?),
        };
        Ok(Self { outgoing, sent: 0, handshake })
    }

    /// Bytes still to be written to the proxy; they may hold credentials
    pub fn outgoing(&self) -> &[u8] {
        &self.outgoing[self.sent..]
    }

    /// The connection took so many bytes of [`Tunnel::outgoing`]
    ///
    /// # Panics
    ///
    /// If that is more than there were.
    pub fn sent(&mut self, sent: usize) {
        assert!(sent <= self.outgoing().len(), "more was sent than was outgoing");
        self.sent += sent;
    }

    /// Takes in bytes from the proxy: how many belong to the handshake
    ///
    /// All of them until the tunnel is open; those behind its last byte come from the origin.
    ///
    /// Errors: the proxy refused, or broke its protocol.
    pub fn received(&mut self, bytes: &[u8]) -> Result<usize, IoFailure> {
        let (used, is_open) = match &mut self.handshake {
            Handshake::HttpConnect(handshake) => handshake.received(bytes)?,
            Handshake::Socks5(handshake) => handshake.received(bytes, &mut self.outgoing)?,
            Handshake::Open => (0, true),
        };
        if is_open {
            self.handshake = Handshake::Open;
        }
        Ok(used)
    }

    /// The proxy ended the connection before the tunnel was open
    pub fn eof(&self) -> IoFailure {
        IoFailure {
            stage: Stage::Proxy,
            kind: FailureKind::Reset,
            message: "the proxy closed the connection before the tunnel was open".to_owned(),
        }
    }

    /// Whether the connection now leads to the origin
    pub fn is_open(&self) -> bool {
        matches!(self.handshake, Handshake::Open) && self.outgoing().is_empty()
    }
}

/// Shows none of the bytes: they hold credentials
impl fmt::Debug for Tunnel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tunnel")
            .field("handshake", &self.handshake)
            .field("outgoing_bytes", &self.outgoing().len())
            .finish_non_exhaustive()
    }
}
