//! Tasks and threads of smol that are in the scope around whoever spawns them.

use std::future::Future;

use smol::{Executor, Task};
use steadfast::config::Scope;

/// Spawns a task that is in the scope around the caller (rule CFG-3); else as [`smol::spawn`]
///
/// ```
/// use steadfast_smol::{Overrides, RequestConfig, spawn};
///
/// let task = async { RequestConfig::current().config().max_attempts().get() };
/// smol::block_on(RequestConfig::scope(&Overrides::new().max_attempts(1), async {
///     assert_eq!(spawn(task).await, 1);
/// })?);
/// # Ok::<(), steadfast_smol::ConfigError>(())
/// ```
pub fn spawn<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> Task<T> {
    smol::spawn(Scope::current().wrap(future))
}

/// Spawns a task on an executor of your own, in the scope around the caller
///
/// A `LocalExecutor` is given `Scope::current().wrap(future)` itself.
pub fn spawn_on<'a, T: Send + 'a>(
    executor: &Executor<'a>,
    future: impl Future<Output = T> + Send + 'a,
) -> Task<T> {
    executor.spawn(Scope::current().wrap(future))
}

/// Runs `f` on a thread for blocking work, in the scope around the caller; else as [`smol::unblock`]
pub fn unblock<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> Task<T> {
    let scope = Scope::current();
    smol::unblock(move || scope.in_scope(f))
}
