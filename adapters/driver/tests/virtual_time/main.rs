//! The driver over a world of its own making: virtual time, sockets that are as full, as slow and as
//! deceitful as a test wants them.

#![allow(clippy::wildcard_enum_match_arm, reason = "whatever else comes fails the test")]

mod budget;
mod clock;
mod closing;
mod fake;
mod resting;
mod rig;
mod tls;
mod waking;
mod writing;
