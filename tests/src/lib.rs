//! What the tests across the crates share.

pub mod shared;
