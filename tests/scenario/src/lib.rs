//! Scenarios as data.
