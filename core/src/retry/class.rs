//! Which answers may be tried again: by status, by the provider's word, by header (rule RTY-1).

use http::{HeaderMap, StatusCode};

use super::known::{Known, known};
use crate::machine::{FailureKind, ProxyRefusal};
use crate::outcome::ProviderError;

/// What may be done about a failed attempt
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// The same request may well succeed a little later
    Retry,
    /// The same request would fail the same way
    Never,
    /// The account has run out of what it paid for: no waiting helps, whatever the status says
    Quota,
}

/// The class of a response with that status
///
/// 409 is not retried, on purpose: what conflicts goes on to do so.
pub fn status_class(status: StatusCode) -> Class {
    match status.as_u16() {
        // 425: RFC 8470. 520 to 524: a proxy's word for its origin's failure. 529: Anthropic, overloaded.
        408 | 425 | 429 | 500 | 502 | 503 | 504 | 520..=524 | 529 => Class::Retry,
        _ => Class::Never,
    }
}

/// The class of a failure on the way through a proxy: nothing was sent, so only hope decides
///
/// A proxy that cannot be reached may be back in a moment, and so may the origin that it could not
/// reach. Credentials, its rules and its protocol stay as they are.
pub fn proxy_class(kind: FailureKind) -> Class {
    match kind {
        FailureKind::Proxy(ProxyRefusal::Status(500..=599)) => Class::Retry,
        FailureKind::Proxy(ProxyRefusal::Status(status)) => {
            StatusCode::from_u16(status).map_or(Class::Never, status_class)
        }
        // General failure, network or host unreachable, connection refused, time to live expired
        FailureKind::Proxy(ProxyRefusal::Socks(1 | 3..=6)) => Class::Retry,
        FailureKind::Proxy(
            ProxyRefusal::Socks(_)
            | ProxyRefusal::AuthenticationRequired
            | ProxyRefusal::Protocol
            | ProxyRefusal::Unusable,
        ) => Class::Never,
        // The same ones would come again.
        FailureKind::Certificate(_) | FailureKind::ClientCertificate(_) => Class::Never,
        FailureKind::NotFound
        | FailureKind::Refused
        | FailureKind::Unreachable
        | FailureKind::Reset
        | FailureKind::Tls
        | FailureKind::Other => Class::Retry,
    }
}

/// The class of an error in the provider's own words
///
/// For an error inside a 200 this is all there is. For an error status only [`Class::Quota`] counts:
/// it overrules the status, which is the better source for everything else.
pub fn error_class(error: &ProviderError) -> Class {
    if words(error).filter_map(known).any(|known| *known == Known::Quota) {
        return Class::Quota;
    }
    match error_status(error).map(StatusCode::from_u16) {
        Some(Ok(status)) => status_class(status),
        Some(Err(_)) | None => Class::Never,
    }
}

/// The HTTP status that an error stands for
///
/// The error's own if it gives one, then what its code stands for, then its type. `None` where all
/// of them are unknown.
pub fn error_status(error: &ProviderError) -> Option<u16> {
    let status = |word| match known(word)? {
        Known::Status(status) => Some(*status),
        Known::Quota => None,
    };
    error.status.or_else(|| words(error).find_map(status))
}

/// What `x-should-retry` says, where it says `true` or `false` in any case of letters
///
/// Of several lines the first that says either counts.
pub fn x_should_retry(headers: &HeaderMap) -> Option<bool> {
    headers.get_all("x-should-retry").iter().find_map(|value| {
        let value = value.as_bytes();
        let is = |word: &[u8]| value.eq_ignore_ascii_case(word);
        if is(b"true") { Some(true) } else { is(b"false").then_some(false) }
    })
}

