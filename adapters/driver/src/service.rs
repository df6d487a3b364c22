//! A client as a tower service: HTTP requests in, HTTP responses out, with the bounds of a call.
//!
//! So whatever speaks HTTP through `tower` gains them without a change of its own code: other people's
//! SDKs, and stacks of layers. A call of it is raw: the answer passes byte for byte, and is not looked at.

use std::fmt::Display;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use http::header::{
    CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, COOKIE, HOST, HeaderName, PROXY_AUTHENTICATE, TRAILER,
    TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, request};
use http_body::{Body, Frame, SizeHint};
use steadfast::call::{Item, Request, RequestError, Retries};
use steadfast::config::{Field, Overrides, RequestConfig};
use steadfast::outcome::{CallError, Completion, ErrorKind, Outcome, Phase, Timeout};
use steadfast::time::Instant;
use steadfast::verb;
use tower_service::Service;

use crate::calling::CallStream;
use crate::client::{Alarm, Calls, Client, Clock, Network};
use crate::driver::MAX_ROUNDS_PER_POLL;

/// A request that came to no response, or a response whose body came to no proper end
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// The request cannot be sent
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The request's own body failed, before anything was sent
    #[error("the body of the request failed: {0}")]
    RequestBody(String),
    /// The request's body did not end in time, and nothing was sent
    #[error("the body of the request did not end: {0}")]
    RequestBodyTimeout(#[source] Timeout),
    /// The request's body is larger than what is held of one, so that it can be sent again
    #[error("the body of the request has more than {limit} bytes; raise `max_body_bytes` to send it")]
    RequestTooLarge {
        /// `max_body_bytes`, as it is in force
        limit: usize,
    },
    /// The call failed: a bound was reached, the connection broke, a peer broke a protocol
    #[error(transparent)]
    Call(#[from] CallError),
}

/// How the call of a response ended, once its body has
///
/// In the extensions of each response. Its clones are one.
#[derive(Clone, Debug, Default)]
pub struct CallOutcome(Arc<OnceLock<Outcome>>);

impl CallOutcome {
    fn end(&self, outcome: Option<Outcome>) {
        if let Some(outcome) = outcome {
            self.0.set(outcome).expect("a call is over once");
        }
    }

    /// The outcome; `None` while the body has not ended
    ///
    /// A body that is dropped before that ends there and then: as
    /// [`Cancelled`](ErrorKind::Cancelled), unless its end had come unread.
    pub fn get(&self) -> Option<&Outcome> {
        self.0.get()
    }
}

/// Sends HTTP requests, each as one call
///
/// | what | how |
/// |---|---|
/// | URI | absolute, `http` or `https` |
/// | body | held whole, for another attempt needs it; no more than `max_body_bytes` |
/// | extensions | [`Overrides`] and [`Retries`] of a request are those of its call |
/// | retries | without [`Retries`], as its method and path say, see [`verb::retries_of`] |
/// | response | with the first bytes of its body; all that comes before is within the call's bounds and retries |
/// | a status that is no success | a response like any other, its body whole, once the retries are over |
/// | body of the response | as the provider sends it; a content coding that nobody asked for is undone |
/// | extensions of the response | [`CallOutcome`] |
///
/// The call begins when it is made, with what is in force then, and its `total_deadline` runs while the
/// body of the request is read. The service is always ready. Dropping the future, or the body, cancels the
/// call, and closes the connection unless the response had ended.
///
/// Errors: [`ServiceError`]; so are those of the body.
impl<N: Network, B> Service<http::Request<B>> for Client<N>
where
    B: Body<Error: Display> + Send + 'static,
    B::Data: Send,
{
    type Response = Response<ResponseBody<N>>;
    type Error = ServiceError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, ServiceError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ServiceError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let client = self.clone();
        let began = self.clock().now();
        let in_force = self.config().config();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let own = parts.extensions.get().copied().unwrap_or_else(Overrides::new);
            let config = in_force.with(&own).map_err(RequestError::from)?;
            let body = whole_in_time(body, &config, client.clock(), began).await?;
            let request = call_of(&parts, body, config)?;
            respond(client.stream_since(request, began), &parts.method).await
        })
    }
}

/// The body of a response, as it comes
pub struct ResponseBody<N: Network> {
    /// What came with the head
    first: Option<Bytes>,
    /// None once the call is over
    ///
    /// Never locked: a body has one reader at a time, and this says so to the compiler.
    stream: Option<Mutex<CallStream<Calls<N>>>>,
    outcome: CallOutcome,
}

