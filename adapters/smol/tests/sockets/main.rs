//! Calls on real sockets: lateness, dropped futures, connecting, proxies, connections between calls.

mod busy_thread;
mod connecting;
mod dropped_futures;
mod peer;
mod reuse;
