//! TLS over memory buffers: cipher bytes on one side, plain bytes on the other, no IO.
//!
//! Every driver shares this one layer, so close, end of file, truncation and errors mean the same
//! on every runtime, and all of it is tested without a socket. [`TlsConnection`] is one connection,
//! of a client or of a server; [`TlsConfig`] and [`TlsServerConfig`] are what those of each have in common,
//! cheap to clone.
//!
//! ```text
//!            received(cipher) ──▶ ┌───────────┐ ──▶ read(plain)
//!  socket                         │ TlsConnection │                   machine
//!  outgoing(), sent(n) ◀───────── └───────────┘ ◀── write(plain)
//! ```
//!
//! A whole blocking driver, to show how little is left to do:
//!
//! ```no_run
//! use std::io::{Read, Write};
//! use std::net::TcpStream;
//! use steadfast_tls::{PlainRead, TlsConnection, TlsConfig};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut socket = TcpStream::connect("api.example.com:443")?;
//! let mut tls = TlsConnection::client(&TlsConfig::roots_only(&std::fs::read("ca.pem")?)?, "api.example.com")?;
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

mod config;
mod connection;
mod error;
mod server;
mod verifier;

pub use config::{TlsConfig, TlsConfigError};
pub use connection::{OUTGOING_LIMIT, PlainRead, TlsConnection};
pub use error::{TlsError, TlsFault};
pub use server::{TlsServerConfig, TlsServerConfigError};