impl<N: Network> ResponseBody<N> {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Next> {
        let Some(reading) = &mut self.stream else { return Poll::Ready(Next::Over) };
        let reading = reading.get_mut().unwrap_or_else(PoisonError::into_inner);
        let next = std::task::ready!(next_bytes(reading, cx));
        if let Next::Over = next {
            self.outcome.end(reading.take_ended());
            self.stream = None;
        }
        Poll::Ready(next)
    }
}

/// Its reader has had enough, as one that stops at `[DONE]`
impl<N: Network> Drop for ResponseBody<N> {
    fn drop(&mut self) {
        if let Some(reading) = self.stream.take() {
            self.outcome.end(reading.into_inner().unwrap_or_else(PoisonError::into_inner).leave());
        }
    }
}

impl<N: Network> Body for ResponseBody<N> {
    type Data = Bytes;
    type Error = ServiceError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ServiceError>>> {
        let body = self.get_mut();
        if let Some(bytes) = body.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(bytes))));
        }
        if body.stream.is_none() {
            return Poll::Ready(None);
        }
        match std::task::ready!(body.poll_next(cx)) {
            Next::Bytes(bytes) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
            Next::Over => Poll::Ready(match body.outcome.get().map(|outcome| &outcome.result) {
                Some(Err(error)) => Some(Err(error.clone().into())),
                Some(Ok(_)) | None => None,
            }),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.stream.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        match (&self.first, &self.stream) {
            (first, None) => SizeHint::with_exact(first.as_ref().map_or(0, Bytes::len) as u64),
            (_, Some(_)) => SizeHint::default(),
        }
    }
}

impl<N: Network> Unpin for ResponseBody<N> {}

impl<N: Network> std::fmt::Debug for ResponseBody<N> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResponseBody").field("is_over", &self.is_end_stream()).finish_non_exhaustive()
    }
}

/// What comes next of a raw call
enum Next {
    Bytes(Bytes),
    Over,
}

fn next_bytes<N: Network>(stream: &mut CallStream<Calls<N>>, cx: &mut Context<'_>) -> Poll<Next> {
    loop {
        let taken = stream.poll_with(cx, &mut |item: Item<'_>| match item {
            Item::Bytes(bytes) => Some(Bytes::copy_from_slice(bytes)),
            Item::Delta(_) | Item::Unknown { .. } | Item::Finished(_) => None,
        });
        match std::task::ready!(taken) {
            Some(Some(bytes)) => return Poll::Ready(Next::Bytes(bytes)),
            Some(None) => {}
            None => return Poll::Ready(Next::Over),
        }
    }
}

async fn respond<N: Network>(
    stream: CallStream<Calls<N>>,
    method: &Method,
) -> Result<Response<ResponseBody<N>>, ServiceError> {
    let outcome = CallOutcome::default();
    let mut body = ResponseBody { first: None, stream: Some(Mutex::new(stream)), outcome: outcome.clone() };
    let (status, headers, first) = match poll_fn(|cx| body.poll_next(cx)).await {
        Next::Bytes(bytes) => {
            let stream = body.stream.as_mut().expect("a call with more to come is not over");
            let stream = stream.get_mut().unwrap_or_else(PoisonError::into_inner);
            let (status, headers) = stream.response().expect("a body has a head");
            (status, headers.clone(), Some(bytes))
        }
        Next::Over => {
            let (status, mut headers, whole) =
                ended(outcome.get().expect("a call that is over has an outcome"))?;
            // An error's body may have been cut; that of these is not sent at all (RFC 9110 8.6).
            let is_bodiless = method == Method::HEAD || status == StatusCode::NOT_MODIFIED;
            if !is_bodiless && headers.contains_key(CONTENT_LENGTH) {
                headers.insert(CONTENT_LENGTH, whole.len().into());
            }
            (status, headers, (!whole.is_empty()).then_some(whole))
        }
    };
    body.first = first;
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = passed_on(headers);
    response.extensions_mut().insert(outcome);
    Ok(response)
}

