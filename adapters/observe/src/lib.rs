//! What happens in a call, as spans of `tracing` and as metrics.
//!
//! Both are observers of a call ([`Observer`]), given to a client once:
//!
//! ```no_run
//! use steadfast_tokio::{Client, observe};
//!
//! let client = Client::new().with_observers(observe::spans).with_observers(observe::metrics);
//! ```
//!
//! and, for the tools that a loop of calls runs, to the loop, as `.with_observers(observe::tool_spans)`.
//!
//! Names are those of OpenTelemetry's conventions for generative AI (in development, as of 1.41; see
//! <https://github.com/open-telemetry/semantic-conventions-genai>), and begin with `steadfast.` where
//! these have none. Nothing of prompts or answers, of header fields or of a URL's path and query is
//! ever told.
//!
//! | file | what is in it |
//! |---|---|
//! | `names` | what a call is called: operation, provider, model, server, error |
//! | `spans` | `spans`: a span for each call, attempt and wait; feature `tracing` |
//! | `tools` | `tool_spans`: a span for a tool loop, and one for each tool that it runs; feature `tracing` |
//! | `models` | the models of answers that metrics tell apart |
//! | `numbers` | `metrics`: counters and histograms; feature `metrics` |
//!
//! [`Observer`]: steadfast::call::Observer

#[cfg(feature = "metrics")]
mod models;
#[cfg(any(feature = "tracing", feature = "metrics"))]
mod names;
#[cfg(feature = "metrics")]
mod numbers;
#[cfg(feature = "tracing")]
mod spans;
#[cfg(feature = "tracing")]
mod tools;

#[cfg(feature = "metrics")]
pub use models::{MAX_MODEL_BYTES, MAX_MODELS};
#[cfg(feature = "metrics")]
pub use numbers::{describe_metrics, metrics};
#[cfg(feature = "tracing")]
pub use spans::spans;
#[cfg(feature = "tracing")]
pub use tools::tool_spans;
