use std::io::Write;

use fastrand::Rng;
use rustls::ServerConnection;
use steadfast::machine::Ended;
use steadfast_tls::{OUTGOING_LIMIT, PlainRead, TlsConnection};

use crate::peer::{
    Authority, BOTH, HOST, cipher, connected, drain, encrypt, plain, send, server_config, settle,
};

const MIB: usize = 1024 * 1024;

/// A server that sends back what it gets, over a wire that holds little in each direction
struct Echo {
    server: ServerConnection,
    owed: Vec<u8>,
    to_server: Vec<u8>,
    to_client: Vec<u8>,
}

impl Echo {
    const WIRE: usize = 20_000;

    /// Takes in, echoes and puts out as much as there is room for
    fn turn(&mut self) {
        let mut wire = &self.to_server[..];
        while !wire.is_empty() {
            self.server.read_tls(&mut wire).unwrap();
            self.server.process_new_packets().unwrap();
            self.owed.extend(plain(&mut self.server));
        }
        self.to_server.clear();
        let taken = self.server.writer().write(&self.owed).unwrap();
        self.owed.drain(..taken);
        if self.to_client.len() < Self::WIRE {
            self.to_client.extend(cipher(&mut self.server));
        }
    }
}

/// What a driver does, with sizes that a seed chooses: returns what came back, in at most
/// `buffer`-sized pieces
fn echo(client: &mut TlsConnection, server: ServerConnection, sent: &[u8], random: &mut Rng) -> Vec<u8> {
    let mut echo = Echo { server, owed: Vec::new(), to_server: Vec::new(), to_client: Vec::new() };
    let mut left = sent;
    let mut got = Vec::with_capacity(sent.len());
    let mut buffer = vec![0; 32 * 1024];
    while got.len() < sent.len() {
        let size = random.usize(..=left.len().min(100_000));
        left = &left[client.write(&left[..size])..];
        assert!(client.outgoing().len() <= OUTGOING_LIMIT + 4 * 29);

        let room = Echo::WIRE.saturating_sub(echo.to_server.len());
        let taken = random.usize(..=client.outgoing().len().min(room));
        echo.to_server.extend_from_slice(&client.outgoing()[..taken]);
        client.sent(taken);

        echo.turn();

        let size = random.usize(..=echo.to_client.len());
        let taken = client.received(&echo.to_client[..size]).unwrap();
        echo.to_client.drain(..taken);
        // Now and then the consumer does not read, and the layer must take no more.
        if random.u8(..4) > 0 {
            let size = random.usize(1..=buffer.len());
            match client.read(&mut buffer[..size]).unwrap() {
                PlainRead::Bytes(count) => got.extend_from_slice(&buffer[..count]),
                PlainRead::Pending => {}
                PlainRead::Ended(ended) => panic!("{ended:?}"),
            }
        } else if taken < size {
            assert_eq!(client.received(&echo.to_client), Ok(0), "back-pressure lasts until a read");
        }
    }
    got
}

#[test]
fn eight_mebibytes_come_back_through_small_buffers() {
    for version in BOTH {
        let (mut client, server) = connected(&[version]);
        let mut random = Rng::with_seed(8);
        let mut sent = vec![0; 8 * MIB];
        random.fill(&mut sent);
        assert!(echo(&mut client, server, &sent, &mut random) == sent);
    }
}

#[test]
fn whatever_the_sizes_every_byte_comes_once_and_in_order() {
    for seed in 0..200 {
        let (mut client, server) = connected(&[BOTH[seed as usize % 2]]);
        let mut random = Rng::with_seed(seed);
        let mut sent = vec![0; random.usize(..50_000)];
        random.fill(&mut sent);
        assert!(echo(&mut client, server, &sent, &mut random) == sent, "seed {seed}");
    }
}

