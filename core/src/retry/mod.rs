//! When to try again, and after how long.
//!
//! | file | what it decides |
//! |---|---|
//! | [`class`] | whether an answer may be tried again: by status, by the provider's word, by header |
//! | [`retry_after`] | how long the server asks us to wait |
//! | [`http_date`] | the dates in which it may say so |
//! | [`backoff`] | how long to wait |

pub mod backoff;
pub mod class;
pub mod http_date;
pub mod retry_after;

pub use backoff::Backoff;
pub use class::Class;
