//! Conversations and tool loops against the scripted server.

#![allow(clippy::wildcard_enum_match_arm, reason = "whatever else comes fails the test")]

mod dialects;
mod ends;
mod forks;
mod server;
mod tools;
