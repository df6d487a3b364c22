//! SOCKS5: a tunnel through a proxy that knows nothing of HTTP (RFC 1928, RFC 1929).

use std::net::IpAddr;

use super::proxy::{Credentials, Proxy};
use super::refused;
use crate::call::Origin;
use crate::machine::{IoFailure, ProxyRefusal};

const VERSION: u8 = 5;
const CONNECT: u8 = 1;
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;
const NO_AUTHENTICATION: u8 = 0;
const USER_AND_PASSWORD: u8 = 2;
const NO_ACCEPTABLE_METHOD: u8 = 0xFF;
/// The version of RFC 1929, which is not that of SOCKS
const AUTHENTICATION_VERSION: u8 = 1;

/// A SOCKS5 handshake
pub(super) struct Socks5 {
    awaited: Awaited,
    /// What has come of the message that is awaited: at most 262 bytes
    held: Vec<u8>,
    /// What authenticates us, where we have it
    authentication: Option<Vec<u8>>,
    /// The request to connect
    request: Vec<u8>,
}

/// The message that comes next
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaited {
    Method,
    Authentication,
    Reply,
}

impl Socks5 {
    pub(super) fn start(proxy: &Proxy, origin: &Origin, outgoing: &mut Vec<u8>) -> Result<Self, IoFailure> {
        let authentication = proxy.credentials().map(authentication);
        match authentication {
            Some(_) => outgoing.extend([VERSION, 2, NO_AUTHENTICATION, USER_AND_PASSWORD]),
            None => outgoing.extend([VERSION, 1, NO_AUTHENTICATION]),
        }
        Ok(Self { awaited: Awaited::Method, held: Vec::new(), authentication, request: request(origin)? })
    }

    /// How many bytes belong to the handshake, and whether the tunnel is open
    pub(super) fn received(
        &mut self,
        bytes: &[u8],
        outgoing: &mut Vec<u8>,
    ) -> Result<(usize, bool), IoFailure> {
        let mut used = 0;
        loop {
            let whole = self.check()?;
            let take = (whole - self.held.len()).min(bytes.len() - used);
            self.held.extend_from_slice(&bytes[used..used + take]);
            used += take;
            // The length of a reply is known only from its beginning.
            let whole = self.check()?;
            if self.held.len() < whole {
                if used == bytes.len() {
                    return Ok((used, false));
                }
                continue;
            }
            match self.awaited {
                Awaited::Method if self.held[1] == USER_AND_PASSWORD => {
                    outgoing.extend(self.authentication.take().into_iter().flatten());
                    self.awaited = Awaited::Authentication;
                }
                Awaited::Method | Awaited::Authentication => {
                    outgoing.append(&mut self.request);
                    self.awaited = Awaited::Reply;
                }
                Awaited::Reply => return Ok((used, true)),
            }
            self.held.clear();
        }
    }

    /// The length of the message that is awaited, as far as is known from its beginning
    ///
    /// Errors: it says no, or is no such message.
    fn check(&self) -> Result<usize, IoFailure> {
        match (self.awaited, self.held.as_slice()) {
            (Awaited::Method | Awaited::Reply, [version, ..]) if *version != VERSION => {
                Err(refused(ProxyRefusal::Protocol, "the proxy does not speak SOCKS5"))
            }
            (Awaited::Method, [_, NO_ACCEPTABLE_METHOD, ..]) => Err(refused(
                ProxyRefusal::AuthenticationRequired,
                match self.authentication {
                    Some(_) => "the SOCKS5 proxy takes neither user name and password nor none",
                    None => "the SOCKS5 proxy asks for credentials, and it has none from us",
                },
            )),
            (Awaited::Method, [_, method, ..])
                if *method != NO_AUTHENTICATION
                    && !(*method == USER_AND_PASSWORD && self.authentication.is_some()) =>
            {
                Err(refused(ProxyRefusal::Protocol, "the SOCKS5 proxy chose a method that was not offered"))
            }
            (Awaited::Authentication, [_, status, ..]) if *status != 0 => Err(refused(
                ProxyRefusal::AuthenticationRequired,
                "the SOCKS5 proxy refused our user name and password",
            )),
            (Awaited::Method | Awaited::Authentication, _) => Ok(2),
            // Some proxies end their message where the code has said it all.
            (Awaited::Reply, [_, code, ..]) if *code != 0 => {
                let message = format!("the SOCKS5 proxy replied {code}: {}", reply(*code));
                Err(refused(ProxyRefusal::Socks(*code), message))
            }
            (Awaited::Reply, [_, _, _, IPV4, ..]) => Ok(4 + 4 + 2),
            (Awaited::Reply, [_, _, _, IPV6, ..]) => Ok(4 + 16 + 2),
            (Awaited::Reply, [_, _, _, NAME, length, ..]) => Ok(4 + 1 + usize::from(*length) + 2),
            (Awaited::Reply, [_, _, _, NAME] | [] | [_] | [_, _] | [_, _, _]) => Ok(5),
            (Awaited::Reply, _) => Err(refused(
                ProxyRefusal::Protocol,
                "the SOCKS5 proxy's reply has an address of no known kind",
            )),
        }
    }
}

