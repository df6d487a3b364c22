//! One proxy, and who we are to it.

use std::fmt;

use http::HeaderValue;
use http::uri::Authority;

use crate::call::{host_and_port, in_brackets};

/// A proxy, by its URL
///
/// No form of it shows the credentials.
///
/// ```
/// use steadfast::connect::Proxy;
///
/// let proxy = Proxy::new("socks5://me:secret@proxy.example:1080")?;
/// assert_eq!(proxy.to_string(), "socks5://proxy.example:1080");
/// assert!(!format!("{proxy:?}").contains("secret"));
/// # Ok::<(), steadfast::connect::ProxyUrlError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    scheme: ProxyScheme,
    host: String,
    port: u16,
    credentials: Option<Credentials>,
}

/// What a proxy speaks
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyScheme {
    /// HTTP/1.1: forwards `http` requests, and tunnels by CONNECT
    Http,
    /// The same within TLS, to the proxy itself
    Https,
    /// SOCKS5; host names are sent to the proxy, never looked up here
    Socks5,
}

#[derive(Clone, PartialEq, Eq)]
pub(super) struct Credentials {
    pub(super) user: Vec<u8>,
    pub(super) password: Vec<u8>,
}

impl Proxy {
    /// A proxy by its URL: `http://`, `https://`, `socks5://` or `socks5h://`, credentials, host and port
    ///
    /// Without a scheme it is `http`, as curl has it. The port is 80, 443 or 1080 where none is given.
    /// By `https` the proxy itself is reached within TLS, under the trust that holds for origins.
    /// User name and password are percent-decoded. `socks5` and `socks5h` are one here.
    ///
    /// Errors: [`ProxyUrlError`]; no text quotes the URL.
    pub fn new(url: &str) -> Result<Self, ProxyUrlError> {
        let url = url.trim();
        let (scheme, rest) = match url.split_once("://") {
            None => (ProxyScheme::Http, url),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (ProxyScheme::Http, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (ProxyScheme::Https, rest),
            Some((scheme, rest))
                if scheme.eq_ignore_ascii_case("socks5") || scheme.eq_ignore_ascii_case("socks5h") =>
            {
                (ProxyScheme::Socks5, rest)
            }
            Some(_) => return Err(ProxyUrlError::Scheme),
        };
        // A user name or password may hold a slash that was not encoded; a host may not.
        let (user_info, host) = match rest.rsplit_once('@') {
            Some((user_info, host)) => (Some(user_info), host),
            None => (None, rest),
        };
        let host = match host.split_once('/') {
            None | Some((_, "")) => host.trim_end_matches('/'),
            Some(_) => return Err(ProxyUrlError::Url("nothing may stand behind host and port")),
        };
        let authority =
            Authority::try_from(host).map_err(|_| ProxyUrlError::Url("its host cannot be read"))?;
        let (host, port) = host_and_port(&authority).map_err(ProxyUrlError::Url)?;
        Ok(Self {
            scheme,
            host,
            port: port.unwrap_or(scheme.port()),
            credentials: user_info.map(Credentials::new).transpose()?,
        })
    }

    /// What it speaks
    pub fn scheme(&self) -> ProxyScheme {
        self.scheme
    }

    /// Its host's name or address; an IPv6 address without its brackets
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Its port, given or the scheme's own
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The value of `Proxy-Authorization`, where there are credentials
    pub(crate) fn authorization(&self) -> Option<HeaderValue> {
        let Credentials { user, password } = self.credentials.as_ref()?;
        let pair = [user.as_slice(), b":", password].concat();
        let mut value =
            HeaderValue::try_from(format!("Basic {}", base64(&pair))).expect("base64 is visible ASCII");
        value.set_sensitive(true);
        Some(value)
    }

    pub(super) fn credentials(&self) -> Option<&Credentials> {
        self.credentials.as_ref()
    }
}

/// `scheme://host:port`, without credentials
impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}:{}", self.scheme.name(), in_brackets(&self.host), self.port)
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy")
            .field("url", &format_args!("{self}"))
            .field("has_credentials", &self.credentials.is_some())
            .finish()
    }
}

impl ProxyScheme {
    /// The scheme's name, as in a URL
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::Socks5 => "socks5",
        }
    }

    const fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
            Self::Socks5 => 1080,
        }
    }
}

