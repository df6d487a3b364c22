//! How a connection comes about: which addresses to try and when, and by way of which proxy.
//!
//! | file | what it decides |
//! |---|---|
//! | `happy_eyeballs` | [`HappyEyeballs`]: which address to try next, and when (RFC 8305) |
//! | `proxies` | [`Proxies`]: which way to an origin, as configured or as the environment says |
//! | `proxy` | [`Proxy`]: one proxy, and who we are to it |
//! | `bypass` | which hosts are reached without one (`NO_PROXY`) |
//! | `tunnel` | [`Tunnel`]: the handshake that turns a proxy's connection into one to the origin |
//! | `http_connect` | that of HTTP proxies: CONNECT (RFC 9110 9.3.6) |
//! | `socks5` | that of SOCKS5 (RFC 1928, RFC 1929) |
//! | `tcp` | [`TcpSettings`]: how a TCP connection finds out that its peer is gone |
//!
//! None of it has a bound in time of its own: all of it happens within `connect_timeout`.

mod bypass;
mod happy_eyeballs;
mod http_connect;
mod proxies;
mod proxy;
mod socks5;
mod tcp;
mod tunnel;

pub use happy_eyeballs::{ATTEMPT_DELAY, HappyEyeballs, MAX_ADDRESSES, Next};
pub use http_connect::MAX_CONNECT_HEAD_BYTES;
pub use proxies::{Proxies, ProxiesError, Route};
pub use proxy::{Proxy, ProxyScheme, ProxyUrlError};
pub use tcp::TcpSettings;
pub use tunnel::Tunnel;

use crate::machine::{FailureKind, IoFailure, ProxyRefusal, Stage};

/// A proxy that did not do what it was asked
fn refused(refusal: ProxyRefusal, message: impl Into<String>) -> IoFailure {
    IoFailure { stage: Stage::Proxy, kind: FailureKind::Proxy(refusal), message: message.into() }
}
