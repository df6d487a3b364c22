//! Through other people's proxies: tinyproxy, which speaks HTTP, and microsocks, which speaks SOCKS5.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use steadfast::call::Request;
use steadfast::config::Overrides;
use steadfast::connect::{Proxies, Proxy};
use steadfast::machine::{CertificateFault, FailureKind, ProxyRefusal, Stage};
use steadfast::outcome::{Billing, CallError, ErrorKind, Outcome, Phase};
use steadfast_tests::peers;

use crate::certificates::Authority;
use crate::clients::{CAP, CLIENTS, Setup, request};
use crate::server::{Origin, Server, read_head};

/// The one user, and the password
const WHO: &str = "me:secret";

/// A program that listens, until it is dropped
struct Peer {
    child: Child,
    port: u16,
    configuration: Option<PathBuf>,
}

impl Peer {
    /// Starts a program on a free port; another may take the port meanwhile, and then the next one is tried
    fn start(mut command: impl FnMut(u16) -> (Command, Option<PathBuf>)) -> Self {
        let began = Instant::now();
        loop {
            let port = free_port();
            let (mut command, configuration) = command(port);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let mut peer = Self { child: command.spawn().expect("it starts"), port, configuration };
            while peer.child.try_wait().expect("a child").is_none() {
                assert!(began.elapsed() < CAP, "{command:?} does not listen");
                if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                    return peer;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            assert!(began.elapsed() < CAP, "{command:?} ends");
        }
    }

    /// Its URL, with these credentials
    fn proxy(&self, scheme: &str, who: &str) -> Proxy {
        let at = if who.is_empty() { "" } else { "@" };
        Proxy::new(&format!("{scheme}://{who}{at}127.0.0.1:{}", self.port)).expect("a proxy")
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(file) = &self.configuration {
            let _ = fs::remove_file(file);
        }
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port").port()
}

/// tinyproxy, which lets everybody through, or only [`WHO`]
fn tinyproxy(is_open: bool) -> Option<Peer> {
    let program = peers::path("proxies", "usr/bin/tinyproxy")?;
    Some(Peer::start(|port| {
        let file =
            std::env::temp_dir().join(format!("steadfast-tinyproxy-{}-{port}.conf", std::process::id()));
        let mut text = format!("Port {port}\nListen 127.0.0.1\nTimeout 60\nMaxClients 100\n");
        if !is_open {
            text += "BasicAuth me secret\n";
        }
        fs::write(&file, text).expect("a file");
        let mut command = Command::new(&program);
        command.arg("-d").arg("-c").arg(&file);
        (command, Some(file))
    }))
}

/// microsocks, which lets everybody through, or only [`WHO`]
fn microsocks(is_open: bool) -> Option<Peer> {
    let program = peers::path("proxies", "usr/bin/microsocks")?;
    Some(Peer::start(|port| {
        let mut command = Command::new(&program);
        command.args(["-i", "127.0.0.1", "-p", &port.to_string()]);
        if !is_open {
            command.args(["-u", "me", "-P", "secret"]);
        }
        (command, None)
    }))
}

/// Calls through a proxy by each client: what became of them
fn through(
    proxy: &Proxy,
    tls: Option<&Authority>,
    url: &str,
    calls: usize,
) -> Vec<(&'static str, Vec<Outcome>)> {
    let setup =
        Setup { tls: tls.map(Authority::trusted), proxies: Proxies::all(proxy.clone()), ..Setup::default() };
    // A proxy may close a connection behind an answer, and another call have it just then (rule RTY-6).
    let overrides = Overrides::new().max_attempts(2);
    let request = || Request::post(url).body("{}").overrides(overrides).build().expect("a valid request");
    let requests = || (0..calls).map(|_| request()).collect();
    CLIENTS.iter().map(|(name, calls)| (*name, calls(&setup, requests()))).collect()
}

fn refusal(outcome: &Outcome) -> (ProxyRefusal, &CallError) {
    let Err(error) = &outcome.result else { panic!("{outcome:?}") };
    match &error.kind {
        ErrorKind::Proxy(failure) if failure.stage == Stage::Proxy => match failure.kind {
            FailureKind::Proxy(refusal) => (refusal, error),
            _ => panic!("{error:?}"),
        },
        _ => panic!("{error:?}"),
    }
}

/// To a plain origin and to one under TLS, with and without credentials, and no byte of them to the origin
#[test]
fn calls_go_through_and_the_origin_hears_nothing_of_the_proxy() {
    let authority = Authority::new("Our Authority");
    for (scheme, start) in [("http", tinyproxy as fn(bool) -> Option<Peer>), ("socks5", microsocks)] {
        for is_open in [true, false] {
            let Some(peer) = start(is_open) else { return };
            let proxy = peer.proxy(scheme, if is_open { "" } else { WHO });
            for is_secure in [false, true] {
                let origin = Origin::start(is_secure.then(|| authority.issue("127.0.0.1").serving()));
                let url =
                    format!("http{}://127.0.0.1:{}/v1", if is_secure { "s" } else { "" }, origin.port());
                let outcomes = through(&proxy, Some(&authority), &url, 2);
                for (name, outcomes) in &outcomes {
                    for outcome in outcomes {
                        let body = outcome.result.as_ref().map(|completion| &completion.body[..]);
                        assert_eq!(body.ok(), Some(&b"Hi"[..]), "{name} by {proxy}: {:?}", outcome.result);
                    }
                }
                let heads = origin.heads();
                assert_eq!(heads.len(), 2 * outcomes.len());
                for head in heads {
                    assert!(head.starts_with("POST /v1 HTTP/1."), "{head}");
                    assert!(!head.to_ascii_lowercase().contains("proxy-authorization"), "{head}");
                }
            }
        }
    }
}

#[test]
fn credentials_that_are_missing_or_wrong_are_said_so_and_never_tried_again() {
    let origin = Origin::start(None);
    let secure = format!("https://127.0.0.1:{}/v1", origin.port());
    let plain = format!("http://127.0.0.1:{}/v1", origin.port());
    for (scheme, start) in [("http", tinyproxy as fn(bool) -> Option<Peer>), ("socks5", microsocks)] {
        let Some(peer) = start(false) else { return };
        for who in ["", "me:wrong"] {
            for url in [&secure, &plain] {
                for (name, outcomes) in through(&peer.proxy(scheme, who), None, url, 1) {
                    let outcome = &outcomes[0];
                    assert_eq!(outcome.timeline.attempt_count(), 1, "{name}");
                    let error = outcome.result.as_ref().expect_err("a refusal");
                    assert!(!error.to_string().contains("wrong"), "{error}");
                    if (scheme, who, url) == ("http", "me:wrong", &plain) {
                        // tinyproxy says 401, and to a request that is forwarded so may the origin.
                        assert!(
                            matches!(&error.kind, ErrorKind::Status(error) if error.status == 401),
                            "{error}"
                        );
                        continue;
                    }
                    let refusal = refusal(outcome).0;
                    assert_eq!(refusal, ProxyRefusal::AuthenticationRequired, "{name} {scheme} {who} {url}");
                }
            }
        }
    }
    assert_eq!(origin.heads(), [] as [String; 0]);
}

/// Nobody listens at the origin: the proxies say so in their own ways, and nothing was sent
#[test]
fn an_origin_that_is_not_there_is_the_proxy_s_refusal() {
    let url = format!("https://127.0.0.1:{}/v1", free_port());
    for (scheme, start) in [("http", tinyproxy as fn(bool) -> Option<Peer>), ("socks5", microsocks)] {
        let Some(peer) = start(true) else { return };
        for (name, outcomes) in through(&peer.proxy(scheme, ""), None, &url, 1) {
            let (refusal, error) = refusal(&outcomes[0]);
            assert!(
                matches!(refusal, ProxyRefusal::Status(500..=599) | ProxyRefusal::Socks(1 | 5)),
                "{name} {scheme}: {error}"
            );
            assert_eq!(error.billing, Billing::NotSent, "{name}");
        }
    }
}

/// A proxy of ours that is reached within TLS: it makes tunnels, and forwards what is no CONNECT
fn secure_proxy(config: Arc<ServerConfig>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let (socket, config) = (socket.expect("a connection"), config.clone());
            std::thread::spawn(move || {
                let connection = ServerConnection::new(config).expect("a server");
                relay(StreamOwned::new(connection, socket));
            });
        }
    });
    port
}

