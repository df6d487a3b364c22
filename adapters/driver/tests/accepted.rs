//! A client that was accepted by TLS, over a socket that takes as much as a test lets it.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::io::{self, IoSlice, Read};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use rcgen::{CertificateParams, KeyPair};
use steadfast::machine::Ended;
use steadfast_driver::{Connection, Handshake, Socket};
use steadfast_tls::{PlainRead, TlsConfig, TlsConnection, TlsServerConfig};

/// What both ends see of the socket
#[derive(Default)]
struct Bytes {
    incoming: VecDeque<u8>,
    outgoing: Vec<u8>,
    /// How many bytes it still takes
    room: usize,
    is_finished: bool,
}

#[derive(Clone, Default)]
struct Wire(Rc<RefCell<Bytes>>);

impl Socket for Wire {
    fn poll_read(&mut self, _: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        match self.read_now(buffer) {
            Err(_) => Poll::Pending,
            read => Poll::Ready(read),
        }
    }

    fn read_now(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut wire = self.0.borrow_mut();
        if wire.incoming.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        wire.incoming.read(buffer)
    }

    fn poll_write(&mut self, _: &mut Context<'_>, parts: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let part = parts.iter().find(|part| !part.is_empty()).expect("bytes");
        let mut wire = self.0.borrow_mut();
        let taken = part.len().min(wire.room);
        if taken == 0 {
            return Poll::Pending;
        }
        assert!(!wire.is_finished, "nothing is written behind the end");
        wire.room -= taken;
        wire.outgoing.extend_from_slice(&part[..taken]);
        Poll::Ready(Ok(taken))
    }

    fn finish(&mut self) -> io::Result<()> {
        self.0.borrow_mut().is_finished = true;
        Ok(())
    }
}

/// Hands the client what was written, and returns the plain bytes that come of it, and their end
fn read(wire: &Wire, client: &mut TlsConnection) -> (usize, PlainRead) {
    let cipher = std::mem::take(&mut wire.0.borrow_mut().outgoing);
    let (mut rest, mut plain, mut buffer) = (&cipher[..], 0, [0; 1024]);
    loop {
        rest = &rest[client.received(rest).unwrap()..];
        match client.read(&mut buffer).unwrap() {
            PlainRead::Bytes(n) => plain += n,
            end if rest.is_empty() => return (plain, end),
            PlainRead::Pending | PlainRead::Ended(_) => {}
        }
    }
}

/// Hands on what the client has to send
fn send(wire: &Wire, client: &mut TlsConnection) {
    wire.0.borrow_mut().incoming.extend(client.outgoing());
    client.sent(client.outgoing().len());
}

/// A connection behind its handshake, and its client
fn accepted(cx: &mut Context<'_>) -> (Connection<Wire>, TlsConnection) {
    let key = KeyPair::generate().unwrap();
    let names = vec!["localhost".to_owned()];
    let certificate = CertificateParams::new(names).unwrap().self_signed(&key).unwrap().pem();
    let server = TlsServerConfig::new(certificate.as_bytes(), key.serialize_pem().as_bytes()).unwrap();
    let trusts = TlsConfig::roots_only(certificate.as_bytes()).unwrap();
    let mut client = TlsConnection::client(&trusts, "localhost").unwrap();
    let wire = Wire::default();
    wire.0.borrow_mut().room = usize::MAX;
    send(&wire, &mut client);
    let mut handshake = Handshake::accept(wire.clone(), &server).unwrap();
    assert!(Pin::new(&mut handshake).poll(cx).is_pending());
    read(&wire, &mut client);
    send(&wire, &mut client);
    let Poll::Ready(Ok(connection)) = Pin::new(&mut handshake).poll(cx) else { panic!("it is over") };
    (connection, client)
}

#[test]
fn our_side_ends_behind_what_is_held_back() {
    let cx = &mut Context::from_waker(Waker::noop());
    let (mut connection, mut client) = accepted(cx);
    connection.socket().0.borrow_mut().room = 1000;
    let Poll::Ready(Ok(taken)) = connection.poll_write(cx, [&[b'x'; 40_000], b""]) else { panic!("taken") };
    assert_eq!(taken, 40_000);
    connection.finish(cx).unwrap();
    assert!(!connection.socket().0.borrow().is_finished);
    let (mut got, mut end) = (0, PlainRead::Pending);
    while end == PlainRead::Pending {
        connection.socket().0.borrow_mut().room = 1000;
        let flushed = connection.poll_flush(cx);
        assert_eq!(flushed.is_ready(), connection.socket().0.borrow().is_finished);
        let (more, then) = read(connection.socket(), &mut client);
        (got, end) = (got + more, then);
    }
    assert_eq!((got, end), (40_000, PlainRead::Ended(Ended::Clean)));
}

#[test]
fn a_close_notify_is_an_end_even_where_nothing_is_read() {
    let cx = &mut Context::from_waker(Waker::noop());
    let (mut connection, mut client) = accepted(cx);
    assert!(connection.poll_hang_up(cx).is_pending());
    client.close();
    send(connection.socket(), &mut client);
    assert!(matches!(connection.poll_hang_up(cx), Poll::Ready(Ok(()))));
}
