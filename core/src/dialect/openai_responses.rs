//! The openai_responses dialect.
