//! The finish-reason table.