/// Shows where it is, and none of the credentials
impl std::fmt::Debug for Socks5 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Socks5").field("awaited", &self.awaited).finish_non_exhaustive()
    }
}

fn authentication(credentials: &Credentials) -> Vec<u8> {
    let Credentials { user, password } = credentials;
    let mut message = vec![AUTHENTICATION_VERSION];
    for part in [user, password] {
        message.push(u8::try_from(part.len()).expect("checked when the proxy's URL was read"));
        message.extend_from_slice(part);
    }
    message
}

fn request(origin: &Origin) -> Result<Vec<u8>, IoFailure> {
    let mut request = vec![VERSION, CONNECT, 0];
    match origin.host().parse() {
        Ok(IpAddr::V4(address)) => {
            request.push(IPV4);
            request.extend(address.octets());
        }
        Ok(IpAddr::V6(address)) => {
            request.push(IPV6);
            request.extend(address.octets());
        }
        Err(_) => {
            let name = origin.host().as_bytes();
            let length = u8::try_from(name.len()).map_err(|_| {
                refused(ProxyRefusal::Unusable, "the host's name is longer than SOCKS5 can carry")
            })?;
            request.extend([NAME, length]);
            request.extend_from_slice(name);
        }
    }
    request.extend(origin.port().to_be_bytes());
    Ok(request)
}

