//! CONNECT: a tunnel through an HTTP proxy (RFC 9110 9.3.6).

use http::header::PROXY_AUTHORIZATION;
use http::{HeaderMap, Method, StatusCode};

use super::proxy::Proxy;
use super::refused;
use crate::call::Origin;
use crate::http1::{Http1Error, Limits, Part, RequestHead, ResponseDecoder};
use crate::machine::{IoFailure, ProxyRefusal};

/// The longest head that a proxy may answer CONNECT with, in bytes
pub const MAX_CONNECT_HEAD_BYTES: usize = 16 * 1024;

/// A CONNECT whose answer is awaited
#[derive(Debug)]
pub(super) struct HttpConnect(ResponseDecoder);

impl HttpConnect {
    pub(super) fn start(proxy: &Proxy, origin: &Origin, outgoing: &mut Vec<u8>) -> Self {
        let target = origin.host_and_port();
        let mut headers = HeaderMap::new();
        headers.extend(proxy.authorization().map(|value| (PROXY_AUTHORIZATION, value)));
        let head = RequestHead {
            method: &Method::CONNECT,
            target: &target,
            host: &target,
            headers: &headers,
            body_length: Some(0),
        };
        outgoing.extend_from_slice(&head.encode().expect("an origin's host was checked with its URL"));
        let limits = Limits { max_head_bytes: MAX_CONNECT_HEAD_BYTES };
        Self(ResponseDecoder::new(&Method::CONNECT, limits))
    }

    /// How many bytes belong to the answer, and whether it opens the tunnel
    pub(super) fn received(&mut self, bytes: &[u8]) -> Result<(usize, bool), IoFailure> {
        let mut used = 0;
        loop {
            let (consumed, part) = self.0.next(&bytes[used..]).map_err(broken)?;
            used += consumed;
            match part {
                Some(Part::Interim(_)) => {}
                // Its Content-Length, if it gives one, means nothing: what follows is the tunnel.
                Some(Part::Head(head)) if head.status.is_success() => return Ok((used, true)),
                Some(Part::Head(head)) => return Err(status(head.status)),
                Some(Part::Body(_) | Part::End(_)) | None => return Ok((used, false)),
            }
        }
    }
}

/// The answer's body is not read: a proxy's page of HTML is for a browser
fn status(status: StatusCode) -> IoFailure {
    match status {
        // tinyproxy answers wrong credentials with 401; nobody but a proxy answers CONNECT.
        StatusCode::PROXY_AUTHENTICATION_REQUIRED | StatusCode::UNAUTHORIZED => {
            refused(ProxyRefusal::AuthenticationRequired, format!("the proxy answered CONNECT with {status}"))
        }
        _ => refused(
            ProxyRefusal::Status(status.as_u16()),
            format!("the proxy answered CONNECT with {status}"),
        ),
    }
}

fn broken(error: Http1Error) -> IoFailure {
    refused(ProxyRefusal::Protocol, format!("the proxy's answer to CONNECT: {error}"))
}

#[cfg(test)]
mod tests {
    use crate::call::Request;
    use crate::connect::{Proxy, Tunnel};
    use crate::machine::{FailureKind, IoFailure, ProxyRefusal, Stage};

    use super::MAX_CONNECT_HEAD_BYTES;

    fn tunnel(proxy: &str, url: &str) -> Tunnel {
        let request = Request::post(url).build().unwrap();
        Tunnel::new(&Proxy::new(proxy).unwrap(), request.origin()).unwrap()
    }

    fn sent(proxy: &str, url: &str) -> String {
        String::from_utf8(tunnel(proxy, url).outgoing().to_vec()).unwrap()
    }

    /// The bytes behind the answer, however it is cut
    fn answered(text: &str) -> Result<Option<String>, IoFailure> {
        let run = |cut: usize| {
            let mut tunnel = tunnel("http://p", "https://a.test");
            tunnel.sent(tunnel.outgoing().len());
            let (first, second) = text.as_bytes().split_at(cut);
            let mut behind = Vec::new();
            for piece in [first, second] {
                let used = tunnel.received(piece)?;
                behind.extend_from_slice(&piece[used..]);
            }
            Ok(tunnel.is_open().then(|| String::from_utf8(behind).unwrap()))
        };
        let whole = run(text.len());
        for cut in 0..text.len() {
            assert_eq!(run(cut), whole, "cut at {cut}");
        }
        whole
    }

