//! Header fields that are made for each attempt.

use std::sync::Arc;
use std::task::Waker;

use http::HeaderMap;

use super::event::AttemptId;
use super::request::Request;

/// What makes header fields for one attempt, without blocking
///
/// The async adapters have one for a future.
pub trait HeaderSource: Send {
    /// The fields; none where they are not there yet: the last `waker` that was given is woken once they are
    ///
    /// Errors: in words, which end the call. They must not quote a credential.
    fn make(&mut self, waker: &Waker) -> Option<Result<HeaderMap, String>>;
}

/// Fields that are there at once
pub(super) struct Made(pub(super) Option<Result<HeaderMap, String>>);

impl HeaderSource for Made {
    fn make(&mut self, _: &Waker) -> Option<Result<HeaderMap, String>> {
        self.0.take()
    }
}

type Make = dyn Fn(&Request, AttemptId) -> Box<dyn HeaderSource> + Send + Sync;

/// Gives what makes the fields of an attempt
#[derive(Clone)]
pub(crate) struct HeaderMaker(Arc<Make>);

impl HeaderMaker {
    pub(super) fn new<S: HeaderSource + 'static>(
        make: impl Fn(&Request, AttemptId) -> S + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(move |request, attempt| Box::new(make(request, attempt))))
    }

    /// One that makes none: it stands for another in a replay
    pub(super) fn blank() -> Self {
        Self::new(|_, _| Made(None))
    }

    pub(crate) fn start(&self, request: &Request, attempt: AttemptId) -> Box<dyn HeaderSource> {
        (self.0)(request, attempt)
    }
}
