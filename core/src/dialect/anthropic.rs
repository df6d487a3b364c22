//! The anthropic dialect.
