//! steadfast under rig, by its HTTP client trait.

use std::future::Future;

use bytes::Bytes;
use futures_util::StreamExt;
use http_body_util::{BodyExt, BodyStream, Full};
use rig_core::http_client::{
    Error, HttpClientExt, LazyBody, MultipartForm, Request, Response, Result, StreamingResponse,
};
use steadfast_tokio::{Client, ResponseBody, Tokio};
use tower::ServiceExt;

/// What rig's provider configurations take with `connect`
#[derive(Clone, Debug, Default)]
pub struct Steadfast(pub Client);

impl Steadfast {
    /// Sends a request; a status that is no success is an error, as rig wants it
    async fn respond(client: Client, request: Request<Bytes>) -> Result<Response<ResponseBody<Tokio>>> {
        let response = client.oneshot(request.map(Full::new)).await.map_err(Error::instance)?;
        if response.status().is_success() {
            return Ok(response);
        }
        let (parts, body) = response.into_parts();
        let body = body.collect().await.map_err(Error::instance)?.to_bytes();
        let body = String::from_utf8_lossy(&body).into_owned();
        Err(Error::non_success_with_details(parts.status, parts.headers, body))
    }

    async fn whole<U: From<Bytes> + Send + 'static>(
        client: Client,
        request: Request<Bytes>,
    ) -> Result<Response<LazyBody<U>>> {
        let response = Self::respond(client, request).await?;
        Ok(response.map(|body| -> LazyBody<U> {
            Box::pin(async move { Ok(body.collect().await.map_err(Error::instance)?.to_bytes().into()) })
        }))
    }
}

impl HttpClientExt for Steadfast {
    fn send<T, U>(
        &self,
        request: Request<T>,
    ) -> impl Future<Output = Result<Response<LazyBody<U>>>> + Send + 'static
    where
        T: Into<Bytes> + Send,
        U: From<Bytes> + Send + 'static,
    {
        Self::whole(self.0.clone(), request.map(Into::into))
    }

    fn send_multipart<U>(
        &self,
        request: Request<MultipartForm>,
    ) -> impl Future<Output = Result<Response<LazyBody<U>>>> + Send + 'static
    where
        U: From<Bytes> + Send + 'static,
    {
        let client = self.0.clone();
        let (mut parts, form) = request.into_parts();
        let (boundary, body) = form.encode();
        let content_type = format!("multipart/form-data; boundary={boundary}");
        async move {
            parts.headers.insert(http::header::CONTENT_TYPE, content_type.parse()?);
            Self::whole(client, Request::from_parts(parts, body)).await
        }
    }

    async fn send_streaming<T>(&self, request: Request<T>) -> Result<StreamingResponse>
    where
        T: Into<Bytes> + Send,
    {
        let response = Self::respond(self.0.clone(), request.map(Into::into)).await?;
        Ok(response.map(|body| -> rig_core::http_client::BoxedStream {
            let frames = BodyStream::new(body).filter_map(async |frame| match frame {
                Ok(frame) => frame.into_data().ok().map(Ok),
                Err(error) => Some(Err(Error::instance(error))),
            });
            Box::pin(frames)
        }))
    }
}
