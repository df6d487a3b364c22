//! What can go wrong on a TLS connection, typed.

use std::fmt;

use rustls::{CertificateError, InvalidMessage};
use steadfast::machine::{FailureKind, IoFailure, Stage};

/// The longest text taken over from the TLS library, in characters
///
/// Some of it is the peer's: a certificate may list thousands of names.
const WORDS_LIMIT: usize = 400;

/// A failure of one TLS connection
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("TLS with {host}: {fault}")]
pub struct TlsError {
    /// The host that was to be reached
    pub host: String,
    /// [`Stage::Tls`] during the handshake, [`Stage::Read`] after it
    ///
    /// After the handshake a request may be with the server, so the two differ for retries.
    pub stage: Stage,
    /// What went wrong
    pub fault: TlsFault,
}

/// What went wrong on a TLS connection
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TlsFault {
    /// The host is neither a DNS name nor an IP address
    #[error("not a DNS name or an IP address")]
    InvalidHost,
    /// The peer's certificate was not accepted
    #[error("the certificate {fault} ({words})")]
    Certificate {
        /// Why
        fault: CertificateFault,
        /// The TLS library's words, with names and times where it knows them
        words: String,
    },
    /// The peer closed the connection before the handshake was over
    #[error("the peer closed the connection during the handshake")]
    ClosedInHandshake,
    /// The first bytes from the peer are not TLS; often a server of plain HTTP
    #[error("the peer does not speak TLS on this port")]
    NotTls,
    /// The peer gave up, and said why by an alert
    #[error("the peer refused: {0}")]
    Alert(String),
    /// The peer broke the protocol, or has nothing in common with us
    #[error("{0}")]
    Protocol(String),
}

/// Why a certificate was not accepted
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CertificateFault {
    /// Its time is over
    Expired,
    /// Its time has not begun; or the clock of this machine is slow
    NotYetValid,
    /// It is for other names
    WrongHost,
    /// No root that we trust has issued it
    UnknownIssuer,
    /// Anything else
    Other,
}

impl fmt::Display for CertificateFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expired => "has expired",
            Self::NotYetValid => "is not valid yet",
            Self::WrongHost => "is for another host",
            Self::UnknownIssuer => "has an unknown issuer",
            Self::Other => "was not accepted",
        })
    }
}

impl TlsFault {
    /// The fault behind an error of the TLS library
    #[allow(clippy::wildcard_enum_match_arm, reason = "the library's enums are non-exhaustive")]
    pub(crate) fn new(error: &rustls::Error, stage: Stage) -> Self {
        match error {
            rustls::Error::InvalidCertificate(cause) => {
                Self::Certificate { fault: CertificateFault::new(cause), words: words(cause) }
            }
            rustls::Error::NoCertificatesPresented => {
                Self::Certificate { fault: CertificateFault::Other, words: words(error) }
            }
            rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) if stage == Stage::Tls => {
                Self::NotTls
            }
            rustls::Error::AlertReceived(alert) => Self::Alert(format!("{alert:?}")),
            _ => Self::Protocol(words(error)),
        }
    }

    fn kind(&self) -> FailureKind {
        match self {
            Self::InvalidHost => FailureKind::Other,
            Self::Certificate { .. } => FailureKind::Certificate,
            // Nothing of TLS was broken: the connection was.
            Self::ClosedInHandshake => FailureKind::Reset,
            Self::NotTls | Self::Alert(_) | Self::Protocol(_) => FailureKind::Tls,
        }
    }
}

impl CertificateFault {
    #[allow(clippy::wildcard_enum_match_arm, reason = "the library's enum is non-exhaustive")]
    fn new(cause: &CertificateError) -> Self {
        match cause {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => Self::Expired,
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => Self::NotYetValid,
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                Self::WrongHost
            }
            CertificateError::UnknownIssuer => Self::UnknownIssuer,
            _ => Self::Other,
        }
    }
}

impl From<TlsError> for IoFailure {
    fn from(error: TlsError) -> Self {
        Self { stage: error.stage, kind: error.fault.kind(), message: error.to_string() }
    }
}

fn words(error: &impl fmt::Display) -> String {
    let words = error.to_string();
    match words.char_indices().nth(WORDS_LIMIT) {
        Some((end, _)) => format!("{}…", &words[..end]),
        None => words,
    }
}
