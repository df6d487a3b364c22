//! A connection that is being opened: name look-up, TCP, proxy and TLS, a step at a time.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use mio::net::TcpStream;
#[cfg(unix)]
use mio::net::UnixStream;
use mio::{Interest, Registry};
use socket2::SockRef;
use steadfast::call::Origin;
use steadfast::connect::{HappyEyeballs, Next, Proxy, ProxyScheme, Route, TcpSettings, Tunnel};
use steadfast::machine::{FailureKind, IoFailure, ProxyRefusal, Stage, io_failure};
use steadfast::time::Instant;

use crate::client::Shared;
use crate::connection::{Came, Connection, MAX_ROUNDS};
use crate::look_up::LookUp;
use crate::sleeper::{Bell, SOCKET};
use crate::socket::{Socket, set_up};

/// A connection that is being opened; the machine's `connect_timeout` drops it
pub(crate) struct Opening {
    shared: Arc<Shared>,
    origin: Origin,
    registry: Registry,
    bell: Arc<Bell>,
    proxy: Option<Through>,
    step: Step,
}

/// A proxy on the way
struct Through {
    proxy: Proxy,
    /// To be made once the proxy is reached
    tunnel: Option<Tunnel>,
}

enum Step {
    LookUp(LookUp),
    Race(Race),
    /// TLS to the proxy itself
    ProxyHandshake(Connection),
    /// The first peer on the way is reached
    Reached(Socket),
    /// What was read and is not the handshake's, or not yet, comes last
    Tunnel(Connection, Tunnel, Vec<u8>),
    /// The way to the origin is open
    Origin(Connection),
    Handshake(Connection),
}

/// What came of going on
pub(crate) enum Opened {
    NotYet(Box<Opening>),
    Open(Connection),
}

/// Addresses tried side by side; the first that answers wins, and the others are closed
struct Race {
    eyeballs: HappyEyeballs,
    attempts: Vec<(SocketAddr, TcpStream)>,
    due: Option<Instant>,
}

impl Opening {
    /// Begins to open a connection to `origin`; its sockets are registered, and its threads ring `bell`
    pub(crate) fn new(
        shared: Arc<Shared>,
        origin: Origin,
        registry: Registry,
        bell: &Arc<Bell>,
    ) -> Result<Self, IoFailure> {
        #[cfg(unix)]
        if let Some(path) = shared.unix_socket.clone() {
            let failed = |error| {
                let failure = io_failure(Stage::Connect, &error);
                IoFailure { message: format!("{}: {}", path.display(), failure.message), ..failure }
            };
            let mut socket = UnixStream::connect(&path).map_err(failed)?;
            let interests = Interest::READABLE | Interest::WRITABLE;
            registry.register(&mut socket, SOCKET, interests).map_err(failed)?;
            let step = Step::Origin(Connection::new(Socket::Unix(socket)));
            return Ok(Self { shared, origin, registry, bell: Arc::clone(bell), proxy: None, step });
        }
        let (host, port, proxy) = {
            let kind = FailureKind::Proxy(ProxyRefusal::Unusable);
            let unusable = |message| IoFailure { stage: Stage::Proxy, kind, message };
            let proxies = shared.proxies.as_ref().map_err(|error| unusable(error.to_string()))?;
            match proxies.route(&origin) {
                Route::Direct => (origin.host().to_owned(), origin.port(), None),
                Route::Forward(proxy) => {
                    let through = Through { proxy: proxy.clone(), tunnel: None };
                    (proxy.host().to_owned(), proxy.port(), Some(through))
                }
                Route::Tunnel(proxy) => {
                    let tunnel = Some(Tunnel::new(proxy, &origin)?);
                    let through = Through { proxy: proxy.clone(), tunnel };
                    (proxy.host().to_owned(), proxy.port(), Some(through))
                }
            }
        };
        let step = match host.parse::<IpAddr>() {
            Ok(address) => Step::Race(Race::new(vec![SocketAddr::new(address, port)])),
            Err(_) => Step::LookUp(shared.resolver.look_up(&host, port, bell)),
        };
        Ok(Self { shared, origin, registry, bell: Arc::clone(bell), proxy, step })
    }

    /// When to go on though nothing was heard
    pub(crate) fn due(&self) -> Option<Instant> {
        match &self.step {
            Step::Race(race) => race.due,
            Step::LookUp(_)
            | Step::ProxyHandshake(_)
            | Step::Reached(_)
            | Step::Tunnel(..)
            | Step::Origin(_)
            | Step::Handshake(_) => None,
        }
    }

