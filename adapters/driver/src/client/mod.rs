//! The client: configuration, trust, and the two ways to make a call.
//!
//! | file | what is in it |
//! |---|---|
//! | `network` | [`Network`]: what a client needs of an async runtime |
//! | `calls` | [`Calls`](calls::Calls): a call of a client, as the driver's loop wants it |
//! | `budget` | what the calls of a client have for their retries together |
//! | `connect` | name look-up, TCP, proxies and TLS |
//! | `pool` | connections between calls, and those who wait for one |
//! | `janitor` | who closes connections that nobody uses |
//! | `time` | a runtime's clock and timers, as the machines tell the time |
//! | `resolve` | [`Resolve`]: from a host's name to its addresses |

mod budget;
mod calls;
mod connect;
mod janitor;
mod network;
mod pool;
mod resolve;
mod time;

use std::fmt;
use std::hash::{BuildHasher, RandomState};
#[cfg(unix)]
use std::path::Path;
use std::sync::{Arc, OnceLock};

use steadfast::call::{Call, Env, Observer, Origin, Request};
use steadfast::config::{ConfigError, EffectiveConfig, Overrides, RequestConfig};
use steadfast::connect::{Proxies, TcpSettings};
use steadfast::machine::{FailureKind, IoFailure, Stage};
use steadfast::outcome::Outcome;
use steadfast::pool::{Settings as PoolSettings, Statistics as PoolStatistics};
use steadfast::retry::RetryBudgetSettings;
use steadfast::time::Instant;
use steadfast::trace::Recorder;
use steadfast_tls::TlsConfig;

use crate::calling::CallStream;
use crate::driver::{Opening, Release};
use budget::Budget;
use connect::Connector;
use pool::Connections;

pub use calls::Calls;
pub use network::{Connecting, Network, Timer, Turn};
pub use pool::Leased;
pub use resolve::{MAX_LOOK_UPS, Resolve, Resolving, look_up};
pub use time::Timekeeper;
pub(crate) use time::{Alarm, Clock};

/// Makes calls
///
/// Cheap to clone, and all clones are one client: they share its connections, which stay open between
/// calls. A call may be made on any thread within the runtime.
#[derive(Clone)]
pub struct Client<N: Network> {
    /// What its calls want otherwise than what is in force; each of them was checked
    overrides: Overrides,
    connector: Connector<N>,
    connections: Connections<N>,
    budget: Option<Budget>,
    recorders: Option<Recorders>,
    observers: Vec<Observers>,
}

/// What records the calls of a client
type Recorders = Arc<dyn Fn(&Request) -> Option<Recorder> + Send + Sync>;

/// What observes the calls of a client
type Observers = Arc<dyn Fn(&Request) -> Option<Box<dyn Observer>> + Send + Sync>;

/// Whom TLS trusts; the platform's certificates are loaded when they are first needed
#[derive(Default)]
pub(crate) struct Trust(OnceLock<Result<TlsConfig, String>>);

impl<N: Network> Client<N> {
    /// A client that trusts whom the platform trusts, and whose calls go by what is in force
    ///
    /// It takes its proxies from the environment as it is now, see [`Proxies::from_environment`]:
    /// where they are set, nothing else leads out. A variable that cannot be used fails every call
    /// as `Proxy`, and is named; [`Client::with_proxies`] puts other proxies, or none, in their place.
    pub fn new() -> Self {
        let connector = Connector::new();
        let connections = Connections::new(connector.clock, PoolSettings::default());
        Self {
            overrides: Overrides::new(),
            connector,
            connections,
            budget: None,
            recorders: None,
            observers: Vec::new(),
        }
    }

    /// The same client with these overrides for each of its calls, merged over those it had
    ///
    /// As if every request carried them under its own: they go before a scope and the process default
    /// (rule CFG-2). A whole configuration is `&config.into()`.
    ///
    /// Errors: an override out of its range; the text names the field and the value.
    pub fn with_config(mut self, overrides: &Overrides) -> Result<Self, ConfigError> {
        RequestConfig::default().with(overrides)?;
        self.overrides = self.overrides.merge(overrides);
        Ok(self)
    }

    /// The same client with another trust: its own roots, or a client certificate
    pub fn with_tls(mut self, tls: TlsConfig) -> Self {
        self.connector.trust = Arc::new(Trust(OnceLock::from(Ok(tls))));
        self.renewed()
    }

