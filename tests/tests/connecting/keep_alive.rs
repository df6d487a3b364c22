//! A server that says for how long it keeps a connection is believed: no request meets its close.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use steadfast::config::Overrides;

use crate::clients::{CLIENTS, Setup, request};
use crate::server::read_head;

/// A server that answers every request with this head line, and how many connections it has accepted
fn start(hint: &'static str) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
    let connections = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&connections);
    thread::spawn(move || {
        for socket in listener.incoming() {
            count.fetch_add(1, Ordering::Relaxed);
            let mut socket = socket.expect("a connection");
            thread::spawn(move || {
                let answer = format!("HTTP/1.1 200 OK\r\n{hint}content-length: 2\r\n\r\nHi");
                while read_head(&mut socket).is_some() {
                    socket.read_exact(&mut [0; 2]).expect("a body");
                    socket.write_all(answer.as_bytes()).expect("a client");
                }
            });
        }
    });
    (url, connections)
}

#[test]
fn a_connection_that_the_server_is_about_to_close_is_not_used_again() {
    for (name, calls) in CLIENTS {
        for (hint, expected) in [("", 1), ("keep-alive: timeout=60\r\n", 1), ("keep-alive: timeout=1\r\n", 2)]
        {
            let (url, connections) = start(hint);
            for outcome in calls(&Setup::default(), vec![request(&url, Overrides::new()); 2]) {
                assert!(outcome.result.is_ok(), "{name} {hint}: {:?}", outcome.result);
            }
            // The client on threads has no pool.
            let expected = if name == "blocking" { 2 } else { expected };
            assert_eq!(connections.load(Ordering::Relaxed), expected, "{name} {hint}");
        }
    }
}
