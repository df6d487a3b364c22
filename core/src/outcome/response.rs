//! What the server said of itself in the head of a response.

use std::fmt;
use std::time::Duration;

use http::{HeaderMap, StatusCode};

use crate::http1::ResponseHead;
use crate::retry::RateLimits;
use crate::time::Instant;

/// Header fields by which providers and their gateways name a request, in the order in which they count
///
/// OpenAI and most others, Anthropic, Azure, Amazon, Cloudflare.
const REQUEST_ID: [&str; 5] = ["x-request-id", "request-id", "apim-request-id", "x-amzn-requestid", "cf-ray"];

/// The head of a response
///
/// Its debug form leaves out what the header fields say: cookies are secrets, and some servers echo
/// keys. The call's own credentials are blanked in them.
#[derive(Clone, PartialEq)]
pub struct Response {
    /// The attempt that got it, from 1
    pub attempt: u32,
    /// When it came
    pub at: Instant,
    /// Its status
    pub status: StatusCode,
    /// Its header fields
    pub headers: HeaderMap,
    /// What it says of the server's rate limits
    pub rate_limits: RateLimits,
}

impl Response {
    /// `unix_now` is the wall-clock time at which it came
    pub(crate) fn new(attempt: u32, at: Instant, head: &ResponseHead, unix_now: Duration) -> Self {
        let rate_limits = RateLimits::parse(&head.headers, unix_now);
        Self { attempt, at, status: head.status, headers: head.headers.clone(), rate_limits }
    }

    /// The server's id of the request, for its support
    ///
    /// Of several names that stand for one, the provider's counts before a gateway's.
    pub fn request_id(&self) -> Option<&str> {
        REQUEST_ID.into_iter().find_map(|name| {
            let value = self.headers.get(name)?.to_str().ok()?.trim();
            (!value.is_empty()).then_some(value)
        })
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("attempt", &self.attempt)
            .field("at", &self.at)
            .field("status", &self.status)
            .field("request_id", &self.request_id())
            .field("rate_limits", &self.rate_limits)
            .finish_non_exhaustive()
    }
}
