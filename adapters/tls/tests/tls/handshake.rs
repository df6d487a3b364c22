use steadfast::machine::{FailureKind, IoFailure, Stage};
use steadfast_tls::{PlainRead, TlsConnection, TlsFault};

use crate::peer::{
    Authority, BOTH, HOST, cipher, connected, drain, encrypt, feed, plain, send, server, settle,
};

#[test]
fn both_versions_agree_on_http_1_1() {
    for version in BOTH {
        let (mut client, mut server) = connected(&[version]);
        assert_eq!(server.protocol_version(), Some(version.version));
        assert_eq!(server.alpn_protocol(), Some(&b"http/1.1"[..]));
        assert_eq!(server.server_name(), Some(HOST));
        assert_eq!(client.write(b"ping"), 4);
        send(&mut client, &mut server);
        assert_eq!(plain(&mut server), b"ping");
        let pong = encrypt(&mut server, b"pong");
        assert_eq!(drain(&mut client, &pong), (b"pong".to_vec(), Ok(PlainRead::Pending)));
    }
}

#[test]
fn one_byte_at_a_time_gives_the_same() {
    let authority = Authority::new("Test Authority");
    for version in BOTH {
        let mut client = TlsConnection::client(&authority.trusted(), HOST).unwrap();
        let mut server = server(&authority.issue(&[HOST]), &[version], None);
        while !client.outgoing().is_empty() || server.wants_write() {
            while !client.outgoing().is_empty() {
                assert_eq!(server.read_tls(&mut &client.outgoing()[..1]).unwrap(), 1);
                client.sent(1);
                server.process_new_packets().unwrap();
            }
            for byte in cipher(&mut server) {
                feed(&mut client, &[byte]).unwrap();
                assert_eq!(client.read(&mut [0; 16]), Ok(PlainRead::Pending));
            }
        }
        assert!(!client.is_handshaking());

        let mut got = Vec::new();
        for byte in encrypt(&mut server, b"one byte at a time") {
            let (plain, stop) = drain(&mut client, &[byte]);
            assert_eq!(stop, Ok(PlainRead::Pending));
            got.extend(plain);
        }
        assert_eq!(got, b"one byte at a time");
    }
}

#[test]
fn an_ip_address_is_a_host_and_brackets_are_taken_off() {
    let authority = Authority::new("Test Authority");
    let identity = authority.issue(&["::1", "127.0.0.1"]);
    for host in ["127.0.0.1", "::1", "[::1]"] {
        let mut client = TlsConnection::client(&authority.trusted(), host).unwrap();
        let mut server = server(&identity, BOTH, None);
        settle(&mut client, &mut server).unwrap();
        assert!(!client.is_handshaking(), "{host}");
        assert_eq!(server.server_name(), None, "an address is not announced");
    }
}

#[test]
fn a_host_that_is_no_name_is_refused() {
    let config = Authority::new("Test Authority").trusted();
    for host in ["", "a b", "exa mple.com", "[example.com", "-.", "a..b"] {
        let error = TlsConnection::client(&config, host).unwrap_err();
        assert_eq!(error.fault, TlsFault::InvalidHost, "{host}");
        assert_eq!(
            IoFailure::from(error),
            IoFailure {
                stage: Stage::Tls,
                kind: FailureKind::Other,
                message: format!("TLS with {host}: not a DNS name or an IP address"),
            }
        );
    }
}

#[test]
fn nothing_is_taken_before_the_handshake_is_over() {
    let authority = Authority::new("Test Authority");
    for version in BOTH {
        let mut client = TlsConnection::client(&authority.trusted(), HOST).unwrap();
        let mut server = server(&authority.issue(&[HOST]), &[version], None);
        let mut early = 0;
        while client.is_handshaking() {
            early += client.write(b"request");
            send(&mut client, &mut server);
            early += client.write(b"request");
            feed(&mut client, &cipher(&mut server)).unwrap();
        }
        assert_eq!(early, 0);
        assert_eq!(client.write(b"request"), 7);
        settle(&mut client, &mut server).unwrap();
        assert_eq!(plain(&mut server), b"request");
    }
}

#[test]
fn plain_bytes_glued_to_the_servers_handshake_are_kept() {
    let authority = Authority::new("Test Authority");
    let mut client = TlsConnection::client(&authority.trusted(), HOST).unwrap();
    let mut server = server(&authority.issue(&[HOST]), &[&rustls::version::TLS13], None);
    send(&mut client, &mut server);
    // The server may speak first, in the flight of its Finished.
    let flight = encrypt(&mut server, b"greeting");
    let taken = client.received(&flight).unwrap();
    assert_eq!(taken, flight.len());
    assert!(!client.is_handshaking());
    assert_eq!(client.write(b"request"), 7);
    let mut buffer = [0; 100];
    assert_eq!(client.read(&mut []), Ok(PlainRead::Bytes(0)));
    assert_eq!(client.read(&mut buffer[..5]), Ok(PlainRead::Bytes(5)));
    assert_eq!(client.read(&mut buffer[5..]), Ok(PlainRead::Bytes(3)));
    assert_eq!(&buffer[..8], b"greeting");
    assert_eq!(client.read(&mut buffer), Ok(PlainRead::Pending));
    send(&mut client, &mut server);
    assert_eq!(plain(&mut server), b"request");
}

