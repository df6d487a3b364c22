//! What a call asks for: where, what, and how its answer comes.

use std::fmt;

use bytes::Bytes;
use http::header::{self, HeaderName};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method};
use serde::{Deserialize, Serialize};

use super::credentials::{self, Credentials};
use super::event::AttemptId;
use super::header_source::{HeaderMaker, HeaderSource, Made};
use super::origin::{Origin, parse_url};
use crate::body::{Body, Boundary, Form, FormError};
use crate::config::{ConfigError, Overrides, RequestConfig};
use crate::connect::Proxy;
use crate::dialect::Dialect;
use crate::http1::{self, RequestHead};
use crate::percent;

/// A request that can be sent, checked when it was built
///
/// ```
/// use serde_json::json;
/// use steadfast::call::Request;
/// use steadfast::dialect::Dialect;
///
/// let request = Request::post("https://api.openai.com/v1/chat/completions")
///     .bearer("sk-example")
///     .json(&json!({"model": "gpt-5", "stream": true, "messages": [{"role": "user", "content": "Hi"}]}))
///     .dialect(Dialect::OpenAiChat)
///     .stream()
///     .build()?;
/// assert_eq!(request.origin().port(), 443);
/// assert!(!format!("{request:?}").contains("sk-example"));
/// # Ok::<(), steadfast::call::RequestError>(())
/// ```
#[derive(Clone)]
pub struct Request {
    pub(super) method: Method,
    pub(super) origin: Origin,
    pub(super) target: PathAndQuery,
    pub(super) credentials: Credentials,
    /// What goes out before the body: the header fields and those that frame the message
    pub(super) head: Bytes,
    pub(super) body: Body,
    pub(super) shape: Shape,
    pub(super) dialect: Option<Dialect>,
    pub(super) retries: Retries,
    /// A proxy gets it and forwards it
    pub(super) forwarded: bool,
    /// What makes header fields for each attempt
    pub(super) header_maker: Option<HeaderMaker>,
    /// None where there are none, which is the usual case
    overrides: Option<Box<Overrides>>,
}

/// How the answer to a request comes
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// In one piece
    #[default]
    Unary,
    /// As a stream of events
    Stream,
    /// As bytes that are handed out as they come, whatever they are: a file, a recording, somebody
    /// else's stream
    Raw,
}

/// Whether a call may make more than one attempt (rules RTY-1, RTY-5 and RTY-8)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Retries {
    /// As the rules say, up to `max_attempts`
    #[default]
    Allowed,
    /// Only while no byte of the request was sent, so that nothing can be billed twice
    UnlessBilled,
    /// Never: `max_attempts` has no effect
    ///
    /// A connection that an earlier call left, and that dies before one byte is written to it, is
    /// replaced all the same (rule RTY-6): that is the same attempt, and nobody has seen it.
    Never,
}

impl Request {
    /// A POST to an absolute `http` or `https` URL
    ///
    /// It is retried as asking a model is (rule RTY-5), whatever is behind the URL: for what makes or changes
    /// something on the server's side, say [`RequestBuilder::retries`], or take it from a
    /// [`Verb`](crate::verb::Verb) by a [`Service`](crate::verb::Service), which knows how often each may be
    /// tried.
    pub fn post(url: &str) -> RequestBuilder {
        RequestBuilder::new(Method::POST, url)
    }

    /// A request with any method to an absolute `http` or `https` URL
    pub fn builder(method: Method, url: &str) -> RequestBuilder {
        RequestBuilder::new(method, url)
    }

    /// Where it goes
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The method
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// Path and query; the query may hold a credential
    pub fn target(&self) -> &PathAndQuery {
        &self.target
    }

    /// What makes header fields for each attempt, where something does
    pub(crate) fn header_maker(&self) -> Option<&HeaderMaker> {
        self.header_maker.as_ref()
    }

    /// What it sends after its head
    pub fn body(&self) -> &Body {
        &self.body
    }

    /// How its answer comes
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// What the answer's events mean; `None` for an answer that is only bytes
    pub fn dialect(&self) -> Option<Dialect> {
        self.dialect
    }

    /// What this call wants otherwise than the configuration in force
    pub fn overrides(&self) -> &Overrides {
        self.overrides.as_deref().unwrap_or(&Overrides::NONE)
    }