    /// Goes on as far as can be without waiting
    pub(crate) fn go_on(mut self, now: Instant) -> Result<Opened, IoFailure> {
        loop {
            self.step = match self.step {
                Step::LookUp(look_up) => match look_up.take() {
                    None => {
                        return Ok(Opened::NotYet(Box::new(Self { step: Step::LookUp(look_up), ..self })));
                    }
                    Some(addresses) => {
                        Step::Race(Race::new(addresses.map_err(|failure| at_proxy(&self.proxy, failure))?))
                    }
                },
                Step::Race(mut race) => match race.go_on(&self.registry, self.shared.tcp, now) {
                    Ok(None) => return Ok(Opened::NotYet(Box::new(Self { step: Step::Race(race), ..self }))),
                    Ok(Some(socket)) => match &self.proxy {
                        Some(Through { proxy, .. }) if proxy.scheme() == ProxyScheme::Https => {
                            let connection = Connection::new(Socket::Tcp(socket));
                            let tls = self.shared.tls().map_err(|failure| at_proxy(&self.proxy, failure))?;
                            let secured = connection.secured(&tls.without_client_certificate(), proxy.host());
                            Step::ProxyHandshake(secured.map_err(|failure| at_proxy(&self.proxy, failure))?)
                        }
                        Some(_) | None => Step::Reached(Socket::Tcp(socket)),
                    },
                    Err(failure) => return Err(at_proxy(&self.proxy, failure)),
                },
                Step::ProxyHandshake(mut connection) => {
                    let is_over = connection.shake_hands(&self.bell);
                    if !is_over.map_err(|failure| at_proxy(&self.proxy, failure))? {
                        let step = Step::ProxyHandshake(connection);
                        return Ok(Opened::NotYet(Box::new(Self { step, ..self })));
                    }
                    Step::Reached(Socket::Secure(Box::new(connection), Arc::clone(&self.bell)))
                }
                Step::Reached(socket) => {
                    let connection = Connection::new(socket);
                    match self.proxy.as_mut().and_then(|through| through.tunnel.take()) {
                        Some(tunnel) => Step::Tunnel(connection, tunnel, Vec::new()),
                        None => Step::Origin(connection),
                    }
                }
                Step::Tunnel(mut connection, mut tunnel, mut unread) => {
                    if dig(&mut connection, &mut tunnel, &mut unread, &self.bell)? {
                        Step::Origin(connection.with_early(unread))
                    } else {
                        let step = Step::Tunnel(connection, tunnel, unread);
                        return Ok(Opened::NotYet(Box::new(Self { step, ..self })));
                    }
                }
                Step::Origin(connection) if self.origin.is_tls() => {
                    Step::Handshake(connection.secured(self.shared.tls()?, self.origin.host())?)
                }
                Step::Origin(connection) => return Ok(Opened::Open(connection)),
                Step::Handshake(mut connection) => {
                    let is_over = connection
                        .shake_hands(&self.bell)
                        // Whichever way the bytes were going.
                        .map_err(|failure| IoFailure { stage: Stage::Tls, ..failure })?;
                    if is_over {
                        return Ok(Opened::Open(connection));
                    }
                    return Ok(Opened::NotYet(Box::new(Self { step: Step::Handshake(connection), ..self })));
                }
            }
        }
    }
}

impl Race {
    fn new(addresses: Vec<SocketAddr>) -> Self {
        Self { eyeballs: HappyEyeballs::new(addresses), attempts: Vec::new(), due: None }
    }

    /// The first that has answered; fails once all have failed
    fn go_on(
        &mut self,
        registry: &Registry,
        tcp: TcpSettings,
        now: Instant,
    ) -> Result<Option<TcpStream>, IoFailure> {
        loop {
            let (address, error) = match self.eyeballs.next(now) {
                Next::Connect(address) => match connect(address, registry, tcp) {
                    Ok(socket) => {
                        self.attempts.push((address, socket));
                        continue;
                    }
                    Err(error) => (address, error),
                },
                Next::Failed(failure) => return Err(failure),
                Next::Wait(due) => {
                    self.due = due;
                    let answered = |(at, (_, socket)): (usize, &(_, TcpStream))| Some((at, answer(socket)?));
                    let Some((at, answer)) = self.attempts.iter().enumerate().find_map(answered) else {
                        return Ok(None);
                    };
                    let (address, socket) = self.attempts.swap_remove(at);
                    match answer {
                        Ok(()) => return Ok(Some(socket)),
                        Err(error) => (address, error),
                    }
                }
            };
            self.eyeballs.failed(address, io_failure(Stage::Connect, &error));
        }
    }
}

