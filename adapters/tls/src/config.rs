//! What the connections of a client have in common: whom to trust, and who we are.

use std::fmt;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, RootCertStore};

use crate::verifier::Telling;

/// Whom to trust and who we are, for many connections
///
/// TLS 1.2 and 1.3, `http/1.1` by ALPN, sessions resumed in memory. Cloning is cheap, and clones
/// share their sessions. The process-wide default of the TLS library is neither read nor set.
#[derive(Clone)]
pub struct TlsConfig {
    client: Arc<ClientConfig>,
    /// The same without a certificate of our own
    anonymous: Arc<ClientConfig>,
}

impl TlsConfig {
    /// Trusts what the operating system trusts
    ///
    /// On Linux and the BSDs this reads the system's certificate files, once and blocking;
    /// `SSL_CERT_FILE` and `SSL_CERT_DIR` name others.
    ///
    /// Errors: [`TlsConfigError::Roots`] where the system has no roots.
    #[cfg(feature = "platform-verifier")]
    pub fn platform() -> Result<Self, TlsConfigError> {
        platform_verifier(rustls_platform_verifier::Verifier::new)
    }

    /// Trusts what the operating system trusts, and the roots in a PEM text beside it
    ///
    /// For a company's own authority, or a proxy that opens TLS. Not on Android, whose verifier
    /// takes no further roots.
    ///
    /// Errors: a PEM text that is broken or holds no certificate, a certificate that cannot be a
    /// root.
    #[cfg(all(feature = "platform-verifier", not(target_os = "android")))]
    pub fn platform_with(pem: &[u8]) -> Result<Self, TlsConfigError> {
        let roots = certificates(pem)?;
        platform_verifier(|provider| {
            rustls_platform_verifier::Verifier::new_with_extra_roots(roots, provider)
        })
    }

    /// Trusts Mozilla's roots, as they were when this was built: the same everywhere, and without files
    #[cfg(feature = "webpki-roots")]
    pub fn mozilla() -> Result<Self, TlsConfigError> {
        Self::trusting(RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.into() })
    }

    /// Trusts Mozilla's roots, and those in a PEM text beside them
    ///
    /// Errors: a PEM text that is broken or holds no certificate, a certificate that cannot be a
    /// root.
    #[cfg(feature = "webpki-roots")]
    pub fn mozilla_with(pem: &[u8]) -> Result<Self, TlsConfigError> {
        let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.into() };
        add(&mut roots, pem)?;
        Self::trusting(roots)
    }

    /// What a client trusts that was told nothing else
    ///
    /// With the feature `platform-verifier`, which is a default, [`TlsConfig::platform`]; else with
    /// `webpki-roots`, Mozilla's roots.
    ///
    /// Errors: [`TlsConfigError::Roots`] where the system has no roots, and in a build with neither feature.
    pub fn standard() -> Result<Self, TlsConfigError> {
        #[cfg(feature = "platform-verifier")]
        return Self::platform();
        #[cfg(all(feature = "webpki-roots", not(feature = "platform-verifier")))]
        return Self::mozilla();
        #[cfg(not(any(feature = "webpki-roots", feature = "platform-verifier")))]
        return Err(TlsConfigError::Roots(
            "this build has none: give a client a TlsConfig, or turn on platform-verifier or webpki-roots"
                .to_owned(),
        ));
    }

    /// Trusts the roots in a PEM text and no others
    ///
    /// Errors: a PEM text that is broken or holds no certificate, a certificate that cannot be a
    /// root.
    pub fn roots_only(pem: &[u8]) -> Result<Self, TlsConfigError> {
        let mut roots = RootCertStore::empty();
        add(&mut roots, pem)?;
        Self::trusting(roots)
    }

    fn trusting(roots: RootCertStore) -> Result<Self, TlsConfigError> {
        let provider = provider();
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .build()
            .map_err(|error| TlsConfigError::Roots(error.to_string()))?;
        Self::new(provider, verifier)
    }

    /// The same trust, and a certificate of our own for servers that ask for one
    ///
    /// `chain` is PEM, our certificate first; `key` is PEM, in PKCS#8, PKCS#1 or SEC1 form.
    ///
    /// Errors: a PEM text that is broken or empty, a key that does not fit the certificate.
    pub fn with_client_certificate(self, chain: &[u8], key: &[u8]) -> Result<Self, TlsConfigError> {
        let chain = certificates(chain)?;
        // The parser's error is dropped: it may quote the text, and the text is a secret.
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| TlsConfigError::PrivateKey)?;
        let identity = CertifiedKey::from_der(chain, key, self.client.crypto_provider())
            .map_err(|error| TlsConfigError::ClientCertificate(error.to_string()))?;
        let mut client = Arc::unwrap_or_clone(self.client);
        client.client_auth_cert_resolver = Arc::new(SingleCertAndKey::from(identity));
        Ok(Self { client: Arc::new(client), ..self })
    }

    /// The same trust, and no certificate of our own: for a proxy, to which that of the origin is no business
    pub fn without_client_certificate(&self) -> Self {
        Self { client: Arc::clone(&self.anonymous), anonymous: Arc::clone(&self.anonymous) }
    }

    /// What the TLS library takes
    pub(crate) fn client(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.client)
    }

    fn new(
        provider: Arc<CryptoProvider>,
        verifier: Arc<dyn ServerCertVerifier>,
    ) -> Result<Self, TlsConfigError> {
        let mut client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsConfigError::Library(error.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Telling::new(verifier)))
            .with_no_client_auth();
        client.alpn_protocols = vec![b"http/1.1".to_vec()];
        let client = Arc::new(client);
        Ok(Self { anonymous: Arc::clone(&client), client })
    }
}

