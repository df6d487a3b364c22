//! Which way to an origin: directly, or through which proxy.

use std::net::IpAddr;

use super::bypass::Bypass;
use super::proxy::{Proxy, ProxyScheme, ProxyUrlError};
use crate::call::Origin;

/// The proxies in use
///
/// ```
/// use steadfast::call::Request;
/// use steadfast::connect::{Proxies, Proxy, Route};
///
/// let proxy = Proxy::new("http://proxy.example:3128")?;
/// let proxies = Proxies::all(proxy.clone()).bypass("internal.example, 10.0.0.0/8");
///
/// let request = Request::post("https://api.example/v1").build()?;
/// assert_eq!(proxies.route(request.origin()), Route::Tunnel(&proxy));
/// let request = Request::post("https://llm.internal.example/v1").build()?;
/// assert_eq!(proxies.route(request.origin()), Route::Direct);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proxies {
    http: Option<Proxy>,
    https: Option<Proxy>,
    bypass: Bypass,
    bypass_loopback: bool,
}

/// The way to an origin
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route<'a> {
    /// No proxy is between
    Direct,
    /// The proxy gets the request itself, and forwards it: see [`crate::call::Request::forwarded_by`]
    Forward(&'a Proxy),
    /// The proxy makes a connection: see [`super::Tunnel`]
    Tunnel(&'a Proxy),
}

impl Proxies {
    /// No proxy at all
    pub fn none() -> Self {
        Self::default()
    }

    /// One proxy for every origin
    pub fn all(proxy: Proxy) -> Self {
        Self { http: Some(proxy.clone()), https: Some(proxy), ..Self::default() }
    }

    /// The proxy for `http` origins
    #[must_use]
    pub fn http(self, proxy: Proxy) -> Self {
        Self { http: Some(proxy), ..self }
    }

    /// The proxy for `https` origins
    #[must_use]
    pub fn https(self, proxy: Proxy) -> Self {
        Self { https: Some(proxy), ..self }
    }

    /// The hosts that are reached without a proxy, as in `NO_PROXY`; replaces an earlier list
    ///
    /// Entries stand between commas or blanks. A name covers itself and every name under it, with a
    /// dot or `*.` in front of it or without; an address covers itself, `address/bits` a network,
    /// and `*` everything. `host:port` covers that port alone. What is none of these covers nothing.
    #[must_use]
    pub fn bypass(self, list: &str) -> Self {
        Self { bypass: Bypass::new(list), ..self }
    }

    /// The proxies that environment variables ask for; `value` looks one up
    ///
    /// | variable | what for |
    /// |---|---|
    /// | `http_proxy`, `HTTP_PROXY` | `http` origins |
    /// | `https_proxy`, `HTTPS_PROXY` | `https` origins |
    /// | `all_proxy`, `ALL_PROXY` | where the one for the scheme is not set |
    /// | `no_proxy`, `NO_PROXY` | see [`Proxies::bypass`] |
    ///
    /// As with curl, the lower case goes first and an empty variable is as good as none. In a CGI
    /// program (`REQUEST_METHOD` is set) `HTTP_PROXY` may come from a client's header and is not
    /// read. Loopback addresses and `localhost` are never proxied, which curl would do: no proxy
    /// elsewhere can reach a server on this machine.
    ///
    /// Errors: a variable's URL that cannot be used; the text names the variable and not its value.
    pub fn from_environment(value: impl Fn(&str) -> Option<String>) -> Result<Self, ProxiesError> {
        let set = |name: &str| value(name).filter(|value| !value.trim().is_empty());
        let in_cgi = set("REQUEST_METHOD").is_some();
        let proxy = |names: [&'static str; 2]| {
            let mut names = names.into_iter().filter(|name| !(in_cgi && *name == "HTTP_PROXY"));
            let Some((variable, url)) = names.find_map(|name| Some((name, set(name)?))) else {
                return Ok(None);
            };
            Proxy::new(&url).map(Some).map_err(|source| ProxiesError { variable, source })
        };
        let all = proxy(["all_proxy", "ALL_PROXY"])?;
        Ok(Self {
            http: proxy(["http_proxy", "HTTP_PROXY"])?.or_else(|| all.clone()),
            https: proxy(["https_proxy", "HTTPS_PROXY"])?.or(all),
            bypass: Bypass::new(&set("no_proxy").or_else(|| set("NO_PROXY")).unwrap_or_default()),
            bypass_loopback: true,
        })
    }

    /// The way to `origin`
    pub fn route(&self, origin: &Origin) -> Route<'_> {
        let proxy = if origin.is_tls() { &self.https } else { &self.http };
        match proxy {
            Some(_) if self.bypass.covers(origin) => Route::Direct,
            Some(_) if self.bypass_loopback && is_loopback(origin.host()) => Route::Direct,
            Some(proxy) if proxy.scheme() != ProxyScheme::Socks5 && !origin.is_tls() => Route::Forward(proxy),
            Some(proxy) => Route::Tunnel(proxy),
            None => Route::Direct,
        }
    }
}

