//! What all connections share: routes, the client towards the providers, admission.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use steadfast::http1::IncomingRequest;
use steadfast::relay::{Admission, Code, Exchanged, Routes, Served, Tap};
use steadfast_tls::TlsServerConfig;
use steadfast_tokio::Client;
use tokio::sync::watch;

use crate::config::twice;
use crate::pages::{OwnPages, Watch};
use crate::record::Recorder;

/// A relay: its routes, and its client towards the providers
///
/// Cheap to clone, and all clones are one relay.
#[derive(Clone)]
pub struct Relay(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    /// The routes in force, and whether the relay is about to stop
    pub(crate) force: watch::Sender<Force>,
    pub(crate) client: Client,
    admission: Mutex<Admission>,
    /// How many connections of apps are open; [`Relay::drained`] waits for none
    pub(crate) apps: watch::Sender<usize>,
    /// How many may be open; [`usize::MAX`] for no cap
    max_apps: AtomicUsize,
    /// TLS for the connections of apps that come from now on
    tls: RwLock<Option<TlsServerConfig>>,
    pub(crate) pages: Option<Arc<dyn Pages>>,
    pub(crate) observer: Option<Arc<dyn Observer>>,
    /// What the relay's own pages show
    pub(crate) watch: Option<Arc<Watch>>,
}

/// What holds for every connection
#[derive(Clone)]
pub(crate) struct Force {
    pub(crate) routes: Arc<Routes>,
    pub(crate) is_draining: bool,
}

/// What the relay answers itself
pub trait Pages: Send + Sync + 'static {
    /// The answer to a request for one of the relay's own paths
    fn serve(&self, relay: &Relay, request: IncomingRequest) -> Pin<Box<dyn Future<Output = Served> + Send>>;
}

/// Sees what goes through, exchange by exchange
pub trait Observer: Send + Sync + 'static {
    /// An exchange begins: what sees it
    fn begin(&self, relay: &Relay) -> Box<dyn Seen>;
}

/// Sees one exchange
pub trait Seen: Send {
    /// A piece goes by; it must not block
    fn tap(&mut self, tap: Tap<'_>);

    /// It is over
    fn over(&mut self, exchanged: Exchanged);
}

impl Relay {
    /// A relay with these routes, which reaches the providers by this client, with at most so many of its
    /// connections in use at once
    pub fn new(routes: Routes, client: Client, max_connections: Option<usize>) -> Self {
        Self(Arc::new(Inner {
            force: watch::Sender::new(Force { routes: Arc::new(routes), is_draining: false }),
            client,
            admission: Mutex::new(Admission::new(max_connections)),
            apps: watch::Sender::new(0),
            max_apps: AtomicUsize::new(twice(max_connections).unwrap_or(usize::MAX)),
            tls: RwLock::new(None),
            pages: None,
            observer: None,
            watch: None,
        }))
    }

    /// The same relay, which answers its own paths by these pages
    ///
    /// # Panics
    ///
    /// Where the relay has been cloned.
    pub fn with_pages(self, pages: Arc<dyn Pages>) -> Self {
        self.change(|inner| inner.pages = Some(pages))
    }

    /// The same relay, which answers its own paths by what it shows of its calls, and of this recorder: see
    /// [`pages`](crate::pages)
    ///
    /// # Panics
    ///
    /// Where the relay has been cloned.
    pub fn with_own_pages(self, recorder: Option<Recorder>) -> Self {
        let (pages, watch) = OwnPages::new(recorder);
        self.change(|inner| {
            inner.pages = Some(Arc::new(pages));
            inner.watch = Some(watch);
        })
    }

    /// The same relay, seen by this observer
    ///
    /// # Panics
    ///
    /// Where the relay has been cloned.
    pub fn with_observer(self, observer: Arc<dyn Observer>) -> Self {
        self.change(|inner| inner.observer = Some(observer))
    }

    fn change(mut self, change: impl FnOnce(&mut Inner)) -> Self {
        change(Arc::get_mut(&mut self.0).expect("a relay is set up before it is cloned"));
        self
    }

    /// The routes in force
    pub fn routes(&self) -> Arc<Routes> {
        self.0.force.borrow().routes.clone()
    }

    /// Puts other routes and another cap in force, for every request that begins from now on
    pub fn reload(&self, routes: Routes, max_connections: Option<usize>) {
        self.0.force.send_modify(|force| force.routes = Arc::new(routes));
        self.admission(|admission| admission.limit(max_connections));
    }

    /// So many connections of apps may be open at once, from now on; until then twice as many as there may be
    /// to providers, and `None` for as many as come
    ///
    /// Those that are open stay open. Idle ones and those of slow readers count like any other.
    pub fn limit_apps(&self, most: Option<usize>) {
        self.0.max_apps.store(most.unwrap_or(usize::MAX), Ordering::Relaxed);
    }

    /// Connections of apps that come from now on speak TLS, with this certificate; until then none does
    ///
    /// Those that are open stay as they are.
    pub fn secure_apps(&self, tls: TlsServerConfig) {
        *self.0.tls.write().unwrap_or_else(PoisonError::into_inner) = Some(tls);
    }

    pub(crate) fn app_tls(&self) -> Option<TlsServerConfig> {
        self.0.tls.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn max_app_connections(&self) -> usize {
        self.0.max_apps.load(Ordering::Relaxed)
    }

    /// From now on new calls are refused, and connections are closed once their call is over
    pub fn drain(&self) {
        self.admission(Admission::drain);
        self.0.force.send_modify(|force| force.is_draining = true);
    }

    /// Whether it is about to stop
    pub fn is_draining(&self) -> bool {
        self.0.force.borrow().is_draining
    }

    /// Ready once no connection of an app is left
    pub async fn drained(&self) {
        // The sender lives as long as this relay, so this ends by its condition alone.
        _ = self.0.apps.subscribe().wait_for(|open| *open == 0).await;
    }

    /// Connections of apps that are open, and connections to providers that are in use
    pub fn open(&self) -> (usize, usize) {
        (*self.0.apps.borrow(), self.admission(|admission| admission.open()))
    }

    /// How many connections to providers may be in use at once; `None` for as many as there are calls
    pub fn max_connections(&self) -> Option<usize> {
        self.admission(|admission| admission.most())
    }

    pub(crate) fn admit(&self) -> Result<Admitted, Code> {
        self.admission(Admission::admit).map(|()| Admitted(self.clone()))
    }

    fn admission<T>(&self, act: impl FnOnce(&mut Admission) -> T) -> T {
        act(&mut self.0.admission.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The right to one connection to a provider, until it is dropped
pub(crate) struct Admitted(Relay);

impl Drop for Admitted {
    fn drop(&mut self) {
        self.0.admission(Admission::left);
    }
}
