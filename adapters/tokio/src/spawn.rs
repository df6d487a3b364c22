//! Tasks and threads of tokio that are in the scope around whoever spawns them.

use std::future::Future;

use steadfast::config::Scope;
use tokio::task::{self, JoinHandle};

/// Spawns a task that is in the scope around the caller (rule CFG-3); else as [`tokio::spawn`]
///
/// Whatever else spawns, a `JoinSet`, a `LocalSet` or a runtime's handle, is given
/// `Scope::current().wrap(future)`:
///
/// ```
/// use steadfast_tokio::{Overrides, RequestConfig, Scope, spawn};
/// use tokio::task::JoinSet;
///
/// async fn attempts() -> u32 {
///     RequestConfig::current().config().max_attempts().get()
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// RequestConfig::scope(&Overrides::new().max_attempts(1), async {
///     assert_eq!(spawn(attempts()).await?, 1);
///     let mut set = JoinSet::new();
///     set.spawn(Scope::current().wrap(attempts()));
///     assert_eq!(set.join_all().await, [1]);
///     Ok(())
/// })?
/// .await
/// # }
/// ```
///
/// # Panics
///
/// Outside of a runtime, as [`tokio::spawn`].
#[track_caller]
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    task::spawn(Scope::current().wrap(future))
}

/// Runs `f` on a thread for blocking work, in the scope around the caller; else as [`tokio::task::spawn_blocking`]
///
/// # Panics
///
/// Outside of a runtime, as [`tokio::task::spawn_blocking`].
#[track_caller]
pub fn spawn_blocking<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    let scope = Scope::current();
    task::spawn_blocking(move || scope.in_scope(f))
}
