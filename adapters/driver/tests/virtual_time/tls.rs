//! TLS between the driver and a socket that takes and gives as little as it likes.

use std::io::{ErrorKind as Io, Read, Write};
use std::sync::Arc;
use std::task::Poll;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::{AlertDescription, ServerConfig, ServerConnection};
use steadfast::config::Overrides;
use steadfast::machine::{CertificateFault, FailureKind, Machine, Stage};
use steadfast::outcome::{Billing, ErrorKind, Phase};
use steadfast_driver::{MAX_ROUNDS_PER_POLL, Output, Piece};
use steadfast_tls::TlsConfig;

use crate::fake::{Incoming, Open, Wire, World};
use crate::rig::{DONE, HEAD, Rig, STOP, millis, text};

/// A call over TLS, and the server at the other end of its socket
struct Secure {
    rig: Rig,
    server: ServerConnection,
    /// Plain bytes that the server has read
    read: Vec<u8>,
}

impl Secure {
    fn new(trusted: bool, room: Option<usize>, body: usize) -> Self {
        Self::with_tickets(trusted, room, body, 2)
    }

    fn with_tickets(trusted: bool, room: Option<usize>, body: usize, tickets: usize) -> Self {
        let authority = |name: &str| {
            let mut params = CertificateParams::default();
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            params.distinguished_name.push(DnType::CommonName, name);
            CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
        };
        let (issuer, other) = (authority("Our Authority"), authority("Another Authority"));
        let key = KeyPair::generate().unwrap();
        let certificate =
            CertificateParams::new(["localhost".to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
        let mut config =
            ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_no_client_auth()
                .with_single_cert(
                    vec![certificate.der().clone()],
                    PrivateKeyDer::Pkcs8(key.serialize_der().into()),
                )
                .unwrap();
        config.send_tls13_tickets = tickets;
        let world = World::default();
        {
            let mut state = world.lock();
            let roots = if trusted { issuer.pem() } else { other.pem() };
            state.tls = Some(TlsConfig::roots_only(roots.as_bytes()).unwrap());
            state.wires.push(Wire { open: Open::Yes, room, ..Wire::default() });
        }
        let rig = Rig::with_body(&world, Overrides::new().max_attempts(1), body);
        Self { rig, server: ServerConnection::new(Arc::new(config)).unwrap(), read: Vec::new() }
    }

    /// A stream whose request is with the server
    fn streaming() -> Self {
        let mut secure = Self::new(true, None, 0);
        secure.settle(usize::MAX);
        assert!(secure.read.ends_with(b"true}"), "the whole request came");
        secure.send(HEAD);
        secure.rig.assert_pending();
        secure
    }

    /// Carries cipher bytes both ways, in pieces of `room`, until neither side has more
    fn settle(&mut self, room: usize) {
        loop {
            self.rig.assert_pending();
            let taken_in = self.take_in();
            let flight = self.flight();
            if taken_in == 0 && flight.is_empty() && self.rig.wire(|wire| wire.write_waker.is_none()) {
                return;
            }
            self.rig.wire(|wire| {
                wire.room = (room < usize::MAX).then_some(room);
                for piece in flight.chunks(room) {
                    wire.push(piece);
                }
            });
        }
    }

    /// The server reads what the client wrote; how many cipher bytes
    fn take_in(&mut self) -> usize {
        let written = self.rig.wire(|wire| std::mem::take(&mut wire.outgoing));
        let mut cipher = &written[..];
        while !cipher.is_empty() {
            self.server.read_tls(&mut cipher).unwrap();
            self.server.process_new_packets().unwrap();
            // It ends at what has come so far.
            let _ = self.server.reader().read_to_end(&mut self.read);
        }
        written.len()
    }

    fn flight(&mut self) -> Vec<u8> {
        let mut cipher = Vec::new();
        while self.server.wants_write() {
            self.server.write_tls(&mut cipher).unwrap();
        }
        cipher
    }

    /// A record of its own, not yet on its way
    fn record(&mut self, plain: impl AsRef<[u8]>) -> Vec<u8> {
        self.server.writer().write_all(plain.as_ref()).unwrap();
        self.flight()
    }

    fn send(&mut self, plain: impl AsRef<[u8]>) {
        let record = self.record(plain);
        self.rig.wire(|wire| wire.push(record));
    }
}

#[test]
fn sockets_that_take_and_give_single_bytes_carry_a_whole_call() {
    for room in [1, 2, 100, usize::MAX] {
        let mut secure = Secure::new(true, (room < usize::MAX).then_some(0), 1000);
        secure.settle(room);
        assert!(secure.read.starts_with(b"POST /v1/chat/completions HTTP/1.1\r\n"), "{room}");
        assert!(secure.read.ends_with(b"xx\",\"stream\":true}"), "{room}");
        let answer = secure.record(HEAD.to_owned() + &text("a") + STOP + DONE);
        secure.rig.wire(|wire| answer.chunks(room).for_each(|piece| wire.push(piece)));
        assert_eq!(secure.rig.text(), "a");
        assert!(secure.rig.run().is_ready());
        secure.rig.wire(|wire| wire.room = None);
        assert!(secure.rig.outcome().result.is_ok());
        secure.take_in();
        let mut rest = Vec::new();
        assert_eq!(secure.server.reader().read_to_end(&mut rest).unwrap(), 0, "a close_notify came");
    }
}

/// What the TLS layer took but the socket did not is still on its way when nothing else is left
#[test]
fn the_end_of_a_request_goes_out_when_there_is_room() {
    let mut secure = Secure::new(true, None, 1000);
    loop {
        // The handshake's last flight fits, the request does not.
        secure.rig.assert_pending();
        secure.take_in();
        let flight = secure.flight();
        secure.rig.wire(|wire| {
            wire.room = Some(150);
            wire.push(flight);
        });
        if !secure.server.is_handshaking() {
            break;
        }
    }
    secure.rig.assert_pending();
    let call = secure.rig.driver.machine();
    let id = secure.rig.wire(|wire| wire.id).unwrap();
    assert_eq!(call.outgoing(id).map(<[u8]>::len), [0, 0], "the machine has handed over everything");
    assert!(!secure.read.ends_with(b"true}"));
    assert!(secure.rig.wire(|wire| wire.write_waker.is_some()), "the room to come wakes");
    secure.rig.wire(|wire| wire.room = None);
    secure.rig.assert_pending();
    secure.take_in();
    assert!(secure.read.ends_with(b"true}"));
}

#[test]
fn many_records_in_one_read_of_the_socket_are_one_arrival() {
    let mut secure = Secure::streaming();
    let mut all = Vec::new();
    for letter in ["a", "b", "c"] {
        all.extend(secure.record(text(letter)));
    }
    all.extend(secure.record(STOP));
    secure.rig.wire(|wire| wire.push(all));
    assert_eq!([secure.rig.text(), secure.rig.text(), secure.rig.text()], ["a", "b", "c"]);
    assert!(matches!(secure.rig.run(), Poll::Ready(Output::Item(Piece::Finished))));
    // So one look at the bound takes both of what lies there.
    let usage = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2}}\n\n";
    let late =
        [secure.record(usage), secure.record(format!(": {}\n\n", "x".repeat(9000))), secure.record(DONE)]
            .concat();
    secure.rig.wire(|wire| wire.push(late));
    secure.rig.world.advance(millis(60_000));
    let outcome = secure.rig.outcome();
    assert_eq!(outcome.timeline.notes, []);
    let usage = outcome.result.expect("a success").turn.usage;
    assert_eq!(usage.and_then(|usage| usage.output_tokens), Some(2));
    assert_eq!(secure.rig.wire(|wire| wire.looks), 1);
}

