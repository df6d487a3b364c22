//! What the connections of a server have in common: its certificate and its key.

use std::fmt;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use rustls::sign::{CertifiedKey, SingleCertAndKey};

use crate::config::{TlsConfigError, certificates, provider};

/// A server's certificate and key, for many connections
///
/// TLS 1.2 and 1.3, `http/1.1` by ALPN, sessions resumed in memory, no early data. A client that asks by
/// ALPN for something else alone is refused. Cloning is cheap, and clones share their sessions.
#[derive(Clone)]
pub struct TlsServerConfig(Arc<ServerConfig>);

/// Why a [`TlsServerConfig`] could not be made; no text has a byte of the key in it
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlsServerConfigError {
    /// The certificate is at fault
    #[error(transparent)]
    Certificate(TlsConfigError),
    /// The key is at fault
    #[error(transparent)]
    Key(TlsConfigError),
    /// They cannot be used together
    #[error(
        "the certificate and the private key cannot be used together ({0}): the certificate of that very key \
         comes first, then those that sign it"
    )]
    Pair(String),
}

impl TlsServerConfig {
    /// Shows the certificates of `chain`, which is PEM with the server's own first; `key` is PEM, in PKCS#8,
    /// PKCS#1 or SEC1 form
    ///
    /// Errors: a PEM text that is broken or empty, a key that does not fit the certificate.
    pub fn new(chain: &[u8], key: &[u8]) -> Result<Self, TlsServerConfigError> {
        let chain = certificates(chain).map_err(TlsServerConfigError::Certificate)?;
        // The parser's error is dropped: it may quote the text, and the text is a secret.
        let key = PrivateKeyDer::from_pem_slice(key)
            .map_err(|_| TlsServerConfigError::Key(TlsConfigError::PrivateKey))?;
        let provider = provider();
        let identity = CertifiedKey::from_der(chain, key, &provider)
            .map_err(|error| TlsServerConfigError::Pair(error.to_string()))?;
        let mut server = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsServerConfigError::Pair(error.to_string()))?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(SingleCertAndKey::from(identity)));
        server.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(Arc::new(server)))
    }

    /// What the TLS library takes
    pub(crate) fn server(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.0)
    }
}

/// Shows nothing: it holds a private key
impl fmt::Debug for TlsServerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsServerConfig").finish_non_exhaustive()
    }
}
