//! steadfast under async-openai, by its tower hook.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use async_openai::error::OpenAIError;
use async_openai::middleware::HttpRequestFactory;
use steadfast_tokio::{CallOutcome, Client};
use tower::{Service, ServiceExt};

/// What `async_openai::Client::with_http_service` takes
///
/// Its retry layer is not in the way, as it is where no service is given: the client's own retries hold.
/// `seen` gets the outcome of each response, for async-openai drops the extensions that hold it.
#[derive(Clone)]
pub struct Steadfast<F> {
    /// The client that sends
    pub client: Client,
    /// Called with each response's outcome, which is there once the body has ended
    pub seen: F,
}

impl<F: Fn(CallOutcome) + Clone + Send + 'static> Service<HttpRequestFactory> for Steadfast<F> {
    type Response = reqwest::Response;
    type Error = OpenAIError;
    type Future = Pin<Box<dyn Future<Output = Result<reqwest::Response, OpenAIError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), OpenAIError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, factory: HttpRequestFactory) -> Self::Future {
        let Self { client, seen } = self.clone();
        Box::pin(async move {
            let request = http::Request::<reqwest::Body>::try_from(factory.build().await?)?;
            let response = client.oneshot(request).await.map_err(|error| OpenAIError::Boxed(error.into()))?;
            if let Some(outcome) = response.extensions().get::<CallOutcome>() {
                seen(outcome.clone());
            }
            Ok(response.map(reqwest::Body::wrap).into())
        })
    }
}