/// The words that name an error, the finer first
fn words(error: &ProviderError) -> impl Iterator<Item = &str> {
    [error.code.as_deref(), error.kind.as_deref()].into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(kind: &str, code: &str) -> ProviderError {
        let word = |word: &str| (!word.is_empty()).then(|| word.to_owned());
        ProviderError { kind: word(kind), code: word(code), ..ProviderError::default() }
    }

    #[test]
    fn l08_what_a_proxy_says() {
        use ProxyRefusal::{AuthenticationRequired, Protocol, Socks, Status, Unusable};
        let class = |refusal| proxy_class(FailureKind::Proxy(refusal));
        for retried in [500, 501, 502, 503, 504, 511, 599, 408, 429].map(Status) {
            assert_eq!(class(retried), Class::Retry, "{retried:?}");
        }
        for refused in [302, 400, 401, 403, 404, 405, 600].map(Status) {
            assert_eq!(class(refused), Class::Never, "{refused:?}");
        }
        assert_eq!([1, 3, 4, 5, 6].map(|code| class(Socks(code))), [Class::Retry; 5]);
        assert_eq!([2, 7, 8, 9, 255].map(|code| class(Socks(code))), [Class::Never; 5]);
        assert_eq!([AuthenticationRequired, Protocol, Unusable].map(class), [Class::Never; 3]);
        assert_eq!(proxy_class(FailureKind::Refused), Class::Retry);
    }

    #[test]
    fn j12_status_table() {
        for (statuses, class) in [
            (&[400, 401, 403, 404, 405, 409, 413, 415, 422, 451, 200, 304, 501, 505, 525][..], Class::Never),
            (&[408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529], Class::Retry),
        ] {
            for status in statuses {
                assert_eq!(status_class(StatusCode::from_u16(*status).unwrap()), class, "{status}");
            }
        }
    }

    #[test]
    fn j09_a_quota_that_is_used_up() {
        for (kind, code) in [
            ("insufficient_quota", "insufficient_quota"),
            ("insufficient_quota", ""),
            ("invalid_request_error", "billing_hard_limit_reached"),
            ("", "billing-not-active"),
            ("exceeded_current_quota_error", "429"),
            ("billing_error", ""),
        ] {
            assert_eq!(error_class(&error(kind, code)), Class::Quota, "{kind} {code}");
        }
        let with_status = ProviderError { status: Some(429), ..error("", "insufficient_quota") };
        assert_eq!(error_class(&with_status), Class::Quota, "whatever the status");
    }

    #[test]
    fn errors_inside_a_200() {
        for (kind, code, status, class) in [
            ("overloaded_error", "", Some(529), Class::Retry),
            ("", "server_error", Some(500), Class::Retry),
            ("", "rate_limit_exceeded", Some(429), Class::Retry),
            ("tokens", "rate_limit_exceeded", Some(429), Class::Retry),
            ("", "RateLimitReached", Some(429), Class::Retry),
            ("RESOURCE_EXHAUSTED", "", Some(429), Class::Retry),
            ("UNAVAILABLE", "", Some(503), Class::Retry),
            ("DEADLINE_EXCEEDED", "", Some(504), Class::Retry),
            ("INTERNAL", "", Some(500), Class::Retry),
            ("Internal Server Error", "", Some(500), Class::Retry),
            ("server_error", "a code of next year", Some(500), Class::Retry),
            ("invalid_request_error", "context_length_exceeded", Some(400), Class::Never),
            ("server_error", "context_length_exceeded", Some(400), Class::Never),
            ("INVALID_ARGUMENT", "", Some(400), Class::Never),
            ("an unknown type", "1500", None, Class::Never),
            ("", "", None, Class::Never),
        ] {
            let error = error(kind, code);
            assert_eq!((error_status(&error), error_class(&error)), (status, class), "{kind} {code}");
        }
    }

    #[test]
    fn an_error_that_gives_a_status_is_taken_at_its_word() {
        for (status, class) in [(504, Class::Retry), (400, Class::Never), (409, Class::Never)] {
            let error = ProviderError { status: Some(status), ..error("server_error", "") };
            assert_eq!((error_status(&error), error_class(&error)), (Some(status), class));
        }
    }

    #[test]
    fn j11_x_should_retry() {
        let said = |values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append("x-should-retry", http::HeaderValue::from_static(value));
            }
            x_should_retry(&headers)
        };
        for (value, expected) in [
            ("true", Some(true)),
            ("TRUE", Some(true)),
            ("False", Some(false)),
            ("1", None),
            ("yes", None),
            ("", None),
            ("true, false", None),
        ] {
            assert_eq!(said(&[value]), expected, "{value:?}");
        }
        assert_eq!(said(&[]), None);
        assert_eq!(said(&["maybe", "false", "true"]), Some(false));
    }
}
