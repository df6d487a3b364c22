//! Any split of the bytes, and any appetite of the sockets, gives the same.

use super::rig::{Rig, Takes, post, routes};
use crate::relay::Ending;

/// What the app got, what the provider got, and what was recorded
fn play(request: &[u8], answer: &[u8], size: usize, takes: Takes, has_taps: bool) -> [Vec<u8>; 4] {
    let mut rig = Rig::with(routes(|_| {}), has_taps);
    let mut pieces = request.chunks(size);
    while rig.up.is_empty() {
        rig.app_sends(pieces.next().unwrap());
    }
    rig.connected();
    for piece in pieces {
        rig.app_sends(piece);
    }
    rig.takes = takes;
    for piece in answer.chunks(size) {
        rig.up_sends(piece);
        if takes == Takes::Nothing {
            rig.takes = Takes::All;
            rig.write();
            rig.takes = takes;
        }
    }
    assert_eq!(rig.ending(), Ending::Passed);
    [rig.app, rig.up.remove(0), rig.tapped_request, rig.tapped_answer]
}

#[test]
fn however_it_is_cut() {
    let chunked = "POST /openai/v1/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
        3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    let answers = [
        "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello world",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
         5\r\nhello\r\n6;x\r\n world\r\n0\r\nA: b\r\n\r\n",
    ];
    for request in [post("openai", "{\"a\": 1}").as_str(), chunked] {
        for answer in answers {
            for has_taps in [false, true] {
                let whole = play(request.as_bytes(), answer.as_bytes(), 10_000, Takes::All, has_taps);
                let passed = answer.trim_start_matches("HTTP/1.1 100 Continue\r\n\r\n");
                assert_eq!(String::from_utf8_lossy(&whole[0]), passed);
                for size in 1..answer.len() {
                    for takes in [Takes::All, Takes::Nothing, Takes::Some(1), Takes::Some(7)] {
                        let cut = play(request.as_bytes(), answer.as_bytes(), size, takes, has_taps);
                        assert_eq!(cut[0], whole[0], "{size} {takes:?}");
                        assert_eq!(cut[2..], whole[2..], "{size} {takes:?}");
                    }
                }
            }
        }
    }
}