/// Serves one client: CONNECT by a tunnel, anything else by the request and what is answered to it
fn relay(mut client: StreamOwned<ServerConnection, TcpStream>) {
    let Some(head) = read_head(&mut client) else { return };
    let target = head.split(' ').nth(1).expect("a target");
    let authority = target.strip_prefix("http://").unwrap_or(target).split('/').next().expect("an authority");
    let mut origin = TcpStream::connect(authority).expect("the origin");
    if head.starts_with("CONNECT ") {
        client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").expect("a client");
    } else {
        origin.write_all(head.as_bytes()).expect("an origin");
    }
    client.sock.set_nonblocking(true).expect("non-blocking");
    origin.set_nonblocking(true).expect("non-blocking");
    let mut buffer = [0; 16 * 1024];
    loop {
        let to_origin = pass(&mut client, &mut origin, &mut buffer);
        let to_client = pass(&mut origin, &mut client, &mut buffer);
        if to_origin.is_err() || to_client.is_err() {
            return;
        }
        if to_origin.is_ok_and(|n| n == 0) && to_client.is_ok_and(|n| n == 0) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// How many bytes were there to be passed on; fails at the end
fn pass(from: &mut impl Read, to: &mut impl Write, buffer: &mut [u8]) -> std::io::Result<usize> {
    let read = match from.read(buffer) {
        Ok(0) => return Err(std::io::ErrorKind::UnexpectedEof.into()),
        Ok(read) => read,
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return Ok(0),
        Err(error) => return Err(error),
    };
    let mut left = &buffer[..read];
    while !left.is_empty() {
        left = &left[until_ready(|| to.write(left))?..];
    }
    until_ready(|| to.flush())?;
    Ok(read)
}

fn until_ready<T>(mut act: impl FnMut() -> std::io::Result<T>) -> std::io::Result<T> {
    loop {
        match act() {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_millis(1));
            }
            done => return done,
        }
    }
}

