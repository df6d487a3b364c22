//! What can go wrong on a TLS connection, typed.

use std::fmt;

use rustls::{AlertDescription, CertificateError, InvalidMessage};
use steadfast::machine::{CertificateFault, ClientCertificateFault, FailureKind, IoFailure, Stage};

use crate::verifier::SelfSigned;

/// The longest text taken over from the TLS library, in characters
///
/// Some of it is the peer's: a certificate may list thousands of names.
const WORDS_LIMIT: usize = 400;

/// A failure of one TLS connection
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("TLS with {host}: {fault}")]
pub struct TlsError {
    /// The host that was to be reached; where we are the server, `the client`
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
    /// The peer did not accept our certificate, or wants one and got none
    #[error("the peer {}: {alert}", said(*.fault))]
    ClientCertificate {
        /// Which of the two
        fault: ClientCertificateFault,
        /// The alert by which it said so
        alert: String,
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

impl TlsFault {
    /// The fault behind an error of the TLS library
    #[allow(clippy::wildcard_enum_match_arm, reason = "the library's enums are non-exhaustive")]
    pub(crate) fn new(error: &rustls::Error, stage: Stage) -> Self {
        match error {
            rustls::Error::InvalidCertificate(cause) => {
                let words = match cause {
                    CertificateError::Other(cause) => words(&cause.0),
                    cause => words(cause),
                };
                Self::Certificate { fault: certificate_fault(cause), words }
            }
            rustls::Error::NoCertificatesPresented => {
                Self::Certificate { fault: CertificateFault::Other, words: words(error) }
            }
            rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) if stage == Stage::Tls => {
                Self::NotTls
            }
            rustls::Error::AlertReceived(alert) => match client_certificate_fault(*alert) {
                Some(fault) => Self::ClientCertificate { fault, alert: format!("{alert:?}") },
                None => Self::Alert(format!("{alert:?}")),
            },
            _ => Self::Protocol(words(error)),
        }
    }

    fn kind(&self) -> FailureKind {
        match self {
            Self::InvalidHost => FailureKind::Other,
            Self::Certificate { fault, .. } => FailureKind::Certificate(*fault),
            Self::ClientCertificate { fault, .. } => FailureKind::ClientCertificate(*fault),
            // Nothing of TLS was broken: the connection was.
            Self::ClosedInHandshake => FailureKind::Reset,
            Self::NotTls | Self::Alert(_) | Self::Protocol(_) => FailureKind::Tls,
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

#[allow(clippy::wildcard_enum_match_arm, reason = "the library's enum is non-exhaustive")]
fn certificate_fault(cause: &CertificateError) -> CertificateFault {
    match cause {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => CertificateFault::Expired,
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            CertificateFault::NotYetValid
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            CertificateFault::WrongHost
        }
        CertificateError::UnknownIssuer => CertificateFault::UnknownIssuer,
        CertificateError::Revoked => CertificateFault::Revoked,
        CertificateError::Other(cause) if cause.0.is::<SelfSigned>() => CertificateFault::SelfSigned,
        _ => CertificateFault::Other,
    }
}

/// The alerts of RFC 8446 section 6.2 that a server can send about nothing but our certificate
#[allow(clippy::wildcard_enum_match_arm, reason = "the rest is about other things")]
fn client_certificate_fault(alert: AlertDescription) -> Option<ClientCertificateFault> {
    match alert {
        AlertDescription::CertificateRequired | AlertDescription::NoCertificate => {
            Some(ClientCertificateFault::Required)
        }
        AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateRevoked
        | AlertDescription::CertificateExpired
        | AlertDescription::CertificateUnknown
        | AlertDescription::UnknownCA => Some(ClientCertificateFault::Refused),
        _ => None,
    }
}

fn said(fault: ClientCertificateFault) -> &'static str {
    if fault == ClientCertificateFault::Required {
        "wants a client certificate"
    } else {
        "did not accept our certificate"
    }
}
