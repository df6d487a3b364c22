//! An authority of the tests' own, and servers that it vouches for.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};
use steadfast_tls::TlsConfig;

pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key
pub(crate) struct Identity {
    certificate: CertificateDer<'static>,
    key: KeyPair,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        Self(CertifiedIssuer::self_signed(params, key).expect("a certificate"))
    }

    /// A client's trust in this authority and in no other
    pub(crate) fn trusted(&self) -> TlsConfig {
        TlsConfig::roots_only(self.0.pem().as_bytes()).expect("roots")
    }

    pub(crate) fn issue(&self, name: &str) -> Identity {
        self.issue_with(name, |_| {})
    }

    pub(crate) fn issue_with(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> Identity {
        let mut params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
        change(&mut params);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.0).expect("a certificate").der().clone();
        Identity { certificate, key }
    }
}

impl Identity {
    pub(crate) fn self_signed(name: &str) -> Self {
        let params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a certificate").der().clone();
        Self { certificate, key }
    }

    /// This identity as a client's, beside that trust
    pub(crate) fn shown_by(&self, tls: TlsConfig) -> TlsConfig {
        let certificate = pem("CERTIFICATE", &self.certificate);
        tls.with_client_certificate(certificate.as_bytes(), self.key.serialize_pem().as_bytes())
            .expect("a certificate and its key")
    }

    /// This identity as a server's
    pub(crate) fn serving(&self) -> Arc<ServerConfig> {
        self.config(rustls::ALL_VERSIONS, None)
    }

    /// As [`Identity::serving`], of one version of TLS, and only for clients that `clients` vouches for
    pub(crate) fn serving_only(
        &self,
        version: &'static SupportedProtocolVersion,
        clients: &Authority,
    ) -> Arc<ServerConfig> {
        self.config(&[version], Some(clients))
    }

    fn config(
        &self,
        versions: &[&'static SupportedProtocolVersion],
        clients: Option<&Authority>,
    ) -> Arc<ServerConfig> {
        let provider: Arc<CryptoProvider> = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(versions)
            .expect("versions");
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(authority) => {
                let mut roots = RootCertStore::empty();
                roots.add(authority.0.der().clone()).expect("a root");
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                builder.with_client_cert_verifier(verifier.build().expect("a verifier"))
            }
        };
        let key = PrivateKeyDer::Pkcs8(self.key.serialize_der().into());
        Arc::new(builder.with_single_cert(vec![self.certificate.clone()], key).expect("a certificate"))
    }
}

fn pem(label: &str, der: &[u8]) -> String {
    use base64::Engine;
    let text = base64::engine::general_purpose::STANDARD.encode(der);
    format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n")
}
