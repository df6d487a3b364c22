//! Connecting to real peers, and what the calls of a client share, by the same tests for every client: tokio's, smol's, and that on threads.
//!
//! | file | what is in it |
//! |---|---|
//! | `clients` | the clients, and what a test asks of each |
//! | `server` | servers that a test moves itself |
//! | `certificates` | an authority of the tests' own |
//! | `proxies` | through other people's proxies, through one within TLS, and through one that stalls |
//! | `redirects` | not followed, whatever they point to |
//! | `budget` | a retry budget that the calls of a client share |
//! | `endless` | peers that never stop talking and never come to the point |
//! | `keep_alive` | for how long a server keeps a connection |
//! | `tls` | certificates that are not accepted, ours and theirs |
//! | `unix` | over Unix sockets |

#![allow(clippy::wildcard_enum_match_arm, reason = "whatever else comes fails the test")]

mod budget;
mod certificates;
mod clients;
mod endless;
mod keep_alive;
mod proxies;
mod redirects;
mod server;
mod tls;
#[cfg(unix)]
mod unix;
