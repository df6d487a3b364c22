//! The program, run as people and scripts run it.

mod call;
mod command_line;
mod decode;
mod demo;
mod mock;
mod proxy;
mod recorded;
mod replay;
mod support;
