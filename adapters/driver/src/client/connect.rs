//! Name look-up, TCP, proxies and TLS.

use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::task::Poll;

use steadfast::call::{Origin, Request};
use steadfast::connect::{
    HappyEyeballs, Next, Proxies, ProxiesError, Proxy, ProxyScheme, Route, TcpSettings, Tunnel,
};
use steadfast::machine::{FailureKind, IoFailure, ProxyRefusal, Stage, io_failure};

use crate::client::Trust;
use crate::client::network::{Connecting, Network};
use crate::client::resolve::Resolve;
use crate::client::time::{Alarm, Clock};
use crate::connection::Connection;
use crate::handshake::Handshake;
use crate::tunnel::{Through, Tunnelling, Way};

/// What connections are made with
#[derive(Clone)]
pub(crate) struct Connector<N: Network> {
    pub(crate) clock: Clock<N>,
    pub(crate) trust: Arc<Trust>,
    pub(crate) resolver: Arc<dyn Resolve>,
    pub(crate) proxies: Arc<Result<Proxies, ProxiesError>>,
    pub(crate) tcp: TcpSettings,
    /// Where every connection leads, if that was said
    pub(crate) unix_socket: Option<Arc<Path>>,
}

impl<N: Network> Connector<N> {
    /// Trusts whom the platform trusts, asks its resolver, and takes proxies from the environment
    pub(crate) fn new() -> Self {
        Self {
            clock: Clock::start(),
            trust: Arc::default(),
            resolver: N::resolver(),
            proxies: Arc::new(Proxies::from_environment(|name| std::env::var(name).ok())),
            tcp: TcpSettings::default(),
            unix_socket: None,
        }
    }

    /// The request as it has to go out on a connection of this connector
    pub(crate) fn prepare(&self, request: Request) -> Request {
        if self.unix_socket.is_some() {
            return request;
        }
        let proxies = self.proxies.as_ref().as_ref();
        match proxies.map(|proxies| proxies.route(request.origin())) {
            Ok(Route::Forward(proxy)) => request.forwarded_by(proxy),
            Ok(Route::Direct | Route::Tunnel(_)) | Err(_) => request,
        }
    }

    /// Opens a connection to `origin`; the machine's `connect_timeout` drops this
    pub(crate) async fn connect(
        self,
        origin: Origin,
    ) -> Result<Connection<Through<Way<N::Socket>>>, IoFailure> {
        let socket = self.way(&origin).await?;
        if origin.is_tls() {
            Handshake::new(socket, self.trust.tls()?, origin.host())?.await
        } else {
            Ok(Connection::plain(socket))
        }
    }

    /// A socket that leads to `origin`
    async fn way(&self, origin: &Origin) -> Result<Through<Way<N::Socket>>, IoFailure> {
        #[cfg(unix)]
        if let Some(path) = &self.unix_socket {
            return N::connect_unix(path).await.map(|socket| Through::direct(Way::Bare(socket))).map_err(
                |error| {
                    let failure = io_failure(Stage::Connect, &error);
                    IoFailure { message: format!("{}: {}", path.display(), failure.message), ..failure }
                },
            );
        }
        let proxies = self.proxies.as_ref().as_ref().map_err(|error| unusable(*error))?;
        Ok(match proxies.route(origin) {
            Route::Direct => Through::direct(Way::Bare(self.tcp(origin.host(), origin.port()).await?)),
            Route::Forward(proxy) => Through::direct(self.proxy(proxy).await?),
            Route::Tunnel(proxy) => {
                let tunnel = Tunnel::new(proxy, origin)?;
                Tunnelling::new(self.proxy(proxy).await?, tunnel).await?
            }
        })
    }

    async fn proxy(&self, proxy: &Proxy) -> Result<Way<N::Socket>, IoFailure> {
        let unreachable = |failure: IoFailure| IoFailure {
            stage: Stage::Proxy,
            message: format!("{proxy} cannot be reached: {}", failure.message),
            ..failure
        };
        let socket = self.tcp(proxy.host(), proxy.port()).await.map_err(unreachable)?;
        if proxy.scheme() != ProxyScheme::Https {
            return Ok(Way::Bare(socket));
        }
        let tls = self.trust.tls().map_err(unreachable)?;
        let handshake =
            Handshake::new(socket, &tls.without_client_certificate(), proxy.host()).map_err(unreachable)?;
        handshake.await.map(|connection| Way::Secure(Box::new(connection))).map_err(unreachable)
    }

    /// Connects to the first address of `host` that answers
    async fn tcp(&self, host: &str, port: u16) -> Result<N::Socket, IoFailure> {
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
        self.race(addresses).await
    }

    /// Connects to the first of `addresses` that answers; the others are dropped then
    async fn race(&self, addresses: Vec<SocketAddr>) -> Result<N::Socket, IoFailure> {
        let mut race = HappyEyeballs::new(addresses);
        let mut attempts: Vec<(SocketAddr, Connecting<N::Socket>)> = Vec::new();
        let mut alarm = Alarm::<N>::new();
        loop {
            let due = match race.next(self.clock.now()) {
                Next::Connect(address) => {
                    attempts.push((address, N::connect(address, self.tcp)));
                    continue;
                }
                Next::Failed(failure) => return Err(failure),
                Next::Wait(due) => due,
            };
            // The first attempt that ends, or none where the next one is due before.
            let ended = poll_fn(|cx| {
                for (at, (_, attempt)) in attempts.iter_mut().enumerate() {
                    if let Poll::Ready(connected) = attempt.as_mut().poll(cx) {
                        return Poll::Ready(Some((at, connected)));
                    }
                }
                match due {
                    Some(due) => alarm.poll_until(self.clock, due, cx).map(|()| None),
                    None => Poll::Pending,
                }
            });
            let Some((at, connected)) = ended.await else { continue };
            let (address, _) = attempts.swap_remove(at);
            match connected {
                Ok(socket) => return Ok(socket),
                Err(error) => race.failed(address, io_failure(Stage::Connect, &error)),
            }
        }
    }
}

fn unusable(error: ProxiesError) -> IoFailure {
    let kind = FailureKind::Proxy(ProxyRefusal::Unusable);
    IoFailure { stage: Stage::Proxy, kind, message: error.to_string() }
}