    /// The same request as an HTTP proxy has to get it that forwards it to an `http` origin
    ///
    /// Its target is the whole URL (RFC 9112 3.2.2), and it carries the proxy's credentials unless
    /// `Proxy-Authorization` is set. An answer 407 to it is the proxy's. See
    /// [`Proxies::route`](crate::connect::Proxies::route).
    #[must_use]
    pub fn forwarded_by(mut self, proxy: &Proxy) -> Self {
        const FIELD: &[u8] = b"\r\nproxy-authorization: ";
        let line_end = memchr::memchr(b'\r', &self.head).expect("a head has a request line");
        let fields = &self.head[line_end..self.head.len() - 2];
        let Self { method, origin, target, .. } = &self;
        let mut head = format!("{method} http://{}{target} HTTP/1.1", origin.authority()).into_bytes();
        head.extend_from_slice(fields);
        if let Some(value) = proxy.authorization()
            && memchr::memmem::find(fields, FIELD).is_none()
        {
            head.extend_from_slice(&FIELD[2..]);
            head.extend_from_slice(value.as_bytes());
            head.extend_from_slice(b"\r\n");
            self.credentials.add(&value);
        }
        head.extend_from_slice(b"\r\n");
        self.head = head.into();
        self.forwarded = true;
        self
    }
}

impl Request {
    /// The same request, whose answer is held until it is whole where it was to be raw
    ///
    /// For who wants nothing but the outcome: the body is in it, up to `max_body_bytes`, and the bounds and
    /// retries are those of any answer in one piece. Other shapes stay as they are.
    #[must_use]
    pub fn held(mut self) -> Self {
        if self.shape == Shape::Raw {
            self.shape = Shape::Unary;
        }
        self
    }

    /// Gives a form its boundary, once it is known which call sends it
    pub(super) fn set_boundary(&mut self, seed: u64) {
        let boundary = Boundary::of(seed);
        if self.body.set_boundary(boundary) {
            self.head = boundary.set_in(&self.head);
        }
    }
}

/// Credentials, in header fields and in the query, are left out
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("origin", &format_args!("{}", self.origin))
            .field("path", &self.target.path())
            .field("body", &self.body)
            .field("shape", &self.shape)
            .field("dialect", &self.dialect)
            .field("retries", &self.retries)
            .finish_non_exhaustive()
    }
}

/// Builds a [`Request`]; the first mistake is kept and told by [`RequestBuilder::build`]
///
/// Its `Debug` form shows the names of header fields, and none of their values.
#[must_use]
#[derive(Clone)]
pub struct RequestBuilder {
    request: Result<Request, RequestError>,
    headers: HeaderMap,
}

impl RequestBuilder {
    fn new(method: Method, url: &str) -> Self {
        let request = parse_url(url).map(|(origin, target)| Request {
            method,
            origin,
            target,
            credentials: Credentials::default(),
            head: Bytes::new(),
            body: Body::default(),
            shape: Shape::default(),
            dialect: None,
            retries: Retries::default(),
            forwarded: false,
            header_maker: None,
            overrides: None,
        });
        Self { request, headers: HeaderMap::new() }
    }

    /// One that was a mistake from the start
    pub(crate) fn broken(error: RequestError) -> Self {
        Self { request: Err(error), headers: HeaderMap::new() }
    }

    fn change(
        mut self,
        change: impl FnOnce(&mut Request, &mut HeaderMap) -> Result<(), RequestError>,
    ) -> Self {
        if let Ok(request) = &mut self.request
            && let Err(error) = change(request, &mut self.headers)
        {
            self.request = Err(error);
        }
        self
    }

    /// A header field, replacing one of the same name
    ///
    /// White space around the value is trimmed, as key files often end in a line break; a line
    /// break or NUL inside it is an error, told without the value.
    pub fn header(self, name: &str, value: &str) -> Self {
        self.change(|_, headers| {
            let name = HeaderName::try_from(name).map_err(|_| RequestError::HeaderName)?;
            let value = HeaderValue::try_from(value.trim())
                .map_err(|_| RequestError::HeaderValue { name: name.to_string() })?;
            insert(headers, name, value);
            Ok(())
        })
    }

    /// As [`RequestBuilder::header`], of a value that need not be text
    ///
    /// It goes out byte for byte.
    pub fn header_value(self, name: HeaderName, value: HeaderValue) -> Self {
        self.change(|_, headers| {
            insert(headers, name, value);
            Ok(())
        })
    }

    /// `Authorization: Bearer` with this key
    pub fn bearer(self, key: &str) -> Self {
        let key = key.trim();
        if key.is_empty() {
            return self.key(header::AUTHORIZATION.as_str(), key);
        }
        self.header(header::AUTHORIZATION.as_str(), &format!("Bearer {key}"))
    }

