//! Errors in a provider's own words, from error bodies and from inside a 200.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::json::JsonStr;

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

/// Reads the error out of the JSON text of an event or a body, if it reports one
pub fn from_raw(text: &str) -> Option<ProviderError> {
    let report = serde_json::from_str::<Report<'_>>(text).ok()?;
    let error = match report.error {
        Some(raw) if raw.get().starts_with('"') => {
            Report { message: JsonStr::from_raw(raw), ..Report::default() }
        }
        Some(raw) => serde_json::from_str::<Report<'_>>(raw.get()).ok()?,
        None if !report.message.is_empty() => Report { request_id: JsonStr::default(), ..report },
        None => return None,
    };
    let text = |text: JsonStr<'_>| (!text.is_empty()).then(|| text.to_string());
    let kind = if error.kind.is_empty() { error.status } else { error.kind };
    Some(ProviderError {
        kind: text(kind),
        code: text(error.code),
        status: error.code.number().and_then(|code| u16::try_from(code).ok()),
        message: error.message.to_string(),
        request_id: text(report.request_id),
    })
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct Report<'a> {
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(rename = "type")]
    kind: JsonStr<'a>,
    code: JsonStr<'a>,
    status: JsonStr<'a>,
    message: JsonStr<'a>,
    request_id: JsonStr<'a>,
}