/// A failure on the way to the proxy, where there is one, is the proxy's
fn at_proxy(proxy: &Option<Through>, failure: IoFailure) -> IoFailure {
    match proxy {
        None => failure,
        Some(Through { proxy, .. }) => IoFailure {
            stage: Stage::Proxy,
            message: format!("{proxy} cannot be reached: {}", failure.message),
            ..failure
        },
    }
}

/// Begins to connect
fn connect(address: SocketAddr, registry: &Registry, tcp: TcpSettings) -> io::Result<TcpStream> {
    let mut socket = TcpStream::connect(address)?;
    set_up(SockRef::from(&socket), tcp)?;
    registry.register(&mut socket, SOCKET, Interest::READABLE | Interest::WRITABLE)?;
    Ok(socket)
}

/// Whether a peer has answered, and how, as the operating system has it now
fn answer(socket: &TcpStream) -> Option<io::Result<()>> {
    match socket.take_error() {
        Ok(None) => match socket.peer_addr() {
            Ok(_) => Some(Ok(())),
            Err(error) if error.kind() == io::ErrorKind::NotConnected => None,
            Err(error) => Some(Err(error)),
        },
        Ok(Some(error)) | Err(error) => Some(Err(error)),
    }
}

/// Goes on with a proxy's handshake; whether it is over, with what came behind it in `unread`
///
/// Rings `bell` where it is to go on at once.
fn dig(
    connection: &mut Connection,
    tunnel: &mut Tunnel,
    unread: &mut Vec<u8>,
    bell: &Bell,
) -> Result<bool, IoFailure> {
    let at_proxy = |failure| IoFailure { stage: Stage::Proxy, ..failure };
    for _ in 0..MAX_ROUNDS {
        while !tunnel.outgoing().is_empty() {
            match connection.write([tunnel.outgoing(), &[]]) {
                None => return Ok(false),
                Some(written) => tunnel.sent(written.map_err(at_proxy)?),
            }
        }
        let is_flushed = connection.flush().map_err(at_proxy)?;
        if tunnel.is_open() {
            return Ok(is_flushed);
        }
        let used = tunnel.received(unread)?;
        unread.drain(..used);
        if used == 0 {
            let mut buffer = [0; 4096];
            match connection.read(&mut buffer) {
                None => return Ok(false),
                Some(came) => match came.map_err(at_proxy)? {
                    Came::Bytes(read) => unread.extend_from_slice(&buffer[..read]),
                    Came::End(_) => return Err(tunnel.eof()),
                },
            }
        }
    }
    bell.ring();
    Ok(false)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Ipv4Addr, Ipv6Addr, TcpListener};
    use std::sync::{Mutex, MutexGuard};
    use std::thread;
    use std::time::{Duration, Instant as Clock};

    use socket2::{Domain, Type};
    use steadfast::call::Request;
    use steadfast::config::Overrides;
    use steadfast::connect::Proxies;
    use steadfast::outcome::{Billing, ErrorKind, Outcome, Phase};
    use steadfast_mock::Mock;
    use steadfast_scenario::find;

    use super::*;
    use crate::Client;
    use crate::look_up::Resolver;
    use crate::sleeper::Sleeper;

    /// A peer that does not answer is not waited for: the next address is due soon after
    #[test]
    fn a_race_wakes_its_call_when_the_next_address_is_due() {
        const DELAY: Duration = Duration::from_millis(250);
        let mute = Mock::start(&find("connect-full-backlog").expect("it is there").script, None)
            .expect("it listens");
        let good = TcpListener::bind("127.0.0.1:0").expect("it listens");
        let good = good.local_addr().expect("an address");
        let mut sleeper = Sleeper::default();
        let registry = sleeper.open().expect("a poller");
        let mut race = Race::new(vec![mute.addr(), good]);
        let go_on = |race: &mut Race, after| {
            race.go_on(&registry, TcpSettings::default(), Instant::ORIGIN + after).expect("a chance")
        };

        assert!(go_on(&mut race, Duration::ZERO).is_none());
        assert_eq!(race.due, Some(Instant::ORIGIN + DELAY));
        assert!(go_on(&mut race, DELAY - Duration::from_millis(1)).is_none());
        assert_eq!(race.attempts.len(), 1);
        let began = Clock::now();
        let socket = loop {
            if let Some(socket) = go_on(&mut race, DELAY) {
                break socket;
            }
            assert!(began.elapsed() < Duration::from_secs(20), "never connected");
            sleeper.sleep(Some(Duration::from_secs(1)));
        };
        assert_eq!(socket.peer_addr().expect("connected"), good);
    }

    /// A bound address that swallows what is sent to it, for as long as it lives: its backlog is full
    struct BlackHole {
        socket: socket2::Socket,
        _waiting: Vec<socket2::Socket>,
    }

    impl BlackHole {
        fn start_on(address: IpAddr) -> Self {
            let address = SocketAddr::new(address, 0);
            let new = || socket2::Socket::new(Domain::for_address(address), Type::STREAM, None);
            let socket = new().expect("a socket");
            socket.bind(&address.into()).expect("a free port");
            socket.listen(0).expect("a listener");
            let mut hole = Self { socket, _waiting: Vec::new() };
            let waiting = || {
                let socket = new()?;
                let connected = socket.connect_timeout(&hole.address().into(), Duration::from_millis(100));
                connected.map(|()| socket)
            };
            hole._waiting = std::iter::from_fn(|| waiting().ok()).take(16).collect();
            assert!(hole._waiting.len() < 16, "it is still open");
            hole
        }

        fn address(&self) -> SocketAddr {
            self.socket.local_addr().expect("a bound address").as_socket().expect("an IP address")
        }
    }

    /// The addresses of every host; locked by a test for as long as they are to hold
    static KNOWN: Mutex<Vec<SocketAddr>> = Mutex::new(Vec::new());
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

    /// A call to a host with these addresses
    fn call(addresses: &[SocketAddr], overrides: Overrides) -> (Outcome, MutexGuard<'static, ()>) {
        let guard = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *KNOWN.lock().expect("no panic") = addresses.to_vec();
        let resolver = Arc::new(Resolver::new(|_, _| Ok(KNOWN.lock().expect("no panic").clone())));
        let client = Client::new().with_proxies(Proxies::none()).with_resolver(resolver);
        let request = Request::post("http://api.test").overrides(overrides.max_attempts(1)).build();
        (client.send(request.expect("a request")), guard)
    }

    #[test]
    fn l04_a_black_hole_at_ipv6_does_not_keep_a_call_from_ipv4() {
        let hole = BlackHole::start_on(Ipv6Addr::LOCALHOST.into());
        let good = TcpListener::bind("127.0.0.1:0").expect("it listens");
        let known = [hole.address(), good.local_addr().expect("an address")];
        let serving = thread::spawn(move || {
            let mut socket = good.accept().expect("a connection").0;
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                socket.read_exact(&mut byte).expect("a request");
                request.push(byte[0]);
            }
            socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nHi").expect("a client");
        });
        let (outcome, _guard) = call(&known, Overrides::new());
        assert_eq!(&outcome.result.expect("a success").body[..], b"Hi");
        let took = outcome.timeline.ended - outcome.timeline.began;
        assert!((Duration::from_millis(250)..Duration::from_secs(1)).contains(&took), "{took:?}");
        serving.join().expect("no panic");
    }

    #[test]
    fn l04_two_black_holes_end_at_the_connect_timeout() {
        let holes = [
            BlackHole::start_on(Ipv6Addr::LOCALHOST.into()),
            BlackHole::start_on(Ipv4Addr::LOCALHOST.into()),
        ];
        let known = [holes[0].address(), holes[1].address()];
        let (outcome, _guard) = call(&known, Overrides::new().connect_timeout(0.6));
        let error = outcome.result.expect_err("no connection");
        let ErrorKind::Timeout(timeout) = error.kind else { panic!("{error}") };
        assert_eq!((timeout.phase, timeout.limit), (Phase::Connect, Duration::from_millis(600)));
        assert_eq!(error.billing, Billing::NotSent);
        assert!((timeout.limit..Duration::from_secs(2)).contains(&timeout.elapsed), "{timeout:?}");
    }
}
