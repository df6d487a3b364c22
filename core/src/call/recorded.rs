//! Recording a call: its request as a trace describes it, and the blank one that stands for it in a replay.

use bytes::Bytes;
use http::Method;
use serde::{Deserialize, Serialize};

use super::credentials::Credentials;
use super::header_source::HeaderMaker;
use super::request::{Request, RequestError, Retries, Shape};
use super::{Call, Env, Inner};
use crate::body::Body;
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
        let redactor = Redactor::new(self.request.credentials.placeholders());
        let request = Described::of(&self.request, &redactor);
        let (config, began, asks) = (self.config, self.began, self.asks_before_retries);
        recorder.begin(|bodies| Header::new(bodies, request, config, env, began, asks), redactor);
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
    /// Zero where that is not known before the body ends
    body_bytes: u64,
    /// None for a body in one buffer
    #[serde(default, skip_serializing_if = "Option::is_none")]
    streamed: Option<Streamed>,
    /// Where header fields are made for each attempt, the names of those they may replace, in order, and the
    /// lengths of their values
    #[serde(default, skip_serializing_if = "Option::is_none")]
    head_fields: Option<Vec<(String, usize)>>,
    /// A placeholder for each credential
    credentials: Vec<String>,
}

/// A body that is read as it goes out
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Streamed {
    of_known_length: bool,
    once: bool,
}

/// A description that no request can have
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DescriptionError {
    /// The method is none
    #[error("the method of the request is none")]
    Method,
    /// The fields of the head are not as long as the head, or one is none
    #[error("the head of the request does not have the fields that it should have")]
    Head,
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

    pub(crate) fn of(request: &Request, redactor: &Redactor) -> Self {
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
            url: format!(
                "{origin}{}{}",
                redactor.text(target.path()),
                redactor.text(&names.unwrap_or_default())
            ),
            shape: request.shape,
            dialect: request.dialect.map(|dialect| dialect.name().to_owned()),
            retries: request.retries,
            forwarded: request.forwarded,
            head_bytes: request.head.len() as u64,
            body_bytes: request.body.len().unwrap_or(0),
            head_fields: request.header_maker.is_some().then(|| fields_of(&request.head)),
            streamed: request.body.as_bytes().is_none().then(|| Streamed {
                of_known_length: request.body.len().is_some(),
                once: !request.body.is_replayable(),
            }),
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
        // What stands for a body that is read as it goes out is made as it goes out.
        let in_buffer = if self.streamed.is_none() { self.body_bytes } else { 0 };
        let (bytes, most) = (self.head_bytes.saturating_add(in_buffer), Self::MAX_REQUEST_BYTES);
        if bytes > most {
            return Err(DescriptionError::TooLarge { bytes, most });
        }
        let blanks = |len: u64| Bytes::from(vec![0; usize::try_from(len).expect("checked above")]);
        let mut request = Request::builder(method, &self.url).retries(self.retries).build()?;
        request.shape = self.shape;
        request.dialect = dialect.transpose()?;
        request.forwarded = self.forwarded;
        request.head = match &self.head_fields {
            None => blanks(self.head_bytes),
            Some(fields) => {
                request.header_maker = Some(HeaderMaker::blank());
                blank_head(self.head_bytes, fields).ok_or(DescriptionError::Head)?
            }
        };
        request.body = match &self.streamed {
            None => blanks(self.body_bytes).into(),
            Some(Streamed { of_known_length, once }) => {
                Body::blank(of_known_length.then_some(self.body_bytes), *once)
            }
        };
        request.credentials = Credentials::of_placeholders(&self.credentials);
        Ok(request)
    }
}

/// The names of a head's fields, and the lengths of their values
fn fields_of(head: &[u8]) -> Vec<(String, usize)> {
    let lines = head.split(|byte| *byte == b'\n').skip(1);
    let field = |line: &[u8]| {
        let colon = memchr::memchr(b':', line)?;
        Some((String::from_utf8_lossy(&line[..colon]).into_owned(), line.len() - colon - ": \r".len()))
    };
    lines.filter_map(field).collect()
}

/// A head of so many bytes with such fields; none where there is no such head
fn blank_head(bytes: u64, fields: &[(String, usize)]) -> Option<Bytes> {
    let lengths =
        fields.iter().map(|(name, value)| name.len().checked_add(*value)?.checked_add(": \r\n".len()));
    let of_fields = lengths.sum::<Option<usize>>()?;
    let line = usize::try_from(bytes).ok()?.checked_sub(of_fields)?.checked_sub("\r\n\r\n".len())?;
    let mut head = vec![b'x'; line];
    for (name, value) in fields {
        http::HeaderName::try_from(name).ok()?;
        head.extend_from_slice(b"\r\n");
        head.extend_from_slice(name.as_bytes());
        head.extend_from_slice(b": ");
        head.resize(head.len() + value, b'x');
    }
    head.extend_from_slice(b"\r\n\r\n");
    Some(head.into())
}
