//! Threads that are in the scope around whoever spawns them.

use std::thread::{self, JoinHandle};

use steadfast::config::Scope;

/// Spawns a thread that is in the scope around the caller (rule CFG-3); else as [`std::thread::spawn`]
///
/// A thread of [`std::thread::scope`] or of a pool calls `scope.in_scope(f)`, with a [`Scope::current`]
/// that was taken outside of it.
///
/// ```
/// use steadfast_blocking::{Overrides, RequestConfig, spawn};
///
/// let attempts = || RequestConfig::current().config().max_attempts().get();
/// RequestConfig::sync_scope(&Overrides::new().max_attempts(1), || {
///     assert_eq!(spawn(attempts).join().unwrap(), 1);
/// })?;
/// # Ok::<(), steadfast_blocking::ConfigError>(())
/// ```
///
/// # Panics
///
/// Where the operating system has no thread for it, as [`std::thread::spawn`].
pub fn spawn<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    let scope = Scope::current();
    thread::spawn(move || scope.in_scope(f))
}
