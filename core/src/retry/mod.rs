//! When to try again, and after how long.
//!
//! | file | what it decides |
//! |---|---|
//! | [`class`] | whether an answer may be tried again: by status, by the provider's word, by header |
//! | [`known`](mod@known) | the words by which providers name their errors, and what each stands for |
//! | [`retry_after`] | how long the server asks us to wait |
//! | [`http_date`] | the dates in which it may say so |
//! | [`rate_limits`] | what else it says of its limits |
//! | [`rfc3339`] | the other dates in which it says so |
//! | [`backoff`] | how long to wait |
//! | [`budget`] | how many retries the calls of a client may make together |

pub mod backoff;
pub mod budget;
pub mod class;
pub mod http_date;
pub mod known;
pub mod rate_limits;
pub mod retry_after;
pub mod rfc3339;

pub use backoff::Backoff;
pub use budget::{RetryBudget, RetryBudgetSettings};
pub use class::Class;
pub use rate_limits::{RateLimit, RateLimits};
