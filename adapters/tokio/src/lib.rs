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
//! | file | what is in it |
//! |---|---|
//! | `client` | [`Client`]: configuration, trust, and the two ways to make a call |
//! | `runtime` | tokio's clock, timer, reactor and sockets, as the shared driver wants them |
//! | `connect` | name look-up, TCP, proxies and TLS |
//! | `pool` | connections between calls, and those who wait for one |
//! | `janitor` | who closes connections that nobody uses |
//! | `resolve` | [`Resolve`]: from a host's name to its addresses |

mod client;
mod connect;
mod janitor;
mod pool;
mod resolve;
mod runtime;

pub use client::{CallStream, Client};
pub use resolve::{MAX_LOOK_UPS, Resolve, Resolving};
pub use runtime::TokioRuntime;
/// The pure core, whole
pub use steadfast;
pub use steadfast::call::{Item, Progress, Request, RequestBuilder, RequestError, Retries};
pub use steadfast::config::{ConfigError, Overrides, RequestConfig};
pub use steadfast::connect::{Proxies, ProxiesError, Proxy, ProxyUrlError};
pub use steadfast::dialect::Dialect;
pub use steadfast::outcome::{
    Billing, CallError, Completion, Delta, Ending, ErrorKind, Outcome, Phase, ProtocolError, ProviderError,
    StatusError, Timeline, Timeout, Turn,
};
pub use steadfast::pool::{Settings as PoolSettings, Statistics as PoolStatistics};
pub use steadfast::time::Bound;
pub use steadfast_driver::Piece;
pub use steadfast_tls::{TlsConfig, TlsConfigError};

/// The example in the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
