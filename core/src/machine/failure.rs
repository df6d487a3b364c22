//! The operating system's errors as plain data.

use std::io;

use crate::machine::{FailureKind, IoFailure, Stage};

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
        _ if stage == Stage::Resolve && !is_temporary(error) => FailureKind::NotFound,
        _ => FailureKind::Other,
    };
    IoFailure { stage, kind, message: error.to_string() }
}

/// Whether a look-up failed only for now
///
/// The standard library keeps the resolver's words (`gai_strerror`) and not its code: `EAI_AGAIN` as
/// glibc, musl and the BSDs put it.
fn is_temporary(error: &io::Error) -> bool {
    let message = error.to_string().to_ascii_lowercase();
    ["temporary failure in name resolution", "try again"].iter().any(|words| message.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l03_a_look_up_that_may_work_later_is_no_unknown_name() {
        let kind = |message: &str| io_failure(Stage::Resolve, &io::Error::other(message)).kind;
        let prefix = "failed to lookup address information: ";
        for again in ["Temporary failure in name resolution", "Try again"] {
            assert_eq!(kind(&format!("{prefix}{again}")), FailureKind::Other);
        }
        for unknown in ["Name or service not known", "Name does not resolve", "No address associated"] {
            assert_eq!(kind(&format!("{prefix}{unknown}")), FailureKind::NotFound);
        }
    }

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
