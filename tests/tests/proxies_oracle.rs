//! Which proxy for which origin, as hyper-util's matcher (that of reqwest) decides it.

use hyper_util::client::proxy::matcher::Matcher;
use proptest::prelude::*;
use steadfast::call::Request;
use steadfast::connect::{Proxies, Proxy, Route};

/// What is known to differ, by design:
///
/// - a port in the list: here `host:port` covers that port, there nothing
/// - `*.name`: here as `.name`, there nothing
/// - blanks between entries, which curl takes since 7.86: there nothing
/// - `*` covers addresses too, as with curl: there only names
const LISTS: &[&str] = &[
    "",
    "example.com",
    ".example.com",
    "EXAMPLE.com",
    "a.test, b.test,c.test",
    "192.0.2.1",
    "192.0.2.0/24, 10.0.0.0/8",
    "2001:db8::/32",
    "::1, example.org",
    "com",
    ",,example.com,",
    "xample.com",
];

const HOSTS: &[&str] = &[
    "example.com",
    "www.example.com",
    "EXAMPLE.COM",
    "notexample.com",
    "example.org",
    "example.com.evil.test",
    "a.test",
    "x.b.test",
    "c.test:8080",
    "192.0.2.1",
    "192.0.2.200:81",
    "192.0.20.1",
    "10.20.30.40",
    "[2001:db8::7]",
    "[2001:db9::7]",
    "[::1]:8080",
];

/// Host and port of the proxy, if there is one
fn ours(http: &str, https: &str, list: &str, url: &str) -> Option<(String, u16)> {
    let mut proxies = Proxies::none().bypass(list);
    if !http.is_empty() {
        proxies = proxies.http(Proxy::new(http).expect("a proxy"));
    }
    if !https.is_empty() {
        proxies = proxies.https(Proxy::new(https).expect("a proxy"));
    }
    match proxies.route(Request::post(url).build().expect("a URL").origin()) {
        Route::Direct => None,
        Route::Forward(proxy) | Route::Tunnel(proxy) => Some((proxy.host().to_owned(), proxy.port())),
    }
}

fn theirs(http: &str, https: &str, list: &str, url: &str) -> Option<(String, u16)> {
    let matcher = Matcher::builder().http(http).https(https).no(list).build();
    let intercept = matcher.intercept(&url.parse().expect("a URL"))?;
    let uri = intercept.uri();
    let port = if uri.scheme_str().is_some_and(|scheme| scheme.starts_with("socks")) { 1080 } else { 80 };
    Some((uri.host().expect("a host").to_owned(), uri.port_u16().unwrap_or(port)))
}

const PROXIES: &[&str] = &[
    "",
    "http://proxy.example:3128",
    "proxy.example:3128",
    "http://me:secret@proxy.example",
    "socks5://proxy.example:9050",
    "socks5h://proxy.example",
];

#[test]
fn every_list_with_every_host() {
    let mut covered = 0;
    for list in LISTS {
        for host in HOSTS {
            for scheme in ["http", "https"] {
                let url = format!("{scheme}://{host}/v1");
                let (plain, secure) = ("http://plain:1", "http://secure:2");
                let ours = ours(plain, secure, list, &url);
                assert_eq!(ours, theirs(plain, secure, list, &url), "{url} with {list:?}");
                covered += usize::from(ours.is_none());
            }
        }
    }
    assert!(covered > 50, "{covered}");
}

#[test]
fn a_star_covers_every_name() {
    for host in HOSTS.iter().filter(|host| host.ends_with(|last: char| last.is_ascii_alphabetic())) {
        let url = format!("https://{host}/v1");
        assert_eq!(ours("", "http://secure:2", "*", &url), None);
        assert_eq!(theirs("", "http://secure:2", "*", &url), None);
    }
}

#[test]
fn every_form_of_a_proxy() {
    for http in PROXIES {
        for https in PROXIES {
            for url in ["http://a.test", "https://a.test"] {
                assert_eq!(ours(http, https, "", url), theirs(http, https, "", url), "{http} {https} {url}");
            }
        }
    }
}

#[test]
fn credentials_are_read_alike() {
    for user_info in ["Aladdin:open%20sesame", "me:", "me", "a%40b:c%2Fd%3Ae", "me:pass:word"] {
        let url = format!("http://{user_info}@proxy.example:3128");
        let matcher = Matcher::builder().all(url.clone()).build();
        let theirs = matcher.intercept(&"http://a.test".parse().expect("a URL")).expect("a proxy");
        let theirs = theirs.basic_auth().expect("credentials").to_str().expect("ASCII").to_owned();
        let request = Request::post("https://a.test").build().expect("a request");
        let tunnel = steadfast::connect::Tunnel::new(&Proxy::new(&url).expect("a proxy"), request.origin());
        let sent = tunnel.expect("a tunnel").outgoing().to_vec();
        let sent = String::from_utf8(sent).expect("ASCII");
        assert!(sent.contains(&format!("\r\nproxy-authorization: {theirs}\r\n")), "{user_info}");
    }
}

proptest! {
    /// Lists of names and networks at random, on hosts made of the same few words
    #[test]
    fn lists_at_random(
        entries in prop::collection::vec("[.]?(a|b|ab)([.](a|b|test)){0,2}|10[.](0|1|16)[.]0[.]0/(8|12|16|32)", 0..5),
        host in "(a|b|ab)([.](a|b|test)){0,3}|10[.](0|1|2|16|31)[.]0[.](0|1)",
    ) {
        let list = entries.join(",");
        let url = format!("https://{host}/");
        let (plain, secure) = ("http://plain:1", "http://secure:2");
        prop_assert_eq!(ours(plain, secure, &list, &url), theirs(plain, secure, &list, &url), "{} {}", url, list);
    }
}
