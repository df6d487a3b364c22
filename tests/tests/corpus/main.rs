//! Real failures reported in public, as small inputs, each under its id.
//!
//! | file | area |
//! |---|---|
//! | `framing` | A: server-sent events and UTF-8 |
//! | `http1` | B: HTTP/1.1 framing |
//! | `content` | C: content type, encoding, empty or foreign bodies |
//! | `chat` | D: OpenAI Chat Completions and compatible servers |
//! | `responses` | E: OpenAI Responses |
//! | `anthropic` | F: Anthropic Messages |
//! | `gemini` | G: Gemini `streamGenerateContent` |
//! | `local` | H: Ollama, newline-delimited JSON, local servers |
//! | `tool_calls` | I: how tool calls are put together |
//! | `retries` | J: retries and `Retry-After` |
//! | `clocks` | K: timeouts, teardown, the clock, backpressure, cancel |
//! | `connections` | L: connecting, TLS, DNS, proxies, headers |
//! | `count` | which cases have a test, and which wait for a layer |

mod anthropic;
mod chat;
mod clocks;
mod connections;
mod content;
mod count;
mod framing;
mod gemini;
mod http1;
mod local;
mod responses;
mod retries;
mod tool_calls;