#[test]
fn large_records_arrive_whole_through_a_small_buffer() {
    let mut secure = Secure::streaming();
    let letters: String = ('a'..='z').cycle().take(200_000).collect();
    secure.rig.wire(|wire| wire.room = None);
    let records: Vec<u8> = letters
        .as_bytes()
        .chunks(999)
        .flat_map(|piece| secure.record(text(std::str::from_utf8(piece).unwrap())))
        .collect();
    secure.rig.wire(|wire| records.chunks(40_000).for_each(|piece| wire.push(piece)));
    let mut got = String::new();
    while got.len() < letters.len() {
        got.push_str(&secure.rig.text());
    }
    assert_eq!(got, letters);
}

/// Records without a byte for us must not keep the clock from being read
#[test]
fn endless_records_without_content_do_not_outlive_the_bound() {
    let mut secure = Secure::with_tickets(true, None, 0, 2000);
    secure.rig.assert_pending();
    secure.take_in();
    let flight = secure.flight();
    secure.rig.wire(|wire| wire.push(flight));
    secure.rig.assert_pending();
    secure.take_in();
    let tickets = secure.flight();
    assert!(tickets.len() > 2000 * 80, "{}", tickets.len());
    secure.rig.wire(|wire| tickets.chunks(100).for_each(|piece| wire.push(piece)));
    let before = secure.rig.wire(|wire| wire.incoming.len());
    assert!(secure.rig.poll().is_pending());
    let left = secure.rig.wire(|wire| wire.incoming.len());
    assert_eq!(before - left, MAX_ROUNDS_PER_POLL, "a poll has an end");
    secure.rig.world.advance(millis(600_000));
    let ErrorKind::Timeout(timeout) = secure.rig.failure() else { panic!("no timeout") };
    assert_eq!((timeout.phase, timeout.elapsed), (Phase::Request, millis(600_000)));
}