    /// The same client with these proxies, whatever the environment says
    ///
    /// All that happens on the way through one is within `connect_timeout`, and fails as `Proxy`.
    pub fn with_proxies(mut self, proxies: Proxies) -> Self {
        self.connector.proxies = Arc::new(Ok(proxies));
        self.renewed()
    }

    /// The same client with another resolver than the system's; proxies' names are its business too
    pub fn with_resolver(mut self, resolver: impl Resolve) -> Self {
        self.connector.resolver = Arc::new(resolver);
        self.renewed()
    }

    /// The same client with these settings of its TCP connections
    pub fn with_tcp(mut self, settings: TcpSettings) -> Self {
        self.connector.tcp = settings;
        self.renewed()
    }

    /// The same client, all of whose connections lead to the Unix socket at `path`
    ///
    /// Whatever the host in a request's URL: that is told in `Host`, and by `https` it is what the
    /// certificate must name. No name is looked up, and no proxy is asked. For a model server on this
    /// machine `http://localhost/v1/…` will do. Connections are pooled as those of TCP are.
    #[cfg(unix)]
    pub fn with_unix_socket(mut self, path: impl AsRef<Path>) -> Self {
        self.connector.unix_socket = Some(path.as_ref().into());
        self.renewed()
    }

    /// The same client, whose calls have a budget for their retries together (rule RTY-9)
    ///
    /// Each call pays in, each retry takes out, and a call that finds it used up fails with what the server
    /// said last, noted as `retry_budget_used_up`. Clones share it. Without one only `max_attempts` and
    /// `total_deadline` hold back retries. A connection that was stale is replaced without asking where nothing
    /// was written to it; otherwise that is a retry like any other (rule RTY-6).
    pub fn with_retry_budget(mut self, settings: RetryBudgetSettings) -> Self {
        self.budget = Some(Budget::new(settings));
        self
    }

    /// The same client with a pool of its own, under these settings
    ///
    /// Without them a connection is kept open for a minute after a call, and there is no cap on their
    /// number. With a cap, a call that has to wait for a connection does so under `connect_timeout`.
    pub fn with_pool(mut self, settings: PoolSettings) -> Self {
        self.connections = Connections::new(self.connector.clock, settings);
        self
    }

    /// The same client, which records those of its calls for which `recorders` gives a recorder
    ///
    /// See [`steadfast::trace`] for what is recorded.
    pub fn with_recorders(
        mut self,
        recorders: impl Fn(&Request) -> Option<Recorder> + Send + Sync + 'static,
    ) -> Self {
        self.recorders = Some(Arc::new(recorders));
        self
    }

    /// The same client, which also shows each of its calls to the observer that `observers` gives for it
    ///
    /// An observer is told every step of its call as it happens, see [`Observer`]. What was given here
    /// before stays: a call may have several.
    pub fn with_observers(
        mut self,
        observers: impl Fn(&Request) -> Option<Box<dyn Observer>> + Send + Sync + 'static,
    ) -> Self {
        self.observers.push(Arc::new(observers));
        self
    }

    /// Closes the connections that no call uses, of this client and its clones
    pub fn close_idle(&self) {
        self.connections.close_idle();
    }

    /// What is in the pool of this client and its clones, and what it has done
    pub fn pool_statistics(&self) -> PoolStatistics {
        self.connections.statistics()
    }

    /// What is in force here and now for a call of this client whose request says nothing else
    pub fn config(&self) -> EffectiveConfig {
        RequestConfig::current()
            .with(&self.overrides)
            .expect("overrides were checked when the client got them")
    }

    /// Makes a call and waits for its end
    ///
    /// The call begins now, with what is in force here, wherever and whenever the future is polled
    /// (rule CFG-5). The body of a raw request is held, up to `max_body_bytes`, and is in the outcome: see
    /// [`Request::held`].
    ///
    /// # Panics
    ///
    /// Outside of the runtime, when the returned future is polled.
    pub fn send(&self, request: Request) -> impl Future<Output = Outcome> + Send + use<N> {
        self.stream(request.held()).outcome()
    }

    /// Makes a call whose pieces are taken as they come
    ///
    /// The call begins now, with what is in force here (rule CFG-5). Works for a unary request too:
    /// there are no pieces then, only the outcome.
    pub fn stream(&self, request: Request) -> CallStream<Calls<N>> {
        self.stream_under(request, &Overrides::new())
    }

