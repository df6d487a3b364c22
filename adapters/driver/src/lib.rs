//! steadfast-driver
