//! steadfast-tokio
