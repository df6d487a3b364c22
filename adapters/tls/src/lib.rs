//! steadfast-tls
