//! Where a request goes, and the URL that says so.

use std::fmt;
use std::net::Ipv6Addr;

use http::Uri;
use http::uri::{Authority, PathAndQuery, Scheme};

use super::request::RequestError;

/// Where a request goes: scheme, host and port
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    tls: bool,
    host: String,
    port: u16,
}

impl Origin {
    /// Whether the scheme is `https`
    pub fn is_tls(&self) -> bool {
        self.tls
    }

    /// The host's name or address; an IPv6 address without its brackets
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port, given or the scheme's own
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Host and port as in a `Host` field: brackets around IPv6, no port where it is the scheme's own
    pub fn authority(&self) -> String {
        match (self.tls, self.port) {
            (true, 443) | (false, 80) => in_brackets(&self.host),
            (_, _) => self.host_and_port(),
        }
    }

    /// Host and port, always both: brackets around IPv6
    pub fn host_and_port(&self) -> String {
        format!("{}:{}", in_brackets(&self.host), self.port)
    }
}

/// `scheme://host:port`
impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        write!(f, "{scheme}://{}", self.host_and_port())
    }
}

/// A host as it stands in a URL: an IPv6 address in brackets
pub(crate) fn in_brackets(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

/// Where a URL goes, and what is asked for there
///
/// Errors: what is wrong with it.
pub(crate) fn parse_url(url: &str) -> Result<(Origin, PathAndQuery), RequestError> {
    let uri = Uri::try_from(url.trim()).map_err(|_| RequestError::Url("not a URL"))?;
    let tls = match uri.scheme() {
        Some(scheme) if *scheme == Scheme::HTTPS => true,
        Some(scheme) if *scheme == Scheme::HTTP => false,
        Some(_) => return Err(RequestError::Url("the scheme is neither http nor https")),
        None => return Err(RequestError::Url("it needs a scheme and a host, as in https://host/path")),
    };
    let authority = uri.authority().ok_or(RequestError::Url("it names no host"))?;
    if authority.as_str().contains('@') {
        return Err(RequestError::Url("it holds a user name or password; use a header instead"));
    }
    let (host, port) = host_and_port(authority).map_err(RequestError::Url)?;
    let port = port.unwrap_or(if tls { 443 } else { 80 });
    let target = uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
    Ok((Origin { tls, host, port }, target))
}

/// A URL, or a reference to one, as it may be shown: without user name and password, query and fragment
pub(crate) fn without_secrets(url: &str) -> String {
    let url = &url[..url.find(['?', '#']).unwrap_or(url.len())];
    // `user:password@host` without a scheme is none, but somebody's mistake.
    let start = url.find("//").map_or(0, |slashes| slashes + 2);
    let end = url[start..].find(['/', '\\']).map_or(url.len(), |length| start + length);
    let host = url[start..end].rfind('@').map_or(start, |at| start + at + 1);
    format!("{}{}", &url[..start], &url[host..])
}

/// The host of a URL in lower case, an IPv6 address without its brackets, and its port if it gives one
///
/// Errors: what is wrong with it.
pub(crate) fn host_and_port(authority: &Authority) -> Result<(String, Option<u16>), &'static str> {
    let host = match authority.host().strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(address) => {
            let address = address.parse::<Ipv6Addr>();
            address.map_err(|_| "between the brackets is no IPv6 address")?.to_string()
        }
        None if authority.host().is_empty() => return Err("it names no host"),
        None => authority.host().to_ascii_lowercase(),
    };
    let port = match authority.as_str()[authority.host().len()..].strip_prefix(':') {
        None => None,
        // The parser of `u16` takes a plus sign.
        Some(port) if port.starts_with('+') => return Err("the port is not a number up to 65535"),
        Some(port) => match port.parse() {
            Ok(0) => return Err("port 0 cannot be connected to"),
            Ok(port) => Some(port),
            Err(_) => return Err("the port is not a number up to 65535"),
        },
    };
    Ok((host, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_shown_of_a_url() {
        for (url, shown) in [
            ("https://h/v1", "https://h/v1"),
            ("https://h/v1?key=secret#secret", "https://h/v1"),
            ("https://h#secret", "https://h"),
            ("https://me:se@cret@h:8080/v1/@x?secret", "https://h:8080/v1/@x"),
            ("//me:secret@h/v1", "//h/v1"),
            ("me:secret@h/v1", "h/v1"),
            ("/v1?next=https://secret", "/v1"),
            ("", ""),
        ] {
            assert_eq!(without_secrets(url), shown, "{url}");
        }
    }

    fn origin(url: &str) -> Result<String, RequestError> {
        parse_url(url).map(|(origin, target)| format!("{origin} {target}"))
    }

    #[test]
    fn urls() {
        assert_eq!(origin("https://API.example/v1/x?a=b#c").unwrap(), "https://api.example:443 /v1/x?a=b");
        assert_eq!(origin("http://[::1]:8080").unwrap(), "http://[::1]:8080 /");
        assert_eq!(origin("https://[2001:DB8:0::1]/").unwrap(), "https://[2001:db8::1]:443 /");
        assert_eq!(origin("http://127.0.0.1:8097/v1\n").unwrap(), "http://127.0.0.1:8097 /v1");
        for bad in [
            "",
            "api.example/v1",
            "/v1",
            "ftp://x/",
            "http://",
            "http://u:secret@h/",
            "http://h:0/",
            "http://h:99999/",
            "http://h:+80/",
            "http://h:/",
            "http://:80/",
            "http://[::g]/",
            "http://[127.0.0.1]/",
            "http://h/a b",
            "http://h/\r\nx: y",
        ] {
            let error = origin(bad).unwrap_err();
            assert!(!error.to_string().contains("secret"), "{bad}: {error}");
        }
    }
}