/// An environment variable that names a proxy which cannot be used
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{variable}: {source}")]
pub struct ProxiesError {
    /// The variable
    pub variable: &'static str,
    /// What is wrong with it
    pub source: ProxyUrlError,
}

/// Whether a host is this machine by its name alone
fn is_loopback(host: &str) -> bool {
    let name = host.trim_end_matches('.');
    name == "localhost"
        || name.ends_with(".localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Request;

    fn from(variables: &[(&str, &str)]) -> Result<Proxies, ProxiesError> {
        Proxies::from_environment(|name| {
            let set = variables.iter().find(|(set, _)| *set == name);
            set.map(|(_, value)| (*value).to_owned())
        })
    }

    fn route(proxies: &Proxies, url: &str) -> String {
        match proxies.route(Request::post(url).build().unwrap().origin()) {
            Route::Direct => "direct".to_owned(),
            Route::Forward(proxy) => format!("forward {}", proxy.host()),
            Route::Tunnel(proxy) => format!("tunnel {}", proxy.host()),
        }
    }

    #[test]
    fn each_scheme_has_its_variable_and_the_lower_case_goes_first() {
        let proxies = from(&[
            ("HTTP_PROXY", "http://upper"),
            ("http_proxy", "http://plain"),
            ("HTTPS_PROXY", "http://secure"),
            ("ALL_PROXY", "http://all"),
        ])
        .unwrap();
        assert_eq!(route(&proxies, "http://a.test"), "forward plain");
        assert_eq!(route(&proxies, "https://a.test"), "tunnel secure");
        let proxies = from(&[("https_proxy", " "), ("all_proxy", "socks5://all")]).unwrap();
        assert_eq!(route(&proxies, "http://a.test"), "tunnel all");
        assert_eq!(route(&proxies, "https://a.test"), "tunnel all");
        assert_eq!(route(&from(&[]).unwrap(), "https://a.test"), "direct");
        assert_eq!(route(&from(&[("http_proxy", "http://plain")]).unwrap(), "https://a.test"), "direct");
    }

    #[test]
    fn what_is_to_be_reached_directly_is() {
        let all = ("ALL_PROXY", "http://all");
        let proxies = from(&[all, ("no_proxy", "a.test"), ("NO_PROXY", "b.test")]).unwrap();
        assert_eq!(route(&proxies, "https://x.a.test"), "direct");
        assert_eq!(route(&proxies, "https://b.test"), "tunnel all");
        for host in ["localhost", "x.localhost", "127.0.0.1", "127.8.9.1", "[::1]", "[::ffff:127.0.0.1]"] {
            let url = format!("http://{host}:8080/v1");
            assert_eq!(route(&proxies, &url), "direct", "{host}");
            // Who configures a proxy for them means it.
            assert_eq!(route(&Proxies::all(Proxy::new("all").unwrap()), &url), "forward all", "{host}");
        }
        assert_eq!(route(&proxies, "http://localhost.test"), "forward all");
    }

    #[test]
    fn a_client_of_a_cgi_program_names_no_proxy() {
        let variables =
            [("HTTP_PROXY", "http://evil"), ("REQUEST_METHOD", "GET"), ("HTTPS_PROXY", "http://mine")];
        let proxies = from(&variables).unwrap();
        assert_eq!(route(&proxies, "http://a.test"), "direct");
        assert_eq!(route(&proxies, "https://a.test"), "tunnel mine");
    }

    #[test]
    fn a_variable_that_cannot_be_used_is_named_and_not_shown() {
        let error = from(&[("HTTPS_PROXY", "socks4://me:secret@proxy")]).unwrap_err();
        assert_eq!(error, ProxiesError { variable: "HTTPS_PROXY", source: ProxyUrlError::Scheme });
        assert_eq!(
            error.to_string(),
            "HTTPS_PROXY: the proxy's scheme is not one of http, https, socks5 and socks5h"
        );
    }

    #[test]
    fn one_proxy_for_all_and_one_for_each() {
        let proxy = |host: &str| Proxy::new(host).unwrap();
        let proxies = Proxies::all(proxy("all")).https(proxy("secure")).bypass("a.test");
        assert_eq!(route(&proxies, "http://b.test"), "forward all");
        assert_eq!(route(&proxies, "https://b.test"), "tunnel secure");
        assert_eq!(route(&proxies, "https://a.test"), "direct");
        assert_eq!(route(&Proxies::none().http(proxy("plain")), "http://a.test"), "forward plain");
        assert_eq!(route(&Proxies::none(), "http://a.test"), "direct");
    }
}
