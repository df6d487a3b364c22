//! LLM calls that end, on threads: `std`, a poller, and no async at all.
//!
//! A call runs on the thread that asks for its pieces. Every wait of it ends at the deadline that the
//! core names; another thread can end it at once by a [`Canceller`].
//!
//! ```no_run
//! use serde_json::json;
//! use steadfast_blocking::{Client, Dialect, Overrides, Request};
//!
//! # fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let request = Request::post("https://api.openai.com/v1/chat/completions")
//!     .bearer(&std::env::var("OPENAI_API_KEY")?)
//!     .json(&json!({"model": "gpt-5-nano", "stream": true, "messages": [{"role": "user", "content": "Say hello."}]}))
//!     .dialect(Dialect::OpenAiChat)
//!     .overrides(Overrides::new().stream_idle_timeout(60.0).max_attempts(2))
//!     .stream()
//!     .build()?;
//! let mut stream = Client::new().stream(request);
//! for piece in &mut stream {
//!     print!("{}", piece.text());
//! }
//! let outcome = stream.outcome();
//! println!("\n{}", outcome.timeline);
//! outcome.result?;
//! # Ok(())
//! # }
//! ```
//!
//! A [`Conversation`] keeps its messages and what they cost ([`Client::chat`]). Calls are seen as spans and
//! as metrics under the features `tracing` and `metrics`, and step by step by any [`Observer`].
//!
//! Each attempt has a connection of its own: nothing is pooled.
//!
//! It is the smallest complete driver, and the worked example of [`steadfast::porting`]:
//!
//! | file | what is in it |
//! |---|---|
//! | `driver` | the loop: what the machine asks for, done; what happened, told |
//! | `sleeper` | the one wait: for a socket, a thread, a canceller, or a point in time |
//! | `connection` | a socket, plain or under TLS |
//! | `socket` | a socket: TCP, or on Unix a local one |
//! | `opening` | name look-up, TCP, proxies and TLS, step by step |
//! | `look_up` | names to addresses, on a bounded number of threads |
//! | `input` | what a call reads: of its connection, and of a body that is read as it goes out |
//! | `reader` | [`reader()`]: readers that may wait, as bodies of requests |
//! | `client` | [`Client`]: configuration, trust, and the two ways to make a call |
//! | `stream` | [`Stream`]: a call as its consumer sees it |
//! | `download` | [`download`]: a body written away as it comes |
//! | `chat` | [`Chat`]: a turn of a conversation as its consumer sees it |
//! | `spawn` | threads in the scope around whoever spawns them |

mod chat;
mod client;
mod connection;
mod download;
mod driver;
mod input;
mod look_up;
mod opening;
mod reader;
mod sleeper;
mod socket;
mod spawn;
mod stream;

pub use chat::Chat;
pub use client::Client;
pub use download::download;
pub use look_up::MAX_LOOK_UPS;
pub use reader::reader;
pub use spawn::spawn;
/// The pure core, whole
pub use steadfast;
pub use steadfast::body::{Body, BodySource, Form, Part};
pub use steadfast::call::{
    HeaderSource, Item, Observation, Observer, Piece, Progress, Request, RequestBuilder, RequestError,
    Retries,
};
pub use steadfast::chat::{Amount, Conversation, Cost, Exchange, Format, Input, Price, Prices, Tokens};
pub use steadfast::config::{
    ConfigError, EffectiveConfig, Field, Origin, Overrides, RequestConfig, Scope, Source,
};
pub use steadfast::connect::{Proxies, ProxiesError, Proxy, ProxyUrlError, TcpSettings};
pub use steadfast::dialect::Dialect;
pub use steadfast::outcome::{
    Billing, CallError, Completion, Delta, Download, Ending, ErrorKind, Outcome, Phase, ProtocolError,
    ProviderError, RateLimit, RateLimits, Response, StatusError, Timeline, Timeout, ToolCall, Turn, Usage,
};
pub use steadfast::retry::RetryBudgetSettings;
pub use steadfast::time::{Bound, Instant};
pub use steadfast::trace::{Bodies, Recorder, Recording};
pub use steadfast::verb;
/// Calls as spans and as metrics, for `with_observers`
#[cfg(any(feature = "tracing", feature = "metrics"))]
pub use steadfast_observe as observe;
pub use steadfast_tls::{TlsConfig, TlsConfigError};
pub use stream::{Canceller, Stream};
