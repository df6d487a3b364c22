//! The relay on real sockets, between an app and a provider that do what a test says.

mod leaving;
mod limits;
mod passing;
mod recording;
mod support;
mod verbatim;
