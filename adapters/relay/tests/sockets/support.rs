//! A relay, a provider that does what a test says, and an app that sees every byte.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use steadfast_relay::{Limits, Observer, Relay, Route, Routes, Server, Shape};
use steadfast_tokio::Client;
use steadfast_tokio::steadfast::connect::Proxies;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// Far longer than anything takes
const CAP: Duration = Duration::from_secs(60);

/// Within the cap, or the test fails
pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    timeout(CAP, future).await.unwrap_or_else(|_| panic!("{what} within {CAP:?}"))
}

/// A provider, and a relay before it
pub(crate) struct Rig {
    pub(crate) provider: TcpListener,
    pub(crate) relay: Relay,
    pub(crate) address: SocketAddr,
    server: tokio::task::JoinHandle<()>,
}

impl Rig {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}, None).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut Limits), most: Option<usize>) -> Self {
        let provider = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let upstream = format!("http://{}", provider.local_addr().unwrap());
        Self::towards(provider, &upstream, change, most).await
    }

    /// Seen by this observer
    pub(crate) async fn observed(observer: Arc<dyn Observer>) -> Self {
        let provider = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let upstream = format!("http://{}", provider.local_addr().unwrap());
        Self::build(provider, &upstream, |_| {}, None, Some(observer)).await
    }

    pub(crate) async fn towards(
        provider: TcpListener,
        upstream: &str,
        change: impl FnOnce(&mut Limits),
        most: Option<usize>,
    ) -> Self {
        Self::build(provider, upstream, change, most, None).await
    }

    async fn build(
        provider: TcpListener,
        upstream: &str,
        change: impl FnOnce(&mut Limits),
        most: Option<usize>,
        observer: Option<Arc<dyn Observer>>,
    ) -> Self {
        let mut route = Route::new("openai", upstream, Shape::OpenAi).unwrap();
        change(&mut route.limits);
        let routes = Routes::new(vec![route], &[]).unwrap();
        let client = Client::new().with_proxies(Proxies::none());
        let relay = Relay::new(routes, client, most);
        let relay = match observer {
            Some(observer) => relay.with_observer(observer),
            None => relay,
        };
        Self::before(provider, relay)
    }

    /// This relay, before this provider
    pub(crate) fn before(provider: TcpListener, relay: Relay) -> Self {
        let server = Server::bind("127.0.0.1:0".parse().unwrap(), false, relay.clone()).unwrap();
        let address = server.address().unwrap();
        let server = tokio::spawn(async move { server.run().await });
        Self { provider, relay, address, server }
    }

    /// A connection of an app
    pub(crate) async fn app(&self) -> Peer {
        Peer(TcpStream::connect(self.address).await.unwrap())
    }

    /// The next connection to the provider
    pub(crate) async fn accept(&self) -> Peer {
        Peer(soon("the relay connects", self.provider.accept()).await.unwrap().0)
    }

    /// An app that sent a POST, and the provider that has read it
    pub(crate) async fn call(&self) -> (Peer, Peer) {
        let mut app = self.app().await;
        app.send(post("{}")).await;
        let mut provider = self.accept().await;
        assert!(provider.until("\r\n\r\n{}").await.starts_with("POST /v1/chat HTTP/1.1\r\n"));
        (app, provider)
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// A POST with that body
pub(crate) fn post(body: &str) -> String {
    let length = body.len();
    format!("POST /openai/v1/chat HTTP/1.1\r\nHost: relay\r\nContent-Length: {length}\r\n\r\n{body}")
}

/// One end of a connection
pub(crate) struct Peer(pub(crate) TcpStream);

impl Peer {
    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        soon("it takes what is sent", self.0.write_all(bytes.as_ref())).await.unwrap();
    }

    /// What comes, up to and with `end`
    pub(crate) async fn until(&mut self, end: &str) -> String {
        let mut got = Vec::new();
        while !got.ends_with(end.as_bytes()) {
            let mut byte = [0];
            let read = soon(end, self.0.read(&mut byte)).await.unwrap();
            assert_ne!(read, 0, "it ended after {:?}", String::from_utf8_lossy(&got));
            got.push(byte[0]);
        }
        String::from_utf8(got).unwrap()
    }

    /// So many bytes that come
    pub(crate) async fn exactly(&mut self, length: usize) -> Vec<u8> {
        let mut got = vec![0; length];
        soon("it comes", self.0.read_exact(&mut got)).await.unwrap();
        got
    }

    /// One answer by its length, or what comes to the end of the connection
    pub(crate) async fn rest_or_answer(&mut self) -> (String, bool) {
        let mut got = Vec::new();
        loop {
            let text = String::from_utf8_lossy(&got).into_owned();
            if let Some((head, body)) = text.split_once("\r\n\r\n")
                && let Some(length) = head.to_ascii_lowercase().split("content-length: ").nth(1)
                && length.lines().next().is_some_and(|length| length.parse() == Ok(body.len()))
            {
                return (text, false);
            }
            let mut more = [0; 4096];
            match soon("it answers", self.0.read(&mut more)).await {
                Ok(0) => return (text, false),
                Ok(read) => got.extend_from_slice(&more[..read]),
                Err(_) => return (text, true),
            }
        }
    }

    /// Ends it as a machine that goes down does: what is unsent is lost, and the other end sees a reset
    pub(crate) fn reset(self) {
        self.0.set_zero_linger().unwrap();
    }

    /// What comes, to the end of the connection, and whether that was a reset
    pub(crate) async fn rest(&mut self) -> (String, bool) {
        let mut got = Vec::new();
        let ended = soon("it ends", self.0.read_to_end(&mut got)).await;
        (String::from_utf8_lossy(&got).into_owned(), ended.is_err())
    }
}
