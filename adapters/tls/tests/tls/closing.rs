use std::io::Read;

use steadfast::machine::{Ended, FailureKind, IoFailure, Stage};
use steadfast_tls::{PlainRead, TlsConnection, TlsError, TlsFault};

use crate::peer::{Authority, BOTH, HOST, cipher, connected, drain, encrypt, plain, send, server};

#[test]
fn close_notify_is_a_clean_end() {
    for version in BOTH {
        let (mut client, mut server) = connected(&[version]);
        let mut answer = encrypt(&mut server, b"answer");
        server.send_close_notify();
        answer.extend(cipher(&mut server));
        assert_eq!(drain(&mut client, &answer), (b"answer".to_vec(), Ok(PlainRead::Ended(Ended::Clean))));
        // The FIN that follows changes nothing, and what follows the end is dropped.
        assert_eq!(client.eof(), Ok(()));
        assert_eq!(client.received(b"anything"), Ok(8));
        assert_eq!(client.read(&mut [0; 8]), Ok(PlainRead::Ended(Ended::Clean)));
    }
}

#[test]
fn a_bare_eof_is_told_apart_and_comes_after_the_plain_bytes() {
    for version in BOTH {
        let (mut client, mut server) = connected(&[version]);
        let answer = encrypt(&mut server, b"answer");
        assert_eq!(client.received(&answer), Ok(answer.len()));
        assert_eq!(client.eof(), Ok(()));
        let mut buffer = [0; 4];
        assert_eq!(client.read(&mut buffer), Ok(PlainRead::Bytes(4)));
        assert_eq!(client.read(&mut buffer), Ok(PlainRead::Bytes(2)));
        assert_eq!(client.read(&mut buffer), Ok(PlainRead::Ended(Ended::WithoutCloseNotify)));
    }
}

#[test]
fn an_eof_within_a_record_loses_only_that_record() {
    for version in BOTH {
        let (mut client, mut server) = connected(&[version]);
        let mut answer = encrypt(&mut server, b"whole");
        let whole = answer.len();
        answer.extend(encrypt(&mut server, b"cut"));
        for end in whole + 1..answer.len() {
            let (mut client, mut server) = connected(&[version]);
            let mut answer = encrypt(&mut server, b"whole");
            answer.extend(encrypt(&mut server, b"cut"));
            let got = drain(&mut client, &answer[..end]);
            assert_eq!(got, (b"whole".to_vec(), Ok(PlainRead::Pending)));
            assert_eq!(client.eof(), Ok(()));
            assert_eq!(client.read(&mut [0; 8]), Ok(PlainRead::Ended(Ended::WithoutCloseNotify)));
        }
        // Within the close_notify itself, the end is not authenticated either.
        server.send_close_notify();
        answer.extend(cipher(&mut server));
        answer.pop();
        assert_eq!(drain(&mut client, &answer), (b"wholecut".to_vec(), Ok(PlainRead::Pending)));
        assert_eq!(client.eof(), Ok(()));
        assert_eq!(client.read(&mut [0; 8]), Ok(PlainRead::Ended(Ended::WithoutCloseNotify)));
    }
}

#[test]
fn an_eof_in_the_handshake_is_a_failure() {
    let authority = Authority::new("Test Authority");
    let mut client = TlsConnection::client(&authority.trusted(), HOST).unwrap();
    let mut server = server(&authority.issue(&[HOST]), BOTH, None);
    send(&mut client, &mut server);
    let flight = cipher(&mut server);
    assert_eq!(client.received(&flight[..flight.len() / 2]), Ok(flight.len() / 2));
    let error = client.eof().unwrap_err();
    assert_eq!(error.fault, TlsFault::ClosedInHandshake);
    assert_eq!(client.read(&mut [0; 8]), Err(error.clone()));
    assert_eq!(
        IoFailure::from(error),
        IoFailure {
            stage: Stage::Tls,
            kind: FailureKind::Reset,
            message: "TLS with api.example.com: the peer closed the connection during the handshake".into(),
        }
    );
}

#[test]
fn a_close_notify_in_the_handshake_is_a_failure() {
    let mut client = TlsConnection::client(&Authority::new("Test Authority").trusted(), HOST).unwrap();
    // Nobody has signed it, so it may be anyone's: it is not yet an end.
    assert_eq!(client.received(&[21, 3, 3, 0, 2, 1, 0]), Ok(7));
    assert_eq!(client.read(&mut [0; 8]), Ok(PlainRead::Pending));
    let error = client.eof().unwrap_err();
    assert_eq!(error.fault, TlsFault::ClosedInHandshake);
}

#[test]
fn our_close_follows_what_was_written_and_leaves_reading_open() {
    for version in BOTH {
        let (mut client, mut server) = connected(&[version]);
        assert_eq!(client.write(b"last words"), 10);
        client.close();
        client.close();
        assert_eq!(client.write(b"more"), 0);
        send(&mut client, &mut server);
        let mut got = Vec::new();
        assert_eq!(server.reader().read_to_end(&mut got).unwrap(), 10, "a clean end, or this fails");
        assert_eq!(got, b"last words");
        if version.version == rustls::ProtocolVersion::TLSv1_3 {
            let answer = encrypt(&mut server, b"answer");
            assert_eq!(drain(&mut client, &answer), (b"answer".to_vec(), Ok(PlainRead::Pending)));
        }
    }
}

#[test]
fn we_may_write_after_the_peers_close() {
    let (mut client, mut server) = connected(&[&rustls::version::TLS13]);
    server.send_close_notify();
    let close = cipher(&mut server);
    assert_eq!(drain(&mut client, &close).1, Ok(PlainRead::Ended(Ended::Clean)));
    assert_eq!(client.write(b"request"), 7);
    send(&mut client, &mut server);
    assert_eq!(plain(&mut server), b"request");
}

#[test]
fn plain_bytes_before_a_broken_record_are_kept_and_then_it_fails() {
    for version in BOTH {
        let (mut client, mut server) = connected(&[version]);
        let mut answer = encrypt(&mut server, b"whole");
        answer.extend(encrypt(&mut server, b"broken"));
        *answer.last_mut().unwrap() ^= 1;
        answer.extend_from_slice(b"and what follows");
        assert_eq!(client.received(&answer), Ok(answer.len()));
        let mut buffer = [0; 8];
        assert_eq!(client.read(&mut buffer), Ok(PlainRead::Bytes(5)));
        assert_eq!(&buffer[..5], b"whole");
        let error = TlsError {
            host: HOST.into(),
            stage: Stage::Read,
            fault: TlsFault::Protocol("cannot decrypt peer's message".into()),
        };
        assert_eq!(client.read(&mut buffer), Err(error.clone()));
        assert_eq!(client.received(b"more"), Err(error.clone()));
        assert_eq!(client.eof(), Err(error.clone()));
        assert_eq!(client.write(b"request"), 0);
        assert!(!client.outgoing().is_empty(), "an alert tells the peer");
        client.close();
        assert_eq!(IoFailure::from(error).kind, FailureKind::Tls);
        server.read_tls(&mut client.outgoing()).unwrap();
        assert_eq!(
            server.process_new_packets().unwrap_err().to_string(),
            "received fatal alert: BadRecordMac"
        );
    }
}
