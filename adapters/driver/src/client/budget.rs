//! The retry budget of a client, shared by its clones.

use std::sync::{Arc, Mutex, PoisonError};

use steadfast::retry::{RetryBudget, RetryBudgetSettings};

/// A budget that calls on any thread pay into and take from
#[derive(Clone)]
pub(crate) struct Budget(Arc<Mutex<RetryBudget>>);

impl Budget {
    pub(crate) fn new(settings: RetryBudgetSettings) -> Self {
        Self(Arc::new(Mutex::new(RetryBudget::new(settings))))
    }

    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut RetryBudget) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
