//! A private authority, a server made by the TLS library, and the wire between it and the client.

use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, SupportedProtocolVersion};
use steadfast_tls::{PlainRead, TlsConfig, TlsConnection, TlsError};

pub(crate) const HOST: &str = "api.example.com";
pub(crate) const BOTH: &[&SupportedProtocolVersion] = &[&rustls::version::TLS13, &rustls::version::TLS12];

/// A certificate authority of our own
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key
pub(crate) struct Identity {
    pub(crate) certificate: rcgen::Certificate,
    pub(crate) key: KeyPair,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    pub(crate) fn issue(&self, names: &[&str]) -> Identity {
        self.issue_with(names, |_| {})
    }

    pub(crate) fn issue_with(&self, names: &[&str], change: impl FnOnce(&mut CertificateParams)) -> Identity {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        Identity { certificate: params.signed_by(&key, &self.0).unwrap(), key }
    }

    pub(crate) fn trusted(&self) -> TlsConfig {
        TlsConfig::roots_only(self.pem().as_bytes()).unwrap()
    }
}

/// A server of that identity; it asks for a client certificate where `clients` issues them
pub(crate) fn server(
    identity: &Identity,
    versions: &[&'static SupportedProtocolVersion],
    clients: Option<&Authority>,
) -> ServerConnection {
    ServerConnection::new(server_config(identity, versions, clients)).unwrap()
}

pub(crate) fn server_config(
    identity: &Identity,
    versions: &[&'static SupportedProtocolVersion],
    clients: Option<&Authority>,
) -> Arc<ServerConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ServerConfig::builder_with_provider(Arc::clone(&provider)).with_protocol_versions(versions).unwrap();
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(authority) => {
            let mut roots = RootCertStore::empty();
            roots.add(authority.0.der().clone()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.build().unwrap())
        }
    };
    let chain = vec![CertificateDer::from(identity.certificate.der().to_vec())];
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(identity.key.serialize_der()));
    let mut config = builder.with_single_cert(chain, key).unwrap();
    config.send_half_rtt_data = true;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Arc::new(config)
}

/// A client and a server that trust each other, with the handshake done
pub(crate) fn connected(versions: &[&'static SupportedProtocolVersion]) -> (TlsConnection, ServerConnection) {
    let authority = Authority::new("Test Authority");
    let mut client = TlsConnection::client(&authority.trusted(), HOST).unwrap();
    let mut server = server(&authority.issue(&[HOST]), versions, None);
    settle(&mut client, &mut server).unwrap();
    assert!(!client.is_handshaking() && !server.is_handshaking());
    (client, server)
}

/// Carries cipher bytes both ways until neither side has any
pub(crate) fn settle(client: &mut TlsConnection, server: &mut ServerConnection) -> Result<(), TlsError> {
    while !client.outgoing().is_empty() || server.wants_write() {
        send(client, server);
        feed(client, &cipher(server))?;
    }
    Ok(())
}

/// Carries all that the client has to send; what the server thinks of it shows in its answer
pub(crate) fn send(client: &mut TlsConnection, server: &mut ServerConnection) {
    while !client.outgoing().is_empty() {
        let taken = server.read_tls(&mut client.outgoing()).unwrap();
        client.sent(taken);
        let _ = server.process_new_packets();
    }
}

/// Feeds cipher bytes and expects that all are taken, there being no plain bytes among them
pub(crate) fn feed(client: &mut TlsConnection, cipher: &[u8]) -> Result<(), TlsError> {
    let taken = client.received(cipher)?;
    assert_eq!(taken, cipher.len());
    Ok(())
}

/// Cipher bytes that the server has to send
pub(crate) fn cipher(server: &mut ServerConnection) -> Vec<u8> {
    let mut cipher = Vec::new();
    while server.wants_write() {
        server.write_tls(&mut cipher).unwrap();
    }
    cipher
}

/// Cipher bytes of `plain`, as the server sends them
pub(crate) fn encrypt(server: &mut ServerConnection, plain: &[u8]) -> Vec<u8> {
    server.writer().write_all(plain).unwrap();
    cipher(server)
}

/// Plain bytes that the server holds
pub(crate) fn plain(server: &mut ServerConnection) -> Vec<u8> {
    let mut plain = Vec::new();
    match server.reader().read_to_end(&mut plain) {
        Ok(_) => plain,
        Err(error) if error.kind() == ErrorKind::WouldBlock => plain,
        Err(error) => panic!("{error}"),
    }
}

/// Feeds cipher bytes and reads until there is nothing more: plain bytes, and how it stopped
pub(crate) fn drain(client: &mut TlsConnection, mut cipher: &[u8]) -> (Vec<u8>, Result<PlainRead, TlsError>) {
    let mut all = Vec::new();
    let mut buffer = [0; 1000];
    loop {
        match client.received(cipher) {
            Ok(taken) => cipher = &cipher[taken..],
            Err(error) => return (all, Err(error)),
        }
        match client.read(&mut buffer) {
            Ok(PlainRead::Bytes(count)) => all.extend_from_slice(&buffer[..count]),
            Ok(PlainRead::Pending) if !cipher.is_empty() => {}
            stop => return (all, stop),
        }
    }
}
