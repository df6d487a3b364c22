//! Redirects: not followed, so no credential goes where the caller did not send it.

use std::io::{ErrorKind as Io, Write};
use std::net::TcpListener;

use steadfast::call::Request;
use steadfast::outcome::ErrorKind;

use crate::clients::{CLIENTS, Setup};
use crate::server::{Server, read_head};

#[test]
fn a_redirect_is_the_outcome_and_nobody_else_hears_of_the_call() {
    let other = TcpListener::bind("127.0.0.1:0").expect("a free port");
    other.set_nonblocking(true).expect("non-blocking");
    let location = format!("http://{}/v1", other.local_addr().expect("an address"));
    for status in [301, 302, 303, 307, 308] {
        let answer =
            format!("HTTP/1.1 {status} Elsewhere\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n");
        for (name, calls) in CLIENTS {
            let answer = answer.clone();
            let server = Server::start(1, move |mut socket| {
                let head = read_head(&mut socket).expect("a request");
                socket.write_all(answer.as_bytes()).expect("a client");
                head
            });
            let url = format!("http://127.0.0.1:{}/v1", server.port());
            let request =
                Request::post(&url).bearer("sk-secret").body("{}").build().expect("a valid request");
            let outcome = calls(&Setup::default(), vec![request]).remove(0);
            assert!(server.join()[0].contains("\r\nauthorization: Bearer sk-secret\r\n"));
            let error = outcome.result.as_ref().expect_err("a status");
            let ErrorKind::Status(redirect) = &error.kind else { panic!("{name}: {error}") };
            assert_eq!((redirect.status.as_u16(), outcome.timeline.attempt_count()), (status, 1), "{name}");
            assert_eq!(redirect.headers["location"], location.as_str());
            assert!(error.to_string().ends_with(&format!("it points to {location}")), "{error}");
        }
    }
    assert_eq!(other.accept().expect_err("nobody came").kind(), Io::WouldBlock);
}
