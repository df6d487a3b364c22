//! What the tests across the crates share.

pub mod corpus;
pub mod hand;
pub mod peers;
pub mod shared;
