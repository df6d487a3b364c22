//! Overrides in force for a while: for a future, a closure, or what they spawn.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use super::{ConfigError, EffectiveConfig, Overrides, RequestConfig, Source};

thread_local! {
    /// The scope around what runs on this thread now
    static CURRENT: Cell<Scope> = const { Cell::new(Scope::NONE) };
}

/// A scope to enter: a configuration that is in force inside, whatever happens outside (rule CFG-3)
///
/// Cheap to clone, and at home on no thread: this is how a scope gets into a task or thread that
/// is spawned inside it. The adapters' `spawn` functions do nothing else.
///
/// ```
/// use std::thread;
/// use steadfast::config::{Overrides, RequestConfig, Scope};
///
/// let attempts = || RequestConfig::current().config().max_attempts().get();
/// RequestConfig::sync_scope(&Overrides::new().max_attempts(1), || {
///     let scope = Scope::current();
///     assert_eq!(thread::spawn(move || scope.in_scope(attempts)).join().unwrap(), 1);
///     assert_eq!(thread::spawn(attempts).join().unwrap(), 3);
/// })?;
/// # Ok::<(), steadfast::config::ConfigError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Scope(Option<Arc<EffectiveConfig>>);

pin_project! {
    /// A future with a scope in force whenever it is polled, and when it is dropped
    ///
    /// Made by [`RequestConfig::scope`] and [`Scope::wrap`]; works on any executor.
    #[derive(Debug)]
    #[must_use = "a future does nothing unless it is polled"]
    pub struct Scoped<F> {
        scope: Scope,
        // None once it is dropped, which is the wrapper's last deed.
        #[pin]
        future: Option<F>,
    }

    impl<F> PinnedDrop for Scoped<F> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            let _inside = this.scope.enter();
            this.future.set(None);
        }
    }
}

impl RequestConfig {
    /// Runs a future with `overrides` merged over what is in force here and now
    ///
    /// Merged at once, not when the future is first polled; a later change of the process default
    /// is not seen inside. Scopes nest: an inner one merges over the outer. Other tasks on the same
    /// thread see nothing of it, and a task that is spawned inside sees it where it is spawned by the
    /// adapter's `spawn`, or as [`Scope`] shows.
    ///
    /// Errors: [`ConfigError::OutOfRange`], as in [`RequestConfig::with`]; the future is then dropped.
    pub fn scope<F: Future>(overrides: &Overrides, future: F) -> Result<Scoped<F>, ConfigError> {
        Ok(Scope::new(overrides)?.wrap(future))
    }

    /// Calls `f` with `overrides` merged over what is in force; for code that blocks
    ///
    /// A future that `f` returns is not in the scope: that is what [`RequestConfig::scope`] is for.
    ///
    /// Errors: [`ConfigError::OutOfRange`], as in [`RequestConfig::with`]; `f` is then not called.
    pub fn sync_scope<T>(overrides: &Overrides, f: impl FnOnce() -> T) -> Result<T, ConfigError> {
        Ok(Scope::new(overrides)?.in_scope(f))
    }
}

impl Scope {
    const NONE: Self = Self(None);

    /// A scope with `overrides` merged over what is in force here and now
    ///
    /// Errors: [`ConfigError::OutOfRange`], as in [`RequestConfig::with`].
    pub fn new(overrides: &Overrides) -> Result<Self, ConfigError> {
        let merged = RequestConfig::current().merge(overrides, Source::Scope)?;
        Ok(Self(Some(Arc::new(merged))))
    }

    /// The scope around the caller
    ///
    /// Where there is none, entering it means to be in none: the process default holds inside, as it
    /// then is.
    pub fn current() -> Self {
        let current = replace(Self::NONE);
        drop(replace(current.clone()));
        current
    }

    /// Calls `f` inside; what was in force before is so again afterwards, also when `f` panics
    pub fn in_scope<T>(&self, f: impl FnOnce() -> T) -> T {
        let _inside = self.enter();
        f()
    }

    /// A future that is inside whenever it is polled, and when it is dropped
    pub fn wrap<F: Future>(self, future: F) -> Scoped<F> {
        Scoped { scope: self, future: Some(future) }
    }

    pub(super) fn effective(&self) -> Option<EffectiveConfig> {
        self.0.as_deref().copied()
    }

    fn enter(&self) -> Inside {
        Inside { before: replace(self.clone()) }
    }
}

impl<F: Future> Future for Scoped<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let _inside = this.scope.enter();
        this.future.as_pin_mut().expect("it is dropped with its wrapper").poll(cx)
    }
}

/// Being in a scope, until it is dropped
struct Inside {
    before: Scope,
}

impl Drop for Inside {
    fn drop(&mut self) {
        replace(std::mem::take(&mut self.before));
    }
}

/// Makes `scope` the one around what runs on this thread; returns the one before
fn replace(scope: Scope) -> Scope {
    // At its end a thread's values may go before its last futures do; there is no scope then.
    CURRENT.try_with(|current| current.replace(scope)).unwrap_or_default()
}
