//! Header fields that a future makes for each attempt.

use std::fmt::Display;
use std::pin::Pin;
use std::task::{Context, Poll};

use steadfast::body::Waker;
use steadfast::call::HeaderSource;
use steadfast::http::HeaderMap;

/// What a future makes, as the header fields of an attempt
///
/// For [`attempt_header_source`](steadfast::call::RequestBuilder::attempt_header_source). The future is
/// polled by the call, within the bounds of the attempt, and dropped with it.
///
/// ```
/// use steadfast::call::Request;
/// use steadfast::http::{HeaderMap, HeaderValue, header};
/// use steadfast_driver::headers;
///
/// # async fn fresh_token() -> Result<String, std::io::Error> { Ok("x".to_owned()) }
/// let request = Request::post("https://api.example/v1/chat/completions")
///     .attempt_header_source(|_, _| {
///         headers(async {
///             let value = HeaderValue::try_from(format!("Bearer {}", fresh_token().await?));
///             let value = value.map_err(std::io::Error::other)?;
///             Ok::<_, std::io::Error>(HeaderMap::from_iter([(header::AUTHORIZATION, value)]))
///         })
///     })
///     .build()?;
/// # Ok::<(), steadfast::call::RequestError>(())
/// ```
pub fn headers<E: Display>(
    future: impl Future<Output = Result<HeaderMap, E>> + Send + 'static,
) -> impl HeaderSource + 'static {
    Making(Box::pin(future))
}

struct Making<F>(Pin<Box<F>>);

impl<E: Display, F: Future<Output = Result<HeaderMap, E>> + Send> HeaderSource for Making<F> {
    fn make(&mut self, waker: &Waker) -> Option<Result<HeaderMap, String>> {
        match self.0.as_mut().poll(&mut Context::from_waker(waker)) {
            Poll::Ready(made) => Some(made.map_err(|error| error.to_string())),
            Poll::Pending => None,
        }
    }
}
