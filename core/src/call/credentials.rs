//! Credentials: known by their place in the request, and blanked wherever a server echoes them.

use std::fmt;

use http::HeaderMap;
use http::header::{self, HeaderName};
use http::uri::PathAndQuery;

/// Whether a header field of that name carries a credential
pub(super) fn is_credential(name: &HeaderName) -> bool {
    const NAMES: [&str; 6] =
        ["api-key", "x-api-key", "x-goog-api-key", "x-auth-token", "openai-api-key", "x-amz-security-token"];
    *name == header::AUTHORIZATION
        || *name == header::PROXY_AUTHORIZATION
        || *name == header::COOKIE
        || NAMES.contains(&name.as_str())
}

/// The credentials that one request carries
#[derive(Clone, Default)]
pub(super) struct Credentials(Vec<String>);

impl Credentials {
    /// Shorter ones would blank ordinary words
    const MIN_BYTES: usize = 6;

    /// The credentials in header fields, and in query parameters whose name says so
    pub(super) fn of(headers: &HeaderMap, target: &PathAndQuery) -> Self {
        let in_headers = headers
            .iter()
            .filter(|(name, _)| is_credential(name))
            .filter_map(|(_, value)| value.to_str().ok());
        let in_query =
            target.query().unwrap_or("").split('&').filter_map(|pair| pair.split_once('=')).filter_map(
                |(name, value)| {
                    let name = name.to_ascii_lowercase();
                    let names_one =
                        ["key", "token", "secret", "signature"].iter().any(|word| name.contains(word));
                    names_one.then_some(value)
                },
            );
        let secrets = in_headers
            // "Bearer sk-…": the scheme is no secret
            .map(|value| value.rsplit(' ').next().unwrap_or(value))
            .chain(in_query)
            .filter(|secret| secret.len() >= Self::MIN_BYTES)
            .map(str::to_owned)
            .collect();
        Self(secrets)
    }

    /// Blanks every credential in `text`
    pub(super) fn blank(&self, text: &mut String) {
        for secret in self.0.iter().filter(|secret| text.contains(secret.as_str())).collect::<Vec<_>>() {
            *text = text.replace(secret.as_str(), Self::BLANK);
        }
    }

    /// Blanks every credential in `bytes`
    pub(super) fn blank_bytes(&self, bytes: &mut Vec<u8>) {
        for secret in &self.0 {
            let mut from = 0;
            while let Some(at) = memchr::memmem::find(&bytes[from..], secret.as_bytes()) {
                let at = from + at;
                bytes.splice(at..at + secret.len(), Self::BLANK.bytes());
                from = at + Self::BLANK.len();
            }
        }
    }

    const BLANK: &str = "[credential]";
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credentials({})", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_blanked_wherever_they_came_from() {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, "Bearer sk-abcdef".parse().unwrap());
        headers.insert("x-api-key", "ant-123456".parse().unwrap());
        headers.insert("x-short", "word".parse().unwrap());
        let target = PathAndQuery::from_static("/v1?alt=sse&key=goog-7890&access_token=tok-4567");
        let credentials = Credentials::of(&headers, &target);
        let mut text = "bad sk-abcdef, ant-123456sk-abcdef goog-7890 tok-4567 sse".to_owned();
        let mut bytes = text.clone().into_bytes();
        credentials.blank(&mut text);
        credentials.blank_bytes(&mut bytes);
        assert_eq!(text, "bad [credential], [credential][credential] [credential] [credential] sse");
        assert_eq!(bytes, text.as_bytes());
        assert_eq!(format!("{credentials:?}"), "Credentials(4)");
    }
}
