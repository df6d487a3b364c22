//! What calls cost: allocations and bytes, counted by the allocator.
//!
//! | where | what |
//! |---|---|
//! | [`heap`] | the counting allocator |
//! | [`streaming`] | a call in the middle of a stream, fed event by event |

pub mod heap;
pub mod streaming;
