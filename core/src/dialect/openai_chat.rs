//! The openai_chat dialect.