    /// As [`Client::stream`], and records the call
    ///
    /// [`CallStream::recording`] tells how that goes. Whatever becomes of it, the call goes on.
    pub fn record(&self, request: Request, recorder: Recorder) -> CallStream<Calls<N>> {
        self.begin(request, Some(recorder), &Overrides::new(), self.clock().now())
    }

    /// As [`Client::stream`], with `overrides` that go before all others, and were checked
    pub(crate) fn stream_under(&self, request: Request, overrides: &Overrides) -> CallStream<Calls<N>> {
        let recorder = self.recorder_of(&request);
        self.begin(request, recorder, overrides, self.clock().now())
    }

    /// As [`Client::stream`], for a call that began at `began`, when its request was not whole yet
    #[cfg(feature = "tower")]
    pub(crate) fn stream_since(&self, request: Request, began: Instant) -> CallStream<Calls<N>> {
        let recorder = self.recorder_of(&request);
        self.begin(request, recorder, &Overrides::new(), began)
    }

    /// What is in force here and now for this request
    pub(crate) fn config_of(&self, request: &Request) -> RequestConfig {
        let config = self.config().with(request.overrides());
        config.expect("overrides were checked when the request was built").config()
    }

    /// A connection to `origin` for an exchange that is no call of this client: one that is idle where
    /// `may_be_reused`, else a new one
    ///
    /// It is of this client's pool. Whoever drives the exchange bounds the wait for it; [`Client::release`]
    /// gives it back, and dropping it closes it.
    pub fn opening(&self, origin: &Origin, may_be_reused: bool) -> Opening<Leased<N>> {
        let open = self.connector.clone().connect(origin.clone());
        Box::pin(self.connections.clone().get(origin.clone(), may_be_reused, open))
    }

    /// What takes back a connection from [`Client::opening`] whose exchange is over
    pub fn release(&self) -> Release<Leased<N>> {
        let connections = self.connections.clone();
        Box::new(move |connection| connections.put(connection, None, None))
    }

    /// Time as this client's calls tell it, for an exchange that is no call
    pub fn timekeeper(&self) -> Timekeeper<N> {
        Timekeeper::new(self.connector.clock)
    }

    /// The clock by which its calls go
    pub(crate) fn clock(&self) -> Clock<N> {
        self.connector.clock
    }

    fn recorder_of(&self, request: &Request) -> Option<Recorder> {
        self.recorders.as_ref().and_then(|recorders| recorders(request))
    }

    fn begin(
        &self,
        request: Request,
        recorder: Option<Recorder>,
        overrides: &Overrides,
        began: Instant,
    ) -> CallStream<Calls<N>> {
        let config = self.config_of(&request).with(overrides).expect("overrides were checked");
        let clock = self.connector.clock;
        let env = Env { seed: RandomState::new().hash_one(0), unix_at_origin: clock.unix_at_origin() };
        let origin = request.origin().clone();
        let observers: Vec<_> = self.observers.iter().filter_map(|observer| observer(&request)).collect();
        let mut call = Call::new(self.connector.prepare(request), config, env, began);
        if let Some(budget) = &self.budget {
            budget.with(|budget| budget.deposit(clock.now()));
            call.ask_before_retries().expect("the call has not begun");
        }
        for observer in observers {
            call.observe_boxed(observer).expect("the call has not begun");
        }
        if let Some(recorder) = recorder {
            call.record(recorder).expect("the call has not begun");
        }
        CallStream::new(
            call,
            Calls::new(self.connector.clone(), self.connections.clone(), self.budget.clone(), origin),
        )
    }

    /// With connections of its own: those that were opened in another way are not to be used in this
    fn renewed(mut self) -> Self {
        self.connections = self.connections.renewed();
        self
    }
}

impl<N: Network> Default for Client<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<N: Network> fmt::Debug for Client<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("config", &self.config().config()).finish_non_exhaustive()
    }
}

impl Trust {
    /// The TLS configuration
    ///
    /// Errors: the platform's certificates could not be loaded.
    pub(crate) fn tls(&self) -> Result<&TlsConfig, IoFailure> {
        let loaded = self.0.get_or_init(|| TlsConfig::standard().map_err(|error| error.to_string()));
        loaded.as_ref().map_err(|message| IoFailure {
            stage: Stage::Tls,
            kind: FailureKind::Tls,
            message: message.clone(),
        })
    }
}
