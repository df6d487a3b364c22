//! Name look-up, TCP, proxies and TLS.

use std::future::{Future, poll_fn};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use steadfast::call::{Origin, Request};
use steadfast::connect::{HappyEyeballs, Next, Proxies, ProxiesError, Proxy, Route, Tunnel};
use steadfast::machine::{FailureKind, IoFailure, ProxyRefusal, Stage};
use steadfast_driver::{Connection, Handshake, Through, Tunnelling, io_failure};
use tokio::net::TcpStream;
use tokio::time::timeout_at;

use crate::client::Trust;
use crate::resolve::{Resolve, System};
use crate::runtime::{Clock, TcpSocket};

/// What connections are made with
#[derive(Clone)]
pub(crate) struct Connector {
    pub(crate) clock: Clock,
    pub(crate) trust: Arc<Trust>,
    pub(crate) resolver: Arc<dyn Resolve>,
    pub(crate) proxies: Arc<Result<Proxies, ProxiesError>>,
}

impl Connector {
    /// Trusts whom the platform trusts, asks its resolver, and takes proxies from the environment
    pub(crate) fn new() -> Self {
        Self {
            clock: Clock::start(),
            trust: Arc::default(),
            resolver: Arc::new(System::default()),
            proxies: Arc::new(Proxies::from_environment(|name| std::env::var(name).ok())),
        }
    }

    /// The request as it has to go out on a connection of this connector
    pub(crate) fn prepare(&self, request: Request) -> Request {
        let proxies = self.proxies.as_ref().as_ref();
        match proxies.map(|proxies| proxies.route(request.origin())) {
            Ok(Route::Forward(proxy)) => request.forwarded_by(proxy),
            Ok(Route::Direct | Route::Tunnel(_)) | Err(_) => request,
        }
    }

    /// Opens a connection to `origin`; the machine's `connect_timeout` drops this
    pub(crate) async fn connect(self, origin: Origin) -> Result<Connection<Through<TcpSocket>>, IoFailure> {
        let proxies = self.proxies.as_ref().as_ref().map_err(|error| unusable(*error))?;
        let socket = match proxies.route(&origin) {
            Route::Direct => Through::direct(self.tcp(origin.host(), origin.port()).await?),
            Route::Forward(proxy) => Through::direct(self.proxy(proxy).await?),
            Route::Tunnel(proxy) => {
                let tunnel = Tunnel::new(proxy, &origin)?;
                Tunnelling::new(self.proxy(proxy).await?, tunnel).await?
            }
        };
        if origin.is_tls() {
            Handshake::new(socket, self.trust.tls()?, origin.host())?.await
        } else {
            Ok(Connection::plain(socket))
        }
    }

    async fn proxy(&self, proxy: &Proxy) -> Result<TcpSocket, IoFailure> {
        self.tcp(proxy.host(), proxy.port()).await.map_err(|failure| IoFailure {
            stage: Stage::Proxy,
            message: format!("{proxy} cannot be reached: {}", failure.message),
            ..failure
        })
    }

    /// Connects to the first address of `host` that answers
    async fn tcp(&self, host: &str, port: u16) -> Result<TcpSocket, IoFailure> {
        let addresses = match host.parse::<IpAddr>() {
            Ok(address) => vec![SocketAddr::new(address, port)],
            Err(_) => self.resolver.resolve(host, port).await.map_err(|error| {
                let failure = io_failure(Stage::Resolve, &error);
                IoFailure { message: format!("{host}: {}", failure.message), ..failure }
            })?,
        };
        if addresses.is_empty() {
            let message = format!("{host}: the name has no address");
            return Err(IoFailure { stage: Stage::Resolve, kind: FailureKind::NotFound, message });
        }
        self.race(addresses).await.map(TcpSocket::new)
    }

    /// Connects to the first of `addresses` that answers; the others are dropped then
    async fn race(&self, addresses: Vec<SocketAddr>) -> Result<TcpStream, IoFailure> {
        type Attempt = Pin<Box<dyn Future<Output = io::Result<TcpStream>> + Send>>;
        let mut race = HappyEyeballs::new(addresses);
        let mut attempts: Vec<(SocketAddr, Attempt)> = Vec::new();
        loop {
            let due = match race.next(self.clock.now()) {
                Next::Connect(address) => {
                    attempts.push((address, Box::pin(TcpStream::connect(address))));
                    continue;
                }
                Next::Failed(failure) => return Err(failure),
                Next::Wait(due) => due,
            };
            let first = poll_fn(|cx| {
                let ended = attempts.iter_mut().enumerate().find_map(|(at, (_, attempt))| {
                    match attempt.as_mut().poll(cx) {
                        Poll::Ready(connected) => Some((at, connected)),
                        Poll::Pending => None,
                    }
                });
                ended.map_or(Poll::Pending, Poll::Ready)
            });
            let ended = match due {
                Some(at) => timeout_at(self.clock.to_tokio(at), first).await.ok(),
                None => Some(first.await),
            };
            let Some((at, connected)) = ended else { continue };
            let (address, _) = attempts.swap_remove(at);
            match connected.and_then(no_delay) {
                Ok(stream) => return Ok(stream),
                Err(error) => race.failed(address, io_failure(Stage::Connect, &error)),
            }
        }
    }
}

fn unusable(error: ProxiesError) -> IoFailure {
    let kind = FailureKind::Proxy(ProxyRefusal::Unusable);
    IoFailure { stage: Stage::Proxy, kind, message: error.to_string() }
}

/// Requests are written in as few pieces as can be, so waiting to join them only costs time
fn no_delay(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_nodelay(true)?;
    Ok(stream)
}
