//! The program, run as people and scripts run it.

mod call;
mod command_line;
mod config;
#[cfg(unix)]
mod connect;
mod decode;
mod demo;
mod gaps;
mod mock;
#[cfg(unix)]
mod output;
mod prompt;
mod proxy;
mod recorded;
mod replay;
#[cfg(unix)]
mod serve;
mod sim;
mod support;
