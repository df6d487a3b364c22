//! TLS over memory buffers: cipher bytes on one side, plain bytes on the other, no IO.
//!
//! Every driver shares this one layer, so close, end of file, truncation and errors mean the same
//! on every runtime, and all of it is tested without a socket. [`TlsClient`] is one connection;
//! [`TlsConfig`] is what connections have in common, cheap to clone.
//!
//! ```text
//!            received(cipher) ──▶ ┌───────────┐ ──▶ read(plain)
//!  socket                         │ TlsClient │                   machine
//!  outgoing(), sent(n) ◀───────── └───────────┘ ◀── write(plain)
//! ```
//!
//! A whole blocking driver, to show how little is left to do:
//!
//! ```no_run
//! use std::io::{Read, Write};
//! use std::net::TcpStream;
//! use steadfast_tls::{PlainRead, TlsClient, TlsConfig};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut socket = TcpStream::connect("api.example.com:443")?;
//! let mut tls = TlsClient::new(&TlsConfig::roots_only(&std::fs::read("ca.pem")?)?, "api.example.com")?;
//! let mut request: &[u8] = b"GET / HTTP/1.1\r\nhost: api.example.com\r\n\r\n";
//! let (mut cipher, mut plain) = ([0; 16 * 1024], [0; 16 * 1024]);
//! loop {
//!     request = &request[tls.write(request)..];
//!     while !tls.outgoing().is_empty() {
//!         let taken = socket.write(tls.outgoing())?;
//!         tls.sent(taken);
//!     }
//!     let n = socket.read(&mut cipher)?;
//!     let mut rest = &cipher[..n];
//!     if rest.is_empty() {
//!         tls.eof()?;
//!     }
//!     loop {
//!         rest = &rest[tls.received(rest)?..];
//!         match tls.read(&mut plain)? {
//!             PlainRead::Bytes(n) => println!("{}", plain[..n].escape_ascii()),
//!             PlainRead::Pending => break,
//!             PlainRead::Ended(ended) => return Ok(println!("{ended:?}")),
//!         }
//!     }
//! }
//! # }
//! ```

mod client;
mod config;
mod error;
mod verifier;

pub use client::{OUTGOING_LIMIT, PlainRead, TlsClient};
pub use config::{TlsConfig, TlsConfigError};
pub use error::{TlsError, TlsFault};
