//! The operating system's errors as plain data.

use std::io;

use steadfast::machine::{FailureKind, IoFailure, Stage};

/// What `error` means, while `stage` was going on
pub fn io_failure(stage: Stage, error: &io::Error) -> IoFailure {
    #[expect(clippy::wildcard_enum_match_arm, reason = "the rest is told by its message")]
    let kind = match error.kind() {
        io::ErrorKind::ConnectionRefused => FailureKind::Refused,
        io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe
        | io::ErrorKind::NotConnected
        | io::ErrorKind::UnexpectedEof => FailureKind::Reset,
        io::ErrorKind::HostUnreachable
        | io::ErrorKind::NetworkUnreachable
        | io::ErrorKind::NetworkDown
        | io::ErrorKind::AddrNotAvailable => FailureKind::Unreachable,
        io::ErrorKind::NotFound => FailureKind::NotFound,
        _ if stage == Stage::Resolve => FailureKind::NotFound,
        _ => FailureKind::Other,
    };
    IoFailure { stage, kind, message: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds() {
        let kind = |stage, kind: io::ErrorKind| io_failure(stage, &kind.into()).kind;
        assert_eq!(kind(Stage::Connect, io::ErrorKind::ConnectionRefused), FailureKind::Refused);
        assert_eq!(kind(Stage::Write, io::ErrorKind::BrokenPipe), FailureKind::Reset);
        assert_eq!(kind(Stage::Connect, io::ErrorKind::NetworkUnreachable), FailureKind::Unreachable);
        assert_eq!(kind(Stage::Resolve, io::ErrorKind::Other), FailureKind::NotFound);
        assert_eq!(kind(Stage::Read, io::ErrorKind::Other), FailureKind::Other);
    }
}
