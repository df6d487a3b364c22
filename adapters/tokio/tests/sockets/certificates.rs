//! A certificate authority of the tests' own.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A server's certificate and its key
pub(crate) struct Identity {
    certificate: CertificateDer<'static>,
    key: KeyPair,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        Self(
            CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("a certificate"),
        )
    }

    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    pub(crate) fn issue(&self, names: &[&str]) -> Identity {
        let names = names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let params = CertificateParams::new(names).expect("names");
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.0).expect("a certificate").der().clone();
        Identity { certificate, key }
    }
}

impl Identity {
    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        let key = PrivateKeyDer::Pkcs8(self.key.serialize_der().into());
        let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.clone()], key)
            .expect("a certificate");
        Arc::new(config)
    }
}