/// Shows nothing: a configuration can hold a private key
impl fmt::Debug for TlsConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsConfig").finish_non_exhaustive()
    }
}

/// Why a [`TlsConfig`] could not be made
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TlsConfigError {
    /// A text that should hold certificates is not PEM
    #[error("the certificates are not valid PEM: {0}")]
    Pem(String),
    /// A PEM text holds no certificate
    #[error("the PEM text holds no certificate: it needs a block that begins -----BEGIN CERTIFICATE-----")]
    NoCertificate,
    /// No roots to trust, or one that cannot be used
    #[error("the root certificates cannot be used: {0}")]
    Roots(String),
    /// A text that should hold a private key holds none, or is not PEM
    #[error("the private key is not valid PEM: it needs a PKCS#8, PKCS#1 or SEC1 block, not encrypted")]
    PrivateKey,
    /// The certificate of our own and its key cannot be used together
    #[error("the client certificate cannot be used: {0}")]
    ClientCertificate(String),
    /// The TLS library's own set-up failed
    #[error("TLS cannot be set up: {0}")]
    Library(String),
}

fn add(roots: &mut RootCertStore, pem: &[u8]) -> Result<(), TlsConfigError> {
    for certificate in certificates(pem)? {
        roots.add(certificate).map_err(|error| TlsConfigError::Roots(error.to_string()))?;
    }
    Ok(())
}

pub(crate) fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsConfigError> {
    let certificates = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| TlsConfigError::Pem(error.to_string()))?;
    if certificates.is_empty() { Err(TlsConfigError::NoCertificate) } else { Ok(certificates) }
}

pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

#[cfg(feature = "platform-verifier")]
fn platform_verifier(
    make: impl FnOnce(Arc<CryptoProvider>) -> Result<rustls_platform_verifier::Verifier, rustls::Error>,
) -> Result<TlsConfig, TlsConfigError> {
    let provider = provider();
    let verifier = make(Arc::clone(&provider)).map_err(|error| TlsConfigError::Roots(error.to_string()))?;
    TlsConfig::new(provider, Arc::new(verifier))
}
