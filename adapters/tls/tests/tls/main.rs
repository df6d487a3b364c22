//! The TLS layer against the TLS library's own server, in memory.

mod certificates;
mod closing;
mod handshake;
mod peer;
mod transfer;
