//! Why a command could not do its work.

use std::io;

use steadfast_relay::ServerError;
use steadfast_relay::record::DatabaseError;

use crate::usage::UsageError;

/// Why a command could not do its work
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// It was not told well what to do
    #[error(transparent)]
    Usage(#[from] UsageError),
    /// The system refused a socket, a thread or a signal handler
    #[error("the system refused: {0}")]
    System(#[from] io::Error),
    /// The port cannot be listened on
    #[error("cannot listen on 127.0.0.1:{port}: {error}")]
    Listen {
        /// The port, 0 for any
        port: u16,
        /// Why
        error: io::Error,
    },
    /// The relay cannot listen
    #[error(transparent)]
    Serve(#[from] ServerError),
    /// Calls cannot be recorded
    #[error(transparent)]
    Record(#[from] DatabaseError),
    /// Stdout takes no more
    #[error("cannot write to stdout: {0}")]
    Output(io::Error),
}
