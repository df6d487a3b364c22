//! The TLS layer against the TLS library itself, in memory.

mod certificates;
mod closing;
mod handshake;
mod peer;
mod server;
mod transfer;
