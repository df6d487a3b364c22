//! Real failures reported in public, as small inputs, each under its id.
//!
//! | file | area |
//! |---|---|
//! | `framing` | A: server-sent events and UTF-8 |

mod framing;
