//! The words by which providers name their errors, and what each stands for (rule RTY-1).
//!
//! An error's code is looked for first, then its type. Words that differ in case and separators alone are
//! one: `RateLimitReached` is `rate_limit_reached`. The class of a word that stands for a status is
//! that of [`status_class`](super::class::status_class). A word that is not among them says nothing: the
//! status counts then, and an error inside of a 200 is not tried again.
//!
#![doc = include_str!("known.md")]

/// What a word for an error stands for
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Known {
    /// This HTTP status
    Status(u16),
    /// An account without money, or without a plan that covers the request: no waiting helps
    ///
    /// Limits that come back by waiting are not among them: Gemini's `RESOURCE_EXHAUSTED` is also its limit
    /// per minute, and Alibaba's `Throttling.AllocationQuota` its tokens per minute.
    Quota,
}

/// Every word, by whose it is
pub const KNOWN: &[(&str, &[(&str, Known)])] = {
    use Known::{Quota, Status};
    &[
        (
            "HTTP's phrases, which vLLM, proxies and gateways give as a type",
            &[
                ("Bad Request", Status(400)),
                ("Unauthorized", Status(401)),
                ("Payment Required", Quota),
                ("Forbidden", Status(403)),
                ("Not Found", Status(404)),
                ("Request Timeout", Status(408)),
                ("Conflict", Status(409)),
                ("Unprocessable Entity", Status(422)),
                ("Too Many Requests", Status(429)),
                ("Internal Server Error", Status(500)),
                ("Bad Gateway", Status(502)),
                ("Service Unavailable", Status(503)),
                ("Gateway Timeout", Status(504)),
            ],
        ),
        (
            "OpenAI, Azure and the servers compatible with them",
            &[
                ("insufficient_quota", Quota),
                ("billing_hard_limit_reached", Quota),
                ("billing_not_active", Quota),
                ("usage_limit_reached", Quota),
                ("usage_not_included", Quota),
                ("credit_balance_exhausted", Quota),
                ("organization_spend_limit_exceeded", Quota),
                ("organization_usage_limit_exceeded", Quota),
                ("project_spend_limit_exceeded", Quota),
                ("invalid_request_error", Status(400)),
                ("invalid_prompt", Status(400)),
                ("context_length_exceeded", Status(400)),
                ("content_filter", Status(400)),
                ("content_policy_violation", Status(400)),
                ("moderation_blocked", Status(400)),
                ("ResponsibleAIPolicyViolation", Status(400)),
                ("string_above_max_length", Status(400)),
                ("missing_required_parameter", Status(400)),
                ("unknown_parameter", Status(400)),
                ("unsupported_parameter", Status(400)),
                ("unsupported_value", Status(400)),
                ("invalid_value", Status(400)),
                ("invalid_type", Status(400)),
                ("invalid_image", Status(400)),
                ("previous_response_not_found", Status(400)),
                ("authentication_error", Status(401)),
                ("invalid_api_key", Status(401)),
                ("permission_error", Status(403)),
                ("unsupported_country_region_territory", Status(403)),
                ("model_not_found", Status(404)),
                ("not_found_error", Status(404)),
                ("DeploymentNotFound", Status(404)),
                ("rate_limit_error", Status(429)),
                ("rate_limit_exceeded", Status(429)),
                ("RateLimitReached", Status(429)),
                ("inference_rate_limit_exceeded", Status(429)),
                ("resource_unavailable", Status(429)),
                ("requests", Status(429)),
                ("tokens", Status(429)),
                ("internal_error", Status(500)),
                ("server_error", Status(500)),
                ("service_unavailable_error", Status(503)),
                ("server_is_overloaded", Status(503)),
                ("engine_overloaded", Status(503)),
                ("overloaded", Status(503)),
                ("slow_down", Status(503)),
                ("vector_store_timeout", Status(504)),
            ],
        ),
        (
            "Anthropic",
            &[
                ("billing_error", Quota),
                ("request_too_large", Status(413)),
                ("api_error", Status(500)),
                ("timeout_error", Status(504)),
                ("overloaded_error", Status(529)),
            ],
        ),
        (
            "Gemini: google.rpc.Code",
            &[
                ("INVALID_ARGUMENT", Status(400)),
                ("FAILED_PRECONDITION", Status(400)),
                ("OUT_OF_RANGE", Status(400)),
                ("UNAUTHENTICATED", Status(401)),
                ("PERMISSION_DENIED", Status(403)),
                ("ABORTED", Status(409)),
                ("ALREADY_EXISTS", Status(409)),
                ("RESOURCE_EXHAUSTED", Status(429)),
                ("CANCELLED", Status(499)),
                ("DATA_LOSS", Status(500)),
                ("INTERNAL", Status(500)),
                ("UNKNOWN", Status(500)),
                ("UNIMPLEMENTED", Status(501)),
                ("UNAVAILABLE", Status(503)),
                ("DEADLINE_EXCEEDED", Status(504)),
            ],
        ),
        (
            "OpenRouter, Vercel, DeepSeek and others with prepaid credit",
            &[
                ("insufficient_balance", Quota),
                ("insufficient_credits", Quota),
                ("insufficient_funds", Quota),
                ("payment_required_error", Quota),
                ("quota_exceeded", Quota),
                ("provider_unavailable", Status(502)),
                ("provider_overloaded", Status(503)),
            ],
        ),
        ("Mistral", &[("rate_limited", Status(429)), ("service_tier_capacity_exceeded", Status(429))]),
        ("Groq", &[("json_validate_failed", Status(400)), ("tool_use_failed", Status(400))]),
        (
            "Moonshot",
            &[
                ("exceeded_current_quota_error", Quota),
                ("invalid_authentication_error", Status(401)),
                ("incorrect_api_key_error", Status(401)),
                ("permission_denied_error", Status(403)),
                ("resource_not_found_error", Status(404)),
                ("rate_limit_reached_error", Status(429)),
                ("engine_overloaded_error", Status(429)),
                ("unexpected_output", Status(500)),
            ],
        ),
        (
            "Cerebras",
            &[
                ("wrong_api_key", Status(401)),
                ("too_many_requests_error", Status(429)),
                ("queue_exceeded", Status(429)),
            ],
        ),
        (
            "Alibaba",
            &[
                ("Arrearage", Quota),
                ("DataInspectionFailed", Status(400)),
                ("InvalidParameter", Status(400)),
                ("limit_requests", Status(429)),
                ("Throttling", Status(429)),
                ("Throttling.AllocationQuota", Status(429)),
                ("Throttling.BurstRate", Status(429)),
                ("Throttling.RateQuota", Status(429)),
            ],
        ),
        (
            "Bedrock",
            &[
                ("ServiceQuotaExceededException", Quota),
                ("ValidationException", Status(400)),
                ("AccessDeniedException", Status(403)),
                ("ResourceNotFoundException", Status(404)),
                ("ModelTimeoutException", Status(408)),
                ("ModelErrorException", Status(424)),
                ("ModelStreamErrorException", Status(424)),
                ("ModelNotReadyException", Status(429)),
                ("ThrottlingException", Status(429)),
                ("InternalServerException", Status(500)),
                ("ServiceUnavailableException", Status(503)),
            ],
        ),
        ("vLLM, whose other words are among the above", &[("BadRequestError", Status(400))]),
        (
            "llama.cpp",
            &[
                ("exceed_context_size_error", Status(400)),
                ("not_supported_error", Status(501)),
                ("unavailable_error", Status(503)),
            ],
        ),
        ("LiteLLM", &[("budget_exceeded", Quota), ("throttling_error", Status(429))]),
    ]
};

