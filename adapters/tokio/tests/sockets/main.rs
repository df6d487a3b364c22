//! Calls on real sockets: lateness, dropped futures, closing, uploads, back-pressure, TLS, connecting, runtimes.
//!
//! Where the order of things matters, the server is moved by the test itself ([`peer`]); where only
//! the script matters, it is the scripted one.

#![allow(clippy::wildcard_enum_match_arm, reason = "whatever else comes fails the test")]

mod busy_thread;
mod certificates;
mod closing;
mod connecting;
mod dropped_futures;
mod flavours;
mod flood;
mod names;
mod peer;
mod proxies;
mod requests;
mod reuse;
mod reuse_limits;
mod secure;
mod uploads;
