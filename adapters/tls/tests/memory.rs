//! What one connection holds: counted by the allocator, so alone in its process.

use std::alloc::System;
use std::io::Write;
use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use steadfast_tls::{OUTGOING_LIMIT, PlainRead, TlsConfig, TlsConnection};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const KIB: isize = 1024;

/// Counts what the client's side allocates and does not free
#[derive(Default)]
struct Meter {
    held: isize,
    peak: isize,
}

impl Meter {
    fn count<T>(&mut self, act: impl FnOnce() -> T) -> T {
        let before = allocated();
        let value = act();
        self.held += allocated() - before;
        self.peak = self.peak.max(self.held);
        value
    }

    /// Compares what is held, and the most that was held between two calls since the last check, with their limits
    fn check(&mut self, when: &str, held: isize, peak: isize) {
        println!("{when}: {} bytes held, {} at the peak", self.held, self.peak);
        assert!(self.held <= held && self.peak <= peak, "{when}: {} and {}", self.held, self.peak);
        self.peak = self.held;
    }
}

fn allocated() -> isize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated as isize - stats.bytes_deallocated as isize
}

fn configs() -> (TlsConfig, Arc<ServerConfig>) {
    let key = KeyPair::generate().unwrap();
    let names = vec!["api.example.com".to_owned()];
    let certificate = CertificateParams::new(names).unwrap().self_signed(&key).unwrap();
    let client = TlsConfig::roots_only(certificate.pem().as_bytes()).unwrap();
    let mut server = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der())),
        )
        .unwrap();
    // Tickets are kept by the configuration, not by the connection.
    server.send_tls13_tickets = 0;
    (client, Arc::new(server))
}

/// Carries all that either side has to send, and reads all there is
fn settle(meter: &mut Meter, client: &mut TlsConnection, server: &mut ServerConnection) {
    let mut plain = vec![0; 32 * 1024];
    while !client.outgoing().is_empty() || server.wants_write() {
        let mut outgoing = client.outgoing();
        while !outgoing.is_empty() {
            server.read_tls(&mut outgoing).unwrap();
            server.process_new_packets().unwrap();
            std::io::copy(&mut server.reader(), &mut std::io::sink()).unwrap_err();
        }
        meter.count(|| client.sent(client.outgoing().len()));
        let mut cipher = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut cipher).unwrap();
        }
        let mut rest = &cipher[..];
        while !rest.is_empty() {
            rest = &rest[meter.count(|| client.received(rest).unwrap())..];
            while let PlainRead::Bytes(_) = meter.count(|| client.read(&mut plain).unwrap()) {}
        }
    }
}

#[test]
fn a_connection_holds_little_when_idle_and_a_bounded_amount_when_not() {
    let (config, server_config) = configs();
    let mut server = ServerConnection::new(server_config).unwrap();
    let mut meter = Meter::default();
    let mut client = meter.count(|| TlsConnection::client(&config, "api.example.com").unwrap());
    settle(&mut meter, &mut client, &mut server);
    assert!(!client.is_handshaking());
    println!("size of TlsConnection: {} bytes", size_of::<TlsConnection>());
    assert!(size_of::<TlsConnection>() <= 1296);
    meter.check("idle after the handshake", 9 * KIB, 9 * KIB);

    for _ in 0..100 {
        server.writer().write_all(b"data: {\"delta\":\"token\"}\n\n").unwrap();
        settle(&mut meter, &mut client, &mut server);
    }
    meter.check("after small records", 9 * KIB, 9 * KIB);

    for _ in 0..20 {
        server.writer().write_all(&[b'x'; 60_000]).unwrap();
        settle(&mut meter, &mut client, &mut server);
    }
    meter.check("after large records", 9 * KIB, 56 * KIB);

    let body = vec![b'x'; 1_000_000];
    while meter.count(|| client.write(&body)) > 0 {}
    assert!(client.outgoing().len() >= OUTGOING_LIMIT);
    meter.check("with all that is taken to be sent", 75 * KIB, 75 * KIB);
    settle(&mut meter, &mut client, &mut server);
    meter.check("after it was sent", 9 * KIB, 75 * KIB);
}