/// What a word for an error stands for, if it is known
pub fn known(word: &str) -> Option<&'static Known> {
    let words = KNOWN.iter().flat_map(|(_, words)| *words);
    words.into_iter().find(|(known, _)| letters(known).eq(letters(word))).map(|(_, stands_for)| stands_for)
}

fn letters(word: &str) -> impl Iterator<Item = u8> {
    word.bytes().filter(u8::is_ascii_alphanumeric).map(|byte| byte.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fmt::Write;

    use http::StatusCode;

    use super::*;
    use crate::retry::class::{Class, status_class};

    #[test]
    fn no_word_stands_there_twice() {
        let words = KNOWN.iter().flat_map(|(_, words)| *words).map(|(word, _)| *word);
        let mut seen = BTreeSet::new();
        for word in words {
            assert!(seen.insert(letters(word).collect::<Vec<_>>()), "{word}");
            assert!(letters(word).next().is_some());
        }
    }

    /// The table of the docs is this one
    #[test]
    fn the_documented_table_is_the_table() {
        let mut table =
            String::from("| whose | tried again | never | a used-up quota: never |\n|---|---|---|---|\n");
        for (whose, words) in KNOWN {
            let of = |class: Class| {
                let words = words.iter().filter(|(_, stands_for)| class_of(*stands_for) == class);
                let told = words.map(|(word, stands_for)| match stands_for {
                    Known::Status(status) => format!("`{word}` {status}"),
                    Known::Quota => format!("`{word}`"),
                });
                told.collect::<Vec<_>>().join(", ")
            };
            let [retry, never, quota] = [Class::Retry, Class::Never, Class::Quota].map(of);
            writeln!(table, "| {whose} | {retry} | {never} | {quota} |").unwrap();
        }
        assert_eq!(include_str!("known.md"), table);
    }

    fn class_of(stands_for: Known) -> Class {
        match stands_for {
            Known::Status(status) => status_class(StatusCode::from_u16(status).unwrap()),
            Known::Quota => Class::Quota,
        }
    }
}
