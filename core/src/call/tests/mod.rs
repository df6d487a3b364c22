//! The call machine at exact instants, under virtual time.
//!
//! `play` is the driver, `record` what it saw and the invariants that hold for every call, `watch` an
//! observer of every call, `wire` what servers send. The other files are the tests, by theme.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a test names what it expects and prints whatever else came"
)]

mod play;
mod record;
mod watch;
mod wire;

mod attempt_headers;
mod backpressure;
mod bounds;
mod budget;
mod cancel;
mod chaos;
mod connect;
mod drops;
mod facts;
mod heads;
mod misuse;
mod observers;
#[cfg(feature = "planted-faults")]
mod planted;
mod proxy;
mod raw;
mod refused;
mod retries;
mod reuse;
mod secrets;
mod states;
mod streams;
mod terminal;
mod ties;
mod upload;