/// The response of a call that is over before any byte of a body was handed out
fn ended(outcome: &Outcome) -> Result<(StatusCode, HeaderMap, Bytes), CallError> {
    match &outcome.result {
        Ok(Completion { status, headers, body, .. }) => Ok((*status, headers.clone(), body.clone())),
        Err(CallError { kind: ErrorKind::Status(error), .. }) => {
            Ok((error.status, error.headers.clone(), error.body.clone()))
        }
        Err(error) => Err(error.clone()),
    }
}

/// Header fields that speak of one connection or of its framing (RFC 9110 7.6.1), which ends here
fn is_hop_by_hop(name: &HeaderName) -> bool {
    [CONNECTION, TRANSFER_ENCODING, TRAILER, UPGRADE, PROXY_AUTHENTICATE].contains(name)
        || ["keep-alive", "proxy-connection"].contains(&name.as_str())
}

/// The header fields of a response whose body is as it was before its codings
fn passed_on(mut headers: HeaderMap) -> HeaderMap {
    if headers.remove(CONTENT_ENCODING).is_some() {
        headers.remove(CONTENT_LENGTH);
    }
    let dropped: Vec<HeaderName> = headers.keys().filter(|name| is_hop_by_hop(name)).cloned().collect();
    for name in dropped {
        headers.remove(name);
    }
    headers
}

fn call_of(parts: &request::Parts, body: Bytes, config: RequestConfig) -> Result<Request, RequestError> {
    let mut request = Request::builder(parts.method.clone(), &parts.uri.to_string());
    for name in parts.headers.keys() {
        if is_hop_by_hop(name) || [HOST, CONTENT_LENGTH].contains(name) {
            continue;
        }
        // Lines of one name are one list (RFC 9110 5.3), and cookies one string (RFC 6265 5.4).
        let separator: &[u8] = if *name == COOKIE { b"; " } else { b", " };
        let lines: Vec<&[u8]> = parts.headers.get_all(name).iter().map(HeaderValue::as_bytes).collect();
        let value = HeaderValue::from_bytes(&lines.join(separator));
        let value = value.map_err(|_| RequestError::HeaderValue { name: name.to_string() })?;
        request = request.header_value(name.clone(), value);
    }
    let retries = parts.extensions.get::<Retries>().copied();
    let retries = retries.unwrap_or_else(|| verb::retries_of(&parts.method, parts.uri.path()));
    request.body(body).config(config).retries(retries).raw().build()
}

/// The whole body of a request, within the call's `total_deadline`
async fn whole_in_time<N: Network, B: Body<Error: Display>>(
    body: B,
    config: &RequestConfig,
    clock: Clock<N>,
    began: Instant,
) -> Result<Bytes, ServiceError> {
    let mut whole = pin!(whole(body, config.max_body_bytes()));
    let mut alarm = Alarm::new();
    poll_fn(|cx| {
        if let Poll::Ready(whole) = whole.as_mut().poll(cx) {
            return Poll::Ready(whole);
        }
        let Some(limit) = config.total_deadline().limit() else { return Poll::Pending };
        while clock.now() < began + limit {
            std::task::ready!(alarm.poll_until(clock, began + limit, cx));
        }
        let elapsed = clock.now().since(began);
        let (phase, setting) = (Phase::Deadline, Field::TotalDeadline.name());
        Poll::Ready(Err(ServiceError::RequestBodyTimeout(Timeout { phase, elapsed, limit, setting })))
    })
    .await
}

/// The whole body of a request
///
/// A body that is always ready to say nothing would keep its task, and the clock from being read: every
/// [`MAX_ROUNDS_PER_POLL`] frames others have their turn.
async fn whole<B: Body<Error: Display>>(body: B, limit: usize) -> Result<Bytes, ServiceError> {
    let mut body = pin!(body);
    let mut held = Vec::new();
    for frames in 1_usize.. {
        if frames % MAX_ROUNDS_PER_POLL == 0 {
            yield_once().await;
        }
        let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await else { break };
        let frame = frame.map_err(|error| ServiceError::RequestBody(error.to_string()))?;
        // Trailers of a request are for nobody.
        let Ok(mut data) = frame.into_data() else { continue };
        if data.remaining() > limit - held.len() {
            return Err(ServiceError::RequestTooLarge { limit });
        }
        while data.has_remaining() {
            let part = data.chunk().len();
            held.extend_from_slice(data.chunk());
            data.advance(part);
        }
    }
    Ok(held.into())
}

/// Ready when it is polled for the second time, which it asks for at once
async fn yield_once() {
    let mut has_yielded = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
