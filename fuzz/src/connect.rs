//! What a proxy answers, and how a proxy and an origin are named.

use steadfast::call::Request;
use steadfast::connect::{Proxies, Proxy, Route, Tunnel};
use steadfast::machine::IoFailure;

use crate::reads::{choice, splits};

/// A part of the credentials of the proxies that have some
const SECRET: &str = "open-sesame";

/// All that a handshake comes to
#[derive(Debug, PartialEq, Eq)]
struct Told {
    /// All that was sent to the proxy
    sent: Vec<u8>,
    /// What comes from the origin; `None` where the tunnel did not open
    behind: Option<Vec<u8>>,
    failure: Option<IoFailure>,
}

/// What a proxy answers, or the names of a proxy and an origin; the first byte chooses which
///
/// Any split of an answer gives the same handshake, and no failure quotes our credentials. Whatever
/// the names are, a request asks for one tunnel in one line, and shows no credential.
pub fn connect(data: &[u8]) {
    let (choice, rest) = choice(data);
    match choice % 4 {
        0 => handshake("http://me:open-sesame@proxy.test", rest),
        1 => handshake("socks5h://me:open-sesame@proxy.test", rest),
        2 => handshake("socks5h://proxy.test", rest),
        _ => names(&String::from_utf8_lossy(rest)),
    }
}

fn handshake(proxy: &str, answer: &[u8]) {
    let proxy = Proxy::new(proxy).expect("a proxy's URL");
    let whole = read(&proxy, &[answer]);
    for reads in splits(answer) {
        assert_eq!(read(&proxy, &reads), whole, "read in {reads:?}");
    }
    if let Some(failure) = &whole.failure {
        assert!(!format!("{failure:?}").contains(SECRET));
    }
    // Ours, the credentials of RFC 1929, and the longest request of SOCKS5
    assert!(whole.sent.len() < 1024);
}

fn read(proxy: &Proxy, reads: &[&[u8]]) -> Told {
    let request = Request::post("https://a.test/v1").build().expect("a request");
    let mut tunnel = Tunnel::new(proxy, request.origin()).expect("a short name");
    let mut told = Told { sent: Vec::new(), behind: None, failure: None };
    send(&mut tunnel, &mut told.sent);
    for read in reads {
        match tunnel.received(read) {
            Ok(used) => {
                if used < read.len() {
                    told.behind.get_or_insert_default().extend_from_slice(&read[used..]);
                }
            }
            Err(failure) => {
                told.failure = Some(failure);
                send(&mut tunnel, &mut told.sent);
                return told;
            }
        }
        send(&mut tunnel, &mut told.sent);
        if tunnel.is_open() {
            told.behind.get_or_insert_default();
        }
        assert!(told.behind.is_none() || tunnel.is_open(), "bytes of a tunnel that is not open");
    }
    told
}

fn send(tunnel: &mut Tunnel, sent: &mut Vec<u8>) {
    sent.extend_from_slice(tunnel.outgoing());
    tunnel.sent(tunnel.outgoing().len());
}

/// Lines: the proxy, the origin's URL, the hosts that are reached without a proxy
fn names(text: &str) {
    let mut lines = text.splitn(3, '\n');
    let (proxy, url, bypass) =
        (lines.next().unwrap_or(""), lines.next().unwrap_or(""), lines.next().unwrap_or(""));
    let request = Request::post(url).build();
    let proxy = Proxy::new(proxy);
    let (Ok(request), Ok(proxy)) = (request, proxy) else { return };
    let origin = request.origin();
    // What is shown of a request is read back as the same origin.
    let again = Request::post(&format!("{origin}/")).build().expect("an origin's own form is a URL");
    assert_eq!(again.origin(), origin);
    let proxies = Proxies::all(proxy.clone()).bypass(bypass);
    match proxies.route(origin) {
        Route::Direct => {}
        Route::Forward(_) | Route::Tunnel(_) => assert!(!bypass.split(',').any(|host| host.trim() == "*")),
    }
    let Ok(tunnel) = Tunnel::new(&proxy, origin) else { return };
    let out = tunnel.outgoing();
    if let Some(lines) = out.strip_prefix(b"CONNECT ") {
        let lines = String::from_utf8(lines.to_vec()).expect("a head of CONNECT is ASCII");
        let fields = lines.strip_suffix("\r\n\r\n").expect("an empty line ends it").split("\r\n").skip(1);
        let mut names: Vec<&str> = fields.map(|line| line.split(':').next().unwrap_or("")).collect();
        names.retain(|name| *name != "proxy-authorization");
        assert_eq!(names, ["host", "accept-encoding"], "{lines:?}");
        assert!(lines.starts_with(&format!("{} HTTP/1.1\r\n", origin.host_and_port())));
        assert!(!lines.contains(['\0', '\t']) && !lines.replace("\r\n", "").contains(['\r', '\n']));
    } else {
        assert_eq!(out.first(), Some(&5), "neither CONNECT nor SOCKS5");
    }
}
