//! steadfast-mock
