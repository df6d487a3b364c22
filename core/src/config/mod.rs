//! One configuration.
