//! Recording a call: its request as a trace describes it, and the blank one that stands for it in a replay.

use bytes::Bytes;
use http::Method;
use serde::{Deserialize, Serialize};

use super::credentials::Credentials;
use super::request::{Request, RequestError, Retries, Shape};
use super::{Call, Env, Inner};
use crate::dialect::Dialect;
use crate::machine::Misuse;
use crate::trace::{Header, Recorder, Recording, Redactor};

impl Call {
    /// Records the call from its start, see [`trace`](crate::trace)
    ///
    /// Whatever becomes of the recording, the call goes on as without it.
    ///
    /// Errors: the call has begun.
    pub fn record(&mut self, mut recorder: Recorder) -> Result<(), Misuse> {
        if !matches!(self.inner, Inner::Idle) {
            return Err(Misuse::OutOfOrder(
                "a call is recorded from its start: record it before Event::Start",
            ));
        }
        let env = Env { seed: self.timeline.seed, unix_at_origin: self.unix_at_origin };
        recorder.begin(
            |bodies| {
                let request = Described::of(&self.request);
                Header::new(bodies, request, self.config, env, self.began, self.asks_before_retries)
            },
            Redactor::new(self.request.credentials.placeholders()),
        );
        self.recorder = Some(Box::new(recorder));
        Ok(())
    }

    /// How the recording of the call goes; `None` where it is not recorded
    pub fn recording(&self) -> Option<&Recording> {
        self.recorder.as_ref().map(|recorder| recorder.state())
    }
}

/// What the call machine has to know of a request, and no byte of what is sent
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Described {
    method: String,
    /// Parameters of the query by their names only
    url: String,
    shape: Shape,
    dialect: Option<String>,
    retries: Retries,
    forwarded: bool,
    head_bytes: u64,
    body_bytes: u64,
    /// A placeholder for each credential
    credentials: Vec<String>,
}

/// A description that no request can have
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DescriptionError {
    /// The method is none
    #[error("the method of the request is none")]
    Method,
    /// The dialect is not known here
    #[error("the dialect `{0}` is not known: the trace may be of a newer version")]
    Dialect(String),
    /// The URL cannot be used
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The request is too large to be stood for
    #[error("a request of {bytes} bytes is more than the {most} that can be replayed")]
    TooLarge {
        /// The length of head and body
        bytes: u64,
        /// The bound
        most: u64,
    },
}

impl Described {
    /// The most bytes of a request that a blank one stands for
    const MAX_REQUEST_BYTES: u64 = 1 << 30;

    pub(crate) fn of(request: &Request) -> Self {
        let Request { method, origin, target, credentials, .. } = request;
        let names = target.query().map(|query| {
            let names = query.split('&').map(|pair| match pair.split_once('=') {
                Some((name, _)) => format!("{name}="),
                None => String::new(),
            });
            format!("?{}", names.collect::<Vec<_>>().join("&"))
        });
        Self {
            method: method.to_string(),
            url: format!("{origin}{}{}", target.path(), names.unwrap_or_default()),
            shape: request.shape,
            dialect: request.dialect.map(|dialect| dialect.name().to_owned()),
            retries: request.retries,
            forwarded: request.forwarded,
            head_bytes: request.head.len() as u64,
            body_bytes: request.body.len() as u64,
            credentials: credentials.placeholders().into_iter().map(|(_, placeholder)| placeholder).collect(),
        }
    }

    /// A request that looks the same to a call: its bytes are blanks, as many as they were
    ///
    /// Errors: there can be no such request.
    pub(crate) fn blank(&self) -> Result<Request, DescriptionError> {
        let method = Method::try_from(self.method.as_str()).map_err(|_| DescriptionError::Method)?;
        let dialect = self
            .dialect
            .as_deref()
            .map(|name| Dialect::from_name(name).ok_or_else(|| DescriptionError::Dialect(name.to_owned())));
        let (bytes, most) = (self.head_bytes.saturating_add(self.body_bytes), Self::MAX_REQUEST_BYTES);
        if bytes > most {
            return Err(DescriptionError::TooLarge { bytes, most });
        }
        let blanks = |len: u64| Bytes::from(vec![0; usize::try_from(len).expect("checked above")]);
        let mut request = Request::builder(method, &self.url).retries(self.retries).build()?;
        request.shape = self.shape;
        request.dialect = dialect.transpose()?;
        request.forwarded = self.forwarded;
        request.head = blanks(self.head_bytes);
        request.body = blanks(self.body_bytes);
        request.credentials = Credentials::of_placeholders(&self.credentials);
        Ok(request)
    }
}
