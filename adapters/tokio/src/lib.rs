//! LLM calls that end, on tokio.
//!
//! Every wait of a call is bounded, every failure is typed, and every completed turn is kept and
//! paid for once. The rules are those of [`steadfast`]; this crate moves the bytes.
//!
//! ```no_run
//! use serde_json::json;
//! use steadfast_tokio::{Client, Dialect, Overrides, Request};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let request = Request::post("https://api.openai.com/v1/chat/completions")
//!     .bearer(&std::env::var("OPENAI_API_KEY")?)
//!     .json(&json!({"model": "gpt-5-nano", "stream": true, "messages": [{"role": "user", "content": "Say hello."}]}))
//!     .dialect(Dialect::OpenAiChat)
//!     .overrides(Overrides::new().stream_idle_timeout(60.0).max_attempts(2))
//!     .stream()
//!     .build()?;
//! let mut stream = Client::new().stream(request);
//! while let Some(piece) = stream.next().await {
//!     print!("{}", piece.text());
//! }
//! let outcome = stream.outcome().await;
//! println!("\n{}", outcome.timeline);
//! outcome.result?;
//! # Ok(())
//! # }
//! ```
//!
//! A [`Conversation`] keeps its messages and what they cost ([`Client::chat`](steadfast_driver::Client::chat)),
//! and a [`ToolLoop`] runs the tools that a model asks for: `examples/tool_loop.rs` of `steadfast-tokio`
//! shows both. Calls are seen as spans and as metrics under the features `tracing` and `metrics`, and step by
//! step by any [`Observer`].
//!
//! | file | what is in it |
//! |---|---|
//! | `download` | [`download`]: a body written away as it comes |
//! | `network` | [`Tokio`]: tokio as the shared client wants it |
//! | `timer` | a timer of tokio |
//! | `socket` | a stream socket of tokio: TCP, or on Unix a local one |
//! | `resolver` | the system's resolver, on tokio's threads |
//! | `reader` | [`reader()`]: what the runtime reads, as bodies of requests |
//! | `spawn` | tasks and threads in the scope around whoever spawns them |
//!
//! The client itself is in [`steadfast_driver`], for it is the same on every runtime.

mod download;
mod network;
mod reader;
mod resolver;
mod socket;
mod spawn;
mod timer;

pub use download::download;
pub use network::Tokio;
pub use reader::reader;
pub use socket::StreamSocket;
pub use spawn::{spawn, spawn_blocking};
pub use timer::TokioTimer;

/// Makes calls on tokio; see [`steadfast_driver::Client`]
///
/// A call may be made on any thread with a tokio runtime whose time and IO drivers are enabled.
pub type Client = steadfast_driver::Client<Tokio>;
/// A call under way on tokio; see [`steadfast_driver::CallStream`]
pub type CallStream = steadfast_driver::CallStream<Calls<Tokio>>;
/// A turn of a conversation under way on tokio; see [`steadfast_driver::Chat`]
pub type Chat<'c> = steadfast_driver::Chat<'c, Calls<Tokio>>;
/// A tool loop under way on tokio; see [`steadfast_driver::ToolRun`]
pub type ToolRun<'c> = steadfast_driver::ToolRun<'c, Tokio>;

/// The pure core, whole
pub use steadfast;
pub use steadfast::body::{Body, BodySource, Form, Part};
pub use steadfast::call::{
    HeaderSource, Item, Observation, Observer, Progress, Request, RequestBuilder, RequestError, Retries,
};
pub use steadfast::chat::{
    Amount, Conversation, Cost, Exchange, Format, Input, LoopObservation, LoopObserver, LoopWork, Price,
    Prices, Tokens, ToolDefinition, ToolResult,
};
pub use steadfast::config::{
    ConfigError, EffectiveConfig, Field, Origin, Overrides, RequestConfig, Scope, Scoped, Source,
};
pub use steadfast::connect::{Proxies, ProxiesError, Proxy, ProxyUrlError, TcpSettings};
pub use steadfast::dialect::Dialect;
pub use steadfast::outcome::{
    Billing, CallError, Completion, Delta, Download, Ending, ErrorKind, Outcome, Phase, ProtocolError,
    ProviderError, RateLimit, RateLimits, Response, StatusError, Timeline, Timeout, ToolCall, Turn, Usage,
};
pub use steadfast::pool::{Settings as PoolSettings, Statistics as PoolStatistics};
pub use steadfast::retry::RetryBudgetSettings;
pub use steadfast::time::{Bound, Instant};
pub use steadfast::trace::{Bodies, Recorder, Recording};
pub use steadfast::verb;
#[cfg(feature = "tower")]
pub use steadfast_driver::{CallOutcome, ResponseBody, ServiceError};
pub use steadfast_driver::{Calls, Canceller, MAX_LOOK_UPS, Piece, Resolve, Resolving, headers};
pub use steadfast_driver::{
    LoopEnd, Tool, ToolEnd, ToolError, ToolEvent, ToolFuture, ToolLoop, ToolRecord, ToolReport, tool,
};
/// Calls as spans and as metrics, for `with_observers`
#[cfg(any(feature = "tracing", feature = "metrics"))]
pub use steadfast_observe as observe;
pub use steadfast_tls::{TlsConfig, TlsConfigError};

/// The example in the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