    fn refusal(text: &str) -> (ProxyRefusal, String) {
        let failure = answered(text).unwrap_err();
        assert_eq!(failure.stage, Stage::Proxy);
        let FailureKind::Proxy(refusal) = failure.kind else { panic!("{failure:?}") };
        (refusal, failure.message)
    }

    #[test]
    fn the_request_names_host_and_port_always() {
        assert_eq!(
            sent("http://p", "https://a.test/v1?key=x"),
            "CONNECT a.test:443 HTTP/1.1\r\nhost: a.test:443\r\naccept-encoding: identity\r\n\r\n"
        );
        assert!(
            sent("http://p", "https://[::1]:8443")
                .starts_with("CONNECT [::1]:8443 HTTP/1.1\r\nhost: [::1]:8443\r\n")
        );
    }

    #[test]
    fn credentials_go_to_the_proxy_and_nowhere_else() {
        let url = "http://Aladdin:open%20sesame@p";
        assert!(
            sent(url, "https://a.test")
                .contains("\r\nproxy-authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n")
        );
        let shown = format!("{:?}", tunnel(url, "https://a.test"));
        assert!(!shown.contains("QWxh") && !shown.contains("sesame"), "{shown}");
    }

    #[test]
    fn l08_a_success_opens_the_tunnel_behind_its_empty_line() {
        for head in [
            "HTTP/1.1 200 Connection established\r\n\r\n",
            "HTTP/1.0 200 OK\r\nProxy-Agent: x\r\n\r\n",
            "HTTP/1.1 200 Connection established\r\nContent-Length: 5\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
        ] {
            assert_eq!(answered(head).unwrap().unwrap(), "", "{head}");
            assert_eq!(answered(&format!("{head}\x16\x03tls")).unwrap().unwrap(), "\x16\x03tls", "{head}");
        }
    }

    #[test]
    fn l08_refusals_are_typed_and_their_pages_are_not_read() {
        let (refusal_, message) = refusal(
            "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\n\r\n",
        );
        assert_eq!(refusal_, ProxyRefusal::AuthenticationRequired);
        assert_eq!(message, "the proxy answered CONNECT with 407 Proxy Authentication Required");
        assert_eq!(refusal("HTTP/1.1 401 Unauthorized\r\n\r\n").0, ProxyRefusal::AuthenticationRequired);
        let (refusal_, message) =
            refusal("HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\nContent-Length: 15\r\n\r\n");
        assert_eq!(refusal_, ProxyRefusal::Status(502));
        assert_eq!(message, "the proxy answered CONNECT with 502 Bad Gateway");
        assert_eq!(refusal("HTTP/1.1 403 Forbidden\r\n\r\n").0, ProxyRefusal::Status(403));
        assert_eq!(refusal("HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n").0, ProxyRefusal::Status(302));
    }

    #[test]
    fn what_is_no_answer_is_refused_at_once_and_within_bounds() {
        for text in ["SSH-2.0-OpenSSH", "\x05\x00", "HTTP/1.1 101 Switching Protocols\r\n\r\n"] {
            assert_eq!(refusal(text).0, ProxyRefusal::Protocol, "{text:?}");
        }
        let mut endless = tunnel("http://p", "https://a.test");
        endless.received(b"HTTP/1.1 200 OK\r\n").unwrap();
        let failed = (0..=MAX_CONNECT_HEAD_BYTES).find(|_| endless.received(b"A: b\r\n").is_err());
        assert_eq!(failed, Some((MAX_CONNECT_HEAD_BYTES - 17) / 6));
        assert_eq!(answered("HTTP/1.1 200 OK\r\n").unwrap(), None);
        assert_eq!(tunnel("p", "https://a.test").eof().kind, FailureKind::Reset);
    }
}
