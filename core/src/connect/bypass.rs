//! Which hosts are reached without a proxy.

use std::net::IpAddr;

use crate::call::Origin;

/// The hosts of a `NO_PROXY` list
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Bypass(Vec<Entry>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    hosts: Hosts,
    /// Only on this port
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Hosts {
    All,
    /// This name and every name under it
    Names(String),
    /// The addresses that begin with so many bits of this one
    Network(IpAddr, u32),
}

impl Bypass {
    /// Reads a list as curl does: entries between commas and blanks, see [`super::Proxies::bypass`]
    pub(super) fn new(list: &str) -> Self {
        let entries = list.split(|c: char| c == ',' || c.is_ascii_whitespace());
        Self(entries.filter_map(Entry::new).collect())
    }

    pub(super) fn covers(&self, origin: &Origin) -> bool {
        self.0.iter().any(|entry| entry.covers(origin))
    }
}

impl Entry {
    /// `None` for an entry that names no host
    fn new(text: &str) -> Option<Self> {
        if let Some(network) = network(text) {
            return Some(Self { hosts: network, port: None });
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) => match port.parse() {
                Ok(port) => (host, Some(port)),
                Err(_) => return None,
            },
            None => (text, None),
        };
        if let Some(network) = network(host) {
            return Some(Self { hosts: network, port });
        }
        let name = host.strip_prefix('*').filter(|rest| rest.starts_with('.')).unwrap_or(host);
        let name = name.trim_start_matches('.').trim_end_matches('.').to_ascii_lowercase();
        match name.as_str() {
            "" => None,
            "*" => Some(Self { hosts: Hosts::All, port }),
            _ => Some(Self { hosts: Hosts::Names(name), port }),
        }
    }

    fn covers(&self, origin: &Origin) -> bool {
        self.port.is_none_or(|port| port == origin.port()) && self.hosts.cover(origin.host())
    }
}

impl Hosts {
    fn cover(&self, host: &str) -> bool {
        match self {
            Self::All => true,
            Self::Names(name) => {
                let host = host.trim_end_matches('.');
                host.strip_suffix(name.as_str()).is_some_and(|left| left.is_empty() || left.ends_with('.'))
            }
            Self::Network(network, bits) => {
                host.parse().is_ok_and(|address| begin_alike(*network, address, *bits))
            }
        }
    }
}

/// An address, perhaps in brackets, perhaps with a prefix length
fn network(text: &str) -> Option<Hosts> {
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits.parse::<u32>().ok()?)),
        None => (text, None),
    };
    let bare = address.strip_prefix('[').and_then(|address| address.strip_suffix(']')).unwrap_or(address);
    let address: IpAddr = bare.parse().ok()?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    Some(Hosts::Network(address, bits.unwrap_or(most))).filter(|_| bits.is_none_or(|bits| bits <= most))
}

/// Whether the first `bits` of two addresses of one family are equal
fn begin_alike(a: IpAddr, b: IpAddr, bits: u32) -> bool {
    match (a, b) {
        (IpAddr::V4(a), IpAddr::V4(b)) => {
            let differ = u32::from(a) ^ u32::from(b);
            differ.leading_zeros() >= bits
        }
        (IpAddr::V6(a), IpAddr::V6(b)) => {
            let differ = u128::from(a) ^ u128::from(b);
            differ.leading_zeros() >= bits
        }
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Request;

    fn covers(list: &str, url: &str) -> bool {
        Bypass::new(list).covers(Request::post(url).build().unwrap().origin())
    }

    /// Lists, and what each does and does not cover: curl's manual ("no_proxy"), its tests 1624 ff.,
    /// and the package `httpproxy` of Go for ports
    #[test]
    fn lists() {
        for (list, covered, not_covered) in [
            ("", &[][..], &["http://example.com", "http://127.0.0.1"][..]),
            ("*", &["http://example.com", "http://[::1]"], &[]),
            (
                "example.com",
                &[
                    "http://example.com",
                    "https://EXAMPLE.com",
                    "http://www.example.com",
                    "http://example.com:81",
                ],
                &["http://notexample.com", "http://example.com.evil", "http://example.org"],
            ),
            (".example.com", &["http://www.example.com", "http://example.com"], &["http://xexample.com"]),
            ("*.example.com", &["http://www.example.com", "http://example.com"], &["http://xexample.com"]),
            ("example.com.", &["http://example.com", "http://example.com."], &["http://example"]),
            (
                "a.test, b.test\tc.test",
                &["http://a.test", "http://b.test", "http://c.test"],
                &["http://d.test"],
            ),
            (
                "example.com:8080",
                &["http://example.com:8080"],
                &["http://example.com", "https://example.com"],
            ),
            ("example.com:http", &[], &["http://example.com"]),
            (",. ,:80", &[], &["http://example.com", "http://a"]),
            ("192.0.2.1", &["http://192.0.2.1"], &["http://192.0.2.10", "http://x.192.0.2.1.test"]),
            ("192.0.2.1:81", &["http://192.0.2.1:81"], &["http://192.0.2.1"]),
            (
                "192.0.2.0/24",
                &["http://192.0.2.0", "http://192.0.2.255"],
                &["http://192.0.3.0", "http://[::1]"],
            ),
            ("192.0.2.128/25", &["http://192.0.2.128"], &["http://192.0.2.127"]),
            ("192.0.2.1/0", &["http://8.8.8.8"], &["http://example.com", "http://[::1]"]),
            ("192.0.2.1/33", &[], &["http://192.0.2.1"]),
            ("192.0.2.1/-1", &[], &["http://192.0.2.1"]),
            (
                "2001:db8::/32",
                &["http://[2001:db8:ffff::1]"],
                &["http://[2001:db9::1]", "http://32.1.13.184"],
            ),
            ("[2001:db8::1]", &["http://[2001:db8::1]"], &["http://[2001:db8::2]"]),
            ("[2001:db8::1]:81", &["http://[2001:DB8:0::1]:81"], &["http://[2001:db8::1]"]),
            ("::1", &["http://[::1]"], &["http://[::2]"]),
        ] {
            for url in covered {
                assert!(covers(list, url), "{list:?} covers {url}");
            }
            for url in not_covered {
                assert!(!covers(list, url), "{list:?} does not cover {url}");
            }
        }
    }
}
