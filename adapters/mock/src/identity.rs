//! A certificate authority of the server's own, and the certificate it signs for itself.

use std::io;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// What it takes to serve TLS for `localhost` and the loopback addresses
pub(crate) struct Identity {
    pub(crate) config: Arc<ServerConfig>,
    pub(crate) ca_pem: String,
}

impl Identity {
    pub(crate) fn new() -> io::Result<Self> {
        Self::generate().map_err(io::Error::other)
    }

    fn generate() -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let mut ca = CertificateParams::default();
        ca.distinguished_name.push(DnType::CommonName, "steadfast mock");
        ca.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let ca = CertifiedIssuer::self_signed(ca, KeyPair::generate()?)?;

        let names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
        let key = KeyPair::generate()?;
        let certificate = CertificateParams::new(names)?.signed_by(&key, &ca)?;

        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
            )?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { config: Arc::new(config), ca_pem: ca.pem() })
    }
}