/// A proxy's URL that cannot be used; no variant quotes it
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProxyUrlError {
    /// The scheme is none that we speak to a proxy
    #[error("the proxy's scheme is not one of http, https, socks5 and socks5h")]
    Scheme,
    /// The URL cannot be read
    #[error("the proxy's URL cannot be read: {0}")]
    Url(&'static str),
    /// The user name or the password cannot be sent
    #[error(
        "the proxy's user name and password must be percent-encoded, of at most {MAX_CREDENTIAL_BYTES} bytes each, and the name not empty"
    )]
    Credentials,
}

/// The longest user name and the longest password (RFC 1929; HTTP sets no limit of its own)
const MAX_CREDENTIAL_BYTES: usize = 255;

impl Credentials {
    fn new(user_info: &str) -> Result<Self, ProxyUrlError> {
        let (user, password) = user_info.split_once(':').unwrap_or((user_info, ""));
        let part = |text| percent_decoded(text).filter(|bytes| bytes.len() <= MAX_CREDENTIAL_BYTES);
        let user = part(user).filter(|user| !user.is_empty()).ok_or(ProxyUrlError::Credentials)?;
        let password = part(password).ok_or(ProxyUrlError::Credentials)?;
        Ok(Self { user, password })
    }
}

/// `None` where a `%` has no two hexadecimal digits behind it
fn percent_decoded(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => digit(bytes.next()?)? << 4 | digit(bytes.next()?)?,
            byte => byte,
        });
    }
    Some(decoded)
}

/// RFC 4648 section 4, with padding
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let at = |index| u32::from(group.get(index).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for place in 0..4 {
            let sextet = bits >> (18 - 6 * place) & 63;
            text.push(if place <= group.len() { char::from(ALPHABET[sextet as usize]) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(url: &str) -> String {
        Proxy::new(url).unwrap().to_string()
    }

    #[test]
    fn urls() {
        for (url, expected) in [
            ("http://proxy.example:3128", "http://proxy.example:3128"),
            ("http://proxy.example", "http://proxy.example:80"),
            ("HTTP://Proxy.Example:3128/", "http://proxy.example:3128"),
            ("proxy.example:3128", "http://proxy.example:3128"),
            ("10.0.0.1:8080\n", "http://10.0.0.1:8080"),
            ("socks5://proxy.example", "socks5://proxy.example:1080"),
            ("socks5h://proxy.example:9050", "socks5://proxy.example:9050"),
            ("http://me:pa%2Fss/w@rd@proxy.example:1", "http://proxy.example:1"),
            ("https://proxy.example", "https://proxy.example:443"),
            ("http://[2001:DB8::1]:3128", "http://[2001:db8::1]:3128"),
        ] {
            assert_eq!(shown(url), expected, "{url}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_refused_and_never_quoted() {
        for url in ["socks4://secret.example", "ftp://secret.example"] {
            assert_eq!(Proxy::new(url).unwrap_err(), ProxyUrlError::Scheme, "{url}");
        }
        for url in ["", "http://", "http://h:0", "http://h:99999", "http://h:+1", "http://a b", "h/secret"] {
            let error = Proxy::new(url).unwrap_err();
            assert!(matches!(error, ProxyUrlError::Url(_)), "{url}: {error}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
        let long = "x".repeat(256);
        for user_info in ["secret%", "secret%2", "secret%zz", ":secret", &long, &format!("me:{long}")] {
            let error = Proxy::new(&format!("http://{user_info}@h:1")).unwrap_err();
            assert_eq!(error, ProxyUrlError::Credentials, "{user_info}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }

    #[test]
    fn credentials_are_decoded_sent_and_never_shown() {
        // The pair of RFC 7617 section 2
        let proxy = Proxy::new("http://Aladdin:open%20sesame@h:1").unwrap();
        let value = proxy.authorization().unwrap();
        assert_eq!(value, "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
        assert!(value.is_sensitive());
        assert_eq!(
            format!("{proxy} {proxy:?}"),
            "http://h:1 Proxy { url: http://h:1, has_credentials: true }"
        );
        assert_eq!(Proxy::new("http://me@h:1").unwrap().authorization().unwrap(), "Basic bWU6");
        assert_eq!(Proxy::new("http://h:1").unwrap().authorization(), None);
    }

    #[test]
    fn base64_as_in_rfc_4648() {
        for (text, encoded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(text.as_bytes()), encoded);
        }
        assert_eq!(base64(&[0xff, 0xef, 0xbe]), "/+++");
    }
}
