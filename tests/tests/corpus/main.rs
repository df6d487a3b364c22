//! Real failures reported in public, as small inputs, each under its id.
//!
//! | file | area |
//! |---|---|
//! | `framing` | A: server-sent events and UTF-8 |
//! | `http1` | B: HTTP/1.1 framing |
//! | `content` | C: content type, encoding, empty or foreign bodies |
//! | `chat` | D: OpenAI Chat Completions and compatible servers |
//! | `count` | which cases have a test, and which wait for a layer |

mod chat;
mod content;
mod count;
mod framing;
mod http1;
