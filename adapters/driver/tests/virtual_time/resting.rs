//! Connections between two exchanges: what a look at them finds.

use std::io::ErrorKind;
use std::task::{Context, Waker};

use steadfast::config::Overrides;
use steadfast::http1::{MAX_TAIL_BYTES, Tail};
use steadfast_driver::{Ask, Found, Resting};

use crate::fake::{Incoming, Wire, World};
use crate::rig::{DONE, PING, Rig, STOP};

fn chunk(bytes: &str) -> String {
    format!("{:x}\r\n{bytes}\r\n", bytes.len())
}

/// What a message in chunks owes whose call ended with its sentinel
fn tail() -> Box<Tail> {
    let mut rig = Rig::waiting(Overrides::new());
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    rig.wire(|wire| wire.push(head.to_owned() + &chunk(&(STOP.to_owned() + DONE))));
    // The turn, as it is known before the sentinel, then the end
    assert!(rig.run().is_ready());
    rig.outcome().result.expect("a success");
    let tail = rig.world.lock().tail.take();
    tail.expect("a message that has yet to end")
}

fn bytes(bytes: &str) -> Incoming {
    Incoming::Bytes(bytes.as_bytes().to_vec())
}

/// A look at a connection on which this has come
fn look(tail: Option<Box<Tail>>, incoming: Vec<Incoming>, ask: Ask) -> (Found, World) {
    let world = World::default();
    let connection = world.connect(Wire { incoming: incoming.into(), ..Wire::default() });
    let mut resting = Resting::new(connection, tail);
    let found = resting.look(ask, &mut Context::from_waker(Waker::noop()));
    if found != Found::Dead {
        assert_eq!(resting.tail().is_some(), found == Found::Finishing);
    }
    (found, world)
}

#[test]
fn only_a_silent_one_is_ready() {
    for ask in [Ask::Reactor, Ask::System] {
        assert_eq!(look(None, vec![], ask).0, Found::Ready);
        for incoming in [bytes("H"), Incoming::Eof, Incoming::Failed(ErrorKind::ConnectionReset)] {
            assert_eq!(look(None, vec![incoming], ask).0, Found::Dead);
        }
    }
}

#[test]
fn one_that_owes_the_end_of_its_message_is_ready_once_that_has_come() {
    for ask in [Ask::Reactor, Ask::System] {
        assert_eq!(look(Some(tail()), vec![], ask).0, Found::Finishing);
        assert_eq!(look(Some(tail()), vec![bytes(&chunk(PING)), bytes("0\r\n")], ask).0, Found::Finishing);
        assert_eq!(look(Some(tail()), vec![bytes(&chunk(PING)), bytes("0\r\n\r\n")], ask).0, Found::Ready);
        let ended = || bytes("0\r\n\r\n");
        for incoming in [
            vec![Incoming::Eof],
            vec![ended(), Incoming::Eof],
            vec![ended(), bytes("H")],
            vec![bytes("0\r\n\r\nH")],
            vec![bytes("no chunk")],
        ] {
            assert_eq!(look(Some(tail()), incoming, ask).0, Found::Dead);
        }
    }
}

#[test]
fn the_reactor_is_told_to_wake_and_the_system_knows_more_than_it() {
    let (_, world) = look(None, vec![], Ask::Reactor);
    assert!(world.lock().wires[0].read_waker.is_some());
    let (_, world) = look(None, vec![], Ask::System);
    assert!(world.lock().wires[0].read_waker.is_none());
    for (ask, found) in [(Ask::Reactor, Found::Ready), (Ask::System, Found::Dead)] {
        let world = World::default();
        let incoming = [Incoming::Eof].into();
        let connection = world.connect(Wire { incoming, unseen: true, ..Wire::default() });
        let mut resting = Resting::new(connection, None);
        assert_eq!(resting.look(ask, &mut Context::from_waker(Waker::noop())), found);
    }
}

#[test]
fn a_peer_that_always_has_more_to_say_is_given_up() {
    for (piece, most) in [(chunk(PING), 64), (chunk(&"x".repeat(8_000)), MAX_TAIL_BYTES / 8_000 + 1)] {
        let world = World::default();
        let endless = Some(piece.into_bytes());
        let mut resting = Resting::new(world.connect(Wire { endless, ..Wire::default() }), Some(tail()));
        assert_eq!(resting.look(Ask::System, &mut Context::from_waker(Waker::noop())), Found::Dead);
        assert_eq!(world.lock().wires[0].looks, most);
    }
}
