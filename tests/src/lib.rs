//! What the tests across the crates share.

pub mod corpus;
pub mod hand;
pub mod shared;
