//! The request on its way out.

use std::io::ErrorKind as Io;

use steadfast::config::Overrides;
use steadfast::machine::{FailureKind, IoFailure, Stage};
use steadfast::outcome::{Billing, ErrorKind};

use crate::fake::{Incoming, Open, Wire, World};
use crate::rig::Rig;

fn uploading(body: usize, wire: Wire) -> Rig {
    let world = World::default();
    world.lock().wires.push(Wire { open: Open::Yes, ..wire });
    Rig::with_body(&world, Overrides::new().max_attempts(1), body)
}

#[test]
fn a_request_goes_out_whole_in_pieces_of_any_size() {
    let sent = |room: Option<usize>| {
        let mut rig = uploading(500, Wire { room, ..Wire::default() });
        loop {
            rig.assert_pending();
            if rig.wire(|wire| wire.write_waker.is_none()) {
                return rig.wire(|wire| std::mem::take(&mut wire.outgoing));
            }
            rig.wire(|wire| wire.room = room);
        }
    };
    let whole = sent(None);
    assert!(whole.starts_with(b"POST /v1/chat/completions HTTP/1.1\r\n"));
    assert!(whole.ends_with(b"xx\",\"stream\":true}"));
    for room in [1, 2, 7, 100, 499] {
        assert_eq!(sent(Some(room)), whole, "in pieces of {room}");
    }
}

#[test]
fn an_answer_is_read_though_the_request_is_stuck() {
    let mut rig = uploading(500, Wire { room: Some(100), ..Wire::default() });
    rig.assert_pending();
    rig.wire(|wire| wire.push("HTTP/1.1 413 Content Too Large\r\ncontent-length: 2\r\n\r\nno"));
    let ErrorKind::Status(status) = rig.failure() else { panic!("no status") };
    assert_eq!((status.status.as_u16(), &status.body[..]), (413, &b"no"[..]));
}

/// The failure of a write is told once, and then the socket is only read
#[test]
fn an_answer_is_read_after_the_write_failed() {
    let mut rig = uploading(500, Wire { room: Some(100), ..Wire::default() });
    rig.assert_pending();
    rig.wire(|wire| wire.write_failure = Some(Io::BrokenPipe));
    rig.assert_pending();
    let wakes = rig.wakes();
    rig.assert_pending();
    assert_eq!(rig.wakes(), wakes);
    rig.wire(|wire| wire.push("HTTP/1.1 413 Content Too Large\r\ncontent-length: 2\r\n\r\nno"));
    let ErrorKind::Status(status) = rig.failure() else { panic!("no status") };
    assert_eq!(status.status.as_u16(), 413);
}

#[test]
fn the_failed_write_is_the_cause_where_nothing_is_left_to_read() {
    let mut rig = uploading(500, Wire { write_failure: Some(Io::BrokenPipe), ..Wire::default() });
    rig.assert_pending();
    rig.wire(|wire| wire.incoming.push_back(Incoming::Failed(Io::ConnectionReset)));
    let error = rig.outcome().result.expect_err("a failure");
    let ErrorKind::Transport(IoFailure { stage, kind, .. }) = error.kind else { panic!("{error}") };
    assert_eq!((stage, kind, error.billing), (Stage::Write, FailureKind::Reset, Billing::NotSent));
}

/// A socket that takes nothing, and says so, must not be asked for ever
#[test]
fn a_write_of_nothing_is_a_failure() {
    let mut rig = uploading(500, Wire { write_failure: Some(Io::WriteZero), ..Wire::default() });
    rig.assert_pending();
    rig.wire(|wire| wire.incoming.push_back(Incoming::Eof));
    let ErrorKind::Transport(failure) = rig.failure() else { panic!("no failure") };
    assert_eq!(failure.stage, Stage::Write);
}
