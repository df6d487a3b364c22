//! Peers that never stop talking and never come to the point: the clock is read all the same.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::cipher::{MessageEncrypter, OutboundChunks, OutboundPlainMessage};
use rustls::{
    ConnectionTrafficSecrets, ContentType, ProtocolVersion, ServerConfig, ServerConnection,
    SupportedCipherSuite,
};
use steadfast::config::Overrides;
use steadfast::connect::{Proxies, Proxy};
use steadfast::outcome::{Billing, ErrorKind, Outcome, Phase};

use crate::certificates::Authority;
use crate::clients::{CLIENTS, Setup, request};
use crate::server::Server;

const LIMIT: Duration = Duration::from_millis(300);
/// A bound that is reached so late was not looked at
const LATE: Duration = Duration::from_secs(5);
/// About what one write takes, in bytes
const PIECE: usize = 64 * 1024;

/// Writes pieces until the client leaves; how many bytes
fn flood(socket: &mut TcpStream, mut piece: impl FnMut() -> Vec<u8>) -> u64 {
    let mut written = 0;
    loop {
        let piece = piece();
        if socket.write_all(&piece).is_err() {
            return written;
        }
        written += piece.len() as u64;
    }
}

/// TLS whose handshake is done, and whose records from then on are made by hand
struct Records {
    encrypter: Box<dyn MessageEncrypter>,
    number: u64,
}

impl Records {
    fn after_handshake(socket: &mut TcpStream, config: Arc<ServerConfig>) -> Self {
        let mut connection = ServerConnection::new(config).expect("a server");
        while connection.is_handshaking() || connection.wants_write() {
            connection.complete_io(socket).expect("a handshake");
        }
        let Some(SupportedCipherSuite::Tls13(suite)) = connection.negotiated_cipher_suite() else {
            panic!("it is TLS 1.3");
        };
        // What the client sent behind its handshake is nothing to these peers.
        drop(connection.reader().read(&mut [0; 16 * 1024]));
        let (number, secrets) = connection.dangerous_extract_secrets().expect("it is allowed").tx;
        let (key, iv) = match secrets {
            ConnectionTrafficSecrets::Aes128Gcm { key, iv }
            | ConnectionTrafficSecrets::Aes256Gcm { key, iv }
            | ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => (key, iv),
            _ => panic!("a cipher of TLS 1.3"),
        };
        Self { encrypter: suite.aead_alg.encrypter(key, iv), number }
    }

    /// Tickets for later sessions, of which a server may send any number (RFC 8446, 4.6.1)
    fn tickets(&mut self) -> Vec<u8> {
        /// Type, length, lifetime, age, nonce, ticket, extensions
        const TICKET: [u8; 19] = [4, 0, 0, 15, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0];
        let mut records = Vec::with_capacity(2 * PIECE);
        while records.len() < PIECE {
            let ticket = OutboundPlainMessage {
                typ: ContentType::Handshake,
                version: ProtocolVersion::TLSv1_2,
                payload: OutboundChunks::Single(&TICKET),
            };
            let record = self.encrypter.encrypt(ticket, self.number).expect("a record");
            self.number += 1;
            records.extend_from_slice(&record.encode());
        }
        records
    }
}

fn config(authority: &Authority) -> Arc<ServerConfig> {
    let mut config = ServerConfig::clone(&authority.issue("127.0.0.1").serving());
    config.enable_secret_extraction = true;
    Arc::new(config)
}

#[track_caller]
fn assert_ended(name: &str, outcome: &Outcome, phase: Phase, most: Billing) {
    let error = outcome.result.as_ref().expect_err("a breach");
    let ErrorKind::Timeout(timeout) = &error.kind else { panic!("{name}: {error}") };
    assert_eq!((timeout.phase, timeout.limit), (phase, LIMIT), "{name}");
    // What is read goes before what is written, so the request may still be waiting.
    assert!(error.billing <= most, "{name}: {:?}", error.billing);
    assert!(timeout.elapsed < LATE, "{name}: {:?}", timeout.elapsed);
}

#[test]
fn a_proxy_that_talks_tls_and_says_nothing_ends_at_the_connect_timeout() {
    let authority = Authority::new("Our Authority");
    let config = config(&authority);
    let server = Server::start(CLIENTS.len(), move |mut socket| {
        let mut records = Records::after_handshake(&mut socket, Arc::clone(&config));
        flood(&mut socket, || records.tickets())
    });
    let proxy = Proxy::new(&format!("https://127.0.0.1:{}", server.port())).expect("a proxy");
    let setup = Setup { tls: Some(authority.trusted()), proxies: Proxies::all(proxy), ..Setup::default() };
    for (name, calls) in CLIENTS {
        let overrides = Overrides::new().connect_timeout(LIMIT.as_secs_f64());
        let outcomes = calls(&setup, vec![request("https://api.example/v1", overrides)]);
        assert_ended(name, &outcomes[0], Phase::Connect, Billing::NotSent);
    }
    assert!(server.join().iter().all(|written| *written > PIECE as u64), "each client was talked to");
}

#[test]
fn a_server_that_talks_tls_and_says_nothing_ends_at_the_request_timeout() {
    let authority = Authority::new("Our Authority");
    let config = config(&authority);
    let server = Server::start(CLIENTS.len(), move |mut socket| {
        let mut records = Records::after_handshake(&mut socket, Arc::clone(&config));
        flood(&mut socket, || records.tickets())
    });
    let setup = Setup { tls: Some(authority.trusted()), ..Setup::default() };
    let url = format!("https://127.0.0.1:{}/v1", server.port());
    for (name, calls) in CLIENTS {
        let overrides = Overrides::new().request_timeout(LIMIT.as_secs_f64());
        let outcomes = calls(&setup, vec![request(&url, overrides)]);
        assert_ended(name, &outcomes[0], Phase::Request, Billing::MaybeBilled);
    }
    server.join();
}
