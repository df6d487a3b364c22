//! Other people's Rust SDKs on top of steadfast, without a change of their code.
//!
//! Each file is an example to copy: what it takes to put the client's tower service under an SDK. The tests
//! show what that gains, with a provider that stalls.
//!
//! | file | under what |
//! |---|---|
//! | [`async_openai`] | async-openai, by its tower hook |
//! | [`rig`] | rig, by its HTTP client trait |

#![forbid(unsafe_code)]

pub mod async_openai;
pub mod rig;