/// What a reply's code means (RFC 1928 6)
fn reply(code: u8) -> &'static str {
    match code {
        1 => "general failure",
        2 => "not allowed by its rules",
        3 => "network unreachable",
        4 => "host unreachable",
        5 => "connection refused",
        6 => "time to live expired",
        7 => "command not supported",
        8 => "kind of address not supported",
        _ => "a code of no known meaning",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Request;
    use crate::connect::Tunnel;
    use crate::machine::{FailureKind, Stage};

    const NAME_REQUEST: &[u8] = b"\x05\x01\x00\x03\x06a.test\x01\xbb";

    fn tunnel(proxy: &str, url: &str) -> Tunnel {
        let request = Request::post(url).build().unwrap();
        Tunnel::new(&Proxy::new(proxy).unwrap(), request.origin()).unwrap()
    }

    /// Feeds each message in every split, and asserts what goes out before it
    fn play(proxy: &str, url: &str, exchanges: &[(&[u8], &[u8])]) -> Result<Option<Vec<u8>>, IoFailure> {
        let run = |cut: usize| {
            let mut tunnel = tunnel(proxy, url);
            let mut behind = Vec::new();
            for (out, input) in exchanges {
                assert_eq!(tunnel.outgoing(), *out);
                tunnel.sent(out.len());
                let (first, second) = input.split_at(cut.min(input.len()));
                for piece in [first, second] {
                    let used = tunnel.received(piece)?;
                    behind.extend_from_slice(&piece[used..]);
                }
            }
            Ok(tunnel.is_open().then_some(behind))
        };
        let whole = run(usize::MAX);
        let longest = exchanges.iter().map(|(_, input)| input.len()).max().unwrap_or(0);
        for cut in 0..longest {
            assert_eq!(run(cut), whole, "cut at {cut}");
        }
        whole
    }

    fn refusal(proxy: &str, exchanges: &[(&[u8], &[u8])]) -> ProxyRefusal {
        let failure = play(proxy, "https://a.test", exchanges).unwrap_err();
        assert_eq!(failure.stage, Stage::Proxy);
        let FailureKind::Proxy(refusal) = failure.kind else { panic!("{failure:?}") };
        refusal
    }

    #[test]
    fn names_are_sent_to_the_proxy_and_bytes_behind_the_reply_are_kept() {
        for reply in [
            &b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00"[..],
            b"\x05\x00\x00\x03\x03abc\x00\x50",
            b"\x05\x00\x00\x03\x00\x00\x50",
            b"\x05\x00\x00\x04\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x50",
        ] {
            let behind = [reply, b"hello"].concat();
            let exchanges = [(&b"\x05\x01\x00"[..], &b"\x05\x00"[..]), (NAME_REQUEST, &behind)];
            assert_eq!(play("socks5://p", "https://a.test", &exchanges).unwrap().unwrap(), b"hello");
        }
    }

    #[test]
    fn addresses_are_sent_as_addresses() {
        let reply = b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00";
        let run = |url: &str, request: &[u8]| {
            play("socks5h://p", url, &[(b"\x05\x01\x00", b"\x05\x00"), (request, reply)]).unwrap().unwrap()
        };
        assert_eq!(run("http://192.0.2.7:81", b"\x05\x01\x00\x01\xc0\x00\x02\x07\x00\x51"), b"");
        let request =
            b"\x05\x01\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x01\xbb";
        assert_eq!(run("https://[::1]", request), b"");
    }

    #[test]
    fn user_name_and_password_where_the_proxy_asks_for_them() {
        let proxy = "socks5://me:pass%20word@p";
        let hello = &b"\x05\x02\x00\x02"[..];
        let authentication = &b"\x01\x02me\x09pass word"[..];
        let reply = &b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00"[..];
        let asked: [(&[u8], &[u8]); 3] =
            [(hello, b"\x05\x02"), (authentication, b"\x01\x00"), (NAME_REQUEST, reply)];
        assert_eq!(play(proxy, "https://a.test", &asked).unwrap().unwrap(), b"");
        assert_eq!(
            play(proxy, "https://a.test", &[(hello, b"\x05\x00"), (NAME_REQUEST, reply)]).unwrap().unwrap(),
            b""
        );
        let refused = [(hello, &b"\x05\x02"[..]), (authentication, b"\x01\x01")];
        assert_eq!(refusal(proxy, &refused), ProxyRefusal::AuthenticationRequired);
        assert_eq!(refusal(proxy, &[(hello, b"\x05\xff")]), ProxyRefusal::AuthenticationRequired);
        assert_eq!(
            refusal("socks5://p", &[(b"\x05\x01\x00", b"\x05\xff")]),
            ProxyRefusal::AuthenticationRequired
        );
        let shown = format!("{:?}", tunnel(proxy, "https://a.test"));
        assert!(!shown.contains("pass") && !shown.contains("112"), "{shown}");
    }

    #[test]
    fn every_reply_code_reaches_the_error() {
        for code in 1..=255 {
            // Also where the proxy leaves out the rest
            for reply in [&[5, code][..], &[5, code, 0, 1, 0, 0, 0, 0, 0, 0], &[5, code, 0, 9]] {
                let exchanges = [(&b"\x05\x01\x00"[..], &b"\x05\x00"[..]), (NAME_REQUEST, reply)];
                assert_eq!(refusal("socks5://p", &exchanges), ProxyRefusal::Socks(code));
            }
        }
        let mut refused = tunnel("socks5://p", "https://a.test");
        refused.received(b"\x05\x00").unwrap();
        let message = refused.received(b"\x05\x05").unwrap_err().message;
        assert_eq!(message, "the SOCKS5 proxy replied 5: connection refused");
    }

    #[test]
    fn what_is_not_socks5_is_refused() {
        let hello = &b"\x05\x01\x00"[..];
        for input in [&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], b"\x04\x00", b"\x05\x01", b"\x05\x02"] {
            assert_eq!(refusal("socks5://p", &[(hello, input)]), ProxyRefusal::Protocol, "{input:?}");
        }
        for reply in [&b"\x04\x00\x00\x01"[..], b"\x05\x00\x00\x02\x00", b"\x05\x00\x00\x00\x00"] {
            let exchanges = [(hello, &b"\x05\x00"[..]), (NAME_REQUEST, reply)];
            assert_eq!(refusal("socks5://p", &exchanges), ProxyRefusal::Protocol, "{reply:?}");
        }
    }

    #[test]
    fn a_name_that_does_not_fit_is_told_before_anything_is_sent() {
        let url = |length: usize| format!("https://{}/", "a".repeat(length));
        let start = |length: usize| {
            let request = Request::post(&url(length)).build().unwrap();
            Tunnel::new(&Proxy::new("socks5://p").unwrap(), request.origin()).map(|_| ())
        };
        assert_eq!(start(255), Ok(()));
        let failure = start(256).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Proxy(ProxyRefusal::Unusable));
    }
}