#[test]
fn a_proxy_within_tls_carries_tls_and_plain_requests() {
    let authority = Authority::new("Our Authority");
    let port = secure_proxy(authority.issue("127.0.0.1").serving());
    let proxy = Proxy::new(&format!("https://127.0.0.1:{port}")).expect("a proxy");
    for is_secure in [true, false] {
        let origin = Origin::start(is_secure.then(|| authority.issue("127.0.0.1").serving()));
        let url = format!("http{}://127.0.0.1:{}/v1", if is_secure { "s" } else { "" }, origin.port());
        for (name, outcomes) in through(&proxy, Some(&authority), &url, 2) {
            for outcome in outcomes {
                let body = outcome.result.as_ref().map(|completion| &completion.body[..]);
                assert_eq!(body.ok(), Some(&b"Hi"[..]), "{name} to {url}: {:?}", outcome.result);
            }
        }
        assert_eq!(origin.heads().len(), 2 * CLIENTS.len());
    }
}

/// More than any buffer on the way holds
#[test]
fn a_large_request_goes_through_two_layers_of_tls() {
    let authority = Authority::new("Our Authority");
    let port = secure_proxy(authority.issue("127.0.0.1").serving());
    let proxy = Proxy::new(&format!("https://127.0.0.1:{port}")).expect("a proxy");
    let setup = Setup { tls: Some(authority.trusted()), proxies: Proxies::all(proxy), ..Setup::default() };
    let origin = Origin::start(Some(authority.issue("127.0.0.1").serving()));
    let url = format!("https://127.0.0.1:{}/v1", origin.port());
    for (name, calls) in CLIENTS {
        let request = Request::post(&url).body(vec![b'x'; 6_000_000]).build().expect("a valid request");
        let outcome = calls(&setup, vec![request]).remove(0);
        assert!(outcome.result.is_ok(), "{name}: {:?}", outcome.result);
        assert_eq!(outcome.timeline.attempt_count(), 1, "{name}");
    }
}

#[test]
fn a_proxy_whose_certificate_is_not_accepted_is_the_proxy_s_failure() {
    let authority = Authority::new("Our Authority");
    let port = secure_proxy(Authority::new("A Stranger").issue("127.0.0.1").serving());
    let proxy = Proxy::new(&format!("https://127.0.0.1:{port}")).expect("a proxy");
    for (name, outcomes) in through(&proxy, Some(&authority), "https://api.example/v1", 1) {
        let error = outcomes[0].result.as_ref().expect_err("a failure");
        let ErrorKind::Proxy(failure) = &error.kind else { panic!("{name}: {error}") };
        let kind = FailureKind::Certificate(CertificateFault::UnknownIssuer);
        assert_eq!(
            (failure.stage, failure.kind, error.billing),
            (Stage::Proxy, kind, Billing::NotSent),
            "{name}"
        );
        assert_eq!(outcomes[0].timeline.attempt_count(), 1, "{name}");
    }
}

/// A proxy of ours: it takes the connection and what the client says, and says nothing
#[test]
fn a_proxy_that_stalls_ends_at_the_connect_timeout() {
    const LIMIT: Duration = Duration::from_millis(100);
    for scheme in ["http", "socks5"] {
        let server = Server::start(CLIENTS.len(), |mut socket| {
            std::io::copy(&mut socket, &mut std::io::sink()).expect("a client that leaves")
        });
        let proxy = Proxy::new(&format!("{scheme}://127.0.0.1:{}", server.port())).expect("a proxy");
        let setup = Setup { proxies: Proxies::all(proxy), ..Setup::default() };
        for (name, calls) in CLIENTS {
            let overrides = Overrides::new().connect_timeout(LIMIT.as_secs_f64());
            let outcomes = calls(&setup, vec![request("https://api.example/v1", overrides)]);
            let error = outcomes[0].result.as_ref().expect_err("a breach");
            let ErrorKind::Timeout(timeout) = &error.kind else { panic!("{name}: {error}") };
            assert_eq!(
                (timeout.phase, timeout.limit, error.billing),
                (Phase::Connect, LIMIT, Billing::NotSent)
            );
        }
        assert!(server.join().iter().all(|said| *said > 0), "each client has begun its handshake");
    }
}
