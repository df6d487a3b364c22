//! Giving a call up from elsewhere.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Waker};

/// Ends a call, or a tool loop, from elsewhere: another task, another thread, a signal handler
///
/// Its clones are one. The call is woken at once, whatever it waits for, closes its connection, tries
/// nothing again, and its outcome is `Cancelled`; or it stays the success that it already was (rule
/// STR-4). Once it is over, nothing happens.
#[derive(Clone, Debug, Default)]
pub struct Canceller(Arc<Asked>);

#[derive(Debug, Default)]
struct Asked {
    is_asked: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Canceller {
    /// Gives the call up
    pub fn cancel(&self) {
        self.0.is_asked.store(true, Ordering::Release);
        let waker = self.0.waker.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Not under the lock: a waker may poll the call at once.
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Whether it was given up
    pub fn is_cancelled(&self) -> bool {
        self.0.is_asked.load(Ordering::Acquire)
    }

    /// Whether it was given up; where it was not, whoever polls is woken when it is
    pub(crate) fn poll(&self, cx: &Context<'_>) -> bool {
        // The waker first: who cancels between the two finds it.
        let mut waker = self.0.waker.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *waker {
            Some(waker) => waker.clone_from(cx.waker()),
            None => *waker = Some(cx.waker().clone()),
        }
        drop(waker);
        self.is_cancelled()
    }
}
