//! The client: configuration, trust, and the two ways to make a call.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Instant as Clock, SystemTime, UNIX_EPOCH};

use steadfast::call::{Call, Env, Observer, Request};
use steadfast::config::{ConfigError, EffectiveConfig, Overrides, RequestConfig};
use steadfast::connect::{Proxies, ProxiesError, Route, TcpSettings};
use steadfast::machine::{FailureKind, IoFailure, Stage};
use steadfast::outcome::Outcome;
use steadfast::retry::{RetryBudget, RetryBudgetSettings};
use steadfast::time::Instant;
use steadfast::trace::Recorder;
use steadfast_tls::TlsConfig;

use crate::driver::Driver;
use crate::look_up::Resolver;
use crate::stream::Stream;

/// Makes calls, each on the thread that asks for it
///
/// Cheap to clone, and all clones are one client: they share the threads that look up names.
#[derive(Clone)]
pub struct Client {
    /// What its calls want otherwise than what is in force; each of them was checked
    overrides: Overrides,
    shared: Arc<Shared>,
    recorders: Option<Recorders>,
    observers: Vec<Observers>,
}

/// What records the calls of a client
type Recorders = Arc<dyn Fn(&Request) -> Option<Recorder> + Send + Sync>;

/// What observes the calls of a client
type Observers = Arc<dyn Fn(&Request) -> Option<Box<dyn Observer>> + Send + Sync>;

/// What the calls of a client have in common
#[derive(Clone)]
pub(crate) struct Shared {
    /// The origin of every instant
    clock: Clock,
    /// Loaded when it is first needed
    tls: Arc<OnceLock<Result<TlsConfig, String>>>,
    pub(crate) proxies: Result<Proxies, ProxiesError>,
    pub(crate) resolver: Arc<Resolver>,
    pub(crate) tcp: TcpSettings,
    /// What the calls have for their retries together
    pub(crate) budget: Option<Arc<Mutex<RetryBudget>>>,
    /// Where every connection leads, if that was said
    pub(crate) unix_socket: Option<Arc<Path>>,
}

impl Client {
    /// A client that trusts whom the platform trusts, and whose calls go by what is in force
    ///
    /// It takes its proxies from the environment as it is now, see [`Proxies::from_environment`]:
    /// where they are set, nothing else leads out. A variable that cannot be used fails every call
    /// as `Proxy`, and is named; [`Client::with_proxies`] puts other proxies, or none, in their place.
    pub fn new() -> Self {
        let shared = Shared {
            clock: Clock::now(),
            tls: Arc::default(),
            proxies: Proxies::from_environment(|name| std::env::var(name).ok()),
            resolver: Arc::default(),
            tcp: TcpSettings::default(),
            budget: None,
            unix_socket: None,
        };
        Self { overrides: Overrides::new(), shared: Arc::new(shared), recorders: None, observers: Vec::new() }
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
        Arc::make_mut(&mut self.shared).tls = Arc::new(OnceLock::from(Ok(tls)));
        self
    }

    /// The same client with these proxies, whatever the environment says
    ///
    /// All that happens on the way through one is within `connect_timeout`, and fails as `Proxy`.
    pub fn with_proxies(mut self, proxies: Proxies) -> Self {
        Arc::make_mut(&mut self.shared).proxies = Ok(proxies);
        self
    }

    /// The same client, whose calls have a budget for their retries together (rule RTY-9)
    ///
    /// Each call pays in, each retry takes out, and a call that finds it used up fails with what the server
    /// said last, noted as `retry_budget_used_up`. Clones share it. Without one only `max_attempts` and
    /// `total_deadline` hold back retries. A connection that was stale is replaced without asking where nothing
    /// was written to it; otherwise that is a retry like any other (rule RTY-6).
    pub fn with_retry_budget(mut self, settings: RetryBudgetSettings) -> Self {
        let budget = Arc::new(Mutex::new(RetryBudget::new(settings)));
        Arc::make_mut(&mut self.shared).budget = Some(budget);
        self
    }

    /// The same client with another way to look up names than the system's
    #[cfg(test)]
    pub(crate) fn with_resolver(mut self, resolver: Arc<Resolver>) -> Self {
        Arc::make_mut(&mut self.shared).resolver = resolver;
        self
    }