    /// A header field that carries a key, which is not empty
    pub(crate) fn key(self, name: &str, key: &str) -> Self {
        if key.trim().is_empty() {
            return self.change(|_, _| Err(RequestError::HeaderValue { name: name.to_owned() }));
        }
        self.header(name, key)
    }

    /// One more parameter of the query, percent-encoded
    pub fn query(self, name: &str, value: &str) -> Self {
        self.change(|request, _| {
            let mut target = request.target.to_string();
            target.push(if target.contains('?') { '&' } else { '?' });
            percent::encode(name, &mut target);
            target.push('=');
            percent::encode(value, &mut target);
            request.target = target.try_into().map_err(|_| RequestError::Url("it is too long"))?;
            Ok(())
        })
    }

    /// Header fields that are made for each attempt: a fresh token, a signature over a date
    ///
    /// `make` is called once the attempt has its connection, on the thread that drives the call, and must
    /// not wait; what takes time is a [`HeaderSource`]. Its fields are added, and take the place of those of
    /// the same name. What it fails with ends the call as
    /// [`Consumer`](crate::outcome::ErrorKind::Consumer). No trace holds a value of these fields.
    ///
    /// ```
    /// use steadfast::call::Request;
    /// use steadfast::http::{HeaderMap, HeaderValue, header};
    ///
    /// # fn sign(method: &str, path: &str) -> Result<HeaderValue, std::io::Error> { Ok(HeaderValue::from_static("x")) }
    /// let request = Request::post("https://bedrock.example/model/m/invoke")
    ///     .attempt_headers(|request, _attempt| {
    ///         let signature = sign(request.method().as_str(), request.target().path())?;
    ///         Ok::<_, std::io::Error>(HeaderMap::from_iter([(header::AUTHORIZATION, signature)]))
    ///     })
    ///     .build()?;
    /// # Ok::<(), steadfast::call::RequestError>(())
    /// ```
    pub fn attempt_headers<E: fmt::Display>(
        self,
        make: impl Fn(&Request, AttemptId) -> Result<HeaderMap, E> + Send + Sync + 'static,
    ) -> Self {
        self.attempt_header_source(move |request, attempt| {
            Made(Some(make(request, attempt).map_err(|error| error.to_string())))
        })
    }

    /// As [`RequestBuilder::attempt_headers`], from what takes its time over them: a token that is fetched
    pub fn attempt_header_source<S: HeaderSource + 'static>(
        self,
        make: impl Fn(&Request, AttemptId) -> S + Send + Sync + 'static,
    ) -> Self {
        self.change(|request, _| {
            request.header_maker = Some(HeaderMaker::new(make));
            Ok(())
        })
    }

    /// One idempotency key for the call, the same on each attempt (rule RTY-7)
    pub fn idempotency_key(self, key: &str) -> Self {
        self.header("idempotency-key", key)
    }

    /// A body: bytes, or a [`Body`] that is read as it goes out
    pub fn body(self, body: impl Into<Body>) -> Self {
        self.change(|request, _| {
            request.body = body.into();
            Ok(())
        })
    }

    /// A body of JSON, and `content-type: application/json`
    pub fn json(self, body: &impl Serialize) -> Self {
        self.change(|request, headers| {
            let body = serde_json::to_vec(body).map_err(|error| RequestError::Body(error.to_string()))?;
            request.body = body.into();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            Ok(())
        })
    }

    /// A body of several parts, and its `content-type`
    pub fn form(self, form: Form) -> Self {
        self.change(|request, headers| {
            headers.insert(header::CONTENT_TYPE, form.content_type());
            request.body = form.into_body().map_err(|FormError| RequestError::Part)?;
            Ok(())
        })
    }

    /// What the answer means
    pub fn dialect(self, dialect: Dialect) -> Self {
        self.change(|request, _| {
            request.dialect = Some(dialect);
            Ok(())
        })
    }

    /// What the answer means, where it is this; one that says otherwise is refused
    pub(crate) fn only_dialect(self, dialect: Dialect) -> Self {
        self.change(|request, _| match request.dialect {
            Some(endpoint) if endpoint != dialect => {
                Err(RequestError::OtherDialect { endpoint: endpoint.name(), conversation: dialect.name() })
            }
            Some(_) | None => {
                request.dialect = Some(dialect);
                Ok(())
            }
        })
    }

    /// The answer comes as a stream; the body must ask for that as well, in its provider's way
    pub fn stream(self) -> Self {
        self.change(|request, _| {
            request.shape = Shape::Stream;
            Ok(())
        })
    }

    /// The answer's body is handed out as it comes, and nothing is made of it
    ///
    /// For what is too large to hold or is to be read by somebody else: a file, a video, the stream of
    /// another SDK. The bounds are those of a stream, `max_body_bytes` is none of them, the first bytes
    /// close the gate for retries, and a dialect that a verb brings is left aside. A content coding that
    /// nobody asked for is undone. An answer that is no success is read as for any call. A client's `send`,
    /// which hands out nothing, holds the body instead, see [`Request::held`].
    pub fn raw(self) -> Self {
        self.change(|request, _| {
            request.shape = Shape::Raw;
            Ok(())
        })
    }

    /// Whether more than one attempt may be made
    pub fn retries(self, retries: Retries) -> Self {
        self.change(|request, _| {
            request.retries = retries;
            Ok(())
        })
    }

    /// The whole configuration of this call: nothing else that is in force matters (rule CFG-2)
    pub fn config(self, config: RequestConfig) -> Self {
        self.overrides(config.into())
    }

    /// What this call wants otherwise than the configuration in force (rule CFG-2)
    ///
    /// Given again, or after [`RequestBuilder::config`], the later ones merge over the earlier.
    pub fn overrides(self, overrides: Overrides) -> Self {
        self.change(|request, _| {
            RequestConfig::default().with(&overrides)?;
            let merged = request.overrides().merge(&overrides);
            request.overrides = (merged != Overrides::NONE).then(|| Box::new(merged));
            Ok(())
        })
    }

    /// The request
    ///
    /// Errors: the first mistake that was made.
    pub fn build(self) -> Result<Request, RequestError> {
        let mut request = self.request?;
        if request.shape == Shape::Stream && request.dialect.is_none() {
            return Err(RequestError::StreamWithoutDialect);
        }
        if request.shape == Shape::Raw {
            request.dialect = None;
        }
        let head = RequestHead {
            method: &request.method,
            target: request.target.as_str(),
            host: &request.origin.authority(),
            headers: &self.headers,
            body_length: request.body.len(),
        };
        request.head = head.encode()?;
        request.credentials = Credentials::of(&self.headers, &request.target);
        Ok(request)
    }
}

