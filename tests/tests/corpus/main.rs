//! Real failures reported in public, as small inputs, each under its id.
//!
//! | file | area |
//! |---|---|
//! | `framing` | A: server-sent events and UTF-8 |
//! | `responses` | E: OpenAI Responses |
//! | `anthropic` | F: Anthropic Messages |
//! | `gemini` | G: Gemini `streamGenerateContent` |
//! | `local` | H: Ollama, newline-delimited JSON, local servers |
//! | `tool_calls` | I: how tool calls are put together |
//! | `retries` | J: retries and `Retry-After` |
//! | `clocks` | K: timeouts, teardown, the clock, backpressure, cancel |
//! | `connections` | L: connecting, TLS, DNS, proxies, headers |
//! | `count` | how many cases are tests, and which are to come |

mod anthropic;
mod clocks;
mod connections;
mod count;
mod framing;
mod gemini;
mod local;
mod responses;
mod retries;
mod tool_calls;
