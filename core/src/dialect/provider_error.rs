//! Errors in a provider's own words, from error bodies and from inside a 200.

use serde::Serialize;

/// What a provider says went wrong
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ProviderError {
    /// The provider's type of the error, such as `overloaded_error`
    pub kind: Option<String>,
    /// The provider's code of the error, such as `insufficient_quota`; numbers as their digits
    pub code: Option<String>,
    /// The HTTP status that the error stands for, where a code says so
    pub status: Option<u16>,
    /// The provider's message; empty where it gives none
    pub message: String,
    /// The provider's id of the request
    pub request_id: Option<String>,
}