    /// The same client with these settings of its TCP connections
    pub fn with_tcp(mut self, settings: TcpSettings) -> Self {
        Arc::make_mut(&mut self.shared).tcp = settings;
        self
    }

    /// The same client, all of whose connections lead to the Unix socket at `path`
    ///
    /// Whatever the host in a request's URL: that is told in `Host`, and by `https` it is what the
    /// certificate must name. No name is looked up, and no proxy is asked. For a model server on this
    /// machine `http://localhost/v1/…` will do.
    #[cfg(unix)]
    pub fn with_unix_socket(mut self, path: impl AsRef<Path>) -> Self {
        Arc::make_mut(&mut self.shared).unix_socket = Some(path.as_ref().into());
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

    /// What is in force here and now for a call of this client whose request says nothing else
    pub fn config(&self) -> EffectiveConfig {
        RequestConfig::current()
            .with(&self.overrides)
            .expect("overrides were checked when the client got them")
    }

    /// Makes a call and waits for its end
    ///
    /// The body of a raw request is held, up to `max_body_bytes`, and is in the outcome: see
    /// [`Request::held`].
    pub fn send(&self, request: Request) -> Outcome {
        self.stream(request.held()).outcome()
    }

    /// Makes a call whose pieces are taken as they come
    ///
    /// The call begins now, with what is in force here (rule CFG-5). Works for a unary request too:
    /// there are no pieces then, only the outcome.
    pub fn stream(&self, request: Request) -> Stream {
        let recorder = self.recorders.as_ref().and_then(|recorders| recorders(&request));
        self.begin(request, recorder)
    }

    /// As [`Client::stream`], and records the call
    ///
    /// [`Stream::recording`] tells how that goes. Whatever becomes of it, the call goes on.
    pub fn record(&self, request: Request, recorder: Recorder) -> Stream {
        self.begin(request, Some(recorder))
    }

    fn begin(&self, request: Request, recorder: Option<Recorder>) -> Stream {
        let config = self.config().with(request.overrides());
        let config = config.expect("overrides were checked when the request was built").config();
        let now = self.shared.now();
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let env = Env {
            seed: RandomState::new().hash_one(0),
            unix_at_origin: since_epoch.saturating_sub(now.since_origin()),
        };
        let observers: Vec<_> = self.observers.iter().filter_map(|observer| observer(&request)).collect();
        let request = match self.shared.proxies.as_ref().map(|proxies| proxies.route(request.origin())) {
            Ok(Route::Forward(proxy)) if self.shared.unix_socket.is_none() => request.forwarded_by(proxy),
            Ok(Route::Direct | Route::Forward(_) | Route::Tunnel(_)) | Err(_) => request,
        };
        let mut call = Call::new(request, config, env, now);
        if self.shared.with_budget(|budget| budget.deposit(now)).is_some() {
            call.ask_before_retries().expect("the call has not begun");
        }
        for observer in observers {
            call.observe_boxed(observer).expect("the call has not begun");
        }
        if let Some(recorder) = recorder {
            call.record(recorder).expect("the call has not begun");
        }
        Stream::new(Driver::new(call, Arc::clone(&self.shared)))
    }
}

impl Default for Client {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("config", &self.config().config()).finish_non_exhaustive()
    }
}

impl Shared {
    /// The time, since the client was made
    pub(crate) fn now(&self) -> Instant {
        Instant::ORIGIN + self.clock.elapsed()
    }

    /// Acts on the retry budget, where there is one
    pub(crate) fn with_budget<T>(&self, act: impl FnOnce(&mut RetryBudget) -> T) -> Option<T> {
        self.budget.as_ref().map(|budget| act(&mut budget.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Whom TLS trusts
    ///
    /// Errors: the platform's certificates could not be loaded.
    pub(crate) fn tls(&self) -> Result<&TlsConfig, IoFailure> {
        let loaded = self.tls.get_or_init(|| TlsConfig::standard().map_err(|error| error.to_string()));
        loaded.as_ref().map_err(|message| IoFailure {
            stage: Stage::Tls,
            kind: FailureKind::Tls,
            message: message.clone(),
        })
    }
}
