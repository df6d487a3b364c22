use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, date_time_ymd};
use steadfast::machine::{CertificateFault, ClientCertificateFault, FailureKind, IoFailure, Stage};
use steadfast_tls::{TlsConfig, TlsConfigError, TlsConnection, TlsError, TlsFault};

use crate::peer::{Authority, BOTH, HOST, Identity, cipher, drain, feed, send, server, settle};

/// The handshake's failure, and the alert that the server got
fn refused(config: &TlsConfig, identity: &Identity) -> (TlsError, String) {
    let mut client = TlsConnection::client(config, HOST).unwrap();
    let mut server = server(identity, BOTH, None);
    let error = settle(&mut client, &mut server).unwrap_err();
    assert!(client.is_handshaking());
    assert_eq!(client.write(b"request"), 0);
    server.read_tls(&mut client.outgoing()).unwrap();
    (error, server.process_new_packets().unwrap_err().to_string())
}

fn certificate_fault(error: &TlsError) -> (CertificateFault, &str) {
    let TlsFault::Certificate { fault, words } = &error.fault else { panic!("{error}") };
    (*fault, words)
}

#[test]
fn expired() {
    let authority = Authority::new("Test Authority");
    let identity = authority.issue_with(&[HOST], |params| {
        params.not_before = date_time_ymd(2019, 1, 1);
        params.not_after = date_time_ymd(2020, 1, 1);
    });
    let (error, alert) = refused(&authority.trusted(), &identity);
    let (fault, words) = certificate_fault(&error);
    assert_eq!(fault, CertificateFault::Expired);
    assert!(words.contains("not valid after 1577836800"), "{words}");
    assert_eq!(alert, "received fatal alert: CertificateExpired");
    let words = words.to_owned();
    assert_eq!(
        IoFailure::from(error),
        IoFailure {
            stage: Stage::Tls,
            kind: FailureKind::Certificate(CertificateFault::Expired),
            message: format!("TLS with api.example.com: the certificate has expired ({words})"),
        }
    );
}

#[test]
fn not_yet_valid() {
    let authority = Authority::new("Test Authority");
    let identity = authority.issue_with(&[HOST], |params| params.not_before = date_time_ymd(4000, 1, 1));
    let (error, _) = refused(&authority.trusted(), &identity);
    assert_eq!(certificate_fault(&error).0, CertificateFault::NotYetValid);
}

#[test]
fn for_another_host() {
    let authority = Authority::new("Test Authority");
    let (error, _) = refused(&authority.trusted(), &authority.issue(&["www.example.com"]));
    let (fault, words) = certificate_fault(&error);
    assert_eq!(fault, CertificateFault::WrongHost);
    assert_eq!(
        words,
        r#"certificate not valid for name "api.example.com"; certificate is only valid for DnsName("www.example.com")"#
    );
}

