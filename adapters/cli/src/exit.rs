//! The program's exit codes.

use std::process;

use steadfast_tokio::{CallError, Completion, Ending, ErrorKind, Outcome};

/// How the program ended, as scripts see it
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The answer came whole; every scenario agreed, and every invariant held
    Completed,
    /// Something beside the call failed, a scenario or an invariant did not hold or was not put to every
    /// test, or a gap was too long
    Failed,
    /// The command line, the environment or a file cannot be used, or nothing could be measured
    Usage,
    /// The provider ended the answer early
    Incomplete,
    /// A replay took another step than the trace has
    Differs,
    /// A bound was reached
    Timeout,
    /// The server answered with an HTTP error
    Status,
    /// The answer, or the trace that is replayed, broke off or never began
    Truncated,
    /// The connection failed
    Transport,
    /// The peer broke HTTP, SSE or JSON, or a size bound
    Protocol,
    /// The provider reported an error inside its answer, or refused the prompt
    InBand,
    /// The user gave up, or nobody reads the answer any more
    Cancelled,
}

impl Exit {
    /// All of them, by code
    pub(crate) const ALL: [Self; 12] = [
        Self::Completed,
        Self::Failed,
        Self::Usage,
        Self::Incomplete,
        Self::Differs,
        Self::Timeout,
        Self::Status,
        Self::Truncated,
        Self::Transport,
        Self::Protocol,
        Self::InBand,
        Self::Cancelled,
    ];

    /// The code that the shell sees
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Completed => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Incomplete => 3,
            Self::Differs => 4,
            Self::Timeout => 10,
            Self::Status => 11,
            Self::Truncated => 12,
            Self::Transport => 13,
            Self::Protocol => 14,
            Self::InBand => 15,
            Self::Cancelled => 130,
        }
    }

    /// What the code means, for the help text
    pub(crate) const fn meaning(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => {
                "failed for another reason, as where stdout takes no more; in `demo`, a scenario did not agree; in `sim`, an invariant did not hold or no run met some fault or transition; in `gaps`, a gap was too long; in `serve`, calls still ran at the drain bound and were cut off"
            }
            Self::Usage => {
                "usage: the command line, the environment or a file cannot be used; in `gaps`, nothing could be measured"
            }
            Self::Incomplete => {
                "incomplete: the provider ended the answer early (length, content filter, pause)"
            }
            Self::Differs => "differs: a replay took another step than the trace has",
            Self::Timeout => "timeout: a bound was reached, and the message names it",
            Self::Status => "status: the server answered with an HTTP error",
            Self::Truncated => {
                "truncated or empty: the answer broke off, or never began; in `replay`, the trace did, and was identical so far"
            }
            Self::Transport => "transport: the connection, or a proxy on its way, failed",
            Self::Protocol => "protocol: the peer broke HTTP, SSE or JSON, or a size bound",
            Self::InBand => "in-band error, or the prompt was blocked",
            Self::Cancelled => {
                "cancelled: by Ctrl-C, or because nobody reads the answer any more; in `serve`, by a second signal"
            }
        }
    }
}

impl From<&Outcome> for Exit {
    fn from(outcome: &Outcome) -> Self {
        match &outcome.result {
            Ok(Completion { ending: Ending::Completed, .. }) => Self::Completed,
            Ok(Completion { ending: Ending::Incomplete(_), .. }) => Self::Incomplete,
            Err(CallError { kind, .. }) => Self::from(kind),
        }
    }
}

impl From<&ErrorKind> for Exit {
    fn from(kind: &ErrorKind) -> Self {
        match kind {
            ErrorKind::Timeout(_) => Self::Timeout,
            ErrorKind::Status(_) => Self::Status,
            ErrorKind::Truncated(_) | ErrorKind::Empty => Self::Truncated,
            ErrorKind::Transport(_) | ErrorKind::Proxy(_) => Self::Transport,
            ErrorKind::Protocol(_) => Self::Protocol,
            ErrorKind::InBand(_) | ErrorKind::Blocked { .. } => Self::InBand,
            ErrorKind::Cancelled => Self::Cancelled,
            ErrorKind::Consumer(_) => Self::Failed,
            // A kind that is newer than this table is no success either.
            _ => Self::Failed,
        }
    }
}

impl From<Exit> for process::ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_codes_are_those_documented() {
        assert_eq!(Exit::ALL.map(Exit::code), [0, 1, 2, 3, 4, 10, 11, 12, 13, 14, 15, 130]);
    }
}