#[test]
fn a_peer_that_does_not_speak_tls() {
    let config = Authority::new("Test Authority").trusted();
    for split in [false, true] {
        let mut client = TlsConnection::client(&config, HOST).unwrap();
        client.sent(client.outgoing().len());
        let answer = b"HTTP/1.1 400 Bad Request\r\n\r\n";
        let error = if split {
            answer.iter().find_map(|byte| client.received(&[*byte]).err()).unwrap()
        } else {
            client.received(answer).unwrap_err()
        };
        assert_eq!(error.fault, TlsFault::NotTls);
        assert_eq!(client.received(b"more"), Err(error.clone()));
        assert_eq!(client.read(&mut [0; 8]), Err(error.clone()));
        assert_eq!(client.eof(), Err(error.clone()));
        assert_eq!(client.write(b"request"), 0);
        assert_eq!(client.outgoing(), [21, 3, 3, 0, 2, 2, 50], "a fatal decode_error");
        assert_eq!(
            IoFailure::from(error),
            IoFailure {
                stage: Stage::Tls,
                kind: FailureKind::Tls,
                message: "TLS with api.example.com: the peer does not speak TLS on this port".into(),
            }
        );
    }
}

#[test]
fn bytes_that_are_no_record_after_the_handshake() {
    let (mut client, _server) = connected(BOTH);
    let error = client.received(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap_err();
    assert_eq!(error.stage, Stage::Read);
    assert_eq!(error.fault, TlsFault::Protocol("received corrupt message of type InvalidContentType".into()));
}

#[test]
fn random_bytes_never_panic_and_always_fail() {
    let config = Authority::new("Test Authority").trusted();
    for seed in 0..2000 {
        let mut random = fastrand::Rng::with_seed(seed);
        let (mut client, stage) = if seed % 20 == 0 {
            (connected(BOTH).0, Stage::Read)
        } else {
            (TlsConnection::client(&config, HOST).unwrap(), Stage::Tls)
        };
        // The head of a record, so that the bytes get past the first check.
        let mut noise = vec![random.u8(20..24), 3, 3, 0, random.u8(1..)];
        noise.extend(std::iter::repeat_with(|| random.u8(..)).take(300));
        let error = client
            .received(&noise)
            .and_then(|_| client.received(&[b'x'; 20_000]))
            .and_then(|_| client.eof())
            .unwrap_err();
        assert_eq!(error.stage, stage, "seed {seed}");
        assert_eq!(client.write(b"request"), 0, "seed {seed}");
    }
}

#[test]
fn a_handshake_message_without_end_is_refused() {
    let mut client = TlsConnection::client(&Authority::new("Test Authority").trusted(), HOST).unwrap();
    // A ServerHello of 16 MiB, in records of 16 KiB.
    let mut message = vec![2, 255, 255, 255];
    message.resize(16 * 1024, 0);
    let mut record = vec![22, 3, 3, 0x40, 0];
    record.extend_from_slice(&message);
    let mut fed = 0;
    let error = loop {
        match client.received(&record) {
            Ok(taken) => fed += taken,
            Err(error) => break error,
        }
        assert!(fed <= 64 * 1024, "{fed} bytes held");
    };
    assert_eq!(
        error.fault,
        TlsFault::Protocol("received corrupt message of type HandshakePayloadTooLarge".into())
    );
}

#[test]
fn a_changed_bit_in_the_servers_hello_never_passes() {
    let authority = Authority::new("Test Authority");
    let (config, identity) = (authority.trusted(), authority.issue(&[HOST]));
    for version in BOTH {
        let mut at = 5;
        loop {
            let mut client = TlsConnection::client(&config, HOST).unwrap();
            let mut server = server(&identity, &[version], None);
            send(&mut client, &mut server);
            let mut flight = cipher(&mut server);
            // A signature is of a length of its own each time, and with it the record.
            let hello = 5 + usize::from(u16::from_be_bytes([flight[3], flight[4]]));
            if at >= hello {
                break;
            }
            flight[at] ^= 1 << (at % 8);
            let error = client
                .received(&flight)
                .and_then(|_| {
                    send(&mut client, &mut server);
                    client.received(&cipher(&mut server))
                })
                .and_then(|_| client.eof())
                .unwrap_err();
            assert_eq!(error.stage, Stage::Tls, "byte {at}");
            at += 1;
        }
        assert!(at > 80, "the whole hello was tried");
    }
}

#[test]
fn an_alert_says_what_the_peer_refused() {
    let authority = Authority::new("Test Authority");
    let mut client = TlsConnection::client(&authority.trusted(), HOST).unwrap();
    client.sent(client.outgoing().len());
    let error = client.received(&[21, 3, 3, 0, 2, 2, 40]).unwrap_err();
    assert_eq!(error.fault, TlsFault::Alert("HandshakeFailure".into()));
    assert_eq!(
        IoFailure::from(error),
        IoFailure {
            stage: Stage::Tls,
            kind: FailureKind::Tls,
            message: "TLS with api.example.com: the peer refused: HandshakeFailure".into(),
        }
    );
}