#[test]
fn a_certificate_of_many_names_does_not_fill_the_message() {
    let authority = Authority::new("Test Authority");
    let names: Vec<String> = (0..1000).map(|n| format!("host-{n}.example.org")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (error, _) = refused(&authority.trusted(), &authority.issue(&names));
    let (fault, words) = certificate_fault(&error);
    assert_eq!(fault, CertificateFault::WrongHost);
    assert_eq!(words.chars().count(), 401);
    assert!(words.ends_with('…'));
}

#[test]
fn of_an_unknown_issuer() {
    let authority = Authority::new("Test Authority");
    let (error, alert) = refused(&authority.trusted(), &Authority::new("Other Authority").issue(&[HOST]));
    assert_eq!(certificate_fault(&error), (CertificateFault::UnknownIssuer, "UnknownIssuer"));
    assert_eq!(alert, "received fatal alert: UnknownCA");
    assert_eq!(
        error.to_string(),
        "TLS with api.example.com: the certificate has an unknown issuer (UnknownIssuer)"
    );
}

#[test]
fn for_another_purpose() {
    let authority = Authority::new("Test Authority");
    let identity = authority.issue_with(&[HOST], |params| {
        params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
    });
    let (error, _) = refused(&authority.trusted(), &identity);
    assert_eq!(certificate_fault(&error).0, CertificateFault::Other);
}

#[test]
fn our_own_is_shown_where_the_server_asks() {
    let authority = Authority::new("Test Authority");
    let clients = Authority::new("Client Authority");
    let ours = clients.issue(&["client.example.com"]);
    let chain = ours.certificate.pem();
    let config = authority.trusted();
    let config =
        config.with_client_certificate(chain.as_bytes(), ours.key.serialize_pem().as_bytes()).unwrap();
    let identity = authority.issue(&[HOST]);
    for version in BOTH {
        let mut client = TlsConnection::client(&config, HOST).unwrap();
        let mut server = server(&identity, &[version], Some(&clients));
        settle(&mut client, &mut server).unwrap();
        assert!(!server.is_handshaking());
        assert_eq!(server.peer_certificates().unwrap()[0].as_ref(), ours.certificate.der().as_ref());
    }
    // A proxy is shown none, though it asks.
    for version in BOTH {
        let mut client = TlsConnection::client(&config.without_client_certificate(), HOST).unwrap();
        let mut server = server(&identity, &[version], Some(&clients));
        settle(&mut client, &mut server).unwrap_err();
        assert!(server.peer_certificates().is_none());
    }
}

#[test]
fn a_server_that_misses_our_own_says_so_to_a_read() {
    let authority = Authority::new("Test Authority");
    let clients = Authority::new("Client Authority");
    let mut client = TlsConnection::client(&authority.trusted(), HOST).unwrap();
    let mut server = server(&authority.issue(&[HOST]), &[&rustls::version::TLS13], Some(&clients));
    send(&mut client, &mut server);
    feed(&mut client, &cipher(&mut server)).unwrap();
    assert!(!client.is_handshaking());
    assert_eq!(client.write(b"request"), 7);
    send(&mut client, &mut server);
    let alert = cipher(&mut server);
    let (plain, stop) = drain(&mut client, &alert);
    assert_eq!(plain, b"");
    assert_eq!(
        stop,
        Err(TlsError {
            host: HOST.into(),
            stage: Stage::Read,
            fault: TlsFault::ClientCertificate {
                fault: ClientCertificateFault::Required,
                alert: "CertificateRequired".into()
            },
        })
    );
}

/// `openssl req -x509` makes an authority by default
#[test]
fn self_signed_with_and_without_the_powers_of_an_authority() {
    let authority = Authority::new("Test Authority");
    for is_ca in [IsCa::NoCa, IsCa::Ca(BasicConstraints::Unconstrained)] {
        let mut params = CertificateParams::new(vec![HOST.to_owned()]).unwrap();
        params.is_ca = is_ca;
        let key = KeyPair::generate().unwrap();
        let identity = Identity { certificate: params.self_signed(&key).unwrap(), key };
        let (error, alert) = refused(&authority.trusted(), &identity);
        assert_eq!(certificate_fault(&error).0, CertificateFault::SelfSigned);
        assert_eq!(alert, "received fatal alert: CertificateUnknown");
        assert_eq!(
            IoFailure::from(error),
            IoFailure {
                stage: Stage::Tls,
                kind: FailureKind::Certificate(CertificateFault::SelfSigned),
                message:
                    "TLS with api.example.com: the certificate is self-signed, and not among the trusted \
                          roots (its issuer is its own subject)"
                        .to_owned(),
            }
        );
    }
}

#[test]
fn pem_texts_that_are_no_use() {
    assert_eq!(TlsConfig::roots_only(b"").unwrap_err(), TlsConfigError::NoCertificate);
    assert_eq!(TlsConfig::roots_only(b"no PEM at all").unwrap_err(), TlsConfigError::NoCertificate);
    let authority = Authority::new("Test Authority");
    let pem = authority.pem();
    let cut = &pem[..pem.len() / 2];
    assert!(matches!(TlsConfig::roots_only(cut.as_bytes()).unwrap_err(), TlsConfigError::Pem(_)));
    let empty = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    assert_eq!(
        TlsConfig::roots_only(empty.as_bytes()).unwrap_err(),
        TlsConfigError::Roots("invalid peer certificate: BadEncoding".into())
    );

    let identity = authority.issue(&["client.example.com"]);
    let chain = identity.certificate.pem();
    let key = identity.key.serialize_pem();
    let other = authority.issue(&["client.example.com"]).key.serialize_pem();
    let with = |chain: &str, key: &str| {
        authority.trusted().with_client_certificate(chain.as_bytes(), key.as_bytes()).unwrap_err()
    };
    assert_eq!(with("", &key), TlsConfigError::NoCertificate);
    assert_eq!(with(&chain, &chain), TlsConfigError::PrivateKey);
    assert_eq!(with(&chain, &key[..60]), TlsConfigError::PrivateKey);
    assert_eq!(
        with(&chain, &other),
        TlsConfigError::ClientCertificate("keys may not be consistent: KeyMismatch".into())
    );
}

#[test]
fn debug_shows_neither_keys_nor_bytes() {
    let authority = Authority::new("Test Authority");
    let ours = authority.issue(&["client.example.com"]);
    let (chain, key) = (ours.certificate.pem(), ours.key.serialize_pem());
    let config = authority.trusted().with_client_certificate(chain.as_bytes(), key.as_bytes()).unwrap();
    assert_eq!(format!("{config:?}"), "TlsConfig { .. }");
    let client = TlsConnection::client(&config, HOST).unwrap();
    assert_eq!(
        format!("{client:?}"),
        format!(
            "TlsConnection {{ host: \"api.example.com\", handshaking: true, outgoing: {}, end: None, closed: false }}",
            client.outgoing().len()
        )
    );
}

#[cfg(feature = "platform-verifier")]
#[test]
fn further_roots_stand_beside_the_platforms() {
    let authority = Authority::new("Test Authority");
    let config = TlsConfig::platform_with(authority.pem().as_bytes()).unwrap();
    let mut client = TlsConnection::client(&config, HOST).unwrap();
    let mut server = server(&authority.issue(&[HOST]), BOTH, None);
    settle(&mut client, &mut server).unwrap();
    assert!(!client.is_handshaking());

    let (error, _) = refused(&config, &Authority::new("Other Authority").issue(&[HOST]));
    assert_eq!(certificate_fault(&error).0, CertificateFault::UnknownIssuer);
    assert_eq!(TlsConfig::platform_with(b"").unwrap_err(), TlsConfigError::NoCertificate);
}

#[cfg(feature = "webpki-roots")]
#[test]
fn mozillas_roots_are_compiled_in() {
    let authority = Authority::new("Test Authority");
    let (error, _) = refused(&TlsConfig::mozilla().unwrap(), &authority.issue(&[HOST]));
    assert_eq!(certificate_fault(&error).0, CertificateFault::UnknownIssuer);
    let config = TlsConfig::mozilla_with(authority.pem().as_bytes()).unwrap();
    let mut client = TlsConnection::client(&config, HOST).unwrap();
    let mut server = server(&authority.issue(&[HOST]), BOTH, None);
    settle(&mut client, &mut server).unwrap();
    assert!(!client.is_handshaking());
    assert_eq!(TlsConfig::mozilla_with(b"").unwrap_err(), TlsConfigError::NoCertificate);
}

/// Nobody is trusted unless it is said whom
#[cfg(not(any(feature = "platform-verifier", feature = "webpki-roots")))]
#[test]
fn a_build_without_roots_says_so() {
    let error = TlsConfig::standard().unwrap_err();
    assert!(error.to_string().contains("turn on platform-verifier or webpki-roots"), "{error}");
}

/// The platform's roots are named by the environment, so the test runs itself in a process of its own
#[cfg(all(feature = "platform-verifier", target_os = "linux"))]
#[test]
fn the_platforms_roots_alone() {
    const TEST: &str = "certificates::the_platforms_roots_alone";
    let roots = concat!(env!("CARGO_TARGET_TMPDIR"), "/platform-roots.pem");
    if std::env::var_os("SSL_CERT_FILE").is_none_or(|file| file != roots) {
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", TEST])
            .env("SSL_CERT_FILE", roots)
            .env_remove("SSL_CERT_DIR")
            .output()
            .unwrap();
        let stdout = String::from_utf8_lossy(&child.stdout);
        assert!(child.status.success() && stdout.contains("1 passed"), "{stdout}");
        return;
    }
    let authority = Authority::new("Test Authority");
    std::fs::write(roots, authority.pem()).unwrap();
    let config = TlsConfig::platform().unwrap();
    let mut client = TlsConnection::client(&config, HOST).unwrap();
    let mut server = server(&authority.issue(&[HOST]), BOTH, None);
    settle(&mut client, &mut server).unwrap();
    assert!(!client.is_handshaking());

    let (error, _) = refused(&config, &Authority::new("Other Authority").issue(&[HOST]));
    assert_eq!(certificate_fault(&error).0, CertificateFault::UnknownIssuer);

    std::fs::write(roots, "").unwrap();
    assert_eq!(
        TlsConfig::platform().unwrap_err(),
        TlsConfigError::Roots("unexpected error: No CA certificates were loaded from the system".into())
    );
}