#[test]
fn the_server_is_told_why_its_certificate_was_refused() {
    let mut secure = Secure::new(false, None, 0);
    secure.rig.assert_pending();
    secure.take_in();
    let flight = secure.flight();
    secure.rig.wire(|wire| wire.push(flight));
    let error = secure.rig.outcome().result.expect_err("a failure");
    let ErrorKind::Transport(failure) = &error.kind else { panic!("{error}") };
    assert_eq!(
        (failure.stage, failure.kind),
        (Stage::Tls, FailureKind::Certificate(CertificateFault::UnknownIssuer))
    );
    assert!(failure.message.contains("unknown issuer"), "{failure}");
    assert_eq!(error.billing, Billing::NotSent);
    let alert = secure.rig.wire(|wire| std::mem::take(&mut wire.outgoing));
    secure.server.read_tls(&mut &alert[..]).unwrap();
    let heard = secure.server.process_new_packets().expect_err("an alert");
    assert_eq!(heard, rustls::Error::AlertReceived(AlertDescription::UnknownCA));
    assert!(secure.rig.wire(|wire| wire.dropped));
}

#[test]
fn a_handshake_that_is_cut_is_a_failure_of_tls() {
    for (cut, kind) in [
        (Incoming::Eof, FailureKind::Reset),
        (Incoming::Failed(Io::ConnectionReset), FailureKind::Reset),
        (Incoming::Bytes(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()), FailureKind::Tls),
    ] {
        let mut secure = Secure::new(true, None, 0);
        secure.rig.assert_pending();
        secure.rig.wire(|wire| wire.incoming.push_back(cut));
        let ErrorKind::Transport(failure) = secure.rig.failure() else { panic!("no failure") };
        assert_eq!((failure.stage, failure.kind), (Stage::Tls, kind), "{failure}");
    }
}

/// What a write sent before it failed may be billed
#[test]
fn a_write_that_fails_half_way_was_begun() {
    let mut secure = Secure::new(true, None, 200_000);
    secure.rig.assert_pending();
    secure.take_in();
    let flight = secure.flight();
    // The handshake's last flight is under way when the room comes that is the last.
    secure.rig.wire(|wire| {
        wire.room = Some(10);
        wire.push(flight);
    });
    secure.rig.assert_pending();
    secure.rig.wire(|wire| {
        wire.room = Some(2000);
        wire.write_failure = Some(Io::BrokenPipe);
    });
    secure.rig.assert_pending();
    secure.rig.wire(|wire| wire.incoming.push_back(Incoming::Eof));
    let error = secure.rig.outcome().result.expect_err("a failure");
    let ErrorKind::Transport(failure) = &error.kind else { panic!("{error}") };
    assert_eq!((failure.stage, error.billing), (Stage::Write, Billing::MaybeBilled));
    assert_eq!(secure.rig.wire(|wire| wire.outgoing.len()), 2010);
}

/// The failure of a write is told once, and an answer that came before it is still read
#[test]
fn an_answer_is_read_after_a_write_failed() {
    let mut secure = Secure::new(true, None, 200_000);
    loop {
        secure.rig.assert_pending();
        secure.take_in();
        let flight = secure.flight();
        secure.rig.wire(|wire| {
            wire.room = Some(1000);
            wire.push(flight);
        });
        if !secure.server.is_handshaking() {
            break;
        }
    }
    secure.rig.assert_pending();
    secure.rig.wire(|wire| wire.write_failure = Some(Io::BrokenPipe));
    secure.rig.assert_pending();
    let wakes = secure.rig.wakes();
    secure.rig.assert_pending();
    assert_eq!(secure.rig.wakes(), wakes);
    secure.send("HTTP/1.1 413 Content Too Large\r\ncontent-length: 2\r\n\r\nno");
    let kind = secure.rig.failure();
    let ErrorKind::Status(status) = kind else { panic!("{kind}") };
    assert_eq!(status.status.as_u16(), 413);
}
