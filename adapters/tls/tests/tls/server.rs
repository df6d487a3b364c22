//! The TLS layer as the server, against itself and the TLS library's own client.

use std::sync::Arc;

use rustls::{ClientConfig, ClientConnection, RootCertStore};
use steadfast::machine::Ended;
use steadfast_tls::{PlainRead, TlsConfigError, TlsConnection, TlsServerConfig, TlsServerConfigError};

use crate::peer::{Authority, HOST};

fn config(authority: &Authority) -> TlsServerConfig {
    let identity = authority.issue(&[HOST]);
    let key = identity.key.serialize_pem();
    TlsServerConfig::new(identity.certificate.pem().as_bytes(), key.as_bytes()).unwrap()
}

/// Carries what `from` has to send to `to`, and returns the plain bytes that come of it
fn carry(from: &mut TlsConnection, to: &mut TlsConnection) -> Vec<u8> {
    let cipher = from.outgoing().to_vec();
    from.sent(cipher.len());
    let (mut rest, mut plain, mut buffer) = (&cipher[..], Vec::new(), [0; 1024]);
    loop {
        rest = &rest[to.received(rest).unwrap()..];
        match to.read(&mut buffer).unwrap() {
            PlainRead::Bytes(n) => plain.extend_from_slice(&buffer[..n]),
            PlainRead::Pending | PlainRead::Ended(_) if rest.is_empty() => return plain,
            PlainRead::Pending | PlainRead::Ended(_) => {}
        }
    }
}

#[test]
fn both_sides_carry_bytes_and_end_by_a_close_notify() {
    let authority = Authority::new("authority");
    let mut server = TlsConnection::server(&config(&authority)).unwrap();
    let mut client = TlsConnection::client(&authority.trusted(), HOST).unwrap();
    assert!(server.is_server() && !client.is_server());
    while client.is_handshaking() || server.is_handshaking() {
        carry(&mut client, &mut server);
        carry(&mut server, &mut client);
    }
    assert_eq!(client.write(b"ask"), 3);
    assert_eq!(carry(&mut client, &mut server), b"ask");
    assert_eq!(server.write(&[b'x'; 40_000]), 40_000);
    assert_eq!(carry(&mut server, &mut client), [b'x'; 40_000]);
    client.close();
    assert!(!server.has_ended());
    carry(&mut client, &mut server);
    assert!(server.has_ended() && !server.has_plain());
    assert_eq!(server.read(&mut [0]).unwrap(), PlainRead::Ended(Ended::Clean));
}

#[test]
fn an_end_is_known_before_the_bytes_in_front_of_it_are_read() {
    let authority = Authority::new("authority");
    let mut server = TlsConnection::server(&config(&authority)).unwrap();
    let mut client = TlsConnection::client(&authority.trusted(), HOST).unwrap();
    while client.is_handshaking() || server.is_handshaking() {
        carry(&mut client, &mut server);
        carry(&mut server, &mut client);
    }
    client.write(b"ask");
    let cipher = client.outgoing().to_vec();
    assert_eq!(server.received(&cipher).unwrap(), cipher.len());
    server.eof().unwrap();
    assert!(server.has_ended() && server.has_plain());
    assert_eq!(server.read(&mut [0; 8]).unwrap(), PlainRead::Bytes(3));
    assert_eq!(server.read(&mut [0]).unwrap(), PlainRead::Ended(Ended::WithoutCloseNotify));
}

#[test]
fn a_client_that_asks_for_another_protocol_alone_is_refused() {
    let authority = Authority::new("authority");
    let server_config = config(&authority);
    for (asked, agreed) in
        [(&["h2"][..], None), (&["h2", "http/1.1"], Some("http/1.1")), (&["http/1.1"], Some("http/1.1"))]
    {
        let mut roots = RootCertStore::empty();
        let pem = authority.pem();
        roots.add(rustls::pki_types::pem::PemObject::from_pem_slice(pem.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        client.alpn_protocols = asked.iter().map(|name| name.as_bytes().to_vec()).collect();
        let mut client = ClientConnection::new(Arc::new(client), HOST.try_into().unwrap()).unwrap();
        let mut server = TlsConnection::server(&server_config).unwrap();
        let mut hello = Vec::new();
        client.write_tls(&mut hello).unwrap();
        assert_eq!(server.received(&hello).is_err(), agreed.is_none(), "{asked:?}");
        let mut cipher = server.outgoing();
        while !cipher.is_empty() {
            client.read_tls(&mut cipher).unwrap();
        }
        assert_eq!(client.process_new_packets().is_err(), agreed.is_none(), "{asked:?}");
        assert_eq!(client.alpn_protocol(), agreed.map(str::as_bytes), "{asked:?}");
    }
}

#[test]
fn files_that_cannot_be_used_are_told_apart_and_no_key_is_repeated() {
    let authority = Authority::new("authority");
    let (one, other) = (authority.issue(&[HOST]), authority.issue(&[HOST]));
    let (chain, key) = (one.certificate.pem(), one.key.serialize_pem());
    let broken = key.replace("-----END", "---END");
    let fault = |chain: &str, key: &str| TlsServerConfig::new(chain.as_bytes(), key.as_bytes()).unwrap_err();
    assert_eq!(fault("", &key), TlsServerConfigError::Certificate(TlsConfigError::NoCertificate));
    assert_eq!(fault(&key, &key), TlsServerConfigError::Certificate(TlsConfigError::NoCertificate));
    for no_key in ["", &chain, &broken] {
        assert_eq!(fault(&chain, no_key), TlsServerConfigError::Key(TlsConfigError::PrivateKey));
    }
    let pair = fault(&chain, &other.key.serialize_pem());
    assert!(matches!(pair, TlsServerConfigError::Pair(_)), "{pair}");
    for error in [fault(&broken, &key), fault(&chain, &broken), pair] {
        let said = format!("{error} {error:?}");
        assert!(!key.lines().filter(|line| !line.starts_with('-')).any(|line| said.contains(line)), "{said}");
    }
}