#[test]
fn write_takes_what_the_limit_leaves_room_for() {
    let (mut client, _server) = connected(BOTH);
    let body = vec![b'x'; 100_000];
    assert_eq!(client.write(&body), OUTGOING_LIMIT);
    assert_eq!(client.outgoing().len(), OUTGOING_LIMIT + 4 * 22);
    assert_eq!(client.write(&body), 0);
    client.sent(1000);
    assert_eq!(client.write(&body), 1000 - 4 * 22);
    client.sent(client.outgoing().len());
    assert_eq!(client.write(&[]), 0);
    assert_eq!(client.outgoing(), b"");
    assert_eq!(client.write(&body), OUTGOING_LIMIT);
}

#[test]
fn a_slow_reader_holds_the_sender_back() {
    let (mut client, mut server) = connected(BOTH);
    let sent = encrypt(&mut server, &[b'x'; 60_000]);
    let taken = client.received(&sent).unwrap();
    assert_eq!(taken, 18_437, "what one record may be long, with the first one whole in it");
    assert_eq!(client.received(&sent[taken..]), Ok(0));
    let mut buffer = [0; 20_000];
    assert_eq!(client.read(&mut buffer[..1]), Ok(PlainRead::Bytes(1)));
    assert_eq!(client.received(&sent[taken..]), Ok(0));
    assert_eq!(client.read(&mut buffer), Ok(PlainRead::Bytes(16 * 1024 - 1)));
    let (rest, stop) = drain(&mut client, &sent[taken..]);
    assert_eq!(rest, vec![b'x'; 60_000 - 16 * 1024]);
    assert_eq!(stop, Ok(PlainRead::Pending));
}

#[test]
fn tiny_records_are_held_back_as_well() {
    let (mut client, mut server) = connected(&[&rustls::version::TLS13]);
    let mut sent = Vec::new();
    for _ in 0..2000 {
        sent.extend(encrypt(&mut server, b"x"));
    }
    assert_eq!(sent.len(), 2000 * 23);
    assert_eq!(client.received(&sent), Ok(4096));
    assert_eq!(client.read(&mut [0; 2000]), Ok(PlainRead::Bytes(4096 / 23)));
}

#[test]
fn new_keys_in_the_middle_go_unnoticed() {
    let (mut client, mut server) = connected(&[&rustls::version::TLS13]);
    let mut answer = encrypt(&mut server, b"before");
    server.refresh_traffic_keys().unwrap();
    answer.extend(encrypt(&mut server, b" after"));
    assert_eq!(drain(&mut client, &answer), (b"before after".to_vec(), Ok(PlainRead::Pending)));
    assert_eq!(client.write(b"request"), 7);
    send(&mut client, &mut server);
    assert_eq!(plain(&mut server), b"request");
}

#[test]
fn a_peer_cannot_make_the_answers_pile_up() {
    let (mut client, mut server) = connected(&[&rustls::version::TLS13]);
    let mut flood = Vec::new();
    for _ in 0..1000 {
        server.refresh_traffic_keys().unwrap();
        flood.extend(cipher(&mut server));
    }
    let error = client.received(&flood).unwrap_err();
    assert_eq!(error.to_string(), "TLS with api.example.com: peer misbehaved: TooManyKeyUpdateRequests");
    assert!(client.outgoing().len() < 1024, "{}", client.outgoing().len());
}

#[test]
fn a_session_is_resumed_by_connections_of_one_configuration() {
    let authority = Authority::new("Test Authority");
    let config = authority.trusted();
    let server_config = server_config(&authority.issue(&[HOST]), BOTH, None);
    let mut kinds = Vec::new();
    for _ in 0..2 {
        let mut client = TlsConnection::client(&config.clone(), HOST).unwrap();
        let mut server = ServerConnection::new(server_config.clone()).unwrap();
        settle(&mut client, &mut server).unwrap();
        kinds.push(server.handshake_kind().unwrap());
        server.send_close_notify();
        let close = cipher(&mut server);
        assert_eq!(drain(&mut client, &close).1, Ok(PlainRead::Ended(Ended::Clean)));
    }
    assert_eq!(kinds, [rustls::HandshakeKind::Full, rustls::HandshakeKind::Resumed]);
}
