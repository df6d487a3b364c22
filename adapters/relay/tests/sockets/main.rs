//! The relay on real sockets, between an app and a provider that do what a test says.

mod crowds;
mod floods;
mod hostile;
mod leaving;
mod limits;
mod passing;
mod paths;
mod recording;
mod resends;
mod seeing;
mod smuggling;
mod support;
mod tls;
mod verbatim;