impl fmt::Debug for RequestBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.keys().map(HeaderName::as_str).collect();
        f.debug_struct("RequestBuilder").field("request", &self.request).field("headers", &names).finish()
    }
}

fn insert(headers: &mut HeaderMap, name: HeaderName, mut value: HeaderValue) {
    value.set_sensitive(credentials::is_credential(&name));
    headers.insert(name, value);
}

/// A request that cannot be sent; no variant quotes a header's value or a query
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The URL cannot be read
    #[error("the URL cannot be read: {0}")]
    Url(&'static str),
    /// A header's name has a character that a name cannot have
    #[error("a header name has a character that a name cannot have")]
    HeaderName,
    /// A header's value is empty, or holds a line break or another control character
    #[error("the value of header `{name}` is empty or holds a control character, such as a line break")]
    HeaderValue {
        /// The header's name
        name: String,
    },
    /// The body cannot be written as JSON
    #[error("the body cannot be written as JSON: {0}")]
    Body(String),
    /// The media type of a part of a form cannot be sent
    #[error("the content type of a part is empty, or not visible ASCII")]
    Part,
    /// A stream was asked for, but not what its events mean
    #[error("a stream needs a dialect: call dialect(…) as well")]
    StreamWithoutDialect,
    /// The endpoint of a conversation speaks another dialect than its messages are in
    #[error(
        "the endpoint answers in {endpoint}, and the conversation is in {conversation}: give it an endpoint \
         of that dialect, or the conversation that endpoint's format"
    )]
    OtherDialect {
        /// The dialect of the endpoint
        endpoint: &'static str,
        /// The dialect of the conversation's messages
        conversation: &'static str,
    },
    /// A verb belongs to another provider's API
    #[error("the verb {verb} is of the API {of}, and the service speaks {service}: use one of its own")]
    OtherApi {
        /// The verb's name
        verb: &'static str,
        /// The API that has it
        of: &'static str,
        /// The API of the service
        service: &'static str,
    },
    /// There are not as many identifiers as the path of a verb has places
    #[error("the path has {places} places for identifiers, and {given} are given")]
    Ids {
        /// Places in the path
        places: usize,
        /// Identifiers given
        given: usize,
    },
    /// An identifier that would make the path another one
    #[error("an identifier in a path is neither empty nor `.` nor `..`")]
    Id,
    /// A header field or the target cannot be sent
    #[error(transparent)]
    Head(#[from] http1::RequestError),
    /// An override is out of its range
    #[error(transparent)]
    Config(#[from] ConfigError),
}

#[cfg(test)]
mod tests;
