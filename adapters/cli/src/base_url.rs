//! Where an API is: the address before the paths of its endpoints.

use std::fmt;
use std::net::Ipv6Addr;

use http::Uri;

/// A base URL, taken apart
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BaseUrl {
    /// Whether to speak TLS
    pub(crate) tls: bool,
    /// A name in lower case, or an address; an IPv6 address without its brackets
    pub(crate) host: String,
    /// The port, given or the scheme's own
    pub(crate) port: u16,
    /// What the path of every endpoint begins with: empty, or `/` and more without a `/` at its end
    pub(crate) prefix: String,
}

/// Why a text is no base URL; said without repeating it, for it may hold a password
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UrlError {
    #[error("is not a URL")]
    Malformed,
    #[error("has to begin with http:// or https://")]
    Scheme,
    #[error("cannot hold a user name or password: keys come from the environment")]
    Credentials,
    #[error("has a port that is not a number from 1 to 65535")]
    Port,
    #[error("has an IPv6 address that is none")]
    Ipv6,
    #[error("cannot hold a query or a fragment: it is what the endpoints' paths are added to")]
    Query,
}

impl BaseUrl {
    /// Takes a base URL apart
    pub(crate) fn parse(text: &str) -> Result<Self, UrlError> {
        // The parser of `Uri` drops fragments in silence.
        if text.contains('#') {
            return Err(UrlError::Query);
        }
        let uri: Uri = text.parse().map_err(|_| UrlError::Malformed)?;
        let tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            Some(_) | None => return Err(UrlError::Scheme),
        };
        let authority = uri.authority().ok_or(UrlError::Malformed)?;
        if authority.as_str().contains('@') {
            return Err(UrlError::Credentials);
        }
        if uri.query().is_some() {
            return Err(UrlError::Query);
        }
        let host = authority.host();
        let port = match authority.as_str()[host.len()..].strip_prefix(':') {
            None => default_port(tls),
            // The parser of `u16` takes a plus sign.
            Some(port) if port.starts_with('+') => return Err(UrlError::Port),
            Some(port) => port.parse().ok().filter(|port| *port > 0).ok_or(UrlError::Port)?,
        };
        let host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
            Some(address) => address.parse::<Ipv6Addr>().map_err(|_| UrlError::Ipv6)?.to_string(),
            None if host.is_empty() => return Err(UrlError::Malformed),
            None => host.to_ascii_lowercase(),
        };
        Ok(Self { tls, host, port, prefix: uri.path().trim_end_matches('/').to_owned() })
    }

    /// The value of the `host` header: without the port where it is the scheme's own (RFC 9110, 7.2)
    pub(crate) fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == default_port(self.tls) { host } else { format!("{host}:{}", self.port) }
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority(), self.prefix)
    }
}

const fn default_port(tls: bool) -> u16 {
    if tls { 443 } else { 80 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_url_is_taken_apart() {
        let cases = [
            ("https://api.openai.com/v1", true, "api.openai.com", 443, "/v1", "api.openai.com"),
            ("http://127.0.0.1:8097/v1/", false, "127.0.0.1", 8097, "/v1", "127.0.0.1:8097"),
            ("http://localhost", false, "localhost", 80, "", "localhost"),
            ("HTTPS://Example.ORG:443/", true, "example.org", 443, "", "example.org"),
            ("https://h:80", true, "h", 80, "", "h:80"),
            ("http://[::1]:8080/a/b", false, "::1", 8080, "/a/b", "[::1]:8080"),
            ("https://[2001:DB8:0::1]", true, "2001:db8::1", 443, "", "[2001:db8::1]"),
        ];
        for (text, tls, host, port, prefix, authority) in cases {
            let url = BaseUrl::parse(text).unwrap();
            let expected = BaseUrl { tls, host: host.to_owned(), port, prefix: prefix.to_owned() };
            assert_eq!(url, expected, "{text}");
            assert_eq!(url.authority(), authority);
            assert_eq!(BaseUrl::parse(&url.to_string()), Ok(url));
        }
    }

    #[test]
    fn what_is_no_base_url_is_refused_without_repeating_it() {
        let cases = [
            ("", UrlError::Malformed),
            ("http://", UrlError::Malformed),
            ("http://:8080", UrlError::Malformed),
            ("http://a b", UrlError::Malformed),
            ("http://h/\r\nx: y", UrlError::Malformed),
            ("localhost:8080", UrlError::Scheme),
            ("/v1", UrlError::Scheme),
            ("ftp://h", UrlError::Scheme),
            ("http://user:password@h", UrlError::Credentials),
            ("http://h:0", UrlError::Port),
            ("http://h:65536", UrlError::Port),
            ("http://h:", UrlError::Port),
            ("http://h:+80", UrlError::Port),
            ("http://[::g]", UrlError::Ipv6),
            ("http://[::1", UrlError::Malformed),
            ("http://h/v1?key=k", UrlError::Query),
            ("http://h/v1#f", UrlError::Query),
        ];
        for (text, error) in cases {
            assert_eq!(BaseUrl::parse(text), Err(error), "{text:?}");
        }
    }
}
